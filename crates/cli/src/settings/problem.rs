//! The error of a setting, in a sentence.

use super::in_force::Source;
use super::key::{ALIKE, Key, nearest};
use crate::error::CliError;
use figment::error::{Actual, Kind};

/// The error of a setting.
pub(super) struct Problem {
    /// The key, as far as the file has it.
    pub(super) path: Vec<String>,
    /// What was wrong, and what was expected.
    pub(super) what: String,
}

/// The settings whose values are never shown.
pub(super) const SECRET: &str = "api_key";

impl Problem {
    pub(super) fn new(error: &figment::Error) -> Self {
        let path = error.path.clone();
        let key = Key(path.clone());
        let found = |actual: &Actual| match path.iter().any(|part| part == SECRET) {
            true => "not text".to_owned(),
            false => in_words(actual),
        };
        let what = match &error.kind {
            // For example inside a table of a list: only its own keys can be meant.
            Kind::UnknownField(found, own) if key.is_below_settings() => {
                let alike = |name: &&&str| strsim::jaro_winkler(name, found);
                match own.iter().max_by(|one, other| alike(one).total_cmp(&alike(other))) {
                    Some(near) if alike(&near) > ALIKE => {
                        format!("there is no setting {key}; did you mean {near}?")
                    }
                    _ => format!("there is no setting {key}; there are {}", own.join(", ")),
                }
            }
            Kind::UnknownField(..) => match nearest(&key) {
                Some(near) => format!("there is no setting {key}; did you mean {near}?"),
                None => {
                    format!("there is no setting {key}; docs/settings.md lists the settings")
                }
            },
            Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
                format!("{key} is {}, but {} was expected", found(actual), form(expected))
            }
            Kind::UnknownVariant(found, names) => {
                format!("{key} is {found:?}, but one of {} was expected", names.join(", "))
            }
            Kind::MissingField(field) => format!("{key} lacks {field}"),
            kind => format!("{key}: {kind}"),
        };
        Self { path, what }
    }

    /// The error, with the source of the setting.
    pub(super) fn at(&self, place: &Source) -> CliError {
        CliError::Usage(format!("{place}: {}", self.what))
    }
}

/// The value that was found, in words.
fn in_words(actual: &Actual) -> String {
    match actual {
        Actual::Bool(found) => found.to_string(),
        Actual::Unsigned(found) => found.to_string(),
        Actual::Signed(found) => found.to_string(),
        Actual::Float(found) => found.to_string(),
        Actual::Char(found) => format!("{found:?}"),
        Actual::Str(found) => format!("{found:?}"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// The expected value, for a user who has never seen the program.
fn form(expected: &str) -> String {
    let form = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "path string" => "a path in quotes",
        "a sequence" => "a list such as [\"one\", \"two\"]",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    form.to_owned()
}
