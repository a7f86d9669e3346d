//! The gateway between clients and a provider of a script.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod guarding;
mod histories;
mod mixed_turns;
mod passing;
mod played_client;
mod recording;
mod world;
