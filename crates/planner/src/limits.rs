//! How large a plan may be.

use crate::StepId;
use std::fmt;

/// How large a plan may be. Anything over a bound is refused before the plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The number of steps in all plans of a run together.
    pub steps: usize,
    /// The number of steps that a step waits for.
    pub dependences: usize,
    /// The size of one step's arguments, or of an anchor's task, in bytes.
    pub argument_bytes: usize,
    /// The size of one call's arguments as JSON, with all referenced values inserted, in bytes.
    pub bound_bytes: usize,
    /// The nesting depth of arguments, and of blocks of calls.
    pub depth: usize,
}

impl Default for Limits {
    /// Far above what models write and far below what would do harm: 1,000 steps, 1,000 dependences, 1
    /// MiB of arguments, 16 MiB with the referenced values inserted, 64 levels.
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

/// A bound that a plan exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} has {found} {quantity}; at most {limit} are allowed", subject(*step))]
pub struct LimitError {
    /// Which bound.
    pub quantity: Quantity,
    /// The amount found, as a lower bound.
    pub found: usize,
    /// The bound.
    pub limit: usize,
    /// The step, if the bound is about one.
    pub step: Option<StepId>,
}

/// The quantity that is bounded.
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
    /// Compares a count with a bound.
    ///
    /// # Errors
    /// When the count is over the bound.
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

    /// Returns these limits with at most this many steps.
    #[must_use]
    pub fn with_steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// Returns these limits with steps that wait for at most this many others.
    #[must_use]
    pub fn with_dependences(self, dependences: usize) -> Self {
        Self { dependences, ..self }
    }

    /// Returns these limits with at most this many bytes of arguments as written.
    #[must_use]
    pub fn with_argument_bytes(self, argument_bytes: usize) -> Self {
        Self { argument_bytes, ..self }
    }

    /// Returns these limits with at most this many bytes of arguments as bound.
    #[must_use]
    pub fn with_bound_bytes(self, bound_bytes: usize) -> Self {
        Self { bound_bytes, ..self }
    }

    /// Returns these limits with nesting at most this deep.
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
