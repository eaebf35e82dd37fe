//! One server for all inputs of a run: to start it for each of them would be most of the work.

use onus_sim::hostile::Doors;
use std::cell::RefCell;

thread_local! {
    static DOORS: RefCell<Option<Doors>> = const { RefCell::new(None) };
}

pub(crate) fn at_the(act: impl FnOnce(&mut Doors)) {
    DOORS.with_borrow_mut(|doors| {
        if doors.is_none() {
            *doors = Doors::open().ok();
        }
        if let Some(doors) = doors {
            act(doors);
        }
    });
}
