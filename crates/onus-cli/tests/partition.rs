//! Cables are pulled out: between callers and a server, and between a server and its database in the middle of its
//! transactions. Others go on, and what nobody knew is told by its key.

use crate::support::Site;
use crate::support::load::Load;
use crate::support::network::Network;
use crate::support::pair::Pair;
use crate::support::server::Server;
use crate::support::wrapper::until;
use onus_testkit::{Cluster, Durability};
use std::process::Stdio;
use std::time::Instant;

#[test]
fn what_is_cut_off_holds_nobody_up_and_loses_nothing() {
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let Some(network) = Network::new() else { return };
    let (to_database, to_callers) = (network.cable(1), network.cable(2));
    cluster.open_to(&to_database.ours, &to_database.net);
    let near = cluster.database();
    let far = near.replace("127.0.0.1", &to_database.ours) + "?sslmode=disable";
    let site = Site::at(Some(near)).founded();
    let bearers = site.token_bearers(16);
    let usual = ["serve", "--json", "--log", "quiet", "--rate", "1000000", "--store", &far, "--insecure"];
    let listen = format!("{}:7420", to_callers.theirs);
    let words = [&usual[..], &["--allow-host", &to_callers.theirs, "--listen", &listen]].concat();
    let mut remote = network.inside(&site.command(&words));
    let servers = [Server::spawn_with(&mut remote, Stdio::null()), Server::start(&site)];
    let pair = Pair::of(&site, servers);
    let load = Load::run(&pair, &bearers, |load| {
        for (what, cable) in [("the database", &to_database), ("its callers", &to_callers)] {
            load.until_finished(20);
            let began = Instant::now();
            cable.cut();
            // Each caller that meets the silence goes on at the other server.
            load.until_finished(2 * bearers.len());
            eprintln!("cut off from {what}: others go on after {:.1?}", began.elapsed());
            // The first cut lasts until the server has noticed and sent somebody away; nobody waits for the second.
            until("a call is sent again", || pair.repeated() > 0);
            cable.mend();
            // The one that was cut off is of use again.
            until("the server is ready again", || {
                pair.any(0).try_call("GET", "/readyz", &[], None).is_ok_and(|reply| reply.status == 200)
            });
        }
    });
    load.assert_kept(&site);
    eprintln!("{} tasks, {} calls sent again", load.finished(), pair.repeated());
}
