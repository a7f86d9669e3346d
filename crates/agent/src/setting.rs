//! Settings that make no sense, refused before a run does anything.

use foldback_llm::Sampling;
use std::fmt;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}, but {expected} is expected")]
pub struct SettingError {
    /// The setting.
    pub name: &'static str,
    /// What it was given: a number as it is, words between quotation marks.
    pub value: String,
    /// What can be used.
    pub expected: &'static str,
}

impl SettingError {
    /// What is expected of a number that must not be 0.
    pub const FROM_ONE: &'static str = "a whole number from 1 on";

    /// A setting of this name that was given `value`, where `expected` can be used.
    ///
    /// ```
    /// use foldback_agent::SettingError;
    ///
    /// let error = SettingError::new("share", 1.5, "a part above 0, up to 1");
    /// assert_eq!(error.to_string(), "share is 1.5, but a part above 0, up to 1 is expected");
    /// ```
    pub fn new(name: &'static str, value: impl fmt::Debug, expected: &'static str) -> Self {
        Self { name, value: format!("{value:?}"), expected }
    }

    /// Refuses a number that leaves nothing.
    ///
    /// # Errors
    /// When the number is 0.
    pub fn check_positive(name: &'static str, number: u64) -> Result<(), Self> {
        if number > 0 { Ok(()) } else { Err(Self::new(name, number, Self::FROM_ONE)) }
    }

    /// Refuses words that say nothing, or do not stay on their line.
    ///
    /// # Errors
    /// When there are words, and they are blank or hold a control character.
    pub fn check_line(name: &'static str, words: Option<&str>) -> Result<(), Self> {
        let Some(words) = words else { return Ok(()) };
        if words.trim().is_empty() || words.contains(char::is_control) {
            return Err(Self::new(name, words, "words on one line, or none at all"));
        }
        Ok(())
    }

    /// Refuses a temperature that no model takes.
    ///
    /// # Errors
    /// When there is one, and it is not from 0 to 2.
    pub fn check_temperature(name: &'static str, temperature: Option<f64>) -> Result<(), Self> {
        match temperature {
            Some(t) if !(0.0..=2.0).contains(&t) => {
                Err(Self::new(name, t, "a number from 0 to 2, or none at all"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a way to draw answers that brings none.
    ///
    /// # Errors
    /// When its temperature is not from 0 to 2, or an answer may have no tokens.
    pub fn check_sampling(sampling: &Sampling) -> Result<(), Self> {
        Self::check_temperature("temperature", sampling.temperature)?;
        Self::check_positive("max_tokens", sampling.max_tokens.map_or(1, u64::from))
    }
}
