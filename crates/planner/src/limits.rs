//! How large a plan may be.

use crate::StepId;
use std::fmt;

/// How large a plan may be. What is over a bound is refused before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Steps, counting all plans of a run together.
    pub steps: usize,
    /// What a step waits for, in steps.
    pub dependences: usize,
    /// The text of the arguments of one step, or of the task of an anchor, in bytes.
    pub argument_bytes: usize,
    /// The arguments of one call as JSON, with everything that their references bring, in bytes.
    pub bound_bytes: usize,
    /// How deep arguments, and blocks of calls, may be nested in each other.
    pub depth: usize,
}

impl Default for Limits {
    /// Far above what models write, and far below what would hurt: 1,000 steps, 1,000 dependences,
    /// 1 MiB of arguments, which come to 16 MiB with what they refer to, 64 levels.
    fn default() -> Self {
        Self {
            steps: 1_000,
            dependences: 1_000,
            argument_bytes: 1 << 20,
            bound_bytes: 16 << 20,
            depth: 64,
        }
    }
}

/// A bound that a plan is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} has {found} {quantity}; at most {limit} are allowed", subject(*step))]
pub struct LimitError {
    /// Which bound.
    pub quantity: Quantity,
    /// What there is, or more.
    pub found: usize,
    /// The bound.
    pub limit: usize,
    /// The step, where it is about one.
    pub step: Option<StepId>,
}

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::dependences`].
    Dependences,
    /// [`Limits::argument_bytes`].
    ArgumentBytes,
    /// [`Limits::depth`].
    Depth,
}

impl Limits {
    /// Compares what was counted with a bound.
    ///
    /// # Errors
    /// When it is over the bound.
    pub fn check(
        &self,
        quantity: Quantity,
        found: usize,
        step: Option<StepId>,
    ) -> Result<(), LimitError> {
        let limit = match quantity {
            Quantity::Steps => self.steps,
            Quantity::Dependences => self.dependences,
            Quantity::ArgumentBytes => self.argument_bytes,
            Quantity::Depth => self.depth,
        };
        if found <= limit { Ok(()) } else { Err(LimitError { quantity, found, limit, step }) }
    }

    /// The same, with at most this many steps.
    #[must_use]
    pub fn with_steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The same, with steps that wait for at most this many others.
    #[must_use]
    pub fn with_dependences(self, dependences: usize) -> Self {
        Self { dependences, ..self }
    }

    /// The same, with at most this many bytes of arguments as they are written.
    #[must_use]
    pub fn with_argument_bytes(self, argument_bytes: usize) -> Self {
        Self { argument_bytes, ..self }
    }

    /// The same, with at most this many bytes of arguments as they are bound.
    #[must_use]
    pub fn with_bound_bytes(self, bound_bytes: usize) -> Self {
        Self { bound_bytes, ..self }
    }

    /// The same, nested at most this deep.
    #[must_use]
    pub fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "steps",
            Self::Dependences => "steps to wait for",
            Self::ArgumentBytes => "bytes of arguments",
            Self::Depth => "levels of nesting",
        })
    }
}

fn subject(step: Option<StepId>) -> String {
    step.map_or_else(|| "the plan".to_owned(), |step| step.to_string())
}
