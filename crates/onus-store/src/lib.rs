//! The store of Onus: one SQL text, thin drivers.
