//! Agents for tests: models with a script, tools that wait or fail, contexts that keep or change what
//! they show.
//!
//! - [`script`] has agents whose model answers from a script, and refuses what a chat API refuses.
//! - [`toolkit`] has tools, plans and an executor's results.
//! - [`contexts`] has contexts that show less than everything, fail, or record the requests that they
//!   get.
//! - [`keeping`] has contexts that keep todo lists and the results of sub-tasks, and an observer.
//! - [`payloads`] has tool results that try to give orders.
//!
//! ```
//! use foldback_testkit::agent::script::{agent, says, texts, walk};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let model = texts(&["It rains in 杭州."]);
//! let (report, conversation) = walk(&agent(&model, vec![says("weather", 1, "小雨")])).await;
//! assert_eq!(report.answer(), Some("It rains in 杭州."));
//! assert_eq!((model.calls(), conversation.len()), (1, 2));
//! # }
//! ```

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

pub mod contexts;
pub mod keeping;
pub mod payloads;
pub mod script;
pub mod toolkit;
