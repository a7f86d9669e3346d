//! How an executor runs calls, and the bounds it keeps.

use foldback_planner::Limits;
use std::time::Duration;

/// How an executor runs calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How many calls of one run run at once; at least one does. Runs beside each other do not know of
    /// each other, nor do their exclusive calls. A call that waits for its next attempt does not count.
    pub max_parallel: usize,
    /// How long one attempt at a call may take, where its tool does not say.
    pub timeout: Option<Duration>,
    /// How long running calls may go on once a run is cancelled. They are told at once.
    pub grace: Duration,
    /// How long calls wait for approval before they are refused; without, as long as it takes.
    pub approval_timeout: Option<Duration>,
    /// When a call is tried again.
    pub retry: Retry,
    /// What may start while the plan is still being written.
    pub eager: Eager,
    /// Where a run ends for having done too much.
    pub quota: Quota,
    /// Whether arguments and results stand in the spans. They may hold secrets.
    pub trace_content: bool,
}

impl Default for Settings {
    /// 64 calls at once, two minutes for an attempt, one second of grace.
    fn default() -> Self {
        Self {
            max_parallel: 64,
            timeout: Some(Duration::from_secs(120)),
            grace: Duration::from_secs(1),
            approval_timeout: None,
            retry: Retry::default(),
            eager: Eager::default(),
            quota: Quota::default(),
            trace_content: false,
        }
    }
}

impl Settings {
    /// The same, with at most this many calls at once.
    #[must_use]
    pub fn with_max_parallel(self, max_parallel: usize) -> Self {
        Self { max_parallel, ..self }
    }

    /// The same, with this time for an attempt; `None` for as long as it takes.
    #[must_use]
    pub fn with_timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        Self { timeout: timeout.into(), ..self }
    }

    /// The same, with this time for calls to end once the run is cancelled.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The same, with this time for an approval; `None` for as long as it takes.
    #[must_use]
    pub fn with_approval_timeout(self, approval_timeout: impl Into<Option<Duration>>) -> Self {
        Self { approval_timeout: approval_timeout.into(), ..self }
    }

    /// The same, with calls tried again in this way.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The same, starting these calls while the plan is being written.
    #[must_use]
    pub fn with_eager(self, eager: Eager) -> Self {
        Self { eager, ..self }
    }

    /// The same, within these bounds.
    #[must_use]
    pub fn with_quota(self, quota: Quota) -> Self {
        Self { quota, ..self }
    }

    /// The same, with or without arguments and results in the spans.
    #[must_use]
    pub fn with_trace_content(self, trace_content: bool) -> Self {
        Self { trace_content, ..self }
    }
}

/// What may start before the plan has been written to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eager {
    /// Nothing.
    Nothing,
    /// Calls that do nothing to the world: if the plan turns out to be bad, nothing has happened.
    #[default]
    ReadOnly,
    /// Every call.
    Everything,
}

/// The bounds of a run. Reaching one is a typed error: a step's `FailureKind::Quota`, or the run's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quota {
    /// How large plans may be; its number of steps is of all plans of a run together.
    pub plan: Limits,
    /// How many calls are made, those of a resumed run's journal included; the steps after them fail.
    pub calls: usize,
    /// How long a run may take, approval included; what has not ended then fails.
    pub wall_time: Option<Duration>,
    /// How many bytes one call may answer. An answer over it is not handed on, not even in part: the
    /// step fails, and says that the call was made. Of a longer error message the beginning is kept.
    pub output_bytes: usize,
    /// How many bytes all answers of a run bring; once they are more, nothing is called any more. What
    /// is being called by then goes on.
    pub run_output_bytes: usize,
    /// How many runs may stand inside each other, where a tool runs a plan itself.
    pub depth: u32,
}

impl Default for Quota {
    /// 10,000 calls, 16 MiB an answer, 256 MiB together, 8 runs deep, without a bound on time.
    fn default() -> Self {
        Self {
            plan: Limits::default(),
            calls: 10_000,
            wall_time: None,
            output_bytes: 16 << 20,
            run_output_bytes: 256 << 20,
            depth: 8,
        }
    }
}

impl Quota {
    /// The same, with plans of at most this size.
    #[must_use]
    pub fn with_plan(self, plan: Limits) -> Self {
        Self { plan, ..self }
    }

    /// The same, with at most this many calls.
    #[must_use]
    pub fn with_calls(self, calls: usize) -> Self {
        Self { calls, ..self }
    }

    /// The same, with this time for a run; `None` for as long as it takes.
    #[must_use]
    pub fn with_wall_time(self, wall_time: impl Into<Option<Duration>>) -> Self {
        Self { wall_time: wall_time.into(), ..self }
    }

    /// The same, with answers of at most this many bytes.
    #[must_use]
    pub fn with_output_bytes(self, output_bytes: usize) -> Self {
        Self { output_bytes, ..self }
    }

    /// The same, with at most this many bytes of answers in a run.
    #[must_use]
    pub fn with_run_output_bytes(self, run_output_bytes: usize) -> Self {
        Self { run_output_bytes, ..self }
    }

    /// The same, with at most this many runs inside each other.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }
}

/// When a call is tried again: only where the tool is read-only or idempotent, and only after an
/// error that the tool called transient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// How many attempts are made, the first one included.
    pub attempts: u32,
    /// The longest wait after the first attempt; it doubles with each further one.
    pub first: Duration,
    /// The longest wait of all.
    pub most: Duration,
}

impl Default for Retry {
    /// Three attempts; up to 200 ms, then up to 400 ms between them.
    fn default() -> Self {
        Self { attempts: 3, first: Duration::from_millis(200), most: Duration::from_secs(10) }
    }
}

impl Retry {
    /// No second attempt.
    #[must_use]
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// How long to wait after an attempt, counted from 1: between half of the longest wait and all of
    /// it. The same call always waits equally long, and different calls differently.
    #[must_use]
    pub fn wait(&self, idempotency_key: &str, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let longest = self.first.saturating_mul(1 << doublings).min(self.most);
        let mut hasher = blake3::Hasher::new();
        hasher.update(idempotency_key.as_bytes());
        hasher.update(&attempt.to_be_bytes());
        let share = f64::from(hasher.finalize().as_bytes()[0]) / 255.0;
        let wait = longest.as_secs_f64() * (0.5 + share / 2.0);
        Duration::try_from_secs_f64(wait).unwrap_or(longest)
    }

    /// The same, with this many attempts, the first one included.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// The same, waiting at most this long after the first attempt.
    #[must_use]
    pub fn with_first(self, first: Duration) -> Self {
        Self { first, ..self }
    }

    /// The same, waiting at most this long after any attempt.
    #[must_use]
    pub fn with_most(self, most: Duration) -> Self {
        Self { most, ..self }
    }
}
