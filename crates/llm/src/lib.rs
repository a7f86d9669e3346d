//! The port to chat models.
//!
//! [`ChatModel`] is the port: a [`ChatRequest`] in, a [`ChatResponse`] with its [`Usage`] out.

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
pub use clocks::{Clock, ClockError, check_clocks, coarsen_clocks, find_clocks};
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
