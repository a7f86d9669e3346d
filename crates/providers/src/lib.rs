//! Chat models over HTTP.
//!
//! [`RemoteModel`] implements the port [`ChatModel`](foldback_llm::ChatModel) for OpenAI's API,
//! Anthropic's, and every server that speaks chat-completions. [`ModelConfig`] says which model is
//! asked, where and how; it is built by hand or read from flags, environment and a file
//! ([`ModelSources`]).

mod anthropic_answer;
mod anthropic_request;
mod api_key;
mod check;
mod config;
mod diversity;
mod door;
mod draft;
mod failure;
mod hermes;
mod json;
mod late_instruction;
mod openai_answer;
mod openai_request;
#[cfg(test)]
mod prefix_law;
mod remote_model;
mod tool_choice;
mod workers;

pub use api_key::ApiKey;
pub use config::{
    ModelConfig, ModelFlags, ModelSources, Provider, Timeouts, ToolCalls, public_url,
};
pub use remote_model::RemoteModel;
