//! The shared repository: a lease is shown without anybody's doing, what has landed is judged once, and people push in their
//! own name (mission B5, E1).

use crate::support::fleet::{Fleet, Said};
use crate::support::{finish, start, text};
use std::os::unix::fs::PermissionsExt;

/// Past the hooks of the clone: what the shared repository says by itself.
const BARE: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

fn refused(said: &Said, code: &str) {
    assert_ne!(said.exit, Some(0), "{said:?}");
    assert!(said.stderr.contains(&format!(" [{code}]")), "{said:?}");
}

fn passed(said: &Said) {
    assert_eq!(said.exit, Some(0), "{said:?}");
}

impl Fleet {
    /// The token that a push from an agent's working tree would show.
    fn shown(&self, name: &str) -> String {
        self.git(name, &["config", "--get-all", "push.pushOption"]).stdout.trim().to_owned()
    }

    /// The person's own token, as their clone shows it.
    fn person_token(&self) -> String {
        let shown = self.git_by(&self.site.repo(), &[], &["config", "--get-all", "push.pushOption"]).stdout;
        shown.trim().strip_prefix("onus=").unwrap().to_owned()
    }

    fn call(&self, name: &str, args: &[&str]) -> Said {
        let who = format!("@{name}");
        let args = [args, &["--as", &who]].concat();
        finish(start(self.site.command(&args).current_dir(self.tree(name))))
    }
}

#[test]
fn a_claim_has_its_worktree_show_the_lease_and_its_end_takes_it_away() {
    let fleet = Fleet::new();
    let plain = ["push", "--quiet", "--force", "origin", "agent/ws-a"];
    refused(&fleet.git("a", &plain), "lease_required");
    let task = fleet.site.add("work");
    let token = fleet.claim(&task, "a");
    // The name is left to the environment, which reaches a repository of this machine.
    assert_eq!(fleet.shown("a"), format!("onus={token}\nonus-as="));
    let config = fleet.site.repo().join(".git/worktrees/repo-ws-a/config.worktree");
    assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    passed(&fleet.commit("a", "f", "1"));
    passed(&fleet.git("a", &plain));
    // It is the lease's own working tree that shows it, and its holder: nobody else pushes with it.
    assert_eq!(fleet.shown("b"), "");
    let back = ["push", "--force", "origin", "HEAD~1:refs/heads/agent/ws-a"];
    refused(&fleet.git_by(&fleet.tree("a"), &[("ONUS_AS", "@b")], &back), "lease_required");
    let past = [&BARE[..], &["push", "--force", "origin", "HEAD~1:refs/heads/agent/ws-a"]].concat();
    refused(&fleet.git_by(&fleet.tree("a"), &[("ONUS_AS", "@b")], &past), "fenced");
    // What lies there serves nobody who does not say that it is its holder.
    for unnamed in [&[][..], &[("CLAUDECODE", "1")]] {
        refused(&fleet.git_by(&fleet.tree("a"), unnamed, &past), "identity_required");
    }
    // Shown by hand, it is a secret; and whatever else names somebody must name its holder.
    let (lease, person) = (format!("onus={token}"), fleet.person_token());
    let by_hand = |branch: &str, more: &[&str]| {
        let options: Vec<&str> = more.iter().flat_map(|option| ["-o", option]).collect();
        let args =
            [&BARE[..], &["push", "-o", &lease], &options, &["origin", &format!("HEAD:refs/heads/{branch}")]];
        fleet.git_by(&fleet.tree("a"), &[], &args.concat())
    };
    passed(&by_hand("x", &[]));
    passed(&by_hand("y", &["onus-as=@a"]));
    refused(&by_hand("z", &["onus-as=@b"]), "fenced");
    refused(&by_hand("z", &["onus-as=@a", "onus-as=@b"]), "invalid_input");
    refused(&by_hand("z", &[&format!("onus={person}")]), "fenced");
    passed(&fleet.call("a", &["release", &task]));
    assert_eq!(fleet.shown("a"), "");
    refused(
        &fleet.git("a", &[&BARE[..], &["push", "--force", "origin", "HEAD~1:agent/ws-a"]].concat()),
        "lease_required",
    );
    // Whoever loses the task loses what it showed, too.
    for end in ["takeover", "drop", "complete"] {
        let task = fleet.site.add(end);
        fleet.claim(&task, "a");
        assert!(fleet.shown("a").starts_with("onus="), "{end}");
        match end {
            "takeover" => {
                let force = ["takeover", &task, "--workstation", "ws-b", "--force", "--reason", "ill"];
                fleet.site.by_person(&force);
            }
            "drop" => drop(fleet.site.by_person(&["drop", &task, "--reason", "not needed"])),
            _ => drop(fleet.site.by_person(&[
                "complete",
                &task,
                "--force",
                "--reason",
                "by hand",
                "--resolution",
                "done",
            ])),
        }
        assert_eq!(fleet.shown("a"), "", "{end}");
    }
    fleet.site.assert_sound();
}

/// The order that the hints give, for two agents in turn: merge, complete, then somebody pushes. Nothing wedges.
#[test]
fn what_has_landed_is_everybodys_to_push() {
    let fleet = Fleet::new();
    let site = &fleet.site;
    for (name, scope) in [("a", "src/**"), ("b", "docs/**")] {
        site.by_person(&["add", name, "--scope", scope]);
    }
    fleet.claim("T-1", "a");
    passed(&fleet.commit("a", "src/f", "1"));
    passed(&fleet.call("a", &["merge", "T-1"]));
    passed(&fleet.call("a", &["complete", "T-1", "--resolution", "done"]));
    // The first task's token is dead and nobody has pushed. The second holder's push carries the first one's file.
    fleet.claim("T-2", "b");
    passed(&fleet.git("b", &["rebase", "--quiet", "main"]));
    passed(&fleet.commit("b", "docs/f", "1"));
    passed(&fleet.git("b", &["push", "--quiet", "origin", "agent/ws-b"]));
    passed(&fleet.call("b", &["merge", "T-2"]));
    passed(&fleet.call("b", &["complete", "T-2", "--resolution", "done"]));
    // Neither holds anything now: what is in the main branch was judged when it landed.
    passed(&fleet.git("a", &["push", "--quiet", "origin", "main"]));
    assert_eq!(fleet.at(&fleet.shared(), "main"), Some(site.main()));
    // A commit that nobody answered for is not among it.
    let sly = ["commit", "--quiet", "--allow-empty", "--message=sly"];
    passed(&fleet.git_by(&site.repo(), &[], &[&BARE[..], &sly].concat()));
    let push = [&BARE[..], &["push", "origin", "main"]].concat();
    refused(&fleet.git("a", &push), "lease_required");
    site.assert_sound();
}

#[test]
fn people_push_in_their_own_name_and_it_is_on_record() {
    let fleet = Fleet::new();
    let (site, repo) = (&fleet.site, fleet.site.repo());
    let shown = fleet.git_by(&repo, &[], &["config", "--get-all", "push.pushOption"]).stdout;
    assert!(shown.trim().starts_with("onus=onus_p"), "{shown}");
    assert!(!fleet.shown("a").contains("onus_p"), "an agent's working tree does not show it");
    let commit = ["commit", "--quiet", "--allow-empty", "--message=by hand"];
    passed(&fleet.git_by(&repo, &[], &commit));
    passed(&fleet.git_by(&repo, &[], &["push", "--quiet", "origin", "main", "HEAD:refs/heads/topic"]));
    passed(&fleet.git_by(&repo, &[], &["push", "--quiet", "origin", "HEAD:refs/tags/v1"]));
    assert_eq!(fleet.at(&fleet.shared(), "main"), Some(site.main()));
    let entries = site.ledger();
    let pushed: Vec<_> = entries.iter().filter(|entry| entry["verb"] == "pushed_by_person").collect();
    let names: Vec<&str> = pushed.iter().map(|entry| text(&entry["data"]["moves"][0]["refname"])).collect();
    assert_eq!(names, ["refs/heads/main", "refs/heads/topic", "refs/tags/v1"]);
    assert!(pushed.iter().all(|entry| entry["actor"] == site.person.as_str()), "{pushed:?}");
    // Never backwards, never a workstation's, and never by an agent that found the token.
    let force = ["push", "--force", "origin", "HEAD~1:refs/heads/main"];
    refused(&fleet.git_by(&repo, &[], &force), "not_permitted");
    refused(&fleet.git_by(&repo, &[], &["push", "origin", "HEAD:refs/heads/agent/ws-a"]), "lease_required");
    let by_agent = [&BARE[..], &["push", "origin", "HEAD:refs/heads/mine"]].concat();
    refused(&fleet.git_by(&repo, &[("ONUS_AS", "@b")], &by_agent), "not_permitted");
    refused(&fleet.git_by(&repo, &[("CLAUDECODE", "1")], &["push", "origin", "HEAD:mine"]), "lease_required");
    // It opens nothing else, and ends when somebody says so.
    let tokens = site.ok(&["worker", "token", "list"])["tokens"].clone();
    let own = tokens.as_array().unwrap().iter().find(|token| token["label"] == "push").unwrap();
    site.by_person(&["worker", "token", "revoke", text(&own["id"]), "--reason", "lost"]);
    passed(&fleet.git_by(&repo, &[], &commit));
    refused(&fleet.git_by(&repo, &[], &["push", "origin", "main"]), "unauthenticated");
    site.assert_sound();
}

/// `git.people` says whether people need a task as well, in their clone and where they push to.
#[test]
fn people_work_freely_or_for_a_task_as_the_team_has_it() {
    let fleet = Fleet::new();
    let (site, repo) = (&fleet.site, fleet.site.repo());
    let commit = ["commit", "--quiet", "--allow-empty", "--message=by hand"];
    let push = ["push", "--quiet", "origin", "HEAD:refs/heads/topic"];
    let past = [&BARE[..], &push].concat();
    let named = [("ONUS_AS", site.person.as_str())];
    passed(&fleet.git_by(&repo, &[], &commit));
    passed(&fleet.git_by(&repo, &[], &push));
    // Something that the shared repository has not yet.
    passed(&fleet.git_by(&repo, &[], &commit));
    std::fs::create_dir_all(fleet.shared().join("onus")).unwrap();
    for file in [repo.join("onus.yaml"), fleet.shared().join("onus/onus.yaml")] {
        std::fs::write(file, "git: { people: task }\n").unwrap();
    }
    for who in [&[][..], &named] {
        refused(&fleet.git_by(&repo, who, &commit), "lease_required");
        refused(&fleet.git_by(&repo, who, &["branch", "mine"]), "lease_required");
        refused(&fleet.git_by(&repo, who, &past), "lease_required");
    }
    let task = site.add("by hand");
    site.by_person(&["claim", &task]);
    for who in [&[][..], &named] {
        passed(&fleet.git_by(&repo, who, &commit));
        passed(&fleet.git_by(&repo, who, &push));
    }
    let message = fleet.git_by(&repo, &[], &["log", "-1", "--format=%B"]).stdout;
    assert!(message.contains(&format!("Onus-Task: {task}")), "{message}");
}
