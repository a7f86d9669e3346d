//! Shared by the tests of every crate: transcripts in a tiny language, the folder of recorded
//! conversations, and generators.
//!
//! - [`transcript`] turns a small script into messages; its language is described at [`script`].
//! - [`data`] walks over recorded conversations if the folder exists, and says so if it does not.
//! - [`engine`] is the suite that every storage engine must pass, including external ones.
//! - [`generate`] holds proptest strategies for messages and whole conversations.
//! - [`Random`] generates numbers and words, the same on every run.
//! - [`alone()`] runs a test in a process of its own.
//! - [`effort()`] and [`stride`] say how much a long test tries.
//! - [`hostile_queries`] are questions that are meant to do harm.
//! - [`memory`] measures how much memory a piece of work takes.
//! - [`mutation`] damages bytes as a file or a sender might.
//! - `cassette`, with the feature of that name, records exchanges with a model and replays them.
//! - `upstream`, with the feature of that name, is a scripted model provider, over HTTP.
//! - `agent`, with the feature of that name, has agents with scripted models, tools and contexts.
//! - `postgres` and `s3`, with the features of these names, start and stop servers.
//!
//! It is a dev-dependency only: nothing here is for use outside tests, and bad input ends the test with
//! a panic that says what was wrong.
//!
//! ```
//! let messages = foldback_testkit::transcript(
//!     "
//!     user: what is in a.txt?
//!     assistant> read({\"path\": \"a.txt\"})
//!     tool: one line
//!       and another
//!     assistant: two lines
//!     ",
//! );
//! assert_eq!(messages.len(), 4);
//! assert_eq!(messages[2].text(), "one line\nand another");
//! assert_eq!(foldback_core::check_request(&messages), []);
//! ```

#[cfg(feature = "agent")]
pub mod agent;
mod alone;
#[cfg(feature = "cassette")]
pub mod cassette;
pub mod data;
mod effort;
pub mod engine;
pub mod generate;
mod hostile;
pub mod memory;
pub mod mutation;
#[cfg(all(unix, feature = "postgres"))]
pub mod postgres;
mod random;
#[cfg(feature = "s3")]
pub mod s3;
pub mod script;
#[cfg(feature = "upstream")]
pub mod upstream;

pub use alone::alone;
pub use effort::{effort, stride};
pub use hostile::hostile_queries;
pub use random::Random;
pub use script::transcript;
