//! The spend limits of a run.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The most that a run may spend; a resource without a value has no limit.
///
/// Calls are counted before they are made, so their limits are exact. What a call of the model takes is known
/// only when it has been answered: a call begins while less than the limit was spent, with the estimated
/// input of calls in progress counted as spent. So tokens and money may exceed their limits by what the last
/// call takes, and by the answers of calls that were in progress beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SpendLimits {
    /// Calls of the model.
    pub model_calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Tokens of the model, input and output.
    pub tokens: Option<u64>,
    /// Money, in the currency of [`TokenPrices`]: 0 or more.
    pub cost: Option<f64>,
    /// Time.
    pub time: Option<Duration>,
}

impl SpendLimits {
    /// Returns what both allow.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(if other < one { other } else { one }),
                (one, other) => one.or(other),
            }
        }
        Self {
            model_calls: least(self.model_calls, other.model_calls),
            tool_calls: least(self.tool_calls, other.tool_calls),
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            time: least(self.time, other.time),
        }
    }

    /// Returns a part of it: all of it for 1 or more, nothing for 0 or less, and in between at least one of each
    /// countable resource of which there is any. NaN sets no limit.
    #[must_use]
    pub fn part(self, part: f64) -> Self {
        if part.is_nan() || part >= 1.0 {
            return self;
        }
        let part = part.max(0.0);
        let timed = |time: Duration| Duration::try_from_secs_f64(time.as_secs_f64() * part);
        let counted = |whole: u64| (whole as f64 * part).ceil() as u64;
        Self {
            model_calls: self.model_calls.map(counted),
            tool_calls: self.tool_calls.map(counted),
            tokens: self.tokens.map(counted),
            cost: self.cost.map(|cost| cost * part),
            time: self.time.map(|time| timed(time).unwrap_or(time)),
        }
    }

    /// Sets the most calls of the model; `None` for any number.
    #[must_use]
    pub fn with_model_calls(self, model_calls: impl Into<Option<u64>>) -> Self {
        Self { model_calls: model_calls.into(), ..self }
    }

    /// Sets the most calls of tools; `None` for any number.
    #[must_use]
    pub fn with_tool_calls(self, tool_calls: impl Into<Option<u64>>) -> Self {
        Self { tool_calls: tool_calls.into(), ..self }
    }

    /// Sets the most tokens; `None` for any number.
    #[must_use]
    pub fn with_tokens(self, tokens: impl Into<Option<u64>>) -> Self {
        Self { tokens: tokens.into(), ..self }
    }

    /// Sets the highest cost; `None` for any amount.
    #[must_use]
    pub fn with_cost(self, cost: impl Into<Option<f64>>) -> Self {
        Self { cost: cost.into(), ..self }
    }

    /// Sets the longest time; `None` for any time.
    #[must_use]
    pub fn with_time(self, time: impl Into<Option<Duration>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

/// A resource of which there was not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Calls of the model.
    ModelCalls,
    /// Calls of tools.
    ToolCalls,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time.
    Time,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelCalls => "calls of the model",
            Self::ToolCalls => "calls of tools",
            Self::Tokens => "tokens",
            Self::Cost => "money",
            Self::Time => "time",
        })
    }
}
