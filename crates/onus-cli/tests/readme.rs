//! Every line of the tour in README.md works.

use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_of_the_readme_works() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let tour = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_onus")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-euc", &format!("git init -q .\n{tour}")])
        .current_dir(dir.path())
        .env("PATH", path)
        .env("ONUS_KEY_DIR", dir.path().join("keys"))
        .env_remove("ONUS_AS")
        .env_remove("ONUS_STORE")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    assert!(out.contains("API-1 existing"), "{out}");
    assert!(out.contains("API-1 is yours"), "{out}");
}
