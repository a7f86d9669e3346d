//! The executor: tools, settings, a journal and an approver, ready to run plans.

use super::call::Surroundings;
use super::claim::Claim;
use super::run::Run;
use super::settings::Settings;
use super::{Outcome, RunError, RunOptions};
use crate::journal::{Past, PastPlan};
use crate::{Approver, Journal, Record};
use foldback_planner::{Catalog, Plan, Schedule};
use foldback_tool::Toolbox;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An executor that runs the steps of plans as soon as they may start.
///
/// It is driven by events and never polls: a step starts when the last one that it waits for has ended. A
/// failing, hanging or panicking tool is a result of its step; its siblings continue.
///
/// ```
/// use foldback_agent::{Executor, RunOptions};
/// use foldback_core::ToolDefinition;
/// use foldback_planner::{Intent, StepId, StepResult, parse_one_plan};
/// use foldback_tool::{FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tool = |name: &str, answer: &'static str| -> Arc<dyn Tool> {
///     let spec = ToolSpec::new(ToolDefinition {
///         name: name.to_owned(),
///         description: String::new(),
///         parameters: r#"{"type": "object"}"#.to_owned(),
///     });
///     Arc::new(FunctionTool::new(spec, move |arguments, _| async move {
///         Ok(ToolOutput::text(format!("{answer} {arguments}")))
///     }))
/// };
/// let toolbox = Toolbox::new([tool("search_city", "沈阳"), tool("book_flight", "booked")])?;
///
/// let written = r#"{"action_plan": {
///     "step1": {"function": "search_city", "args": {}},
///     "step2": {"function": "book_flight", "args": {"to": "$$step1.result$$"}, "dependence": [1]}
/// }}"#;
/// let Intent::Plan(plan) = parse_one_plan(written)?.intent else { return Ok(()) };
/// let options = RunOptions::new("trip");
/// let outcome = Executor::new(toolbox).run(&plan, options).await?;
/// let StepResult::Success { data } = &outcome.results[&StepId(2)] else { return Ok(()) };
/// assert_eq!(data.text, r#"booked {"to":"沈阳 {}"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

/// The parts that all runs of an executor share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) toolbox: Toolbox,
    pub(super) catalog: Catalog,
    pub(super) settings: Settings,
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) approver: Option<Arc<dyn Approver>>,
}

impl Executor {
    /// Creates an executor of these tools, with default settings, no journal and no approver.
    #[must_use]
    pub fn new(toolbox: Toolbox) -> Self {
        let settings = Settings::default();
        let catalog = catalog_of(&toolbox);
        let shared = Shared { toolbox, catalog, settings, journal: None, approver: None };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the settings.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Self { shared: Arc::new(Shared { settings, ..Arc::unwrap_or_clone(self.shared) }) }
    }

    /// Sets a journal, in which runs are recorded and from which they resume.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        let journal = Some(journal);
        Self { shared: Arc::new(Shared { journal, ..Arc::unwrap_or_clone(self.shared) }) }
    }

    /// Sets an approver of calls.
    #[must_use]
    pub fn with_approver(self, approver: Arc<dyn Approver>) -> Self {
        let approver = Some(approver);
        Self { shared: Arc::new(Shared { approver, ..Arc::unwrap_or_clone(self.shared) }) }
    }

    /// Sets other tools.
    #[must_use]
    pub fn with_toolbox(self, toolbox: Toolbox) -> Self {
        let catalog = catalog_of(&toolbox);
        Self { shared: Arc::new(Shared { toolbox, catalog, ..Arc::unwrap_or_clone(self.shared) }) }
    }

    /// Returns the journal, if there is one.
    #[must_use]
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.shared.journal.as_ref()
    }

    /// Returns the journal's records of a run; none without a journal.
    pub(crate) fn records(&self, run: &str) -> Result<Vec<Record>, RunError> {
        Ok(self.journal().map_or(Ok(Vec::new()), |journal| journal.records(run))?)
    }

    /// Returns whether a run of this name is running with the journal or, without one, with this executor.
    pub(crate) fn is_running(&self, run: &str) -> bool {
        match self.journal() {
            Some(journal) => Claim::is_held(journal, run),
            None => !run.is_empty() && Claim::is_held(&self.shared, run),
        }
    }

    /// Returns the tools.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.shared.toolbox
    }

    /// Returns the tools, as plans see them.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Runs a plan to its end. Anchors in it are reached but not answered: they and the steps that wait for
    /// them are reported as cancelled.
    ///
    /// # Errors
    /// When the plan cannot be run at all, or the journal fails.
    pub async fn run(&self, plan: &Plan, options: RunOptions) -> Result<Outcome, RunError> {
        self.start(plan, options)?.finish().await
    }

    /// Starts a plan. It must be called inside a tokio runtime.
    ///
    /// With a journal that knows the run, it resumes where it was: steps with a result keep it.
    ///
    /// # Errors
    /// When the plan is too large or not a plan, when the journal knows another one under this name or
    /// fails, or when a run of this name is running with it.
    pub fn start(&self, plan: &Plan, options: RunOptions) -> Result<Run, RunError> {
        let mut run = self.begin(sealed(), options)?;
        run.expect_plan(&plan.steps)?;
        run.extend(&plan.steps)?;
        Ok(run)
    }

    /// Starts a run whose plan is still being written: [`Run::extend`] adds its steps, and [`Run::seal`]
    /// ends it.
    ///
    /// # Errors
    /// When the journal fails, or there are too many runs around this one.
    pub fn open(&self, options: RunOptions) -> Result<Run, RunError> {
        self.begin(Schedule::open(), options)
    }

    /// Opens a run whose name is [held](Self::hold) by the caller.
    pub(crate) fn open_held(&self, options: RunOptions) -> Result<Run, RunError> {
        let past = match &self.shared.journal {
            Some(journal) => Past::of(journal.records(&options.id)?),
            None => Past::default(),
        };
        Ok(self.run_of(Schedule::open(), options, past, None))
    }

    /// Takes a run's name for as long as the claim is kept, and reads its records from the journal. Without
    /// a journal a run needs no name; if it has one, the name is in use with this executor.
    pub(crate) fn hold(&self, run: &str, depth: u32) -> Result<Held, RunError> {
        self.check_depth(depth)?;
        let journal = self.shared.journal.clone();
        let claim = match &journal {
            Some(_) if run.is_empty() => return Err(RunError::Unnamed),
            None if run.is_empty() => return Ok((None, None, Vec::new())),
            Some(journal) => Claim::new(journal, run),
            None => Claim::new(&self.shared, run),
        };
        let claim = claim.ok_or_else(|| RunError::InUse { run: run.to_owned() })?;
        let records = journal.as_ref().map_or(Ok(Vec::new()), |journal| journal.records(run))?;
        Ok((Some(claim), journal, records))
    }

    /// Resumes a run that the journal holds, with its recorded plans.
    ///
    /// # Errors
    /// When the journal holds no such run, or its last plan was not written to its end; and as
    /// [`start`](Self::start).
    pub fn resume(&self, options: RunOptions) -> Result<Run, RunError> {
        let id = options.id.clone();
        let mut run = self.begin(sealed(), options)?;
        if run.past_is_unfinished() {
            return Err(RunError::Unfinished { run: id });
        }
        let plans = run.past_plans();
        if plans.is_empty() {
            return Err(RunError::NothingToResume { run: id });
        }
        for plan in plans {
            match plan {
                PastPlan::Steps(steps) => run.extend(&steps)?,
                PastPlan::Replanned(anchor) => run.replanned(anchor)?,
            }
        }
        Ok(run)
    }

    fn begin(&self, schedule: Schedule, options: RunOptions) -> Result<Run, RunError> {
        let run = &options.id;
        let (past, claim) = match &self.shared.journal {
            Some(_) => {
                let (claim, _, records) = self.hold(run, options.depth)?;
                (Past::of(records), claim)
            }
            // Concurrent runs may share a name that is not recorded anywhere.
            None => {
                self.check_depth(options.depth)?;
                (Past::default(), None)
            }
        };
        Ok(self.run_of(schedule, options, past, claim))
    }

    fn run_of(
        &self,
        schedule: Schedule,
        options: RunOptions,
        past: Past,
        claim: Option<Claim>,
    ) -> Run {
        let RunOptions { id: run, cancelled, global_context, depth, context, log, turn } = options;
        let (sender, rests) = mpsc::unbounded_channel();
        let around = Surroundings {
            shared: Arc::clone(&self.shared),
            run,
            depth: depth + 1,
            // Its own token, so that a run that ends early does not cancel the runs around it.
            cancelled: cancelled.child_token(),
            global_context,
            turn,
            context,
            log,
            rests: sender,
        };
        Run::new(schedule, past, around, rests, claim)
    }

    fn check_depth(&self, depth: u32) -> Result<(), RunError> {
        let limit = self.shared.settings.quota.depth;
        if depth >= limit { Err(RunError::Depth { depth, limit }) } else { Ok(()) }
    }
}

/// Returns the tools of a toolbox, as plans see them.
fn catalog_of(toolbox: &Toolbox) -> Catalog {
    toolbox.specs().cloned().collect()
}

/// The claim to a run's name, if it has one; the journal, if there is one; and the run's records in it.
type Held = (Option<Claim>, Option<Arc<dyn Journal>>, Vec<Record>);

/// Creates a schedule that takes whole plans.
fn sealed() -> Schedule {
    let mut schedule = Schedule::open();
    // It is still empty, so nothing can be wrong with it.
    let _ = schedule.seal();
    schedule
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { toolbox, settings, .. } = &*self.shared;
        let mut text = f.debug_struct("Executor");
        text.field("toolbox", toolbox).field("settings", settings).finish_non_exhaustive()
    }
}
