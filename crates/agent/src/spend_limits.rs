//! What a run may spend.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What a run may spend at most; what is not given is not bounded.
///
/// Calls are counted before they are made, so that no more of them are made than these. What a call of
/// the model takes is known when it has been answered: one begins while less than the bound was spent,
/// with the estimated input of those under way counted as spent. So tokens and money are overshot by
/// what the last call takes, and by what the answers that were under way beside it come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SpendLimits {
    /// Calls of the model.
    pub model_calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Tokens of the model, in and out.
    pub tokens: Option<u64>,
    /// Money, in the currency of [`TokenPrices`]: 0 or more.
    pub cost: Option<f64>,
    /// Time.
    pub time: Option<Duration>,
}

impl SpendLimits {
    /// What both allow.
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

    /// A part of it: all of it from 1 on, nothing from 0 down, and between them of what can be counted one
    /// at least, where there is any. What is no number is no bound on it.
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

    /// The same, with at most this many calls of the model; `None` for any number.
    #[must_use]
    pub fn with_model_calls(self, model_calls: impl Into<Option<u64>>) -> Self {
        Self { model_calls: model_calls.into(), ..self }
    }

    /// The same, with at most this many calls of tools; `None` for any number.
    #[must_use]
    pub fn with_tool_calls(self, tool_calls: impl Into<Option<u64>>) -> Self {
        Self { tool_calls: tool_calls.into(), ..self }
    }

    /// The same, with at most this many tokens; `None` for any number.
    #[must_use]
    pub fn with_tokens(self, tokens: impl Into<Option<u64>>) -> Self {
        Self { tokens: tokens.into(), ..self }
    }

    /// The same, costing at most this much; `None` for any amount.
    #[must_use]
    pub fn with_cost(self, cost: impl Into<Option<f64>>) -> Self {
        Self { cost: cost.into(), ..self }
    }

    /// The same, taking at most this long; `None` for any time.
    #[must_use]
    pub fn with_time(self, time: impl Into<Option<Duration>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

/// Of what there was not enough.
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
