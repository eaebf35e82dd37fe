//! What all programs of one run share (`tests/run`): says in `NAME=VALUE` lines where it is, and ends it when standard input
//! ends. `services postgres`: two servers and their template; nothing where PostgreSQL is not installed.
//! `services localstack DIRECTORY`: one LocalStack, of which the directory tells.

#![allow(clippy::print_stdout, reason = "whoever starts it reads it")]

use onus_testkit::{Cluster, Durability, LocalStack, Template};
use std::path::Path;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["postgres"] => {
            let Some(template) = Template::shared() else { return };
            let clusters = [Durability::Careless, Durability::Durable].map(Cluster::start);
            let variables = clusters.iter().flatten().map(Cluster::variable);
            for (name, value) in variables.chain([template.variable()]) {
                println!("{name}={value}");
            }
            println!();
            until_told();
        }
        ["localstack", directory] => {
            let offered = LocalStack::offer(Path::new(directory));
            until_told();
            drop(offered);
        }
        _ => std::process::exit(2),
    }
}

/// Standard input ends when whoever started this is gone.
fn until_told() {
    drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
}
