//! What a shell offers while somebody types: asked through bash itself, with the lines that `onus completions` gives it.

use crate::support::{ONUS, Site};
use std::path::PathBuf;
use std::process::Command;

/// What bash offers for the last of these words.
fn offered(site: &Site, words: &[&str]) -> Vec<String> {
    let script = r#"source <(onus completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
        offer=$(complete -p onus | sed 's/.*-F \([^ ]*\).*/\1/')
        "$offer" onus "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let programs = PathBuf::from(ONUS).parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    site.surroundings(&mut bash).args(["-c", script, "bash"]).args(words).env("PATH", path);
    let said = bash.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    let mut all: Vec<String> =
        text.split_whitespace().map(str::to_owned).filter(|word| !word.starts_with('-')).collect();
    all.sort();
    all
}

#[test]
fn tasks_workers_and_workstations_are_offered_as_one_types() {
    let site = Site::new();
    site.agents(2);
    for title in ["One", "Two", "Three"] {
        site.add(title);
    }
    site.by_person(&["drop", "T-3", "--reason", "nobody wants it"]);
    assert_eq!(offered(&site, &["onus", "cla"]), ["claim"]);
    assert_eq!(offered(&site, &["onus", "claim", "T-"]), ["T-1", "T-2"], "what is over is not claimed");
    assert_eq!(offered(&site, &["onus", "list", "--assignee", "@a"]), ["@a1", "@a2", &site.person]);
    assert_eq!(offered(&site, &["onus", "claim", "T-1", "--workstation", "ws-"])[..2], ["ws-1", "ws-2"]);
    // Who has nothing to ask is not bothered.
    assert_eq!(offered(&Site::empty(), &["onus", "claim", "T-"]), [""; 0]);
}
