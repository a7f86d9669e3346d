//! What a run works with: a model, tools, an agent, a context policy.

use super::approvals::Approvals;
use super::failures;
use super::failures::{Named, Watched, key_source};
use super::folder::RunFolder;
use super::known_server::KnownServer;
use super::meter::{Meter, MeteredModel};
use super::named_models::NamedModels;
use super::outfit::Outfit;
use super::person::AtTerminal;
use super::record::RunRecord;
use super::screen::Screen;
use super::sent;
use super::settings::RunSettings;
use crate::demo;
use crate::error::CliError;
use crate::settings::{InForce, Settings, ToolSettings};
use foldback::{Memory, Origin};
use foldback_agent::{AskPerson, ContextWindow, Journal, React, TokenPrices};
use foldback_core::{CacheTerms, Prices, thousands};
use foldback_deep_search::DeepSearch;
use foldback_flow::{Flow, PlanningTool};
use foldback_llm::{ChatModel, Retrying};
use foldback_mcp::{Endpoint, McpServerConfig, McpServers};
use foldback_policies::{Policy, Summaries, SummaryModel};
use foldback_providers::{
    ModelConfig, ModelSettings, ModelSources, RemoteModel, ServerFacts, public_url,
};
use foldback_reference_agent::{ReadyAgent, ReferenceAgent};
use foldback_tool::{Concurrency, Tool};
use foldback_tools::Permissions;
use std::sync::Arc;

/// A model, with what is known of its prices.
pub(crate) struct Model {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The prices of input tokens, and the shortest prefix that is cached.
    pub(crate) billing: CacheTerms,
    /// The prices of tokens in money, if they are known.
    pub(crate) money: Option<TokenPrices>,
    /// Its window.
    pub(crate) window: ContextWindow,
    /// Receives temporary failures.
    pub(crate) watched: Watched,
    /// Its configuration; the demo's has none.
    pub(crate) config: Option<ModelConfig>,
}

/// How to configure a model, on one line.
const NO_MODEL: &str = "no model is configured: name one with --model M (or FOLDBACK_MODEL, and a key in \
                        FOLDBACK_API_KEY), or try `foldback run --demo`, which needs none";

impl Model {
    /// The model that the settings name, with the settings completed from what was found.
    pub(crate) fn remote(
        settings: RunSettings,
        in_force: &InForce,
    ) -> Result<(Self, RunSettings), CliError> {
        let sources = settings.model_sources(in_force);
        let config = match ModelConfig::load(&sources) {
            Ok(config) => config,
            Err(_) if !is_named(&sources) => return Err(CliError::Usage(NO_MODEL.to_owned())),
            Err(error) => return Err(CliError::Usage(error.message)),
        };
        let (config, known) = match settings.server() {
            Some(known) => (known.complete(config), known),
            None => {
                let facts = facts(&config)?;
                (config.completed_by(&facts), KnownServer::from(&facts))
            }
        };
        let window = ContextWindow::new(config.context_tokens, config.max_tokens);
        let (money, retry) = (config.token_prices, config.retry);
        let billing = config.cache_terms();
        let settings = settings.with_model(&config.name, &config.base_url);
        let settings = settings.with_tool_calls(config.tool_calls()).with_server(known);
        let (at, key) = (public_url(&config.base_url), key_source(&sources, &config, in_force));
        let watched = Watched::default();
        let asked = Some(config.clone());
        let model = RemoteModel::new(config).map_err(|error| CliError::Usage(error.message))?;
        let model = Retrying::new(Named { model, at, key }, retry);
        let model = Arc::new(model.telling(failures::tell(&watched)));
        Ok((Self { model, billing, money, window, watched, config: asked }, settings))
    }
}

/// What a model's server reports about it. It is asked on a thread of its own: this one may be a conversation's, which
/// already has a runtime.
fn facts(config: &ModelConfig) -> Result<ServerFacts, CliError> {
    let runtime = model_runtime()?;
    let asked = std::thread::scope(|threads| {
        threads.spawn(|| runtime.block_on(ServerFacts::ask(config))).join()
    });
    // If the server could not be asked, nothing is known.
    asked
        .unwrap_or_else(|_| Ok(ServerFacts::default()))
        .map_err(|error| CliError::Usage(error.message))
}

/// A runtime for asking a model before a run, on this thread.
pub(crate) fn model_runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| CliError::Io {
        what: "the model's server could not be asked".to_owned(),
        source,
    })
}

/// Whether any of the sources names a model.
fn is_named(sources: &ModelSources) -> bool {
    let variable = sources.environment.get("FOLDBACK_MODEL");
    let variable = variable.is_some_and(|name| !name.trim().is_empty());
    variable || sources.flags.name.is_some() || sources.settings != ModelSettings::default()
}

/// The context policy of a run: the one that was named, or foldback's own with the fold policy that is cheaper at these
/// prices.
pub(crate) fn policy(settings: &RunSettings, billing: CacheTerms) -> Result<Policy, CliError> {
    Ok(settings.context()?.at(billing))
}

/// The prices of input on a line, relative to each other or in money, and what follows from them.
pub(crate) fn billing_line(billing: CacheTerms, policy: Policy, is_money: bool) -> String {
    let Prices { read, write, plain } = billing.prices;
    let unit = if is_money { " a million" } else { ", relative to each other" };
    let prices = match read == plain && write == plain {
        true => format!("input costs {plain}{unit}, cached or not"),
        false => format!(
            "input costs {plain}, {read} read from the cache, {write} written into it{unit}; cached \
             from {} tokens on",
            thousands(billing.least)
        ),
    };
    match policy.is_foldback() {
        true => format!("{prices}: folded {}", policy.view_at(billing).fold_policy().name()),
        false => prices,
    }
}

/// How a context's policy writes summaries: with the model that was named, or by its rule. Must be called on the run's
/// threads.
pub(crate) fn summaries(
    settings: &RunSettings,
    models: &NamedModels,
    screen: &Arc<Screen>,
) -> Result<Summaries, CliError> {
    let fields = settings.summary_fields();
    let Some(name) = settings.summary_model() else {
        return Ok(Summaries { written_by: None, fields });
    };
    let (model, prices) = models.summarizing(name)?;
    let told = Arc::clone(screen);
    let writer = SummaryModel::new(model, tokio::runtime::Handle::current())
        .with_prices(prices)
        .telling(move |why| told.note(&format!("a summary is extracted by rule: {why}")));
    Ok(Summaries { written_by: Some(Arc::new(writer)), fields })
}

/// The permissions of a run's tools: to work in its workspace, and to fetch from the hosts that were named.
pub(crate) fn permissions(settings: &RunSettings, tools: &ToolSettings) -> Permissions {
    let mut permissions = tools.permissions(settings.workspace.clone().unwrap_or_default());
    permissions.web.private_addresses = settings.allow_private_net;
    settings.allow_net.iter().fold(permissions, |permissions, host| permissions.with_host(host))
}

/// Records the origin of a run's todo, that is, foldback and its working folder, unless it came from elsewhere.
pub(crate) fn note_origin(memory: &Memory, record: &RunRecord) -> Result<(), CliError> {
    let conversations = memory.conversations();
    if conversations.info(record.todo())?.origin != Origin::default() {
        return Ok(());
    }
    let folder = record.settings.workspace.as_ref();
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    let origin = Origin { source: Some("run".to_owned()), folder };
    Ok(conversations.set_origin(record.todo(), &origin)?)
}

/// What an agent is made of.
pub(crate) struct Parts {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) window: ContextWindow,
    pub(crate) outfit: Outfit,
    pub(crate) meter: Arc<Meter>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) screen: Arc<Screen>,
    /// The source of a deep search.
    pub(crate) documents: Option<DeepSearch>,
    /// Tools from elsewhere.
    pub(crate) foreign: Vec<Arc<dyn Tool>>,
    /// The models of single roles.
    pub(crate) models: NamedModels,
    /// The person who can be asked.
    pub(crate) person: Option<AtTerminal>,
}

impl Parts {
    /// The agent of a run: it works in the run's workspace, and may delegate to sub-agents.
    pub(crate) fn agent(
        self,
        record: &RunRecord,
        in_force: &Settings,
    ) -> Result<ReadyAgent, CliError> {
        let RunRecord { settings, limits, .. } = record;
        let Settings { agent: own, tools, view, flow, .. } = in_force;
        let react = settings.steps.react(limits.max_steps())?;
        let react = react.with_prompt(view.budget()).with_availability(own.tool_states.clone());
        let mut steps = limits.flow_settings(flow.settings(react.clone().with_availability(None)));
        let mut foreign = self.foreign;
        if flow.planning_tool && settings.strategy()? == Flow::NAME {
            let planning = PlanningTool::kept_in(Arc::clone(&self.journal), record.id.as_str())?;
            let planning = Arc::new(planning);
            foreign.push(Arc::clone(&planning) as Arc<dyn Tool>);
            steps = steps.with_planning(planning);
        }
        let model = Arc::new(MeteredModel { model: self.model, meter: self.meter, money: None });
        let person = self.person;
        let mut agent = ReferenceAgent::new(model)
            .in_workspace(permissions(settings, tools))
            .with_tools(foreign)
            .with_journal(self.journal)
            .with_approver(Arc::new(Approvals::new(limits.yes, person.clone())))
            .with_instructions(own.instructions.as_deref().unwrap_or_default())
            .with_react(react)
            .with_one_plan(
                own.one_plan()
                    .with_stream(settings.steps.stream_plans().unwrap_or(own.stream_plans)),
            )
            .with_strategy_named(settings.strategy()?.as_str())
            .with_flow(steps)
            .with_sub_agent_share(limits.sub_agent_share())
            .with_window(self.window);
        agent = self.outfit.fit(agent);
        if let Some(person) = person {
            let turn = Arc::clone(&person.turn);
            agent = agent.with_person(AskPerson::new(Arc::new(person)).with_turn(turn));
        }
        for executor in &flow.executors {
            agent = agent.with_flow_executor(executor.of(&self.models)?);
        }
        for calculator in &tools.calculators {
            agent = agent.with_calculator(calculator.of(&self.models)?);
        }
        for (tool, argument) in &tools.context_readers {
            agent = agent.with_context_reader(tool, argument);
        }
        if let Some(documents) = self.documents {
            agent = agent.with_documents(documents);
        }
        if record.demo {
            // The recording has the turns of sub-agents one by one.
            agent = agent.with_sub_agent_strategy(Arc::new(React::default()));
            agent = agent.with_shell_substitute(demo::refused_shell());
        }
        let agent = agent.build()?;
        let tools = agent.agent().executor().toolbox().specs();
        let alone = tools.filter(|tool| tool.concurrency == Concurrency::Exclusive);
        self.screen.run_alone(alone.map(|tool| tool.name().to_owned()));
        if let Some(reason) = agent.no_shell() {
            self.screen.note(&format!("commands cannot be run: {reason}"));
        }
        Ok(agent)
    }
}

/// Starts the MCP servers of a run. One that does not start is reported, and the run continues without it.
pub(crate) async fn servers(
    settings: &RunSettings,
    screen: &Screen,
) -> Result<McpServers, CliError> {
    let listed = server_list(settings)?;
    if !listed.is_empty() {
        // They may take a while.
        let names: Vec<&str> = listed.iter().map(|server| server.name.as_str()).collect();
        screen.say(&format!("starting MCP servers: {}", names.join(", ")));
    }
    let servers = McpServers::start(listed).await;
    for failure in servers.failures() {
        screen.note(&failure.to_string());
    }
    servers.notes().iter().for_each(|note| screen.note(note));
    Ok(servers)
}

/// The servers that the settings' file names. Their programs run in the folder of that file, or in the one that it
/// gives relative to it: a run can be resumed from anywhere, and files that the agent may write must not start
/// anything.
pub(crate) fn server_list(settings: &RunSettings) -> Result<Vec<McpServerConfig>, CliError> {
    let Some(file) = &settings.mcp else { return Ok(Vec::new()) };
    let json = std::fs::read_to_string(file).map_err(|source| CliError::Io {
        what: format!("the list of MCP servers {} could not be read", file.display()),
        source,
    })?;
    let mut servers = McpServerConfig::read(&json)
        .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    for server in &mut servers {
        if let (Endpoint::Program { cwd, .. }, Some(folder)) = (&mut server.endpoint, file.parent())
        {
            *cwd = Some(folder.join(cwd.take().unwrap_or_default()));
        }
    }
    Ok(servers)
}

/// A meter that keeps its counts in the run's record.
pub(crate) fn meter(
    record: &RunRecord,
    folder: &RunFolder,
    money: Option<TokenPrices>,
) -> Arc<Meter> {
    let (asked, folder, record) = (folder.clone(), folder.clone(), record.clone());
    let meter = Meter::new(record.account, money, move |account| {
        // A figure that cannot be kept is no reason to end a run; the next one replaces it.
        let (account, changed) = (*account, super::record::now());
        drop(folder.save(&RunRecord { account, changed, ..record.clone() }));
    });
    Arc::new(meter.read_by(move |request| sent::keep(&asked, request)))
}
