//! Errors, as a kind and a sentence.

use crate::ApiKey;
use crate::json;
use foldback_core::first_chars;
use foldback_llm::{ModelError, ModelErrorKind};
use serde_json::Value;
use std::error::Error;
use std::str::Utf8Error;
use std::time::Duration;

/// How much of a sentence with a provider's own words is shown, in characters.
const LONGEST_MESSAGE: usize = 350;

/// How much of a template's own words is shown, so that there is room for the advice.
const LONGEST_REFUSAL: usize = 180;

/// What providers call transient failures, in their codes and types: in lower case and without punctuation.
const PASSING: [(&str, ModelErrorKind); 18] = [
    ("overloaded", ModelErrorKind::Unavailable),
    ("overloadederror", ModelErrorKind::Unavailable),
    ("engineoverloadederror", ModelErrorKind::Unavailable),
    ("apierror", ModelErrorKind::Unavailable),
    ("servererror", ModelErrorKind::Unavailable),
    ("internalservererror", ModelErrorKind::Unavailable),
    ("internalerror", ModelErrorKind::Unavailable),
    ("serviceunavailable", ModelErrorKind::Unavailable),
    ("serviceunavailableerror", ModelErrorKind::Unavailable),
    ("unavailable", ModelErrorKind::Unavailable),
    ("ratelimiterror", ModelErrorKind::RateLimit),
    ("ratelimitexceeded", ModelErrorKind::RateLimit),
    ("toomanyrequests", ModelErrorKind::RateLimit),
    ("resourceexhausted", ModelErrorKind::RateLimit),
    ("timeout", ModelErrorKind::Timeout),
    ("timeouterror", ModelErrorKind::Timeout),
    ("gatewaytimeout", ModelErrorKind::Timeout),
    ("deadlineexceeded", ModelErrorKind::Timeout),
];

/// What they call a refused key.
const REFUSED_KEY: [&str; 3] = ["authenticationerror", "permissionerror", "invalidapikey"];

/// What providers say if a request is too long for the model.
const TOO_LONG: [&str; 8] = [
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
];

/// What servers say if the model's chat template cannot express a request. Some report it as a failure
/// of their own, but it is permanent.
const TEMPLATE: [&str; 6] = [
    "jinja",
    "chat template",
    "chat_template",
    "must alternate",
    "tool-calls at once",
    "with length 9",
];

/// The advice for a template that refuses.
const TEMPLATE_HINT: &str = "; the model's chat template cannot express this request: `foldback model check` \
                             names the settings that help";

/// What providers say when the account is empty.
const SPENT: [&str; 4] =
    ["insufficient_quota", "billing_error", "credit balance", "insufficient balance"];

/// Creates the error of an HTTP status.
pub(crate) fn of_status(status: u16, body: &str, retry_after: Option<Duration>) -> ModelError {
    let told = json::parse(body).unwrap_or(Value::Null);
    let (names, message) = words(&told);
    let names = names.join(" ");
    let all =
        format!("{names} {message} {}", if message.is_empty() { body } else { "" }).to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| all.contains(phrase));
    let is_template = is_of_template(&all);
    let kind = match status {
        402 => ModelErrorKind::Quota,
        400..=499 if says(&SPENT) => ModelErrorKind::Quota,
        401 | 403 => ModelErrorKind::Authentication,
        408 => ModelErrorKind::Timeout,
        413 => ModelErrorKind::ContextLength,
        429 => ModelErrorKind::RateLimit,
        400.. if says(&TOO_LONG) => ModelErrorKind::ContextLength,
        500.. if is_template => ModelErrorKind::Request,
        504 => ModelErrorKind::Timeout,
        500.. => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Request,
    };
    let words = if message.is_empty() { body } else { &message };
    let words = if words.trim().is_empty() { String::new() } else { format!(": {words}") };
    let message = match status {
        300..=399 => format!(
            "the provider answered with a redirect (status {status}), which is not followed: give \
             the address that it leads to as base URL{words}"
        ),
        _ => {
            let of = parameter(&told).map(|name| format!(" to `{name}`")).unwrap_or_default();
            let words = match kind == ModelErrorKind::Request && is_template {
                true => with_hint(&words),
                false => words,
            };
            format!("the provider answered with status {status}{of}{words}")
        }
    };
    ModelError { retry_after, ..ModelError::new(kind, message) }
}

/// Creates the error in an answer, or in a frame of one. Its status decides the kind, or else its names do.
pub(crate) fn of_body(error: &Value) -> ModelError {
    let (names, message) = words(error);
    let of_status = |status: u16| of_status(status, &error.to_string(), None).kind;
    let kind = names
        .iter()
        .filter_map(|name| name.trim().parse().ok())
        .find(|status| (400..600).contains(status))
        .map(of_status)
        .filter(|kind| *kind != ModelErrorKind::Request)
        .or_else(|| names.iter().find_map(|name| named(name)))
        .unwrap_or_else(|| of_status(400));
    let words = if message.is_empty() { error.to_string() } else { message };
    let may_be_refusal = matches!(kind, ModelErrorKind::Unavailable | ModelErrorKind::Request);
    let (kind, words) = match may_be_refusal && is_of_template(&words.to_lowercase()) {
        true => (ModelErrorKind::Request, with_hint(&words)),
        false => (kind, words),
    };
    ModelError::new(kind, format!("the provider broke off with an error: {words}"))
}

/// Returns whether a request is refused because it asks for streaming. OpenAI does so to
/// organisations that it has not verified.
pub(crate) fn is_of_streaming(error: &ModelError) -> bool {
    let mut words = error.message.split(|char: char| !char.is_alphanumeric());
    let names = |word: &str| word.to_lowercase().starts_with("stream");
    error.kind == ModelErrorKind::Request && words.any(names)
}

/// Returns whether a text in lower case is that of a chat template that cannot express a request.
fn is_of_template(words: &str) -> bool {
    TEMPLATE.iter().any(|phrase| words.contains(phrase))
}

/// Returns a template's words, with the advice.
fn with_hint(words: &str) -> String {
    format!("{}{TEMPLATE_HINT}", first_chars(words, LONGEST_REFUSAL))
}

/// Returns the kind of a code or a type.
fn named(name: &str) -> Option<ModelErrorKind> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    if REFUSED_KEY.contains(&plain.as_str()) {
        return Some(ModelErrorKind::Authentication);
    }
    PASSING.iter().find(|(passing, _)| *passing == plain).map(|(_, kind)| *kind)
}

/// Creates the error of an answer that cannot be read, with its beginning.
pub(crate) fn unreadable(what: &str, answer: &str) -> ModelError {
    let message =
        if answer.trim().is_empty() { what.to_owned() } else { format!("{what}: {answer}") };
    ModelError::new(ModelErrorKind::Response, message)
}

/// Creates the error of an answer, or a line of one, that is not UTF-8.
pub(crate) fn no_text(error: Utf8Error) -> ModelError {
    unreadable("the answer cannot be read", &error.to_string())
}

/// Creates the error of an answer, or an event of one, that exceeds the limit; both counts are bytes.
pub(crate) fn too_long(what: &str, received: usize, longest: usize) -> ModelError {
    let message =
        format!("{what} is too long: {received} bytes came, and at most {longest} are read");
    ModelError::new(ModelErrorKind::Response, message)
}

/// Makes the error fit to be shown: without the key, which some providers repeat, and then with its
/// sentence, which may contain a whole answer, shortened.
pub(crate) fn shown(mut error: ModelError, key: Option<&ApiKey>) -> ModelError {
    let message = key.map(|key| key.redact(&error.message));
    error.message = excerpt(message.as_deref().unwrap_or(&error.message));
    error
}

/// Why no answer to a request has begun.
pub(crate) enum NoAnswer {
    /// The connection was lost after the request, possibly because of it.
    Lost(ModelError),
    Failed(ModelError),
}

impl NoAnswer {
    /// Classifies the failure of a request in transport.
    pub(crate) fn of_transport(error: reqwest::Error) -> Self {
        let is_lost = !error.is_connect() && !error.is_timeout() && !error.is_builder();
        let error = of_transport(error);
        if is_lost { Self::Lost(error) } else { Self::Failed(error) }
    }
}

impl From<ModelError> for NoAnswer {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

impl From<NoAnswer> for ModelError {
    fn from(no_answer: NoAnswer) -> Self {
        let (NoAnswer::Lost(error) | NoAnswer::Failed(error)) = no_answer;
        error
    }
}

/// Creates the error of a request that got no answer.
pub(crate) fn of_transport(error: reqwest::Error) -> ModelError {
    let kind = if error.is_timeout() {
        ModelErrorKind::Timeout
    } else if error.is_builder() {
        ModelErrorKind::Configuration
    } else {
        ModelErrorKind::Unavailable
    };
    // An address may contain a key. The cause is the innermost error: the others only pass it on.
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    ModelError::new(kind, format!("the provider could not be reached: {cause}"))
}

/// Returns the names that a provider gives an error (code, type, status), and its message, in any shape.
fn words(body: &Value) -> (Vec<String>, String) {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let names = [error, body]
        .into_iter()
        .flat_map(|object| ["code", "type", "status"].map(|key| object.get(key)))
        .filter_map(|name| match name? {
            Value::String(name) => Some(name.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    let message = ["message", "detail", "msg"]
        .iter()
        .find_map(|key| error.get(*key).and_then(Value::as_str))
        .or_else(|| error.as_str());
    (names, message.unwrap_or_default().to_owned())
}

/// Returns the parameter that an error is about, as OpenAI names it.
fn parameter(body: &Value) -> Option<&str> {
    body.pointer("/error/param")?.as_str().filter(|name| !name.is_empty())
}

/// Returns the beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
