//! The requirements for a storage engine, as a suite that any engine can be tested with.
//!
//! [`conforms`] runs it. Each scenario is a [script](check) with its answers, or a short program, and
//! gets its own empty store. [`Faulty`] is an engine whose calls fail, for tests of code that is built
//! on one.

mod conformance;
mod faulty;
mod heads;
mod script;

pub use conformance::conforms;
pub use faulty::Faulty;
pub use script::check;
