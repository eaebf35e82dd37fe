//! Cases made from the server's own document: no defect, and no answer that the document does not know.

use crate::support::Site;
use crate::support::server::Server;
use std::process::Command;

/// What the script says when the tool cannot be had here.
const UNAVAILABLE: i32 = 77;

#[test]
fn the_document_tells_every_answer() {
    let site = Site::new();
    site.agents(2);
    for n in 0..3 {
        site.add(&format!("task {n}"));
    }
    let server = Server::start(&site);
    // So many for each of the operations: all of them together are a few hundred, or fifty thousand.
    let seeds = onus_sim::seeds(10, 700);
    let (examples, seed) = ((seeds.end - seeds.start).to_string(), seeds.start.to_string());
    // Whatever the case says, and then about a task that is there.
    for (handle, task) in [(site.person.as_str(), None), ("@a1", Some("T-1"))] {
        let token = site.token(handle);
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/schemathesis"));
        let run = script.args([&server.url, &token, &examples, &seed]).args(task).output().unwrap();
        if run.status.code() == Some(UNAVAILABLE) {
            eprintln!("skipped: {}", String::from_utf8_lossy(&run.stderr));
            return;
        }
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{told}\n{}", String::from_utf8_lossy(&run.stderr));
        // How many cases, and what makes the same ones again.
        for line in
            told.lines().map(str::trim).filter(|line| line.contains("generated") || line.starts_with("Seed"))
        {
            eprintln!("{handle}: {line}");
        }
    }
    site.assert_sound();
}
