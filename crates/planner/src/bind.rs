//! Fills in the references of a step's arguments, when it starts.
//!
//! One pass: what a reference brings is inserted and never looked at again, so a result that reads
//! like a reference, a tag or code stays data.
//!
//! - A text that is one reference keeps the JSON type of what it brings, numbers with their exact text;
//!   only where the tool's schema wants a string, and nothing else, it becomes text.
//! - In a longer text, strings are inserted bare and everything else as compact JSON.
//! - In an argument that is written in a [`Language`], a value is inserted as a literal of it.
//! - Of what a tool answered, `structured` is what references see; else the text, as JSON where it is
//!   an object or array, and as text everywhere else. A text such as `007` is never taken for a number,
//!   unless the tool's output schema says so ([`Data::of_text`]). Where all of a text is to become text,
//!   it is inserted byte for byte, whatever it could be read as.
//! - The result of a step that failed or was skipped is `{"error": {"kind": .., "message": ..}}`,
//!   whatever the path: it comes up where the steps behind a failure run all the same.

use crate::catalog::Entry;
use crate::encode::{Encoder, Refusal, behind};
use crate::reference::path_text;
use crate::template::quote_into;
use crate::{Catalog, Failure, PathSegment, Piece, Reference, StepId, StepResult, Template};
use foldback_core::Object;
use foldback_tool::{Data, FailureKind, Language};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map;

/// Where the results of steps are found.
pub trait Results {
    /// What became of a step; none while it has not ended.
    fn result(&self, step: StepId) -> Option<&StepResult>;
}

impl Results for BTreeMap<StepId, StepResult> {
    fn result(&self, step: StepId) -> Option<&StepResult> {
        self.get(&step)
    }
}

/// Why arguments could not be bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The step that is referred to has no result yet.
    #[error("`{reference}`: {} has no result yet", reference.step)]
    NoResult {
        /// The reference.
        reference: Reference,
    },
    /// The result has no such part.
    #[error("`{reference}`: {} has no `{missing}`; there is {there}", place(reference, *depth))]
    NoSuchPart {
        /// The reference.
        reference: Reference,
        /// How many segments of its path were found.
        depth: usize,
        /// The segment that was not.
        missing: PathSegment,
        /// What was there instead: the keys of an object, the length of an array.
        there: String,
    },
    /// The value cannot be inserted safely where the reference stands.
    #[error("`{reference}` in the argument `{argument}`: {refusal}")]
    Refused {
        /// The reference.
        reference: Reference,
        /// The argument.
        argument: String,
        /// Why.
        refusal: Refusal,
    },
    /// With what the references bring, the arguments are too large.
    #[error(
        "with what their references bring, the arguments are over {limit} bytes, and no more are \
         handed on; refer to a part, or let a step before make it shorter"
    )]
    TooLarge {
        /// The bound, in bytes of JSON.
        limit: usize,
    },
}

impl BindError {
    /// The failure of the step whose arguments these are.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let kind = match self {
            Self::NoSuchPart { .. } => FailureKind::MissingPart,
            Self::NoResult { .. } | Self::Refused { .. } => FailureKind::Arguments,
            Self::TooLarge { .. } => FailureKind::Quota,
        };
        Failure { kind, message: self.to_string() }
    }
}

impl Catalog {
    /// Fills in the references of a function's arguments, and gives them as compact JSON. Of the
    /// function, the schema and the languages of its arguments count; of one that is not in the catalog
    /// nothing is known. At most `most_bytes` are written ([`Limits::bound_bytes`]).
    ///
    /// [`Limits::bound_bytes`]: crate::Limits::bound_bytes
    ///
    /// # Errors
    /// When a result is not there, has not the part that is meant, cannot be inserted safely, or makes
    /// the arguments too large.
    ///
    /// ```
    /// use foldback_planner::{Action, Catalog, Intent, StepId, StepResult, parse_one_plan};
    /// use foldback_tool::Data;
    /// use std::collections::BTreeMap;
    ///
    /// let text = r#"{"action_plan": {"step2": {"function": "book",
    ///     "args": {"to": "$$step1.result.city$$", "note": "to $$step1.result.city$$, $ 5"},
    ///     "dependence": [1]}}}"#;
    /// let Intent::Plan(plan) = parse_one_plan(text)?.intent else { panic!("a plan") };
    /// let Action::Call { function, arguments } = &plan.steps[0].action else { panic!("a call") };
    /// let data = Data { text: r#"{"city": "沈阳"}"#.to_owned(), structured: None };
    /// let results = BTreeMap::from([(StepId(1), StepResult::Success { data })]);
    /// let bound = Catalog::default().bind(function, arguments, &results, 1_000)?;
    /// assert_eq!(bound, r#"{"to":"沈阳","note":"to 沈阳, $ 5"}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bind(
        &self,
        function: &str,
        arguments: &Template,
        results: &impl Results,
        most_bytes: usize,
    ) -> Result<String, BindError> {
        let mut binder = Binder {
            results,
            entry: self.entry(function),
            limit: most_bytes,
            answers: FxHashMap::default(),
            path: Vec::new(),
            language: None,
        };
        let mut out = String::new();
        binder.write(arguments, &mut out)?;
        Ok(out)
    }
}

/// Writes the arguments of one call.
struct Binder<'a, R> {
    results: &'a R,
    entry: Option<&'a Entry>,
    limit: usize,
    /// What steps answered, each read once, as far as references lead.
    answers: FxHashMap<StepId, Answer<'a>>,
    /// Where in the arguments.
    path: Vec<PathSegment>,
    /// Of the argument that is being written.
    language: Option<Language>,
}

impl<'a, R: Results> Binder<'a, R> {
    fn write(&mut self, template: &Template, out: &mut String) -> Result<(), BindError> {
        match template {
            Template::Literal(text) => out.push_str(text),
            Template::Text(text) => quote_into(text, out),
            Template::Whole(reference) if self.language.is_some() => {
                let piece = Piece::Reference(reference.clone());
                quote_into(&self.text(&[piece], out.len())?, out);
            }
            Template::Whole(reference) => {
                let value = self.value(reference)?;
                if !value.is_text() && self.entry.is_some_and(|at| at.takes_text_only(&self.path)) {
                    quote_into(&value.text(), out);
                } else {
                    value.write(out);
                }
            }
            Template::Mixed(pieces) => quote_into(&self.text(pieces, out.len())?, out),
            Template::Array(values) => {
                out.push('[');
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    self.path.push(PathSegment::Index(place));
                    self.write(value, out)?;
                    self.path.pop();
                }
                out.push(']');
            }
            Template::Object(members) => {
                out.push('{');
                for (place, (key, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    quote_into(key, out);
                    out.push(':');
                    if self.path.is_empty() {
                        self.language =
                            self.entry.and_then(|at| at.tool.languages.get(key)).copied();
                    }
                    self.path.push(PathSegment::Key(key.clone()));
                    self.write(value, out)?;
                    self.path.pop();
                }
                out.push('}');
            }
        }
        self.check(out.len())
    }

    fn check(&self, bytes: usize) -> Result<(), BindError> {
        if bytes > self.limit { Err(BindError::TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// The text that pieces come to, behind so many bytes.
    fn text(&mut self, pieces: &[Piece], before: usize) -> Result<String, BindError> {
        let mut encoder = Encoder::new(self.language);
        let mut text = String::new();
        for (place, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(plain) => {
                    encoder.pass(plain);
                    text.push_str(plain);
                }
                Piece::Reference(reference) => {
                    let value = self.value(reference)?;
                    let encoded = encoder.encode(&value, behind(pieces.get(place + 1)));
                    text.push_str(&encoded.map_err(|refusal| BindError::Refused {
                        reference: reference.clone(),
                        argument: match self.path.first() {
                            Some(PathSegment::Key(key)) => key.clone(),
                            _ => String::new(),
                        },
                        refusal,
                    })?);
                }
            }
            self.check(before + text.len())?;
        }
        Ok(text)
    }

    fn value(&mut self, reference: &Reference) -> Result<BoundValue<'a>, BindError> {
        let answer = match self.answers.entry(reference.step) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let result = self.results.result(reference.step);
                let no_result = || BindError::NoResult { reference: reference.clone() };
                place.insert(Answer::of(reference.step, result.ok_or_else(no_result)?))
            }
        };
        answer.part(reference)
    }
}

/// What became of a step, as references see it.
enum Answer<'a> {
    /// JSON, and the text that it stands in where it was not given apart.
    Json {
        root: Node<'a>,
        text: Option<&'a str>,
    },
    Text(&'a str),
    /// An error, as JSON.
    Error(String),
}

impl<'a> Answer<'a> {
    fn of(step: StepId, result: &'a StepResult) -> Self {
        match result {
            StepResult::Success { data } => Self::of_data(data),
            StepResult::Error { failure } => {
                let kind = serde_json::to_string(&failure.kind).unwrap_or_default();
                Self::Error(error_object(&kind, &failure.message))
            }
            StepResult::Skipped { because } => {
                let message = format!("{step} was skipped, because {because} failed");
                Self::Error(error_object("\"skipped\"", &message))
            }
        }
    }

    fn of_data(data: &'a Data) -> Self {
        let read = |text| serde_json::from_str::<&RawValue>(text).ok().map(Node::of);
        if let Some(root) = data.structured.as_deref().and_then(read) {
            return Self::Json { root, text: None };
        }
        let may_be_json = data.text.trim_start().starts_with(['{', '[']);
        match may_be_json.then(|| read(&data.text)).flatten() {
            Some(root) => Self::Json { root, text: Some(&data.text) },
            None => Self::Text(&data.text),
        }
    }

    /// The part that a reference means.
    fn part(&mut self, reference: &Reference) -> Result<BoundValue<'a>, BindError> {
        let path = &reference.path;
        let no_such_part = |depth: usize, missing: &PathSegment, there| BindError::NoSuchPart {
            reference: reference.clone(),
            depth,
            missing: missing.clone(),
            there,
        };
        let (root, text) = match self {
            Self::Json { root, text } => (root, *text),
            Self::Text(text) => {
                return match path.first() {
                    None => Ok(BoundValue::Text(Cow::Borrowed(text))),
                    Some(missing) => {
                        let there = format!("a text of {} characters", text.chars().count());
                        Err(no_such_part(0, missing, there))
                    }
                };
            }
            Self::Error(json) => {
                return Ok(BoundValue::Json { json: Cow::Owned(json.clone()), text: None });
            }
        };
        let mut node = root;
        for (depth, segment) in path.iter().enumerate() {
            let value = node.value;
            let part = node.part(segment);
            node = part.ok_or_else(|| no_such_part(depth, segment, outline(value)))?;
        }
        let text = text.filter(|_| path.is_empty());
        Ok(BoundValue::Json { json: Cow::Borrowed(node.value.get()), text })
    }
}

/// A JSON value. What is in it is read when the first reference leads into it.
struct Node<'a> {
    value: &'a RawValue,
    inside: Option<Inside<'a>>,
}

enum Inside<'a> {
    /// Of a key that stands twice, the last value.
    Object(FxHashMap<Cow<'a, str>, Node<'a>>),
    Array(Vec<Node<'a>>),
    Nothing,
}

impl<'a> Node<'a> {
    fn of(value: &'a RawValue) -> Self {
        Self { value, inside: None }
    }

    fn part(&mut self, segment: &PathSegment) -> Option<&mut Self> {
        let value = self.value;
        match (self.inside.get_or_insert_with(|| Inside::of(value)), segment) {
            (Inside::Object(members), PathSegment::Key(key)) => members.get_mut(key.as_str()),
            (Inside::Array(values), PathSegment::Key(key)) => {
                values.get_mut(key.parse::<usize>().ok()?)
            }
            (Inside::Array(values), PathSegment::Index(place)) => values.get_mut(*place),
            (Inside::Object(_), PathSegment::Index(_)) | (Inside::Nothing, _) => None,
        }
    }
}

impl<'a> Inside<'a> {
    fn of(value: &'a RawValue) -> Self {
        if let Some(object) = Object::of(value) {
            let members = object.0.into_iter().map(|(key, value)| (key, Node::of(value)));
            return Self::Object(members.collect());
        }
        match Object::array_of(value) {
            Some(values) => Self::Array(values.into_iter().map(Node::of).collect()),
            None => Self::Nothing,
        }
    }
}

/// What a reference brings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BoundValue<'a> {
    /// JSON.
    Json {
        /// As it was written.
        json: Cow<'a, str>,
        /// What it comes to as text, where that is known to be something else than compact JSON.
        text: Option<&'a str>,
    },
    /// Text.
    Text(Cow<'a, str>),
}

impl BoundValue<'_> {
    fn is_text(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Json { json, .. } => json.trim_start().starts_with('"'),
        }
    }

    /// As JSON.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Json { json, .. } => compact_into(json, out),
            Self::Text(text) => quote_into(text, out),
        }
    }

    /// As text: all of a text byte for byte, strings bare, everything else as compact JSON.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json { text: Some(text), .. } => Cow::Borrowed(text),
            Self::Json { json, .. } => {
                let inside = json.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                if let Some(inside) = inside {
                    return foldback_core::decode_literal(inside);
                }
                let mut text = String::new();
                compact_into(json, &mut text);
                Cow::Owned(text)
            }
        }
    }
}

/// What a value offers to a path.
fn outline(value: &RawValue) -> String {
    const KEYS_MOST: usize = 20;
    if let Some(object) = Object::of(value) {
        let keys = object.distinct();
        if keys.is_empty() {
            return "an empty object".to_owned();
        }
        let shown: Vec<String> = keys
            .iter()
            .take(KEYS_MOST)
            .map(|(key, _)| format!("`{}`", crate::excerpt::of(key)))
            .collect();
        let more = if keys.len() > KEYS_MOST { ", …" } else { "" };
        return format!("an object with {}{more}", shown.join(", "));
    }
    match Object::array_of(value) {
        Some(values) => format!("an array of {}", values.len()),
        None => format!("`{}`", crate::excerpt::of(value.get())),
    }
}

/// The part of a reference that was found, for a message.
fn place(reference: &Reference, depth: usize) -> String {
    let found = reference.path.get(..depth).unwrap_or_default();
    format!("the result of {}{}", reference.step, path_text(found))
}

fn error_object(kind: &str, message: &str) -> String {
    let mut json = format!("{{\"error\":{{\"kind\":{kind},\"message\":");
    quote_into(message, &mut json);
    json.push_str("}}");
    json
}

/// JSON without the space between its tokens; strings and numbers keep their text.
pub(crate) fn compact_into(json: &str, out: &mut String) {
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
}
