//! JSON for programs. Its keys are a contract; see each command's help.

use super::Output;
use crate::error::CliError;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

impl Output {
    /// Prints a value as JSON on one line, and flushes it.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), CliError> {
        let mut line = to_json(value)?;
        line.push('\n');
        self.json_bytes(line.as_bytes())
    }
}

/// A list that is printed as it comes, so that it is never in memory as a whole.
pub(crate) struct JsonList<'a> {
    out: &'a Output,
    any: bool,
}

impl<'a> JsonList<'a> {
    pub(crate) fn begin(out: &'a Output) -> Result<Self, CliError> {
        out.json_bytes(b"[")?;
        Ok(Self { out, any: false })
    }

    pub(crate) fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CliError> {
        let json = to_json(value)?;
        let comma = if self.any { ",\n" } else { "\n" };
        self.any = true;
        self.out.json_bytes(format!("{comma}{json}").as_bytes())
    }

    pub(crate) fn end(self) -> Result<(), CliError> {
        self.out.json_bytes(b"\n]\n")
    }
}

/// A text that is JSON already and is printed as it is.
pub(crate) struct Exact<S>(pub(crate) S);

impl<S: AsRef<str>> Serialize for Exact<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let raw: &RawValue =
            serde_json::from_str(self.0.as_ref()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Rounds a score to its meaningful digits.
pub(crate) fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1e4).round() / 1e4
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    serde_json::to_string(value)
        .map_err(|error| CliError::Usage(format!("this cannot be printed as JSON: {error}")))
}
