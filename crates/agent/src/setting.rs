//! Invalid settings, which are refused before a run does anything.

use foldback_llm::Sampling;
use std::fmt;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}, but {expected} is expected")]
pub struct SettingError {
    /// The setting.
    pub name: &'static str,
    /// Its value: a number as it is, text in quotation marks.
    pub value: String,
    /// What is expected.
    pub expected: &'static str,
}

impl SettingError {
    /// The expectation for a number that must not be 0.
    pub const FROM_ONE: &'static str = "a whole number of at least 1";

    /// Creates the error for a setting that has `value` when `expected` is required.
    ///
    /// ```
    /// use foldback_agent::SettingError;
    ///
    /// let error = SettingError::new("share", 1.5, "a number above 0 and at most 1");
    /// assert_eq!(error.to_string(), "share is 1.5, but a number above 0 and at most 1 is expected");
    /// ```
    pub fn new(name: &'static str, value: impl fmt::Debug, expected: &'static str) -> Self {
        Self { name, value: format!("{value:?}"), expected }
    }

    /// Refuses 0.
    ///
    /// # Errors
    /// When the number is 0.
    pub fn check_positive(name: &'static str, number: u64) -> Result<(), Self> {
        if number > 0 { Ok(()) } else { Err(Self::new(name, number, Self::FROM_ONE)) }
    }

    /// Refuses text that is blank or not on one line.
    ///
    /// # Errors
    /// When there is a text, and it is blank or holds a control character.
    pub fn check_line(name: &'static str, words: Option<&str>) -> Result<(), Self> {
        let Some(words) = words else { return Ok(()) };
        if words.trim().is_empty() || words.contains(char::is_control) {
            return Err(Self::new(name, words, "words on one line, or none at all"));
        }
        Ok(())
    }

    /// Refuses a temperature that no model accepts.
    ///
    /// # Errors
    /// When there is one, and it is outside 0 to 2.
    pub fn check_temperature(name: &'static str, temperature: Option<f64>) -> Result<(), Self> {
        match temperature {
            Some(t) if !(0.0..=2.0).contains(&t) => {
                Err(Self::new(name, t, "a number from 0 to 2, or none at all"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses sampling that gives no answers.
    ///
    /// # Errors
    /// When its temperature is outside 0 to 2, or an answer may have no tokens.
    pub fn check_sampling(sampling: &Sampling) -> Result<(), Self> {
        Self::check_temperature("temperature", sampling.temperature)?;
        Self::check_positive("max_tokens", sampling.max_tokens.map_or(1, u64::from))
    }
}
