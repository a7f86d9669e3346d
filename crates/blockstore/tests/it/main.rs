//! The public face of the block store.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod fixture;

mod disk;
mod doctor;
mod graph;
mod hostile;
mod index_copy;
mod passages;
mod processes;
mod retrieval;
mod revector;
mod search;
mod truth;
mod upkeep;
