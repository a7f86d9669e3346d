//! Recorded exchanges with a model, and their replay.
//!
//! [`Recording`] sits between a caller and a model and keeps the requests and answers as a
//! [`Cassette`]; [`Replay`] is a model that answers from one, and only the recorded requests.

mod difference;
mod exchange;
mod recording;
mod replay;
mod secrets;

pub use recording::Recording;
pub use replay::Replay;

use exchange::Exchange;
use foldback_core::{Escape, escape_into};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Exchanges with a model, in the order in which they were begun.
///
/// As a file it is JSON Lines: a line with the version and the model's name, then one line for each
/// exchange, its request normalised whatever the order of its tools. It contains neither the session of
/// a request nor anything sent to the provider alongside it (its key).
#[derive(Clone, Debug, Default)]
pub struct Cassette {
    /// The model's name.
    model: String,
    exchanges: Vec<Exchange>,
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Title {
    cassette: u32,
    model: String,
}

/// The version of the format.
const VERSION: u32 = 1;

/// A cassette that cannot be read, written, or was not replayed as it was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line} of a cassette holds {expected}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What the line of a cassette should hold.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A request was not the one that was recorded.
    #[error("{0}")]
    Request(String),
    /// Exchanges were not replayed.
    #[error("{left} of the cassette's {all} exchanges were not played; the next is call {next}")]
    Left {
        /// How many were not replayed.
        left: usize,
        /// How many there are.
        all: usize,
        /// The first that was not replayed, counted from 1.
        next: usize,
    },
}

impl Cassette {
    /// Returns the number of its exchanges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns whether it has no exchanges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a cassette; the error names the line.
    pub fn read(path: &Path) -> Result<Self, CassetteError> {
        let text = fs::read_to_string(path);
        Self::parse(&text.map_err(|source| CassetteError::File { path: path.into(), source })?)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// When it is not a cassette; the error names the line.
    pub fn parse(text: &str) -> Result<Self, CassetteError> {
        let wrong = |at: usize, expected: &'static str, reason: String| CassetteError::Line {
            line: at + 1,
            expected,
            reason,
        };
        let mut lines = text.lines().enumerate();
        let expected = "the version and the model";
        let title = lines.next().map_or("", |(_, line)| line);
        let title: Title =
            serde_json::from_str(title).map_err(|error| wrong(0, expected, error.to_string()))?;
        if title.cassette != VERSION {
            let reason = format!("the version is {}, and {VERSION} is known here", title.cassette);
            return Err(wrong(0, expected, reason));
        }
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let exchange = |(at, line)| {
            serde_json::from_str(line)
                .map_err(|error: serde_json::Error| wrong(at, "an exchange", error.to_string()))
        };
        let exchanges = lines.map(exchange).collect::<Result<_, _>>()?;
        Ok(Self { model: title.model, exchanges })
    }

    /// Writes a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CassetteError> {
        let wrong = |source| CassetteError::File { path: path.into(), source };
        fs::write(path, self.text().map_err(|error| wrong(error.into()))?).map_err(wrong)
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// When an exchange cannot be written as JSON.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let title = Title { cassette: VERSION, model: self.model.clone() };
        let mut text = serde_json::to_string(&title)? + "\n";
        for exchange in &self.exchanges {
            text.push_str(&serde_json::to_string(exchange)?);
            text.push('\n');
        }
        Ok(text)
    }
}

/// Writes a text as a JSON string, with its quotes and the fewest escapes.
fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, Escape::Minimal, out);
    out.push('"');
}
