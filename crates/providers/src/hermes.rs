//! Tool calls as text, in the Hermes format, for servers without tool calls.
//!
//! [`plain`] writes a request so that any chat server accepts it: the tools are declared in the system
//! prompt, and calls and results are texts of messages. [`HermesParser`] reads calls from the answer's
//! text, whole or streamed.

mod conversation;
mod grammar;
mod parser;
mod prefill;
mod python;
mod special;
#[cfg(test)]
mod tests;

pub(crate) use parser::{HermesParser, HermesPart, HermesProblem};

use crate::openai_request::ends_with_beginning;
use crate::tool_choice::{self, Callable};
use foldback_core::Message;
use foldback_llm::{ChatRequest, ModelError};
use prefill::Prefill;
use std::sync::Arc;

/// The beginning of a call.
const CALL_BEGIN: &str = "<tool_call>";
/// The end of a call.
const CALL_END: &str = "</tool_call>";
/// The text between the beginning of a call and the name.
const NAME_BEGIN: &str = "{\"name\": \"";
/// The beginning of a call's result. A model that writes one itself makes it up.
const RESULT_BEGIN: &str = "<tool_response>";
/// The end of a turn in ChatML. Some servers include it in the answer.
const TURN_END: &str = "<|im_end|>";

/// A request for a server without tool calls.
pub(crate) struct PlainRequest {
    /// Messages alone.
    pub(crate) request: ChatRequest,
    /// The beginning of the answer, which is given; the server answers with what follows.
    pub(crate) beginning: String,
    /// What the answer may be, as GBNF; `None` if anything.
    pub(crate) grammar: Option<String>,
}

/// Writes a request without tools, for a server that accepts a grammar, or the beginning of an answer, or neither.
///
/// # Errors
/// When the choice of tools does not fit the tools.
pub(crate) fn plain(
    request: &ChatRequest,
    takes_grammar: bool,
    takes_beginning: bool,
) -> Result<PlainRequest, ModelError> {
    let callable = Callable::of(request)?;
    let is_begun = ends_with_beginning(request);
    let is_open = !request.tools.is_empty() && !is_begun;
    let grammar =
        (takes_grammar && is_open).then(|| grammar::grammar(&callable.tools, callable.required));
    let prefill = match takes_beginning && !takes_grammar && is_open {
        true => Prefill::new(&callable, &request.tools),
        false => Prefill::default(),
    };
    let words = match grammar.is_some() || prefill.is_exact {
        true => tool_choice::preference(request),
        false => tool_choice::in_words(request),
    };
    let mut plain = conversation::without_tools(request, words.filter(|_| !is_begun));
    if !prefill.text.is_empty() {
        plain.messages.push(Arc::new(Message::assistant(&prefill.text)));
    }
    if !request.tools.is_empty() {
        let stop = &mut plain.sampling.stop;
        stop.push(RESULT_BEGIN.to_owned());
        stop.extend(callable.tools.is_empty().then(|| CALL_BEGIN.to_owned()));
    }
    Ok(PlainRequest { request: plain, beginning: prefill.text, grammar })
}
