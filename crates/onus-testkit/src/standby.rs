//! A second server that follows the first, and takes its place when it is told to.

use crate::cluster::{Cluster, USER, programs};
use std::time::Duration;

impl Cluster {
    /// A copy of this server that follows it and takes no writes.
    pub fn standby(&self) -> Cluster {
        let mut standby = Cluster::planned(self.durability);
        standby.fill(&programs().unwrap().join("pg_basebackup"), |copy| {
            copy.args(["-U", USER, "-p", &self.port.to_string(), "-h"]).arg(&self.directory);
            copy.args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
                "--no-sync",
                "-D",
            ]);
        });
        standby.restart();
        self.until("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1");
        standby
    }

    /// From here on a commit is acknowledged when the standby has it too, and not before.
    pub fn wait_for_standby(&self) {
        self.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.psql("postgres", "SELECT pg_reload_conf()");
        self.until("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    }

    /// Waits until the standby knows everything that was written so far.
    pub fn until_followed(&self) {
        self.until(
            "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_flush_lsn()",
            "1",
        );
    }

    /// The standby hears no more of what the primary does.
    pub fn stop_following(&self) {
        self.psql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
        self.psql("postgres", "SELECT pg_reload_conf()");
        self.until("SELECT count(*) FROM pg_stat_wal_receiver", "0");
    }

    /// The standby becomes the primary, with what it knows.
    pub fn promote(&self) {
        assert_eq!(self.psql("postgres", "SELECT pg_promote(true, 60)").trim(), "t");
    }

    /// The address of a database that lives on either of two servers: whichever takes writes.
    pub fn url_with(&self, other: &Cluster, database: &str) -> String {
        let (one, two) = (self.port, other.port);
        format!(
            "postgres://{USER}@127.0.0.1:{one},127.0.0.1:{two}/{database}?target_session_attrs=read-write"
        )
    }

    fn until(&self, question: &str, answer: &str) {
        for _ in 0..3_000 {
            if self.psql("postgres", question).trim() == answer {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{question} is never {answer}");
    }
}
