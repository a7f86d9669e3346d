//! Fills in the references in a step's arguments when the step starts.
//!
//! One pass: the value of a reference is inserted and never scanned again, so a result that reads like
//! a reference, a tag or code stays data.
//!
//! - A text that is a single reference keeps the JSON type of the referenced value, and numbers keep
//!   their exact text. It becomes text only if the tool's schema allows nothing but a string.
//! - In a longer text, strings are inserted bare and everything else as compact JSON.
//! - In an argument that is code in a [`Language`], a value is inserted as a literal of it.
//! - If a tool's answer has `structured`, references see that. Otherwise they see the text: as JSON if
//!   it is an object or array, else as text. A text such as `007` is never taken for a number, unless
//!   the tool's output schema says so ([`Data::of_text`](foldback_tool::Data::of_text)). If the whole of a text is to become text, it
//!   is inserted byte for byte, whatever it could be read as.
//! - The result of a step that failed or was skipped is `{"error": {"kind": .., "message": ..}}`,
//!   whatever the path. This arises when the steps after a failure run anyway.

mod answer;
mod value;

pub(crate) use value::{BoundValue, compact_into};

use crate::catalog::Entry;
use crate::encode::{Encoder, Refusal, behind};
use crate::reference::path_text;
use crate::template::quote_into;
use crate::{Catalog, Failure, PathSegment, Piece, Reference, StepId, StepResult, Template};
use answer::Answer;
use foldback_tool::{FailureKind, Language};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map;

/// A source of step results.
pub trait Results {
    /// Returns the outcome of a step; `None` if it has not ended.
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
    /// The referenced step has no result yet.
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
        /// The number of path segments that were found.
        depth: usize,
        /// The first segment that was not found.
        missing: PathSegment,
        /// What was there instead: the keys of an object, the length of an array.
        there: String,
    },
    /// The value cannot be inserted safely at the reference's position.
    #[error("`{reference}` in the argument `{argument}`: {refusal}")]
    Refused {
        /// The reference.
        reference: Reference,
        /// The argument.
        argument: String,
        /// Why.
        refusal: Refusal,
    },
    /// With the referenced values inserted, the arguments are too large.
    #[error(
        "with the values of their references, the arguments exceed the limit of {limit} bytes; refer \
         to a part, or let an earlier step shorten the value"
    )]
    TooLarge {
        /// The bound, in bytes of JSON.
        limit: usize,
    },
}

impl BindError {
    /// Returns the failure of the step whose arguments these are.
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
    /// Fills in the references in a function's arguments and returns the result as compact JSON. The
    /// function's schema and the languages of its arguments are taken into account; a function that is
    /// not in the catalog has neither. At most `most_bytes` are written ([`Limits::bound_bytes`]).
    ///
    /// [`Limits::bound_bytes`]: crate::Limits::bound_bytes
    ///
    /// # Errors
    /// When a result is missing, lacks the referenced part, cannot be inserted safely, or makes the
    /// arguments too large.
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
        Binder::new(self.entry(function), results, most_bytes).bound(arguments)
    }

    /// Does the same as far as results are there: a reference without one stays as it is written.
    pub(crate) fn bind_known(
        &self,
        function: &str,
        arguments: &Template,
        results: &impl Results,
        most_bytes: usize,
    ) -> Result<String, BindError> {
        let binder = Binder::new(self.entry(function), results, most_bytes);
        Binder { keeps_unknown: true, ..binder }.bound(arguments)
    }
}

/// Writes the arguments of one call.
struct Binder<'a, R> {
    results: &'a R,
    entry: Option<&'a Entry>,
    limit: usize,
    /// The answers of steps, each parsed once, as far as references lead into it.
    answers: FxHashMap<StepId, Answer<'a>>,
    /// The current position in the arguments.
    path: Vec<PathSegment>,
    /// The language of the argument that is being written.
    language: Option<Language>,
    /// Whether a reference without a result is written as it is.
    keeps_unknown: bool,
}

impl<'a, R: Results> Binder<'a, R> {
    fn new(entry: Option<&'a Entry>, results: &'a R, limit: usize) -> Self {
        Self {
            results,
            entry,
            limit,
            answers: FxHashMap::default(),
            path: Vec::new(),
            language: None,
            keeps_unknown: false,
        }
    }

    fn bound(mut self, arguments: &Template) -> Result<String, BindError> {
        let mut out = String::new();
        self.write(arguments, &mut out)?;
        Ok(out)
    }

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

    /// Returns the text that the pieces produce, after the given number of bytes.
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
                if result.is_none() && self.keeps_unknown {
                    return Ok(BoundValue::Text(Cow::Owned(reference.to_string())));
                }
                let no_result = || BindError::NoResult { reference: reference.clone() };
                place.insert(Answer::of(reference.step, result.ok_or_else(no_result)?))
            }
        };
        answer.part(reference)
    }
}

/// Returns the part of a reference that was found, for a message.
fn place(reference: &Reference, depth: usize) -> String {
    let found = reference.path.get(..depth).unwrap_or_default();
    format!("the result of {}{}", reference.step, path_text(found))
}
