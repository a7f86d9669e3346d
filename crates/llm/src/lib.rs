//! The interface to chat models: requests, answers, and what every model shares.
//!
//! [`ChatModel`] is the trait: a [`ChatRequest`] in, a [`ChatResponse`] with its [`Usage`] out, whole or as
//! a stream of [`ChatChunk`]s. Around it are
//!
//! - [`Retrying`], which asks a model again after a transient failure;
//! - [`ScriptedModel`], which answers from a script: for tests, examples and measurements;
//! - [`PrefixCache`], which computes how much of a request a provider's cache would serve, and
//!   [`place_cache_marks`], which marks what the provider should keep;
//! - [`Mask`] and [`Availability`], by which a [`ToolChoice`] follows what has happened, while the declared
//!   tools stay the same;
//! - [`check_clocks`], because a clock in the prefix makes every request a new one;
//! - [`ToolNames`], which maps names that a provider would refuse to names that every provider accepts.
//!
//! This crate is not a client: it has no HTTP, no address and no key. Models over HTTP are in
//! `foldback-providers`. It neither runs tools nor keeps a conversation: `foldback-agent` does.
//!
//! # A model of your own
//!
//! A type that implements [`name`](ChatModel::name) and [`complete`](ChatModel::complete) is a model that an
//! agent can work with. It streams in one piece, unless it implements [`stream`](ChatModel::stream) too.
//!
//! ```
//! use foldback_core::Message;
//! use foldback_llm::{
//!     ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, StopReason, Usage,
//! };
//! use futures::FutureExt;
//! use futures::future::BoxFuture;
//!
//! /// Repeats the last message in capitals.
//! struct Shouting;
//!
//! impl ChatModel for Shouting {
//!     fn name(&self) -> &str {
//!         "shouting"
//!     }
//!
//!     fn complete<'a>(
//!         &'a self,
//!         request: &'a ChatRequest,
//!     ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
//!         async move {
//!             let last = request.messages.last().ok_or_else(|| {
//!                 // The kind decides whether the request is sent again; the sentence is shown.
//!                 ModelError::new(ModelErrorKind::Request, "there is nothing to shout")
//!             })?;
//!             let text = last.text().to_uppercase();
//!             Ok(ChatResponse {
//!                 message: Message::assistant(&text),
//!                 usage: Usage { input: 10, output: 10, ..Usage::default() },
//!                 stop: StopReason::End,
//!                 model: self.name().to_owned(),
//!             })
//!         }
//!         .boxed()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ModelError> {
//! let request = ChatRequest::new([Message::user("high water at 杭州湾")]);
//! assert_eq!(Shouting.complete(&request).await?.message.text(), "HIGH WATER AT 杭州湾");
//! assert!(Shouting.complete(&ChatRequest::default()).await.is_err());
//! # Ok(())
//! # }
//! ```

mod cache;
mod clocks;
mod error;
mod json_string;
mod mask;
mod model;
mod request;
mod response;
mod retry;
mod scripted;
mod token_prices;
mod tool_names;

pub use cache::{
    CACHE_BREAKPOINT, CacheSettings, CacheUse, MarkLimits, PrefixCache, RequestTokens,
    place_cache_marks,
};
pub use clocks::{ClockError, check_clocks, coarsen_clocks};
pub use error::{ModelError, ModelErrorKind};
pub use mask::{
    Availability, AvailabilityError, AvailabilityState, CallMode, Mask, MaskProblem,
    ToolAvailability,
};
pub use model::{Capabilities, ChatModel};
pub use request::{AllowedTools, ChatRequest, Sampling, ToolChoice};
pub use response::{ChatChunk, ChatResponse, ChatStream, StopReason, Usage};
pub use retry::{RetryPolicy, Retrying};
pub use scripted::{Answer, ScriptedModel};
pub use token_prices::TokenPrices;
pub use tool_names::{ToolNames, legal_name};
