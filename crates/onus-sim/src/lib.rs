//! Development only: what many clients did to the tasks of one workspace, and whether one order explains it.
//!
//! Every call is recorded with when it began and when it returned. The history is linearizable if the calls can be put
//! into one order that agrees with those times and in which every answer is the right one. Whatever two agents may
//! believe about one task, there is then one story.

pub mod history;
