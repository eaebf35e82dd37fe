//! The input is a file of tasks to import.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_sim::hostile::Doors;
use std::cell::RefCell;

thread_local! {
    static DOORS: RefCell<Option<Doors>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    DOORS.with_borrow_mut(|doors| {
        if doors.is_none() {
            *doors = Doors::open().ok();
        }
        if let Some(doors) = doors {
            doors.import(data);
        }
    });
});
