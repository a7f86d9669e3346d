//! What a run works with: a model, tools, an agent, a context policy.

use super::approvals::Approvals;
use super::folder::RunFolder;
use super::meter::{Meter, MeteredModel};
use super::person::AtTerminal;
use super::record::RunRecord;
use super::screen::Screen;
use super::settings::RunSettings;
use crate::cli::Globals;
use crate::demo;
use crate::error::CliError;
use crate::replay::Policy;
use crate::store;
use foldback_agent::deep_search::{DeepSearch, DeepSearchSettings, research};
use foldback_agent::{
    Agent, Allowance, AskPerson, Executor, Journal, Strategy, SubAgents, TokenPrices, Tool,
    Toolbox, memory_share, reference_head, think, todo_write,
};
use foldback_core::Prices;
use foldback_llm::{ChatModel, ModelConfig, ModelSources, RemoteModel, Retrying};
use foldback_mcp::{McpServerConfig, McpServers};
use foldback_tools::{DocumentFolder, DocumentSettings, Permissions, PermissionsError, toolset};
use std::path::Path;
use std::sync::Arc;

/// A model, and what is known of its prices.
pub(crate) struct Model {
    pub(crate) model: Arc<dyn ChatModel>,
    /// What input tokens cost, relative to each other.
    pub(crate) prices: Prices,
    /// What tokens cost in money, where that is known.
    pub(crate) money: Option<TokenPrices>,
}

/// How to come by a model, on one line.
const NO_MODEL: &str = "no model is configured: name one with --model M (or FOLDBACK_MODEL, and a key in \
                        FOLDBACK_API_KEY), or try `foldback run --demo`, which needs none";

impl Model {
    /// The model that the settings name, as they are completed by what was found.
    pub(crate) fn remote(settings: RunSettings) -> Result<(Self, RunSettings), CliError> {
        let sources = settings.model_sources();
        let config = match ModelConfig::load(&sources) {
            Ok(config) => config,
            Err(_) if !is_named(&sources) => return Err(CliError::Usage(NO_MODEL.to_owned())),
            Err(error) => return Err(CliError::Usage(error.message)),
        };
        let (prices, money, retry) = (config.prices, config.token_prices, config.retry);
        let settings = settings.with_model(&config.name, &config.base_url);
        let model = RemoteModel::new(config).map_err(|error| CliError::Usage(error.message))?;
        let model = Arc::new(Retrying::new(model, retry));
        Ok((Self { model, prices, money }, settings))
    }
}

/// Whether any of the sources names a model.
fn is_named(sources: &ModelSources) -> bool {
    let variable = sources.environment.get("FOLDBACK_MODEL");
    let variable = variable.is_some_and(|name| !name.trim().is_empty());
    variable || sources.flags.name.is_some() || sources.file.is_some()
}

/// The context policy of a run: the one that was named, or foldback's own with the schedule that is
/// cheaper at these prices.
pub(crate) fn policy(settings: &RunSettings, prices: Prices) -> Result<Policy, CliError> {
    let own = if prices.read < prices.plain { Policy::CacheAware } else { Policy::Foldback };
    Ok(settings.context()?.unwrap_or(own))
}

/// What the tools of a run may do: work in its workspace, and fetch from the hosts that were named.
pub(crate) fn permissions(settings: &RunSettings) -> Permissions {
    let folder = settings.workspace.clone().unwrap_or_default();
    let permissions = Permissions::in_workspace(folder).with_shell();
    settings.allow_net.iter().fold(permissions, |permissions, host| permissions.with_host(host))
}

/// What an agent is made of.
pub(crate) struct Parts {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) screen: Arc<Screen>,
    /// What a deep search looks into.
    pub(crate) documents: Option<DeepSearch>,
    /// Tools of other makers.
    pub(crate) foreign: Vec<Arc<dyn Tool>>,
}

impl Parts {
    /// The agent of a run: it works in the run's workspace, and may have others work for it.
    pub(crate) fn agent(self, record: &RunRecord) -> Result<Agent, CliError> {
        let mut tools = own_tools(record, &self.screen)?;
        tools.extend(self.foreign.iter().cloned());
        let approvals = Arc::new(Approvals::new(record.limits.yes, &self.screen));
        let executor = |tools: &[Arc<dyn Tool>]| {
            let toolbox = Toolbox::new(tools.iter().cloned());
            let toolbox = toolbox.map_err(|error| CliError::Usage(error.to_string()))?;
            let executor = Executor::new(toolbox).with_journal(Arc::clone(&self.journal));
            Ok::<_, CliError>(executor.with_approver(approvals.clone()))
        };
        let model = Arc::new(MeteredModel { model: self.model, meter: self.meter });
        let head = reference_head();
        let agent = |tools: &[Arc<dyn Tool>]| {
            let agent = Agent::new(model.clone(), executor(tools)?).with_head(head);
            Ok::<_, CliError>(match &self.documents {
                Some(documents) => agent.with_deep_search(documents.clone()),
                None => agent,
            })
        };
        if self.documents.is_some() {
            tools.push(research(agent(&[])?, Allowance::default()));
        }
        let template = agent(&tools)?;
        let strategy = if record.demo { demo::SUB_STRATEGY } else { Strategy::Adaptive };
        let sub_agents = SubAgents::new(template).with_strategy(strategy);
        let all: Vec<_> =
            tools.into_iter().chain([sub_agents.delegate(), memory_share()]).collect();
        agent(&all)
    }
}

/// The tools that the agent of a run and its sub-agents share: those for its workspace, and those by
/// which an agent keeps its mind in order. Where no sandbox can be had there is no shell.
fn own_tools(record: &RunRecord, screen: &Arc<Screen>) -> Result<Vec<Arc<dyn Tool>>, CliError> {
    let permissions = permissions(&record.settings);
    let mut tools = match toolset(&permissions) {
        Err(PermissionsError::Unavailable { tool: demo::SHELL, reason }) => {
            screen.say(&format!("there is no shell here: {reason}"));
            let mut without = permissions;
            without.shell.allow = false;
            toolset(&without)?
        }
        tools => tools?,
    };
    if record.demo && !tools.iter().any(|tool| tool.spec().name() == demo::SHELL) {
        tools.push(demo::refused_shell());
    }
    let person = match AtTerminal::find(screen) {
        Some(person) => AskPerson::new(Arc::new(person)),
        None => AskPerson::nobody(),
    };
    tools.extend([todo_write(), think(), Arc::new(person) as Arc<dyn Tool>]);
    Ok(tools)
}

/// The documents of a run, read and indexed; what did not change since a run before is not read again.
pub(crate) fn documents(
    settings: &RunSettings,
    globals: &Globals,
) -> Result<Option<DeepSearch>, CliError> {
    let Some(folder) = &settings.documents else { return Ok(None) };
    let store = store::folder(globals)?.join("documents");
    let documents = DocumentFolder::open_with_store(folder, DocumentSettings::default(), &store)?;
    let variable = |name: &str| std::env::var(format!("FOLDBACK_{name}")).ok();
    let search = DeepSearchSettings::default().with_effort(settings.effort()?);
    let search = search
        .overridden(variable)
        .map_err(|error| CliError::Usage(format!("FOLDBACK_{error}")))?;
    Ok(Some(DeepSearch::new(Arc::new(documents)).with_settings(search)))
}

/// The MCP servers of a run, started. One that does not start is told of, and the run goes on without.
pub(crate) async fn servers(
    settings: &RunSettings,
    screen: &Screen,
) -> Result<McpServers, CliError> {
    let Some(file) = &settings.mcp else { return Ok(McpServers::default()) };
    let json = std::fs::read_to_string(file).map_err(|source| CliError::Io {
        what: format!("the list of MCP servers {} could not be read", file.display()),
        source,
    })?;
    let servers = McpServers::start(servers_in(&json, file)?).await;
    for failure in servers.failures() {
        screen.say(&failure.to_string());
    }
    servers.notes().iter().for_each(|note| screen.say(note));
    Ok(servers)
}

/// The servers that a file names.
fn servers_in(json: &str, file: &Path) -> Result<Vec<McpServerConfig>, CliError> {
    McpServerConfig::read(json)
        .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))
}

/// A meter that keeps what it counts in the run's record.
pub(crate) fn meter(
    record: &RunRecord,
    folder: &RunFolder,
    money: Option<TokenPrices>,
) -> Arc<Meter> {
    let (folder, record) = (folder.clone(), record.clone());
    Arc::new(Meter::new(record.account, money, move |account| {
        // A figure that is not kept is no reason to end a run; the next one tells it again.
        let (account, changed) = (*account, super::record::now());
        drop(folder.save(&RunRecord { account, changed, ..record.clone() }));
    }))
}
