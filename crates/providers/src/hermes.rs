//! Tool calls as text, in the format of Hermes, for servers that know none.
//!
//! [`plain`] writes a request so that any chat server takes it: the tools are declared in the system
//! prompt, calls and results are texts of messages. [`HermesParser`] reads the answer's text for calls,
//! whole or as it comes.

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

/// What a call begins with.
const CALL_BEGIN: &str = "<tool_call>";
/// What a call ends with.
const CALL_END: &str = "</tool_call>";
/// What stands between the beginning of a call and the name.
const NAME_BEGIN: &str = "{\"name\": \"";
/// What the result of a call begins with. A model that writes one itself makes it up.
const RESULT_BEGIN: &str = "<tool_response>";
/// What a turn of ChatML ends with. Some servers hand it out with the answer.
const TURN_END: &str = "<|im_end|>";

/// A request for a server that knows no tool calls.
pub(crate) struct PlainRequest {
    /// Messages alone.
    pub(crate) request: ChatRequest,
    /// What the answer is made to begin with; the server answers with what follows.
    pub(crate) beginning: String,
    /// What the answer may be, as GBNF; `None` where it may be anything.
    pub(crate) grammar: Option<String>,
}

/// Writes a request without tools, for a server that takes a grammar, or the beginning of an answer, or
/// neither.
///
/// # Errors
/// When the choice of tools does not fit them.
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
