//! The figures of plans.

use super::closed_form::ClosedForm;
use super::dag::DagKind;
use super::gold::PlanSet;
use super::mutation::Mutation;
use super::recorded::LeftOut;
use serde::Serialize;

/// How plans run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plans {
    /// Over all recorded plans; if there are none, over the generated ones.
    #[serde(flatten)]
    pub all: Totals,
    /// Set by set, the generated plans last.
    pub sets: Vec<SetFigures>,
    /// The executor's own overhead, in wall-clock time.
    pub overhead: Vec<Overhead>,
    /// The tokens of a task by the number of its calls, over the same plans as the sums above.
    pub tokens_by_calls: Vec<TokensByCalls>,
    /// The delay between the time when a step could begin and the time when it did, while its plan was
    /// still being written.
    pub streaming: Streaming,
    /// The fates of deliberate mistakes.
    pub mutations: Vec<MutationFigures>,
    /// The fates of answers that look like references.
    pub placeholders: Placeholders,
    /// The same plans under another scheduler, if its figures were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// What was skipped in the files.
    pub left_out: LeftOut,
    /// Plan by plan, in the order of the input, the generated ones last.
    #[serde(skip)]
    pub each: Vec<PlanFigures>,
}

/// The figures of one plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFigures {
    /// Its origin.
    pub set: PlanSet,
    /// Its name.
    pub id: String,
    /// The number of its steps.
    pub steps: usize,
    /// The number of steps on its critical path.
    pub levels: usize,
    /// The time of its critical path if tools take different times, in milliseconds.
    pub critical_path_ms: f64,
    /// The time of all its calls one after the other, in milliseconds.
    pub serial_ms: f64,
    /// The time that it took on the paused clock, in milliseconds.
    pub makespan_ms: f64,
    /// The forms in which it was written and run.
    pub forms: Forms,
    /// Working step by step.
    pub react: Way,
    /// One plan.
    pub one_plan: Way,
}

impl PlanFigures {
    /// Returns its time relative to its critical path.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        over(self.makespan_ms, self.critical_path_ms)
    }

    /// Returns the time of its calls one after the other, relative to its critical path.
    #[must_use]
    pub fn serial(&self) -> f64 {
        over(self.serial_ms, self.critical_path_ms)
    }
}

fn over(time: f64, critical_path: f64) -> f64 {
    if critical_path > 0.0 { time / critical_path } else { 1.0 }
}

/// The cost of one way of doing a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// The number of calls to the model.
    pub llm_calls: usize,
    /// The tokens of these requests.
    pub tokens: u64,
    /// The time that it took, in units of a tool's, for each of [`MODEL_TIMES`](super::MODEL_TIMES).
    pub times: Vec<f64>,
}

/// Sums over plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The number of plans.
    pub plans: usize,
    /// The number of their steps.
    pub steps: usize,
    /// The worst makespan relative to its critical path.
    pub makespan_over_critical_path: f64,
    /// Calls to the model, step by step.
    pub llm_calls_react: usize,
    /// Calls to the model, one plan for each task.
    pub llm_calls_one_plan: usize,
    /// The tokens of the step-by-step requests.
    pub tokens_react: u64,
    /// The tokens of the requests with one plan.
    pub tokens_one_plan: u64,
    /// The speed-up of one plan if a model call takes as long as a tool call.
    pub speedup: f64,
}

/// The figures of one set of plans.
#[derive(Clone, Debug, Serialize)]
pub struct SetFigures {
    /// The set.
    pub set: PlanSet,
    /// Its sums.
    #[serde(flatten)]
    pub totals: Totals,
    /// The time of both ways according to its sums.
    pub closed_form: ClosedForm,
    /// The ratio of all steps to those on critical paths.
    pub width: f64,
    /// The mean makespan relative to the critical path.
    pub makespan_mean: f64,
    /// The id of the plan with the worst makespan relative to its critical path.
    pub worst: String,
    /// The forms in which the plans were written, read back and run.
    pub forms: Forms,
    /// Both ways compared, by the time of a model call.
    pub times: Vec<AtModelTime>,
}

/// The forms in which plans were written, read back and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forms {
    /// As OnePlan JSON.
    pub one_plan: usize,
    /// As `<execute_tools>`.
    pub execute_tools: usize,
    /// Plans that `<execute_tools>` cannot express.
    pub only_one_plan: usize,
    /// Steps whose tool was given the wrong arguments.
    pub wrong_arguments: usize,
    /// Steps that did not succeed.
    pub failed_steps: usize,
}

impl Forms {
    pub(super) fn add(&mut self, other: &Self) {
        self.one_plan += other.one_plan;
        self.execute_tools += other.execute_tools;
        self.only_one_plan += other.only_one_plan;
        self.wrong_arguments += other.wrong_arguments;
        self.failed_steps += other.failed_steps;
    }
}

/// Both ways compared, for one ratio of a model call's time to a tool's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AtModelTime {
    /// The time of a model call, in units of a tool's.
    pub model_time: f64,
    /// The time of working step by step, in units of a tool's.
    pub react: f64,
    /// The time of one plan for each task.
    pub one_plan: f64,
    /// The speed-up of the latter.
    pub speedup: f64,
    /// The speed-up by the closed form.
    pub closed_form: f64,
}

/// The mean tokens of tasks with a given number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokensByCalls {
    /// The number of calls in a task.
    pub calls: usize,
    /// The number of such tasks.
    pub plans: usize,
    /// Working step by step.
    pub react: f64,
    /// One plan.
    pub one_plan: f64,
}

/// The executor's own overhead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The shape and its size.
    pub name: String,
    /// The number of steps.
    pub steps: usize,
    /// The number of steps on the critical path.
    pub levels: usize,
    /// The median, in microseconds.
    pub median_us: f64,
    /// The fastest run, in microseconds: the overhead when nothing else uses the processor.
    pub best_us: f64,
}

impl Peer {
    /// Returns the recorded plans that both ran to the end.
    pub(super) fn recorded(&self) -> Vec<(&PeerRow, f64)> {
        let recorded = self.rows.iter().filter(|row| row.kind == DagKind::Recorded);
        recorded.filter_map(|row| Some((row, row.peer_ms?))).collect()
    }
}

impl Overhead {
    /// Returns the median per call, in microseconds.
    #[must_use]
    pub fn per_call_us(&self) -> f64 {
        self.median_us / self.steps.max(1) as f64
    }

    /// Returns the median per level, in microseconds.
    #[must_use]
    pub fn per_level_us(&self) -> f64 {
        self.median_us / self.levels.max(1) as f64
    }
}

/// Delays of the start of steps while plans were still being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Streaming {
    /// The number of steps that were examined.
    pub steps: usize,
    /// The longest delay, in milliseconds, on the paused clock.
    pub paused_worst_ms: f64,
    /// The longest delay, in milliseconds, in wall-clock time.
    pub wall_worst_ms: f64,
    /// The median of these.
    pub wall_median_ms: f64,
}

/// The fates of one kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MutationFigures {
    /// The mistake.
    pub mutation: Mutation,
    /// Plans in which it was made.
    pub tried: usize,
    /// Of those, the ones refused before anything ran.
    pub refused: usize,
    /// Of the refused, those refused for exactly that reason.
    pub named: usize,
    /// Of those that ran, the ones that ended with an error that names the step.
    pub failed: usize,
    /// Of those that ran, the ones that succeeded: other plans, and nothing reveals that they are
    /// wrong.
    pub other_plans: usize,
    /// Runs that had not ended long after their critical path.
    pub hangs: usize,
}

impl MutationFigures {
    /// Returns a row with nothing tried.
    #[must_use]
    pub fn none(mutation: Mutation) -> Self {
        Self { mutation, tried: 0, refused: 0, named: 0, failed: 0, other_plans: 0, hangs: 0 }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.tried += other.tried;
        self.refused += other.refused;
        self.named += other.named;
        self.failed += other.failed;
        self.other_plans += other.other_plans;
        self.hangs += other.hangs;
    }

    /// Returns the number that were refused, or ended with an error.
    #[must_use]
    pub fn detected(&self) -> usize {
        self.refused + self.failed
    }
}

/// The fates of answers that look like references, or like the end of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placeholders {
    /// Plans, in each form that can express them, whose tools all gave such answers.
    pub tried: usize,
    /// Of those, the ones in which every tool was given such answers word for word.
    pub inert: usize,
}

/// The same plans under another scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// The other scheduler.
    pub name: String,
    /// The commit that was measured, if it is known.
    pub commit: Option<String>,
    /// The plans.
    pub rows: Vec<PeerRow>,
}

/// One plan under both schedulers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerRow {
    /// The plan.
    pub name: String,
    /// What it tests.
    pub kind: DagKind,
    /// Its critical path, in milliseconds.
    pub critical_path_ms: f64,
    /// The time of this executor, in milliseconds.
    pub own_ms: f64,
    /// The time of the other one; `None` if it never ended.
    pub peer_ms: Option<f64>,
    /// A remark on the run under this executor.
    pub own_says: String,
    /// A remark on the run under the other.
    pub peer_says: String,
}
