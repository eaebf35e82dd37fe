//! Two servers on one database under load: the database and the servers are killed, and told to end, again and again, and
//! nothing that was acknowledged is lost, nothing happens twice. `ONUS_SOAK` makes it 20 of each under 64 callers.

use crate::support::load::Load;
use crate::support::pair::Pair;
use crate::support::{Rng, Site};
use onus_testkit::{Cluster, Durability};
use std::time::Duration;

/// Killed or told to end, the database or a server.
const WAYS: usize = 4;

#[test]
fn servers_and_their_database_are_killed_and_nothing_is_lost() {
    let (callers, kills) = if std::env::var_os("ONUS_SOAK").is_some() { (64, 20) } else { (16, 2) };
    let Some(mut cluster) = Cluster::start(Durability::Durable) else { return };
    let site = Site::at(Some(cluster.database())).founded();
    let bearers = site.token_bearers(callers);
    let pair = Pair::start(&site);
    let mut rng = Rng::seeded(29);
    let load = Load::run(&pair, &bearers, |load| {
        for round in 0..kills * WAYS {
            // Not before somebody has finished something since the last time, and then at any moment of the work.
            load.until_finished(8);
            std::thread::sleep(Duration::from_millis(rng.below(200)));
            match round % WAYS {
                0 => {
                    cluster.kill();
                    cluster.restart();
                }
                1 => pair.replace(round / WAYS, "KILL"),
                2 => {
                    cluster.stop();
                    cluster.restart();
                }
                _ => pair.replace(round / WAYS, "TERM"),
            }
            eprintln!("{} of {} ends, {} tasks complete", round + 1, kills * WAYS, load.finished());
        }
    });
    load.assert_kept(&site);
    let (done, repeated) = (load.finished(), pair.repeated());
    assert!(repeated >= kills, "the kills must hit: {repeated}");
    eprintln!("{callers} callers, {kills} ends of each kind: {done} tasks, {repeated} calls sent again");
}
