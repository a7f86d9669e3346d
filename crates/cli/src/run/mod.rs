//! A run of the agent: begun or gone on with, watched, and kept in the store's folder.
//!
//! Each run has a folder of its own in the store's `runs`: a record of what it is and how it stands, a
//! journal from which it goes on when its process was killed, and the trajectory of what it did. What
//! was said in it is a todo of the store, which has the run's name.

mod approvals;
mod board;
mod context;
mod documents;
mod failures;
mod folder;
mod interrupt;
mod limits;
mod lines;
mod meter;
mod named_models;
mod person;
mod record;
mod screen;
mod sent;
mod settings;
mod setup;
mod summary;
mod time;

pub(crate) use folder::{RunFolder, Runs};
pub(crate) use limits::Limits;
pub(crate) use meter::Account;
pub(crate) use named_models::NamedModels;
pub(crate) use record::{RunRecord, RunState};
pub(crate) use sent::last_sent;
pub(crate) use settings::{NO_DOCUMENTS, RunSettings, host};
pub(crate) use time::Time;

use crate::cli::Globals;
use crate::demo;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::settings::{InForce, Kept};
use crate::store;
use context::MeteredContext;
use failures::Watched;
use foldback_agent::rewards::{judge, own_judges};
use foldback_agent::{AgentError, Journal as _, Observer, SpendTracker, Task};
use foldback_core::{ContextError, ContextManager, TodoId};
use foldback_tool::CancellationToken;
use record::VERSION;
use screen::Screen;
use setup::{InputBilling, Model};
use std::sync::Arc;

/// What is asked, and how to go about it.
pub(crate) struct Order {
    pub(crate) task: String,
    /// The run's name, where whoever asks chose one.
    pub(crate) name: Option<TodoId>,
    pub(crate) settings: RunSettings,
    pub(crate) limits: Limits,
}

/// Begins a run, and works on it until it ends.
pub(crate) fn begin(order: Order, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
    let in_force = &globals.settings;
    if let Some(file) = &in_force.project {
        out.note(format_args!("settings of the project count: {}", file.display()));
    }
    let settings = order.settings.with_defaults(in_force).with_file(in_force.named.clone());
    settings.check()?;
    let (model, settings) = Model::remote(settings.resolved()?, in_force)?;
    let limits = order.limits.with_defaults(in_force);
    let order = Order { settings, limits, ..order };
    if order.limits.bounds_cost() && model.money.is_none() {
        return Err(CliError::Usage(NO_PRICES.to_owned()));
    }
    let policy = setup::policy(&order.settings, model.billing)?;
    setup::server_list(&order.settings)?;
    let (id, folder) = Runs::of(globals)?.create(&order.task, order.name.clone())?;
    let record = RunRecord {
        version: VERSION,
        id,
        strategy: order.settings.strategy()?.to_string(),
        context: policy.name().to_owned(),
        model: model.model.name().to_owned(),
        demo: false,
        task: order.task,
        settings: order.settings,
        limits: order.limits,
        kept: in_force.kept(),
        state: RunState::Running,
        answer: None,
        why: None,
        spent_up: None,
        account: Account::default(),
        blocks: 0,
        began: record::now(),
        changed: record::now(),
    };
    work(record, &folder, model, globals, out)
}

/// Begins the demo, and works on it until it ends.
pub(crate) fn begin_demo(
    name: Option<TodoId>,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    let (id, folder) = Runs::of(globals)?.create("demo", name)?;
    let workspace = folder.workspace();
    if let Err(error) = demo::write_project(&workspace) {
        folder.discard();
        return Err(error);
    }
    let settings = RunSettings::in_workspace(&workspace, &demo::STRATEGY, demo::CONTEXT);
    let model = demo_model(out)?;
    let record = RunRecord {
        version: VERSION,
        id,
        strategy: demo::STRATEGY.to_string(),
        context: demo::CONTEXT.to_owned(),
        model: model.model.name().to_owned(),
        demo: true,
        task: demo::TASK.to_owned(),
        settings,
        limits: Limits::approving(),
        // The recorded turns are of a memory and tools with nothing set.
        kept: Kept::default(),
        state: RunState::Running,
        answer: None,
        why: None,
        spent_up: None,
        account: Account::default(),
        blocks: 0,
        began: record::now(),
        changed: record::now(),
    };
    work(record, &folder, model, globals, out)
}

/// Goes on with a run, with what was given anew in the place of what was given before.
pub(crate) fn resume(
    id: &TodoId,
    settings: RunSettings,
    limits: Limits,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    let (folder, record) = Runs::of(globals)?.open(id)?;
    let settings = settings.with_file(globals.config.clone());
    let record = RunRecord { limits: record.limits.overlaid(limits), ..record };
    if record.state == RunState::Done {
        out.note(format_args!("the run {id} is done; this is what came of it"));
        summary::print(&record, out)?;
        return Ok(Outcome::Done);
    }
    if record.demo && settings.names_a_model() {
        let what = format!("the run {id} is the demo, whose model is recorded; it takes no other");
        return Err(CliError::Usage(what));
    }
    let (model, record) = match record.demo {
        true => (demo_model(out)?, record),
        false => {
            let kept = record.settings.clone().with_context(&record.context);
            let kept = kept.with_newer_model(settings)?;
            let in_force = InForce::of_process(kept.file())?;
            let (model, settings) = Model::remote(kept, &in_force)?;
            let name = model.model.name().to_owned();
            (model, RunRecord { settings, model: name, ..record })
        }
    };
    if record.limits.bounds_cost() && model.money.is_none() {
        return Err(CliError::Usage(NO_PRICES.to_owned()));
    }
    work(record, &folder, model, globals, out)
}

/// Why a sum of money cannot bound a run.
const NO_PRICES: &str = "--max-cost needs to know what the model's tokens cost: give the price of a million of \
                         each kind as token_prices in the table [model] of the settings file";

fn demo_model(out: &Output) -> Result<Model, CliError> {
    use std::io::IsTerminal as _;
    // Who watches wants to see what happens; nobody else waits for it.
    let is_watched = std::io::stderr().is_terminal() && !out.is_quiet() && !out.is_json();
    let model = demo::model(is_watched)?;
    let (money, watched) = (Some(demo::MONEY), Watched::default());
    let billing = InputBilling { prices: demo::MONEY.of_input(), least_cached: 1_024 };
    Ok(Model { model, billing, money, watched, config: None })
}

/// Closes what is open in the conversation of a run.
fn conclude(context: &mut dyn ContextManager) -> Result<(), ContextError> {
    if let Some(kept) = context.sub_tasks() {
        kept.conclude()?;
    }
    Ok(())
}

/// Works on a run until it ends, and tells what came of it.
fn work(
    record: RunRecord,
    folder: &RunFolder,
    model: Model,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    // A run goes on with the settings that it began with.
    let globals = &globals.going_on(record.kept.clone());
    let spend =
        SpendTracker::new(record.limits.spend_limits(), model.money).map_err(AgentError::from)?;
    let journal = Arc::new(folder.journal()?);
    let record = RunRecord { state: RunState::Running, why: None, ..record };
    folder.save(&record)?;
    let screen = Screen::new(out, &record.id);
    let meter = setup::meter(&record, folder, model.money);
    screen.meter(&meter);
    // It is told once.
    drop(model.watched.set(Arc::clone(&screen)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io {
        what: "the run's threads could not be started".to_owned(),
        source,
    })?;
    let worked = runtime.block_on(async {
        let policy = setup::policy(&record.settings, model.billing)?;
        let memory = store::open_for_run(globals, model.billing.view(policy))?;
        let mut context = MeteredContext::open(policy, &record.id, &memory, meter.clone())?;
        let servers = setup::servers(&record.settings, &screen).await?;
        let models = NamedModels {
            main: model.config,
            settings: globals.settings.models.clone(),
            meter: meter.clone(),
            watched: model.watched.clone(),
        };
        let documents = documents::documents(&record.settings, globals, &models, &screen)?;
        let parts = setup::Parts {
            model: model.model,
            meter: meter.clone(),
            journal: journal.clone(),
            screen: screen.clone(),
            documents,
            foreign: servers.tools(),
            models,
        };
        let agent = parts.agent(&record, &globals.settings)?;
        let cancelled = CancellationToken::new();
        let task = Task::new(record.id.as_str(), &record.task)
            .with_cancelled(cancelled.clone())
            .with_observer(Arc::clone(&screen) as Arc<dyn Observer>)
            .with_spend(spend.clone());
        let line = model.billing.line(policy, model.money.is_some());
        screen.say(&summary::head(&record, &line));
        let working = agent.run(&mut context, &task);
        let watching = interrupt::watch(&record.id, &cancelled, &screen);
        let report = tokio::select! {
            report = working => report,
            never = watching => match never {},
            never = screen.tick_along() => match never {},
        };
        servers.close().await;
        journal.sync().await?;
        if report.as_ref().is_ok_and(record::is_over) {
            // What was said last is a block like any other; what comes later begins a new one.
            conclude(&mut context).map_err(AgentError::from)?;
        }
        let blocks = if policy.is_foldback() { memory.session(&record.id)?.blocks() } else { 0 };
        Ok((report?, blocks))
    });
    // A person may still be thinking about an answer that nobody waits for any more.
    runtime.shutdown_background();
    screen.end();
    let account = meter.account();
    let record = match &worked {
        Ok((report, blocks)) => record.ended(report, &spend, account, *blocks),
        Err(error) => record.failed(CliError::sentence(error), account),
    };
    folder.save(&record)?;
    let (mut report, _) = worked?;
    judge(&mut report.trajectory, own_judges());
    folder.save_trajectory(&report.trajectory)?;
    summary::print(&record, out)?;
    let is_done = record.state == RunState::Done;
    if !is_done && out.is_quiet() && !out.is_json() {
        summary::print_failure(&record);
    }
    Ok(Outcome::clean_if(is_done))
}
