//! The public face of the payload store. Tests name the row that they prove.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test itself does")]

mod damage;
mod excerpts;
mod hostile;
mod isolation;
mod memory;
mod roundtrip;
mod sweep;
mod world;
