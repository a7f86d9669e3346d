//! The gateway between clients and a provider of a script.

mod guarding;
mod histories;
mod passing;
mod recording;
mod world;
