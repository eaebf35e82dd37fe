//! `mirror check` of everything that only hears: a test arrives by each channel, or what keeps it is told.

use crate::support::receiver::{Receiver, TAKEN, desktop};
use crate::support::{Site, finish, start};
use std::net::TcpListener;

#[test]
fn check_sends_a_test_by_every_channel_and_says_what_keeps_it_from_arriving() {
    let receiver = Receiver::start(|_| TAKEN);
    let site = Site::new();
    let kinds = ["webhook", "slack", "teams", "ntfy"];
    let channel = |kind: &&str| {
        let more = match *kind {
            "webhook" => ", secret_file: secret",
            "ntfy" => ", to: alarms",
            _ => "",
        };
        format!("  {kind}: {{kind: {kind}, url: \"{}\"{more}}}\n", receiver.url())
    };
    let channels: String = kinds.iter().map(channel).collect();
    std::fs::write(site.repo().join("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let text = format!("channels:\n{channels}  desk: {{kind: desktop}}\n");
    std::fs::write(site.repo().join("onus.yaml"), &text).unwrap();
    let (bin, said) = desktop(&site);
    for kind in kinds {
        site.ok(&["mirror", "check", kind]);
        let last = receiver.taken().pop().unwrap_or_else(|| panic!("{kind}: nothing arrived"));
        assert!(last.body.contains("you will be told"), "{kind}: {last:#?}");
    }
    assert_eq!(receiver.taken().len(), kinds.len(), "one each");
    let check =
        |path: &str| finish(start(site.command(&["mirror", "check", "desk", "--json"]).env("PATH", path)));
    assert_eq!(check(&format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).exit, Some(0));
    assert!(std::fs::read_to_string(said).unwrap().contains("A test from Onus"));
    // Nobody is there, in whatever way.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = text.replace(receiver.url().split('/').nth(2).unwrap(), &gone.to_string());
    std::fs::write(site.repo().join("onus.yaml"), nowhere).unwrap();
    for kind in kinds {
        let told = site.run(&["mirror", "check", kind, "--json"]);
        assert_eq!((told.exit, told.code().as_str()), (Some(5), "mirror_stuck"), "{kind}: {told:#?}");
    }
    let told = check("/nonexistent");
    assert!(told.exit == Some(5) && told.stderr.contains("notify-send"), "{told:#?}");
}
