//! What is asked, how to work on it, and whether that is possible.

use super::desk::{Desk, Ends};
use super::folder::{Runs, is_at_work};
use super::limits::Limits;
use super::record::RunState;
use super::search_in::SearchIn;
use super::settings::RunSettings;
use super::setup::{self, Model};
use crate::cli::Globals;
use crate::error::CliError;
use crate::store;
use foldback_core::TodoId;
use foldback_policies::{Policy, PolicyChoice};
use std::fs::File;

/// What is asked, and how to work on it.
pub(crate) struct Order {
    pub(crate) task: String,
    pub(crate) place: Place,
    pub(crate) settings: RunSettings,
    pub(crate) limits: Limits,
}

/// The conversation for the task.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A conversation of its own, with this name if the caller chose one.
    New(Option<TodoId>),
    /// The next turn of this conversation.
    Next(TodoId),
}

/// A conversation that continues, with the settings of its last turn.
struct Past {
    turns: usize,
    settings: RunSettings,
    held: File,
}

/// An order that has passed all checks.
pub(crate) struct Ready {
    pub(super) order: Order,
    /// How many turns the conversation had.
    pub(super) turns: usize,
    pub(super) model: Model,
    pub(crate) policy: Policy,
    /// Keeps other turns out of the conversation for as long as it is held.
    pub(super) held: Option<File>,
}

impl Ready {
    /// Whether prices choose the context policy.
    pub(crate) fn is_auto(&self) -> Result<bool, CliError> {
        Ok(matches!(self.order.settings.context()?, PolicyChoice::Auto))
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        self.model.model.name()
    }
}

/// Notes that settings of the project apply.
pub(crate) fn tell_of_project(desk: &Desk<'_>) {
    if let Some(file) = &desk.globals.settings.project {
        desk.out.note(format_args!("the project's settings apply: {}", file.display()));
    }
}

/// Refuses --allow-private-net if no host was named that it could apply to.
fn check_private(settings: &RunSettings) -> Result<(), CliError> {
    let is_about_search = matches!(settings.search_in()?, Some(SearchIn::Searxng(_)));
    if !settings.allow_net.is_empty() || is_about_search {
        return Ok(());
    }
    let what = "--allow-private-net permits nothing by itself; name a host with --allow-net <HOST>, or a search \
                engine with --search searxng:URL";
    Err(CliError::Usage(what.to_owned()))
}

/// Checks whether an order can be worked on: anything missing or wrong is an error before anything begins.
pub(crate) fn prepare(order: Order, desk: &Desk<'_>) -> Result<Ready, CliError> {
    let in_force = &desk.globals.settings;
    let lets_private = order.settings.allow_private_net;
    let (turns, settings, held) = match &order.place {
        Place::New(name) => {
            name.as_ref().map_or(Ok(()), |name| check_new(name, desk.globals))?;
            (0, order.settings.with_file(in_force.named.clone()), None)
        }
        Place::Next(todo) => {
            let Past { turns, settings, held } = past(todo, desk)?;
            let is_newer = order.settings.search.is_some() || order.settings.documents.is_some();
            let settings = settings.with_newer(order.settings.with_file(in_force.named.clone()))?;
            // The options of a chat were given before its first turn.
            if !is_newer || desk.ends == Ends::Turn {
                settings.check_kept_documents()?;
            }
            (turns, settings, Some(held))
        }
    };
    let settings = settings.with_defaults(in_force);
    settings.check()?;
    if lets_private {
        check_private(&settings)?;
    }
    let (model, settings) = Model::remote(settings.resolved()?, in_force)?;
    let limits = order.limits.with_defaults(in_force);
    if limits.bounds_cost() && model.money.is_none() {
        let place = in_force.source_of("agent.max_cost").filter(|_| !order.limits.bounds_cost());
        let bound = place.map(|place| format!("agent.max_cost of {place}"));
        return Err(no_prices(bound.as_deref().unwrap_or("--max-cost")));
    }
    let order = Order { settings, limits, ..order };
    let policy = setup::policy(&order.settings, model.billing)?;
    setup::server_list(&order.settings)?;
    Ok(Ready { order, turns, model, policy, held })
}

/// Refuses a name that a conversation already has.
pub(super) fn check_new(name: &TodoId, globals: &Globals) -> Result<(), CliError> {
    let memory = match store::open_for_reading(globals) {
        Err(CliError::NotFound(_)) => return Ok(()),
        memory => memory?,
    };
    // For a run there is a more specific error.
    if memory.find(name).is_err() || Runs::of(globals)?.open(name).is_ok() {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "there is already a todo {name}; `foldback run --todo {name} \"...\"` asks the next question in it, \
         and another --id begins a conversation of its own"
    )))
}

/// What is known of a conversation before its next turn.
fn past(todo: &TodoId, desk: &Desk<'_>) -> Result<Past, CliError> {
    store::open_for_reading(desk.globals)?.find(todo)?;
    let runs = Runs::of(desk.globals)?;
    let held = runs.hold(todo)?;
    let turns = runs.of_todo(todo)?;
    let Some(last) = turns.last() else {
        return Ok(Past { turns: 0, settings: RunSettings::default(), held });
    };
    let id = &last.id;
    match last.state {
        RunState::Done => {}
        _ if last.is_final => {}
        RunState::Running => return Err(is_at_work(todo)),
        // In a chat the user has seen it.
        _ if desk.ends == Ends::Turn => {}
        state => desk.out.note(format_args!(
            "the previous turn is {}; `foldback run --resume {id}` would have continued it",
            state.name()
        )),
    }
    let settings = last.settings.clone().with_context(&last.context);
    Ok(Past { turns: turns.len(), settings, held })
}

/// The error if a cost limit cannot be applied; `bound` is where it was given.
pub(super) fn no_prices(bound: &str) -> CliError {
    CliError::Usage(format!(
        "{bound} needs to know what the model's tokens cost: give the price per million of each kind as \
         token_prices in the table [model] of the settings file"
    ))
}
