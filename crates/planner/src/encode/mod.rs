//! Inserts values into code so that they stay values.
//!
//! An argument that a tool declares to be code gets each value as a literal of its language, or, if the
//! reference is already inside a string literal, as characters of that literal. An encoder follows the
//! code between the references just far enough to know which of the two applies. If that is not
//! certain, or no value is possible there, it refuses: an error that a model can act on is better than
//! a guess.
//!
//! What a command or a query does with a value is not examined. A shell word stays a word, and nothing
//! more is promised. After `eval`, `ssh` and the like, and in the text that a shell or `su` is given to
//! run (`sh -c`), references are refused; but what `python3 -c`, `awk` or a pipe into `sh` make of a
//! word is the responsibility of the command's author.

mod json;
mod python;
mod shell;
mod sql;

pub(crate) use json::Code as JsonCode;

use crate::bind::BoundValue;
use crate::{Piece, Reference, Template};
use foldback_tool::Language;
use std::borrow::Cow;

/// Why a value cannot be inserted at the position of a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The whole of a code argument would be a tool's answer.
    #[error(
        "a result cannot be the whole of a code argument; expected code around it, or a tool \
         that takes code as it is"
    )]
    Whole,
    /// No value can be inserted safely in this place.
    #[error("it is {place}; expected it {instead}")]
    Place {
        /// The place.
        place: &'static str,
        /// Where it may be inserted.
        instead: &'static str,
    },
    /// The value contains something that the language cannot write there.
    #[error("the value contains {what}, which cannot be written there")]
    Value {
        /// The character, or the kind of text.
        what: &'static str,
    },
}

/// An encoder that inserts values into one text.
pub(crate) enum Encoder {
    /// Values are inserted unchanged.
    Raw,
    Json(json::Code),
    Python(python::Code),
    Shell(shell::Code),
    Sql(sql::Code),
}

impl Encoder {
    pub(crate) fn new(language: Option<Language>) -> Self {
        match language {
            None | Some(Language::Raw) => Self::Raw,
            Some(Language::Json) => Self::Json(json::Code::default()),
            Some(Language::Python) => Self::Python(python::Code::default()),
            Some(Language::Shell) => Self::Shell(shell::Code::default()),
            Some(Language::Sql) => Self::Sql(sql::Code::default()),
        }
    }

    /// Advances past code that is copied unchanged.
    pub(crate) fn pass(&mut self, code: &str) {
        match self {
            Self::Raw => {}
            Self::Json(at) => at.pass(code),
            Self::Python(at) => at.pass(code),
            Self::Shell(at) => at.pass(code),
            Self::Sql(at) => at.pass(code),
        }
    }

    /// Returns the text to insert here. `behind` is the code that follows; for another reference, the
    /// quote that a literal begins with.
    pub(crate) fn encode(
        &mut self,
        value: &BoundValue<'_>,
        behind: &str,
    ) -> Result<String, Refusal> {
        match self {
            Self::Raw => Ok(value.text().into_owned()),
            Self::Json(at) => Ok(at.encode(value)),
            Self::Python(at) => at.encode(value, behind),
            Self::Shell(at) => at.encode(value, behind),
            Self::Sql(at) => at.encode(value, behind),
        }
    }
}

/// Returns the code that follows a piece.
pub(crate) fn behind(next: Option<&Piece>) -> &str {
    match next {
        None => "",
        Some(Piece::Text(text)) => text,
        Some(Piece::Reference(_)) => "'",
    }
}

/// Returns the references in an argument that could not be inserted whatever their values, because of
/// their position in code.
pub(crate) fn refusals(argument: &Template, language: Language) -> Vec<(&Reference, Refusal)> {
    let mut refused = Vec::new();
    probe(argument, language, &mut |reference, refusal| refused.push((reference, refusal)));
    refused
}

/// Tries a harmless value at each position.
fn probe<'a>(
    template: &'a Template,
    language: Language,
    refuse: &mut dyn FnMut(&'a Reference, Refusal),
) {
    let value = BoundValue::Text(Cow::Borrowed("0"));
    match template {
        Template::Literal(_) | Template::Text(_) => {}
        Template::Whole(reference) => {
            if let Err(refusal) = Encoder::new(Some(language)).encode(&value, "") {
                refuse(reference, refusal);
            }
        }
        Template::Mixed(pieces) => {
            let mut encoder = Encoder::new(Some(language));
            for (place, piece) in pieces.iter().enumerate() {
                match piece {
                    Piece::Text(text) => encoder.pass(text),
                    Piece::Reference(reference) => {
                        if let Err(refusal) = encoder.encode(&value, behind(pieces.get(place + 1)))
                        {
                            refuse(reference, refusal);
                        }
                    }
                }
            }
        }
        Template::Array(values) => values.iter().for_each(|value| probe(value, language, refuse)),
        Template::Object(members) => {
            members.iter().for_each(|(_, value)| probe(value, language, refuse));
        }
    }
}
