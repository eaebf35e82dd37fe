//! Submits commands: reads the clock, loads facts, decides, applies, commits.
