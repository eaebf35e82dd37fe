//! Pull requests (mission E8): a branch is offered where the team merges. GitHub, GitLab and Gitea by their REST interfaces; each
//! is asked what is there before anything is written, so that a repeat changes one request and never opens a second.

use super::rest::{FarServer, KeyHeader, Rest, encoded, text_at};
use onus_core::mirror::Undelivered;
use onus_core::refusal::Refusal;
use onus_core::settings::{PullProvider, PullRequestSettings};
use serde_json::{Value as Json, json};
use std::path::Path;
use ureq::http::Method;

/// What became of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullState {
    Open,
    Merged,
    /// Nobody wants it.
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: String,
    /// For people.
    pub url: String,
    pub state: PullState,
    /// The commit that it offers.
    pub head: Option<String>,
}

/// What is offered.
#[derive(Debug, Clone, Copy)]
pub struct PullOffer<'a> {
    pub branch: &'a str,
    /// The branch that it is to be merged into.
    pub base: &'a str,
    pub title: &'a str,
    pub body: &'a str,
}

/// Where a team merges.
#[derive(Debug)]
pub struct PullRequests {
    rest: Rest,
    provider: PullProvider,
    repository: String,
}

impl PullRequests {
    pub fn new(settings: &PullRequestSettings, root: &Path) -> Result<PullRequests, Refusal> {
        let setting = "git.pull_requests";
        let bad = |detail: &str, hint: &str| Refusal::invalid(format!("{setting}: {detail}")).hint(hint);
        let parts: Vec<&str> = settings.repository.split('/').collect();
        let is_name = |part: &&str| !part.is_empty() && !part.starts_with('.');
        let has_owner = parts.len() == 2 || (settings.provider == PullProvider::Gitlab && parts.len() > 2);
        if !has_owner || !parts.iter().all(is_name) {
            return Err(bad("repository names none", "repository: owner/name"));
        }
        if settings.url.contains('?') {
            return Err(bad("its url has a query", "leave it out"));
        }
        if settings.key_env.is_none() && settings.key_file.is_none() {
            return Err(bad("it has no key", "set git.pull_requests.key_env or key_file in onus.yaml"));
        }
        let server = FarServer {
            what: "the server of pull requests".to_owned(),
            setting: setting.to_owned(),
            url: settings.url.trim_end_matches('/'),
            insecure: settings.insecure,
            key_env: settings.key_env.clone(),
            key_file: settings.key_file.clone(),
            root,
        };
        // GitLab and Gitea take their own tokens as bearer tokens as well.
        let rest = Rest::new(server, KeyHeader::Bearer)?;
        Ok(PullRequests { rest, provider: settings.provider, repository: settings.repository.clone() })
    }

    /// The request that offers a branch: the open one, else the last one that was.
    pub fn find(&mut self, branch: &str, base: &str) -> Result<Option<PullRequest>, Undelivered> {
        let path = format!("{}?{}", self.list(), self.filter(branch, base));
        let found = self.rest.get(&path)?.good("its pull requests")?;
        let all = found.as_array().map(Vec::as_slice).unwrap_or_default();
        let own = all.iter().filter(|one| self.is_of(one, branch, base)).filter_map(|one| self.read(one));
        let number = |one: &PullRequest| one.number.parse::<u64>().unwrap_or(0);
        Ok(own.max_by_key(|one| (one.state == PullState::Open, number(one))))
    }

    /// Opens a request, or makes the open one say what is offered now.
    pub fn offer(&mut self, offer: &PullOffer<'_>) -> Result<PullRequest, Undelivered> {
        let open = self.find(offer.branch, offer.base)?.filter(|found| found.state == PullState::Open);
        let words = if self.provider == PullProvider::Gitlab { "description" } else { "body" };
        let (method, path, body) = match &open {
            Some(found) => {
                let change = if self.provider == PullProvider::Gitlab { Method::PUT } else { Method::PATCH };
                let body = json!({ "title": offer.title, words: offer.body });
                (change, format!("{}/{}", self.list(), found.number), body)
            }
            None => {
                let [from, to] = match self.provider {
                    PullProvider::Gitlab => ["source_branch", "target_branch"],
                    PullProvider::Github | PullProvider::Gitea => ["head", "base"],
                };
                let body =
                    json!({ from: offer.branch, to: offer.base, "title": offer.title, words: offer.body });
                (Method::POST, self.list(), body)
            }
        };
        let told = self.rest.call(&method, &path, Some(&body))?.good("the pull request")?;
        self.read(&told).ok_or_else(|| {
            Undelivered::Refused("the answer is no pull request: is the url its API's?".to_owned())
        })
    }

    fn list(&self) -> String {
        match self.provider {
            PullProvider::Gitlab => format!("/projects/{}/merge_requests", encoded(&self.repository)),
            PullProvider::Github | PullProvider::Gitea => format!("/repos/{}/pulls", self.repository),
        }
    }

    fn filter(&self, branch: &str, base: &str) -> String {
        let (branch, base) = (encoded(branch), encoded(base));
        match self.provider {
            PullProvider::Github => {
                let owner = encoded(self.repository.split('/').next().unwrap_or_default());
                format!("state=all&head={owner}%3A{branch}&base={base}&per_page=100")
            }
            PullProvider::Gitlab => {
                format!("state=all&source_branch={branch}&target_branch={base}&per_page=100")
            }
            // It finds none by branch: the newest ones are looked through.
            PullProvider::Gitea => "state=all&sort=recentupdate&limit=50".to_owned(),
        }
    }

    fn is_of(&self, one: &Json, branch: &str, base: &str) -> bool {
        let [from, to] = match self.provider {
            PullProvider::Gitlab => ["/source_branch", "/target_branch"],
            PullProvider::Github | PullProvider::Gitea => ["/head/ref", "/base/ref"],
        };
        text_at(one, from).as_deref() == Some(branch) && text_at(one, to).as_deref() == Some(base)
    }

    fn read(&self, one: &Json) -> Option<PullRequest> {
        let [number, url, head] = match self.provider {
            PullProvider::Gitlab => ["/iid", "/web_url", "/sha"],
            PullProvider::Github | PullProvider::Gitea => ["/number", "/html_url", "/head/sha"],
        };
        let is_merged = match self.provider {
            PullProvider::Github => text_at(one, "/merged_at").is_some(),
            PullProvider::Gitlab => text_at(one, "/state").as_deref() == Some("merged"),
            PullProvider::Gitea => one.pointer("/merged").and_then(Json::as_bool).unwrap_or(false),
        };
        let state = match text_at(one, "/state")?.as_str() {
            _ if is_merged => PullState::Merged,
            "open" | "opened" | "locked" => PullState::Open,
            _ => PullState::Closed,
        };
        Some(PullRequest {
            number: text_at(one, number)?,
            url: text_at(one, url)?,
            state,
            head: text_at(one, head),
        })
    }
}
