//! A far end that is away for hours is told everything once it is back, by back-off alone: nobody types `mirror retry`. The hours
//! pass by the clock that the store is given.

use super::desk::{self, Desk};
use onus_app::mirror::MirrorView;
use onus_core::command::{Command, Warrant};
use onus_core::settings::Settings;
use onus_core::text::Text;
use onus_core::time::{Now, Timestamp};
use onus_store::sqlite::{Options, Sqlite};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The clock that all of this test goes by.
fn clock() -> Now {
    let mut now = desk::clock();
    let ahead = AHEAD.load(Ordering::SeqCst);
    now.wall = Timestamp(now.wall.0 + ahead);
    now.tick.millis += ahead;
    now
}

/// A chat room that says 503 until it is well; what it was asked, and what it took.
#[derive(Debug, Default)]
struct Room {
    is_well: AtomicBool,
    asked: AtomicI64,
    took: Mutex<Vec<String>>,
}

impl Room {
    fn open() -> (Arc<Room>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (room, port) = (Arc::new(Room::default()), listener.local_addr().unwrap().port());
        let served = Arc::clone(&room);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(&stream);
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                served.asked.fetch_add(1, Ordering::SeqCst);
                let is_well = served.is_well.load(Ordering::SeqCst);
                if is_well {
                    served.took.lock().unwrap().push(String::from_utf8(body).unwrap());
                }
                let status = if is_well { "200 OK" } else { "503 Service Unavailable" };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                drop((&stream).write_all(answer.as_bytes()));
            }
        });
        (room, port)
    }
}

fn stand(desk: &mut Desk) -> MirrorView {
    desk.onus.mirrors().unwrap().mirrors.remove(0)
}

#[test]
fn after_an_outage_of_hours_everything_is_told_by_itself_and_once() {
    let (room, port) = Room::open();
    let mut desk = Desk::new();
    desk.onus.store = Box::new(Sqlite::create(&desk.path(), &Options::one_shot(clock)).unwrap());
    let channel = json!({"kind": "slack", "url": format!("http://127.0.0.1:{port}/room")});
    let settings = json!({"channels": {"team": channel}, "notify": [{"when": "completed", "to": "team"}]});
    desk.onus.settings = serde_json::from_value::<Settings>(settings).unwrap();
    let mut sender = desk.onus.sender(None).unwrap();
    desk.onus.mirror_round(&mut sender).unwrap();
    desk.import("{\"title\":\"first\"}\n{\"title\":\"second\"}");
    for task in ["T-1", "T-2"] {
        let completed = Command::Complete {
            resolution: Some(Text::new("it stands".to_owned())),
            root_cause: None,
            warrant: Warrant::Forced { reason: Some("by hand".into()) },
            proof: Default::default(),
        };
        desk.submit("@ada", task, None, completed);
    }
    let (mut pauses, begun) = (Vec::new(), clock().wall);
    for failures in 1..=14 {
        desk.onus.mirror_round(&mut sender).unwrap();
        let stand = stand(&mut desk);
        assert_eq!((stand.failures, stand.stuck), (failures, 0), "{stand:?}");
        let next = stand.next_attempt_at.unwrap();
        let pause = next.0 - clock().wall.0;
        pauses.push(pause);
        // A moment before it is time nobody asks.
        let asked = room.asked.load(Ordering::SeqCst);
        AHEAD.fetch_add(pause - 200, Ordering::SeqCst);
        if clock().wall < next {
            desk.onus.mirror_round(&mut sender).unwrap();
            assert_eq!(room.asked.load(Ordering::SeqCst), asked, "asked too early");
        }
        AHEAD.fetch_add(300, Ordering::SeqCst);
    }
    for (at, pause) in pauses.iter().enumerate() {
        let middle = 1_000_i64.saturating_mul(1 << at).min(300_000);
        assert!((middle / 2..=middle * 5 / 4).contains(pause), "{at}: {pauses:?}");
    }
    assert!(clock().wall.since(begun).0 > 25 * 60_000, "{pauses:?}");
    // It is back. Nothing else happens.
    room.is_well.store(true, Ordering::SeqCst);
    desk.onus.mirror_round(&mut sender).unwrap();
    let stand = stand(&mut desk);
    assert_eq!((stand.pending, stand.stuck, stand.failures, stand.last_error.as_deref()), (0, 0, 0, None));
    let took = room.took.lock().unwrap().clone();
    assert_eq!(took.len(), 2, "{took:#?}");
    assert!(took[0].contains("T-1") && took[1].contains("T-2"), "{took:#?}");
    desk.onus.mirror_round(&mut sender).unwrap();
    assert_eq!(room.took.lock().unwrap().len(), 2, "told again");
    desk.onus.give_mirrors_back(&mut sender).unwrap();
}
