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

/// The part of a reference that was found, for a message.
fn place(reference: &Reference, depth: usize) -> String {
    let found = reference.path.get(..depth).unwrap_or_default();
    format!("the result of {}{}", reference.step, path_text(found))
}
