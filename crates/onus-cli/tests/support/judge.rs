//! What a provider publishes about its interface, as the judge of what it is asked: a server made of that description, which has no
//! memory.

use onus_testkit::{KitServer, OutsideKit};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Debug)]
pub(crate) struct Judge {
    port: u16,
    /// What our paths begin with, and what those of the description begin with.
    begins: (&'static str, &'static str),
    heard: Mutex<(usize, Vec<String>)>,
}

impl Judge {
    /// None where no server can be made of descriptions, and on other stores than the first: a provider is asked the same by all.
    /// `begins` is what our paths have before those that it publishes.
    pub(crate) fn of_github(begins: &'static str) -> Option<Arc<Judge>> {
        static SERVER: OnceLock<Option<u16>> = OnceLock::new();
        Judge::new((begins, ""), &SERVER, OutsideKit::github)
    }

    /// Of the third version of GitLab's interface, the only one that a package has.
    pub(crate) fn of_gitlab(begins: &'static str) -> Option<Arc<Judge>> {
        static SERVER: OnceLock<Option<u16>> = OnceLock::new();
        Judge::new((begins, "/v3"), &SERVER, OutsideKit::gitlab)
    }

    fn new(
        begins: (&'static str, &'static str),
        server: &OnceLock<Option<u16>>,
        start: fn(&OutsideKit) -> KitServer,
    ) -> Option<Arc<Judge>> {
        if std::env::var_os("ONUS_TEST_STORE").is_some() {
            return None;
        }
        let port = (*server.get_or_init(|| OutsideKit::get().map(|kit| kept(kit, start))))?;
        Some(Arc::new(Judge { port, begins, heard: Mutex::default() }))
    }

    /// Holds a request against the description. `head` is its line and its headers.
    pub(crate) fn hear(&self, head: &str, body: &str) {
        let (line, headers) = head.split_once("\r\n").or_else(|| head.split_once('\n')).unwrap_or((head, ""));
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let target = format!("{}{}", self.begins.1, target.strip_prefix(self.begins.0).unwrap());
        let kept = headers.lines().filter(|line| !line.to_lowercase().starts_with("connection:"));
        let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {target} HTTP/1.1\r\n{kept}connection: close\r\n\r\n{body}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        // In a header, beside what is wrong with its own answer; or in the body, where the description has none for it.
        let told = answer.lines().find_map(|line| line.strip_prefix("sl-violations: "));
        let wrong: Vec<Value> = match told {
            Some(text) => {
                let all: Vec<Value> = serde_json::from_str(text).unwrap();
                all.into_iter().filter(|one| one["location"][0] == "request").collect()
            }
            None if answer.starts_with("HTTP/1.1 422") => {
                let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
                body["validation"].as_array().unwrap().clone()
            }
            None => Vec::new(),
        };
        let mut heard = self.heard.lock().unwrap();
        heard.0 += 1;
        heard.1.extend(wrong.iter().map(|one| format!("{line}: {one}")));
        // No such path, no such method, or not in these words.
        if ["400", "401", "404", "405", "406", "415"]
            .iter()
            .any(|status| answer.starts_with(&format!("HTTP/1.1 {status}")))
        {
            heard.1.push(format!("{line}: {}", answer.lines().next().unwrap()));
        }
    }

    /// What was wrong with what it heard.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.heard.lock().unwrap().1.clone()
    }

    pub(crate) fn assert_content(&self) {
        assert!(self.heard.lock().unwrap().0 > 5, "hardly anything was asked");
        assert!(self.violations().is_empty(), "{:#?}", self.violations());
    }
}

/// One server for all tests of this program. It ends with the thread that started it, which therefore stays.
fn kept(kit: OutsideKit, start: fn(&OutsideKit) -> KitServer) -> u16 {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let server = start(&kit);
        tell.send(server.port).unwrap();
        loop {
            std::thread::park();
        }
    });
    told.recv().unwrap()
}
