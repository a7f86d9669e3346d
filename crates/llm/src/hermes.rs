//! Requests and answers as text, for models that speak the format of Hermes over ChatML.
//!
//! [`hermes_prompt`] writes a request, [`hermes_prefill`] how its answer has to begin, and
//! [`HermesParser`] reads the answer, whole or as it is being written.

mod parser;
mod prefill;
mod prompt;
mod python;
mod special;

pub use parser::{HermesAnswer, HermesCall, HermesParser, HermesPart, HermesProblem, parse_hermes};
pub use prefill::{Prefill, hermes_prefill};
pub use prompt::{HermesPrompt, hermes_prompt};
pub(crate) use special::quoted_name;

/// What a call begins with.
pub(crate) const CALL_BEGIN: &str = "<tool_call>";
/// What a call ends with.
pub(crate) const CALL_END: &str = "</tool_call>";
/// What stands between the beginning of a call and the name.
pub(crate) const NAME_BEGIN: &str = "{\"name\": \"";
/// What a turn begins with, before its role.
const TURN_BEGIN: &str = "<|im_start|>";
/// What a turn ends with.
const TURN_END: &str = "<|im_end|>";
