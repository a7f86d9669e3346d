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
    /// Over all recorded plans; where there are none, over the made ones.
    #[serde(flatten)]
    pub all: Totals,
    /// Set by set, the made plans last.
    pub sets: Vec<SetFigures>,
    /// What the executor takes besides the tools, on the clock of the wall.
    pub overhead: Vec<Overhead>,
    /// The tokens of a task by the number of its calls, over the same plans as the sums above.
    pub tokens_by_calls: Vec<TokensByCalls>,
    /// How long after a step could begin it did, while its plan was still being written.
    pub streaming: Streaming,
    /// What became of mistakes that were made on purpose.
    pub mutations: Vec<MutationFigures>,
    /// What became of answers that look like references.
    pub placeholders: Placeholders,
    /// The same plans under another scheduler, where its figures were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// What was passed over in the files.
    pub left_out: LeftOut,
    /// Plan by plan, in the order of the input, the made ones last.
    #[serde(skip)]
    pub each: Vec<PlanFigures>,
}

/// The figures of one plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFigures {
    /// Where it is from.
    pub set: PlanSet,
    /// Its name.
    pub id: String,
    /// Its steps.
    pub steps: usize,
    /// The steps on its longest way.
    pub levels: usize,
    /// The time of its longest way, where tools take times that differ, in milliseconds.
    pub critical_path_ms: f64,
    /// The time of all its calls one after the other, in milliseconds.
    pub serial_ms: f64,
    /// The time it took, on the paused clock, in milliseconds.
    pub makespan_ms: f64,
    /// How it was written and run.
    pub forms: Forms,
    /// One step after the other.
    pub react: Way,
    /// One plan.
    pub one_plan: Way,
}

impl PlanFigures {
    /// What it took for each unit of its critical path.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        over(self.makespan_ms, self.critical_path_ms)
    }

    /// What its calls would take one after the other, for each unit of its critical path.
    #[must_use]
    pub fn serial(&self) -> f64 {
        over(self.serial_ms, self.critical_path_ms)
    }
}

fn over(time: f64, critical_path: f64) -> f64 {
    if critical_path > 0.0 { time / critical_path } else { 1.0 }
}

/// What a way of doing a task took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// Calls to the model.
    pub llm_calls: usize,
    /// Tokens of these requests.
    pub tokens: u64,
    /// The time it took, in units of a tool's, for each of
    /// [`MODEL_TIMES`](super::MODEL_TIMES).
    pub times: Vec<f64>,
}

/// Sums over plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The plans.
    pub plans: usize,
    /// Their steps.
    pub steps: usize,
    /// The makespan of the plan that lost most, for each unit of its critical path.
    pub makespan_over_critical_path: f64,
    /// Calls to the model, one step after the other.
    pub llm_calls_react: usize,
    /// Calls to the model, one plan for each task.
    pub llm_calls_one_plan: usize,
    /// Tokens of these requests.
    pub tokens_react: u64,
    /// Tokens of these requests.
    pub tokens_one_plan: u64,
    /// How many times as quick one plan is where a model call takes as long as a tool's.
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
    /// What its sums say that both ways take.
    pub closed_form: ClosedForm,
    /// The steps for each on the longest way.
    pub width: f64,
    /// The makespan for each unit of the critical path, in the mean.
    pub makespan_mean: f64,
    /// The plan that lost most.
    pub worst: String,
    /// In which forms the plans were written, read back and run.
    pub forms: Forms,
    /// How both ways do, by how long a model call takes.
    pub times: Vec<AtModelTime>,
}

/// In which forms plans were written, read back and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forms {
    /// As OnePlan JSON.
    pub one_plan: usize,
    /// As `<execute_tools>`.
    pub execute_tools: usize,
    /// What `<execute_tools>` cannot say.
    pub only_one_plan: usize,
    /// Steps whose tool was given something other than it had to be.
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

/// How both ways do where a model call takes so many times as long as a tool's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AtModelTime {
    /// The time of a model call, in units of a tool's.
    pub model_time: f64,
    /// What one step after the other took, in units of a tool's time.
    pub react: f64,
    /// What one plan for each task took.
    pub one_plan: f64,
    /// How many times as quick the latter is.
    pub speedup: f64,
    /// The same by the closed form.
    pub closed_form: f64,
}

/// The tokens of tasks that take so many calls, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokensByCalls {
    /// The calls of a task.
    pub calls: usize,
    /// The tasks that take so many.
    pub plans: usize,
    /// One step after the other.
    pub react: f64,
    /// One plan.
    pub one_plan: f64,
}

/// What the executor took besides the tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The shape and its size.
    pub name: String,
    /// The steps.
    pub steps: usize,
    /// The steps on the longest way.
    pub levels: usize,
    /// The median, in microseconds.
    pub median_us: f64,
    /// The quickest run, in microseconds: what it takes when nothing else wants the processor.
    pub best_us: f64,
}

impl Peer {
    /// The recorded plans that both ran to the end.
    pub(super) fn recorded(&self) -> Vec<(&PeerRow, f64)> {
        let recorded = self.rows.iter().filter(|row| row.kind == DagKind::Recorded);
        recorded.filter_map(|row| Some((row, row.peer_ms?))).collect()
    }
}

impl Overhead {
    /// The median for each call, in microseconds.
    #[must_use]
    pub fn per_call_us(&self) -> f64 {
        self.median_us / self.steps.max(1) as f64
    }

    /// The median for each level, in microseconds.
    #[must_use]
    pub fn per_level_us(&self) -> f64 {
        self.median_us / self.levels.max(1) as f64
    }
}

/// Delays of the beginning of steps while plans were still being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Streaming {
    /// The steps that were looked at.
    pub steps: usize,
    /// The longest delay, in milliseconds, on the paused clock.
    pub paused_worst_ms: f64,
    /// The longest delay, in milliseconds, on the clock of the wall.
    pub wall_worst_ms: f64,
    /// The median of these.
    pub wall_median_ms: f64,
}

/// What became of one kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MutationFigures {
    /// The mistake.
    pub mutation: Mutation,
    /// Plans in which it was made.
    pub tried: usize,
    /// Of those, refused before anything ran.
    pub refused: usize,
    /// Of the refused, those for the very reason.
    pub named: usize,
    /// Of those that ran, the ones that ended with an error that names the step.
    pub failed: usize,
    /// Of those that ran, the ones that went through: other plans, and nothing tells that they are
    /// wrong.
    pub other_plans: usize,
    /// Runs that had not ended long after their critical path.
    pub hangs: usize,
}

impl MutationFigures {
    /// Nothing tried.
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

    /// Those that were refused, or ended with an error.
    #[must_use]
    pub fn detected(&self) -> usize {
        self.refused + self.failed
    }
}

/// What became of answers that look like references, or like the end of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placeholders {
    /// Plans, in each form that can say them, whose tools all answered so.
    pub tried: usize,
    /// Of those, the ones in which every tool was given such answers word for word.
    pub inert: usize,
}

/// The same plans under another scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// The other one.
    pub name: String,
    /// The commit that was measured, where it is known.
    pub commit: Option<String>,
    /// The plans.
    pub rows: Vec<PeerRow>,
}

/// One plan under both schedulers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerRow {
    /// The plan.
    pub name: String,
    /// What it shows.
    pub kind: DagKind,
    /// Its critical path, in milliseconds.
    pub critical_path_ms: f64,
    /// What this executor took, in milliseconds.
    pub own_ms: f64,
    /// What the other one took; `None` where it never ended.
    pub peer_ms: Option<f64>,
    /// What is worth a word, under this executor.
    pub own_says: String,
    /// What is worth a word, under the other.
    pub peer_says: String,
}
