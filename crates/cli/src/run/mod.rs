//! A run of the agent: begun or resumed, watched, and kept in the store's folder.
//!
//! Each run has a folder of its own in the store's `runs`: a record of what it is and its state, a journal from which
//! it resumes after its process was killed, and the trajectory of what it did. Its conversation is a todo of the store.
//! The first run on a todo gives it its name; each further turn is a run of its own, `trip:2`, on the same todo.

mod account;
mod approvals;
mod board;
mod context;
mod desk;
mod failures;
mod folder;
mod inspected;
mod interrupt;
mod known_server;
mod limits;
mod lines;
mod meter;
mod model_server;
mod named_models;
mod order;
mod outfit;
mod person;
mod record;
mod screen;
mod search;
mod search_in;
mod sent;
mod settings;
mod setup;
mod speech;
mod steps;
mod summary;
mod summary_settings;
mod time;

pub(crate) use account::Account;
pub(crate) use desk::{Desk, Ends};
pub(crate) use folder::{RunFolder, Runs};
pub(crate) use interrupt::{Heard, Signals, TERMINATED};
pub(crate) use limits::{CALLS, Limits};
pub(crate) use lines::todo as todo_line;
pub(crate) use named_models::{NamedModel, NamedModels};
pub(crate) use order::{Order, Place, prepare, tell_of_project};
pub(crate) use outfit::Outfit;
pub(crate) use record::{RunRecord, RunState};
pub(crate) use search_in::{NO_DOCUMENTS, SearchIn};
pub(crate) use sent::last_sent;
pub(crate) use settings::{RunSettings, WHAT_STAYS, WHICH_MODEL, host};
pub(crate) use setup::model_runtime;
pub(crate) use steps::STEPS;
pub(crate) use summary::{print_account, print_turn};
pub(crate) use time::Time;

use crate::demo;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::settings::{InForce, Kept};
use crate::store;
use context::MeteredContext;
use failures::Watched;
use foldback::Memory;
use foldback_agent::rewards::{judge, own_judges};
use foldback_agent::{
    AgentError, ContextWindow, FileJournal, Journal as _, Observer, Report, SpendTracker, Task,
};
use foldback_core::{CacheTerms, ContextError, ContextManager, TodoId};
use foldback_reference_agent::ReadyAgent;
use interrupt::Listener;
use meter::Meter;
use order::{Ready, check_new, no_prices};
use record::VERSION;
use screen::Screen;
use setup::Model;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Begins a run, and works on it until it ends.
pub(crate) fn begin(order: Order, desk: &Desk<'_>) -> Result<RunRecord, CliError> {
    // No other turn of the conversation begins before this one has ended.
    let Ready { order, turns, model, policy, held: _held } = prepare(order, desk)?;
    if desk.ends == Ends::Command {
        tell_of_project(desk);
    }
    let strategy = order.settings.strategy()?.to_string();
    let runs = Runs::of(desk.globals)?;
    let (todo, (id, folder)) = match order.place {
        Place::New(name) => (None, runs.create(&order.task, name)?),
        Place::Next(todo) => {
            let made = runs.create_turn(&todo, turns, &order.task)?;
            (Some(todo), made)
        }
    };
    let record = RunRecord {
        version: VERSION,
        id,
        todo,
        strategy,
        context: policy.name().to_owned(),
        model: model.model.name().to_owned(),
        demo: false,
        task: order.task,
        settings: order.settings,
        limits: order.limits,
        kept: desk.globals.settings.kept(),
        state: RunState::Running,
        answer: None,
        why: None,
        spent_up: None,
        is_final: false,
        out_of_steps: false,
        account: Account::default(),
        blocks: 0,
        began: record::now(),
        changed: record::now(),
    };
    work(record, &folder, model, desk)
}

/// Begins the demo, and works on it until it ends.
pub(crate) fn begin_demo(name: Option<TodoId>, desk: &Desk<'_>) -> Result<RunRecord, CliError> {
    name.as_ref().map_or(Ok(()), |name| check_new(name, desk.globals))?;
    let model = demo_model(desk.out)?;
    let (id, folder) = Runs::of(desk.globals)?.create("demo", name)?;
    let workspace = folder.workspace();
    if let Err(error) = demo::write_project(&workspace) {
        folder.discard();
        return Err(error);
    }
    let settings = RunSettings::in_workspace(&workspace, &demo::STRATEGY, demo::CONTEXT);
    let record = RunRecord {
        version: VERSION,
        id,
        todo: None,
        strategy: demo::STRATEGY.to_string(),
        context: demo::CONTEXT.to_owned(),
        model: model.model.name().to_owned(),
        demo: true,
        task: demo::TASK.to_owned(),
        settings,
        limits: Limits::approving(),
        // The recorded turns were made with a memory and tools without any settings.
        kept: Kept::default(),
        state: RunState::Running,
        answer: None,
        why: None,
        spent_up: None,
        is_final: false,
        out_of_steps: false,
        account: Account::default(),
        blocks: 0,
        began: record::now(),
        changed: record::now(),
    };
    work(record, &folder, model, desk)
}

/// Resumes a run, with any newly given settings and limits in place of the old ones.
pub(crate) fn resume(
    id: &TodoId,
    settings: RunSettings,
    limits: Limits,
    desk: &Desk<'_>,
) -> Result<RunRecord, CliError> {
    let runs = Runs::of(desk.globals)?;
    let (folder, record) = runs.open(id)?;
    let settings = settings.with_file(desk.globals.config.clone());
    let record = RunRecord { limits: record.limits.overlaid(limits), ..record };
    if record.state == RunState::Done || record.is_final {
        let ended = if record.is_final { "has ended for good" } else { "is done" };
        desk.out.note(format_args!(
            "the run {id} {ended}; this is its result. `foldback run --todo {} \"...\"` asks the next \
             question",
            record.todo()
        ));
        return Ok(record);
    }
    let _held = runs.hold(record.todo())?;
    let turns = runs.of_todo(record.todo())?;
    if let Some(last) = turns.last().filter(|last| last.id != *id) {
        return Err(CliError::Usage(format!(
            "the conversation of the run {id} has continued: its last turn is {}, which `foldback run --resume \
             {}` prints; `foldback run --todo {} \"...\"` asks the next question",
            last.id,
            last.id,
            record.todo()
        )));
    }
    if record.demo && settings.names_a_model() {
        let what =
            format!("the run {id} is the demo, whose model is recorded; it cannot use another");
        return Err(CliError::Usage(what));
    }
    let (model, record) = match record.demo {
        true => (demo_model(desk.out)?, record),
        false => {
            let kept = record.settings.clone().with_context(&record.context);
            kept.check_kept_documents()?;
            let kept = kept.with_newer_model(settings)?;
            let in_force = InForce::of_process(kept.file())?;
            let (model, settings) = Model::remote(kept, &in_force)?;
            let name = model.model.name().to_owned();
            (model, RunRecord { settings, model: name, ..record })
        }
    };
    if record.limits.bounds_cost() && model.money.is_none() {
        return Err(no_prices("--max-cost"));
    }
    work(record, &folder, model, desk)
}

/// Prints the result of a run as the output of its command.
pub(crate) fn tell(record: &RunRecord, out: &Output) -> Result<Outcome, CliError> {
    // The exit code says how it ended, even if nobody reads all of it.
    let out = &out.finishing();
    summary::print(record, out)?;
    let is_done = record.state == RunState::Done;
    if !is_done && out.is_quiet() && !out.is_json() {
        summary::print_failure(record);
    }
    Ok(Outcome::clean_if(is_done))
}

fn demo_model(out: &Output) -> Result<Model, CliError> {
    use std::io::IsTerminal as _;
    // A user who watches wants to see what happens; nobody else waits for it.
    let is_watched = std::io::stderr().is_terminal() && !out.is_quiet() && !out.is_json();
    let model = demo::model(is_watched)?;
    let (money, watched) = (Some(demo::MONEY), Watched::default());
    let billing = CacheTerms { prices: demo::MONEY.of_input(), ..CacheTerms::default() };
    let window = ContextWindow::default();
    Ok(Model { model, billing, money, window, watched, config: None })
}

/// Closes what is open in the conversation of a run.
fn conclude(context: &mut dyn ContextManager) -> Result<(), ContextError> {
    if let Some(kept) = context.sub_tasks() {
        kept.conclude()?;
    }
    Ok(())
}

/// Works on a run until it ends.
fn work(
    record: RunRecord,
    folder: &RunFolder,
    model: Model,
    desk: &Desk<'_>,
) -> Result<RunRecord, CliError> {
    let record = RunRecord { state: RunState::Running, why: None, ..record };
    let begun = || {
        let limits = record.limits.spend_limits();
        let spend = SpendTracker::new(limits, model.money).map_err(AgentError::from)?;
        let journal = Arc::new(folder.journal().map_err(|error| error.of_run(&record.id))?);
        folder.save(&record)?;
        Ok((spend, journal))
    };
    let (spend, journal) = begun().inspect_err(|_: &CliError| folder.discard_unrecorded())?;
    let spoken = match desk.ends {
        Ends::Turn => speech::spoken(&record.settings.strategy()?, record.settings.steps.form()?),
        Ends::Command => Vec::new(),
    };
    let screen = Screen::new(desk.out, record.todo(), spoken);
    let meter = setup::meter(&record, folder, model.money);
    screen.meter(&meter);
    // It is set once.
    drop(model.watched.set(Arc::clone(&screen)));
    let parts = WorkParts { model, journal, meter, screen };
    let screen = Arc::clone(&parts.screen);
    let meter = Arc::clone(&parts.meter);
    let worked = desk.block_on(work_with(parts, &record, &spend, desk)).flatten();
    // A summary in progress may not be finished.
    screen.end();
    meter.end();
    let account = meter.account().at_least(&spend.spent());
    let record = match &worked {
        Ok(Worked::Ended(report, blocks)) => record.ended(report, &spend, account, *blocks),
        Ok(Worked::Left) => record.left(account),
        Err(error) => record.failed(CliError::sentence(error), account),
    };
    let is_said = record.answer.as_ref().is_some_and(|answer| screen.has_said(answer));
    desk.is_said.store(is_said, Ordering::Relaxed);
    folder.save(&record)?;
    if let Worked::Ended(mut report, _) = worked? {
        judge(&mut report.trajectory, own_judges());
        folder.save_trajectory(&report.trajectory)?;
    }
    Ok(record)
}

/// What a run works with.
struct WorkParts {
    model: Model,
    journal: Arc<FileJournal>,
    meter: Arc<Meter>,
    screen: Arc<Screen>,
}

/// How a run ended.
enum Worked {
    /// It ran to its end, with this many blocks closed.
    Ended(Box<Report>, u32),
    /// It was left at once.
    Left,
}

/// A run that is ready to start.
struct Prepared {
    memory: Memory,
    context: MeteredContext,
    agent: ReadyAgent,
    /// The description of the run, the price of its input, and what its model cannot be given.
    heads: Vec<String>,
}

async fn work_with(
    parts: WorkParts,
    record: &RunRecord,
    spend: &SpendTracker,
    desk: &Desk<'_>,
) -> Result<Worked, CliError> {
    let (journal, screen) = (Arc::clone(&parts.journal), Arc::clone(&parts.screen));
    let listener = Listener::open(&record.id, desk, &screen);
    let preparing = prepared(parts, record, desk);
    let Some(prepared) = listener.cancelled.run_until_cancelled(preparing).await else {
        return Ok(Worked::Left);
    };
    let Prepared { memory, mut context, agent, heads } = prepared?;
    let task = Task::new(record.id.as_str(), &record.task)
        .with_cancelled(listener.cancelled.clone())
        .with_observer(Arc::clone(&screen) as Arc<dyn Observer>)
        .with_spend(spend.clone());
    if desk.ends == Ends::Command {
        heads.iter().for_each(|line| screen.say(line));
    }
    let report = tokio::select! {
        report = agent.run(&mut context, &task) => Some(report),
        () = listener.left.cancelled() => None,
        never = screen.tick_along() => match never {},
    };
    // From here on nothing is left to stop; a second request still ends it at once.
    screen.end();
    journal.sync().await?;
    if report.as_ref().is_some_and(|report| report.as_ref().is_ok_and(record::is_over)) {
        // What was said last is a block like any other; later messages begin a new one.
        conclude(&mut context).map_err(AgentError::from)?;
    }
    let blocks = memory.session(record.todo())?.blocks();
    Ok(match report {
        Some(report) => Worked::Ended(Box::new(report?), blocks),
        None => Worked::Left,
    })
}

/// Opens what a run works with.
async fn prepared(
    parts: WorkParts,
    record: &RunRecord,
    desk: &Desk<'_>,
) -> Result<Prepared, CliError> {
    let WorkParts { model, journal, meter, screen } = parts;
    let policy = setup::policy(&record.settings, model.billing)?;
    // A resumed run keeps the settings that it began with.
    let globals = desk.globals.going_on(record.kept.clone());
    let outfit = record.settings.outfit(model.window.tokens());
    let memory = store::open_for_run(&globals, policy.view_at(model.billing), &outfit)?;
    let models = NamedModels {
        main: model.config,
        settings: globals.settings.models.clone(),
        meter: meter.clone(),
        watched: model.watched.clone(),
    };
    let summaries = setup::summaries(&record.settings, &models, &screen)?;
    let policies = (policy, &summaries);
    let context = MeteredContext::open(policies, record.todo(), &memory, meter.clone())?;
    setup::note_origin(&memory, record)?;
    let foreign = desk.tools(&record.settings, &screen).await?;
    let store = (&memory, record.todo());
    let around = search::Surroundings::new(&globals, &screen, store, &foreign);
    let documents = search::deep_search(&record.settings, &models, &around).await?;
    let head =
        summary::head(record, &setup::billing_line(model.billing, policy, model.money.is_some()));
    let parts = setup::Parts {
        model: model.model,
        window: model.window,
        outfit: outfit.clone(),
        meter,
        journal,
        screen: screen.clone(),
        documents,
        foreign,
        models,
        person: desk.person(&screen),
    };
    let agent = parts.agent(record, &globals.settings)?;
    let heads = std::iter::once(head).chain(outfit.note(&agent)).collect();
    Ok(Prepared { memory, context, agent, heads })
}
