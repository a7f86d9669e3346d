//! `foldback run`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::run::{
    self, Desk, Ends, Limits, Order, Place, RunSettings, STEPS, WHAT_STAYS, WHICH_MODEL,
};
use clap::Args;
use foldback_core::TodoId;
use foldback_kv::Engine;

/// Let an agent work on a task
///
/// The agent works in a folder (--workspace) with a model of yours, step by step or by a plan, and its conversation is
/// recorded and folded in the store, in the todo with the name of the run. --todo asks the next question in it, as a
/// run of its own (`NAME:2`). The agent reads and writes in that folder and nowhere else, runs commands only in a
/// sandbox without a network, and asks before it changes something (not with --yes; without a terminal nothing is
/// changed). The --max-... limits apply to the whole run; a sub-agent takes a part of what is left. Ctrl-C stops the
/// run cleanly; --resume continues it, even after it was killed.
///
/// JSON, a line each: {"time", "todo", "event", ..} as things happen, where `event` is began, chose, asked,
/// answered, planned, started_early, approval_asked, approval_decided, call_began, call_ended, call_skipped, recalled,
/// folded, todos, delegated, handed_back, stuck, exhausted, noted or ended. The last line is {"event":
/// "report", "run", "todo", "state", "answer", "why", "task", "strategy", "context", "model", "calls",
/// "input_tokens", "output_tokens", "cached_tokens", "cost", "sent_tokens", "full_tokens", "summaries",
/// "blocks", "workspace"}; `full_tokens` is what requests would have held had everything been kept, and
/// `sent_tokens` what they held, both estimated. A run that cannot continue has no report: it says why on
/// stderr.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The task; `-` reads it from standard input
    #[arg(required_unless_present_any = ["resume", "demo"], conflicts_with_all = ["resume", "demo"])]
    task: Option<String>,

    /// Play recorded turns of a model against real tools, in a folder of its own; needs no model
    #[arg(long, conflicts_with_all = WHAT_STAYS, conflicts_with_all = WHICH_MODEL,
          conflicts_with_all = STEPS)]
    demo: bool,

    /// Continue this run, which was stopped or killed, with another model or other limits if they are given; `foldback
    /// sessions` lists the runs
    #[arg(long, value_name = "ID", conflicts_with_all = WHAT_STAYS, conflicts_with_all = STEPS)]
    resume: Option<TodoId>,

    /// Ask the next question in this conversation: a run's, or any todo of the store. Anything not given is as in the
    /// turn before, except limits and --yes; `foldback todos` lists the todos
    #[arg(long, value_name = "ID", conflicts_with_all = ["resume", "demo", "id"])]
    todo: Option<TodoId>,

    /// The run's name [default: words of the task, and a few characters]
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    id: Option<TodoId>,

    #[command(flatten)]
    settings: RunSettings,

    #[command(flatten)]
    limits: Limits,
}

const EXAMPLES: &str = "\
Examples:
  foldback run --demo
  foldback run --model gpt-5.6-mini \"Find out why the tests fail, and fix them\"
  FOLDBACK_BASE_URL=http://127.0.0.1:8000/v1 foldback run --model qwen3-32b --context full \"...\"
  foldback run --todo find-out-why-the-tests-ab3fk \"And which of them are slow?\"
  foldback sessions
  foldback run --resume find-out-why-the-tests-ab3fk";

/// The task, read from standard input if that was asked for.
fn given(task: String) -> Result<String, CliError> {
    if task != "-" {
        return Ok(task);
    }
    let task = std::io::read_to_string(std::io::stdin()).map_err(|source| CliError::Io {
        what: "the task could not be read from standard input".to_owned(),
        source,
    })?;
    Ok(task.trim_end().to_owned())
}

impl Run {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if globals.engine() == Engine::Memory {
            let what =
                "the memory engine keeps nothing, but a run has to be kept; use sqlite or redb";
            return Err(CliError::Usage(what.to_owned()));
        }
        let Self { task, demo, resume, todo, id, settings, limits } = self;
        let task = task.map(given).transpose()?;
        if task.as_ref().is_some_and(|task| task.trim().is_empty()) {
            return Err(CliError::Usage("the task is empty; say what to do".to_owned()));
        }
        let desk = Desk::new(globals, out, Ends::Command)?;
        let record = match (resume, task) {
            (Some(id), _) => run::resume(&id, settings, limits, &desk)?,
            (None, Some(task)) if !demo => {
                let place = todo.map_or(Place::New(id), Place::Next);
                run::begin(Order { task, place, settings, limits }, &desk)?
            }
            _ => run::begin_demo(id, &desk)?,
        };
        desk.close()?;
        run::tell(&record, out)
    }
}
