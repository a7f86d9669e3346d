//! The settings and quotas of an executor.

use foldback_planner::Limits;
use std::time::Duration;

/// How an executor runs calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The most calls of one run at once, at least one. Concurrent runs are independent of each other, and so are
    /// their exclusive calls. A call that waits for its next attempt does not count.
    pub max_parallel: usize,
    /// How long one attempt at a call may take, unless its tool says otherwise.
    pub timeout: Option<Duration>,
    /// How long running calls may continue once a run is cancelled. They are asked to stop at once.
    pub grace: Duration,
    /// How long calls wait for approval before they are refused; `None` for as long as it takes.
    pub approval_timeout: Option<Duration>,
    /// When a call is retried.
    pub retry: Retry,
    /// What may start while the plan is still being written.
    pub eager: Eager,
    /// The limits at which a run ends.
    pub quota: Quota,
    /// Whether spans hold arguments and results, which may be secret.
    pub trace_content: bool,
}

impl Default for Settings {
    /// 64 calls at once, two minutes per attempt, one second of grace.
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
    /// Sets the most calls at once.
    #[must_use]
    pub fn with_max_parallel(self, max_parallel: usize) -> Self {
        Self { max_parallel, ..self }
    }

    /// Sets the time for an attempt; `None` for as long as it takes.
    #[must_use]
    pub fn with_timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        Self { timeout: timeout.into(), ..self }
    }

    /// Sets the time for calls to end once the run is cancelled.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets the time for an approval; `None` for as long as it takes.
    #[must_use]
    pub fn with_approval_timeout(self, approval_timeout: impl Into<Option<Duration>>) -> Self {
        Self { approval_timeout: approval_timeout.into(), ..self }
    }

    /// Sets when calls are retried.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Sets which calls start while the plan is being written.
    #[must_use]
    pub fn with_eager(self, eager: Eager) -> Self {
        Self { eager, ..self }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_quota(self, quota: Quota) -> Self {
        Self { quota, ..self }
    }

    /// Sets whether spans hold arguments and results.
    #[must_use]
    pub fn with_trace_content(self, trace_content: bool) -> Self {
        Self { trace_content, ..self }
    }
}

/// The calls that may start before the plan is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eager {
    /// Nothing.
    Nothing,
    /// Calls without effect on the world: if the plan turns out to be bad, nothing has happened.
    #[default]
    ReadOnly,
    /// Every call.
    Everything,
}

/// The limits of a run. Reaching one is a typed error: a step's `FailureKind::Quota`, or the run's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Quota {
    /// How large plans may be; the limit on steps applies to all plans of a run together.
    pub plan: Limits,
    /// The most calls, including those in a resumed run's journal; the steps after them fail.
    pub calls: usize,
    /// How long a run may take, including approval; steps that have not ended then fail.
    pub wall_time: Option<Duration>,
    /// The most bytes of one answer. A larger answer is not passed on, not even in part: the step fails, and
    /// says that the call was made. A longer error message is cut to its beginning.
    pub output_bytes: usize,
    /// The most bytes of all answers of a run; beyond it, nothing more is called. Calls in progress
    /// continue.
    pub run_output_bytes: usize,
    /// The most nested runs, if a tool itself runs a plan.
    pub depth: u32,
}

impl Default for Quota {
    /// 10,000 calls, 16 MiB per answer, 256 MiB in total, 8 nested runs, no limit on time.
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
    /// Sets the largest size of plans.
    #[must_use]
    pub fn with_plan(self, plan: Limits) -> Self {
        Self { plan, ..self }
    }

    /// Sets the most calls.
    #[must_use]
    pub fn with_calls(self, calls: usize) -> Self {
        Self { calls, ..self }
    }

    /// Sets the time for a run; `None` for as long as it takes.
    #[must_use]
    pub fn with_wall_time(self, wall_time: impl Into<Option<Duration>>) -> Self {
        Self { wall_time: wall_time.into(), ..self }
    }

    /// Sets the most bytes of one answer.
    #[must_use]
    pub fn with_output_bytes(self, output_bytes: usize) -> Self {
        Self { output_bytes, ..self }
    }

    /// Sets the most bytes of all answers of a run.
    #[must_use]
    pub fn with_run_output_bytes(self, run_output_bytes: usize) -> Self {
        Self { run_output_bytes, ..self }
    }

    /// Sets the most nested runs.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }
}

/// When a call is retried: only if the tool is read-only or idempotent, and only after an error that the
/// tool called transient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// The most attempts, including the first one.
    pub attempts: u32,
    /// The longest wait after the first attempt; it doubles with each further one.
    pub first: Duration,
    /// The longest wait after any attempt.
    pub most: Duration,
}

impl Default for Retry {
    /// Three attempts, with up to 200 ms and then up to 400 ms between them.
    fn default() -> Self {
        Self { attempts: 3, first: Duration::from_millis(200), most: Duration::from_secs(10) }
    }
}

impl Retry {
    /// Allows no second attempt.
    #[must_use]
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// Returns how long to wait after an attempt, counted from 1: between half of the longest wait and all of
    /// it. The same call always waits equally long; different calls wait for different times.
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

    /// Sets the most attempts, including the first one.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the longest wait after the first attempt.
    #[must_use]
    pub fn with_first(self, first: Duration) -> Self {
        Self { first, ..self }
    }

    /// Sets the longest wait after any attempt.
    #[must_use]
    pub fn with_most(self, most: Duration) -> Self {
        Self { most, ..self }
    }
}
