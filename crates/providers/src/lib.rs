//! Chat models over HTTP.
//!
//! [`RemoteModel`] implements [`ChatModel`](foldback_llm::ChatModel) for OpenAI's API, Anthropic's,
//! and every server that speaks chat-completions, including servers without tool calls
//! ([`ToolCalls::Hermes`]). [`ModelConfig`] describes the model, its address and how it is called; it
//! is built by methods, or read from flags, environment and a file ([`ModelSources`]).
//!
//! ```
//! use foldback_llm::{ChatModel, Retrying};
//! use foldback_providers::{ModelConfig, Provider, RemoteModel, ToolCalls};
//!
//! let at = "http://127.0.0.1:8080/v1";
//! let config = ModelConfig::new(Provider::OpenAiCompatible, at, "hermes-3-8b")
//!     .with_tool_calls(ToolCalls::Hermes)
//!     .with_grammar(true);
//! let model = Retrying::new(RemoteModel::new(config.clone())?, config.retry);
//! assert_eq!(model.name(), "hermes-3-8b"); // nothing is sent before it is asked
//! # Ok::<(), foldback_llm::ModelError>(())
//! ```
//!
//! [`ProviderCache`] computes how much of a request a provider has cached, and what it bills on given [`CacheTerms`](foldback_core::CacheTerms).
//!
//! This crate is not an agent loop: it runs no tool and retries nothing ([`Retrying`](foldback_llm::Retrying)
//! does). It stores nothing, and sends a key only to the address that it was given for.

mod anthropic_answer;
mod anthropic_request;
mod api_key;
mod check;
mod config;
mod diversity;
mod door;
mod draft;
mod failure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hermes;
mod json;
mod late_instruction;
mod longest_answer;
mod model_check;
mod openai_answer;
mod openai_request;
mod plain_schema;
#[cfg(test)]
mod prefix_law;
mod provider_cache;
mod remote_model;
mod said_otherwise;
mod server_facts;
mod sse;
mod tool_choice;
mod workers;

pub use api_key::ApiKey;
pub use config::{
    CallIds, ChatTemplate, Family, GivenTemplate, ModelConfig, ModelFlags, ModelSettings,
    ModelSources, Provider, SystemRole, Timeouts, ToolCalls, Turns, is_same_server, public_url,
};
pub use model_check::{CheckFinding, ModelCheck};
pub use provider_cache::{Billed, ProviderCache};
pub use remote_model::RemoteModel;
pub use server_facts::ServerFacts;
