//! What is asked, how to go about it, and whether that can be done.

use super::desk::{Desk, Ends};
use super::folder::Runs;
use super::limits::Limits;
use super::record::RunState;
use super::search_in::SearchIn;
use super::settings::RunSettings;
use super::setup::{self, Model};
use crate::cli::Globals;
use crate::error::CliError;
use crate::store;
use foldback_core::TodoId;
use foldback_policies::Policy;

/// What is asked, and how to go about it.
pub(crate) struct Order {
    pub(crate) task: String,
    pub(crate) place: Place,
    pub(crate) settings: RunSettings,
    pub(crate) limits: Limits,
}

/// Where it is asked.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a conversation of its own, of this name where the caller chose one.
    New(Option<TodoId>),
    /// As the next turn of this one.
    Next(TodoId),
}

/// A conversation that goes on, and how its last turn was gone about.
struct Past {
    turns: usize,
    settings: RunSettings,
}

/// An order that nothing stands in the way of.
pub(crate) struct Ready {
    pub(super) order: Order,
    /// How many turns the conversation had.
    pub(super) turns: usize,
    pub(super) model: Model,
    pub(crate) policy: Policy,
}

impl Ready {
    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        self.model.model.name()
    }
}

/// Says where settings of the project come from.
pub(crate) fn tell_of_project(desk: &Desk<'_>) {
    if let Some(file) = &desk.globals.settings.project {
        desk.out.note(format_args!("settings of the project count: {}", file.display()));
    }
}

/// Refuses --allow-private-net where no host was named that it could be about.
fn check_private(settings: &RunSettings) -> Result<(), CliError> {
    let is_about_search = matches!(settings.search_in()?, Some(SearchIn::Searxng(_)));
    if !settings.allow_net.is_empty() || is_about_search {
        return Ok(());
    }
    let what = "--allow-private-net permits nothing by itself; name a host with --allow-net <HOST>, or a search \
                engine with --search searxng:URL";
    Err(CliError::Usage(what.to_owned()))
}

/// Looks whether an order can be worked on: what is missing or wrong is an error before anything begins.
pub(crate) fn prepare(order: Order, desk: &Desk<'_>) -> Result<Ready, CliError> {
    let in_force = &desk.globals.settings;
    let lets_private = order.settings.allow_private_net;
    let (turns, settings) = match &order.place {
        Place::New(name) => {
            name.as_ref().map_or(Ok(()), |name| check_new(name, desk.globals))?;
            (0, order.settings.with_file(in_force.named.clone()))
        }
        Place::Next(todo) => {
            let Past { turns, settings } = past(todo, desk)?;
            (turns, settings.with_newer(order.settings.with_file(in_force.named.clone()))?)
        }
    };
    let settings = settings.with_defaults(in_force);
    settings.check()?;
    if lets_private {
        check_private(&settings)?;
    }
    let (model, settings) = Model::remote(settings.resolved()?, in_force)?;
    let limits = order.limits.with_defaults(in_force);
    let order = Order { settings, limits, ..order };
    if order.limits.bounds_cost() && model.money.is_none() {
        return Err(CliError::Usage(NO_PRICES.to_owned()));
    }
    let policy = setup::policy(&order.settings, model.billing)?;
    setup::server_list(&order.settings)?;
    Ok(Ready { order, turns, model, policy })
}

/// Refuses a name that a conversation has.
pub(super) fn check_new(name: &TodoId, globals: &Globals) -> Result<(), CliError> {
    let memory = match store::open_for_reading(globals) {
        Err(CliError::NotFound(_)) => return Ok(()),
        memory => memory?,
    };
    // Of a run there is more to say.
    if memory.find(name).is_err() || Runs::of(globals)?.open(name).is_ok() {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "there is a todo {name} already; `foldback run --todo {name} \"...\"` asks the next question in it, \
         and another --id begins a conversation of its own"
    )))
}

/// What is known of a conversation whose next turn is due.
fn past(todo: &TodoId, desk: &Desk<'_>) -> Result<Past, CliError> {
    store::open_for_reading(desk.globals)?.find(todo)?;
    let turns = Runs::of(desk.globals)?.of_todo(todo)?;
    let Some(last) = turns.last() else {
        return Ok(Past { turns: 0, settings: RunSettings::default() });
    };
    let id = &last.id;
    match last.state {
        RunState::Done => {}
        RunState::Running => {
            return Err(CliError::Usage(format!(
                "the run {id} is being worked on in the todo {todo}; the next turn can begin once it has \
                 ended"
            )));
        }
        // In a chat everybody has seen it.
        _ if desk.ends == Ends::Turn => {}
        state => desk.out.note(format_args!(
            "the turn before is {}; `foldback run --resume {id}` would have gone on with it",
            state.name()
        )),
    }
    let settings = last.settings.clone().with_context(&last.context);
    Ok(Past { turns: turns.len(), settings })
}

/// Why a sum of money cannot bound a run.
pub(super) const NO_PRICES: &str = "--max-cost needs to know what the model's tokens cost: give the price of a million of \
                         each kind as token_prices in the table [model] of the settings file";
