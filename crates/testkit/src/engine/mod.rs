//! What a storage engine must do, as a suite that any engine can be put through.
//!
//! [`conforms`] runs it. Each scenario is a [script](check) with its answers, or a short program, and gets
//! an empty store of its own. [`Faulty`] is an engine whose calls fail, for the tests of what is built on one.

mod conformance;
mod faulty;
mod heads;
mod script;

pub use conformance::conforms;
pub use faulty::Faulty;
pub use script::check;
