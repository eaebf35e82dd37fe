//! The rules of Onus. Pure: no I/O, no clock, no randomness; time and ids are arguments.
