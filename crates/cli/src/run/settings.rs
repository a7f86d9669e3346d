//! How a run works on its task, from flags and from its record.

use super::known_server::KnownServer;
use super::model_server::{is_of_another, of_its_server};
use super::outfit::{ALL, Outfit};
use super::search_in::{NO_DOCUMENTS, SearchIn};
use super::steps::StepSettings;
use crate::error::CliError;
use crate::policy_names;
use crate::settings::Settings;
use clap::Args;
use clap::builder::PossibleValuesParser;
use foldback_agent::StrategyName;
use foldback_deep_search::{DeepSearch, Effort};
use foldback_policies::PolicyChoice;
use foldback_providers::{ModelFlags, ModelSources, Provider, ToolCalls};
use foldback_reference_agent::{STRATEGIES, check_tool_families, strategy_name};
use foldback_tools::Permissions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How a run works on its task. It is kept with the run, which therefore resumes in the same way unless it is given
/// another model: [`WHAT_STAYS`] cannot be given then.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunSettings {
    /// How to work on the task: adaptive plans once if it can, and goes step by step if it must
    #[arg(
        long,
        value_name = "S",
        value_parser = PossibleValuesParser::new(STRATEGIES.iter().map(StrategyName::as_str)),
    )]
    strategy: Option<String>,

    /// The policy that decides what the model is sent: foldback, or another approach [default: auto];
    /// strict and cache-aware are short for foldback and foldback-cache-aware
    #[arg(
        long,
        value_name = "P",
        value_parser = policy_names::parser(PolicyChoice::names()),
    )]
    context: Option<String>,

    /// The model, by its provider's name for it [env: FOLDBACK_MODEL]
    #[arg(long, value_name = "M")]
    model: Option<String>,

    /// The address of the model's server [env: FOLDBACK_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The API that the model's server speaks [env: FOLDBACK_PROVIDER]
    #[arg(
        long,
        value_name = "API",
        value_parser = PossibleValuesParser::new(Provider::ALL.map(Provider::name)),
    )]
    provider: Option<String>,

    /// How tools are described to the model: hermes writes them into the system prompt and reads calls from the
    /// answer's text, for local servers without tool calls [env: FOLDBACK_TOOL_CALLS]
    #[arg(
        long,
        value_name = "HOW",
        value_parser = PossibleValuesParser::new(ToolCalls::ALL.map(ToolCalls::name)),
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<String>,

    /// What the model's server reported about itself.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<KnownServer>,

    /// The settings file that was named by `--config` or the environment: keys are kept nowhere else.
    #[arg(skip)]
    settings: Option<PathBuf>,

    /// The folder to work in: tools read and write only there [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    /// Allow fetching pages from this host (docs.rs, *.example.org, or * for any); may be given several times
    #[arg(
        long,
        value_name = "HOST",
        value_parser = host,
    )]
    pub(crate) allow_net: Vec<String>,

    /// Allow those hosts, and the one of --search searxng:URL, to be on this machine or in a private network
    #[arg(long)]
    pub(crate) allow_private_net: bool,

    /// Add the tools of the MCP servers in this file ({"mcpServers": {NAME: {"command", "args", ..}}})
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp: Option<PathBuf>,

    /// The tools of the agent, by family (file, shell, web, todo) or name, or all; this does not affect the memory's
    /// tools [default: all; in a small window file,shell and what the agent is given]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,

    /// The folder of documents that deep-search reads
    #[arg(long, value_name = "DIR")]
    pub(crate) documents: Option<PathBuf>,

    /// What deep-search and the tool `research` search: folder:DIR (--documents DIR), mcp:SERVER/TOOL of --mcp,
    /// searxng:URL (a SearXNG search engine), memory (what was said in this run), or memory:TODO
    #[arg(long, value_name = "KIND", value_parser = SearchIn::kind, conflicts_with = "documents")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<String>,

    /// Have this model write the summaries of --context stm-ltm and summary-top-n, which are otherwise extracted by
    /// rule; it runs on the same server as the model
    #[arg(long, value_name = "M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_model: Option<String>,

    /// Fields whose latest values the summaries of --context stm-ltm keep, however often they are made: title,布局
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) summary_fields: Vec<String>,

    /// How thorough deep-search is: low, medium or high [default: medium]
    #[arg(
        long,
        value_name = "EFFORT",
        value_parser = PossibleValuesParser::new(EFFORTS.map(Effort::name)),
    )]
    effort: Option<String>,

    /// How it works step by step.
    #[command(flatten)]
    pub(crate) steps: StepSettings,
}

/// The arguments that a run keeps for good, by their ids.
pub(crate) const WHAT_STAYS: [&str; 12] = [
    "strategy",
    "context",
    "workspace",
    "allow_net",
    "allow_private_net",
    "mcp",
    "tools",
    "documents",
    "search",
    "summary_model",
    "summary_fields",
    "effort",
];

/// The arguments that choose the model and its address, by their ids.
pub(crate) const WHICH_MODEL: [&str; 4] = ["model", "base_url", "provider", "tool_calls"];

/// The tool for a flow's plans, which a setting adds.
const PLANNING: &str = "planning";

/// The efforts of a deep search.
const EFFORTS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

impl RunSettings {
    /// Completes the settings from the settings files, where no flag is given.
    pub(crate) fn with_defaults(self, settings: &Settings) -> Self {
        let (tools, search) = (&settings.tools, self.search_of(&settings.search));
        // Whether hosts may be private applies to the hosts given with it.
        let (allow_net, allow_private_net) = match self.allow_net.is_empty() {
            true => (tools.hosts.clone(), self.allow_private_net || tools.private_hosts),
            false => (self.allow_net, self.allow_private_net),
        };
        let families = match self.tools.is_empty() {
            true => tools.only.clone(),
            false => self.tools,
        };
        Self {
            tools: families,
            strategy: self.strategy.or_else(|| settings.agent.strategy.clone()),
            context: self.context.or_else(|| settings.view.policy.clone()),
            allow_net,
            allow_private_net,
            mcp: self.mcp.or_else(|| tools.mcp.clone()),
            documents: self.documents.or_else(|| tools.documents.clone()),
            steps: self.steps.with_defaults(&settings.agent),
            search,
            ..self
        }
        .with_summaries_of(&settings.view)
    }

    /// Makes the paths absolute, for the run's record.
    pub(crate) fn resolved(self) -> Result<Self, CliError> {
        let this = self.with_full_documents()?;
        let workspace = this.workspace.unwrap_or_else(|| PathBuf::from("."));
        Ok(Self {
            settings: full(this.settings, "settings file")?,
            workspace: full(Some(workspace), "workspace")?,
            mcp: full(this.mcp, "list of MCP servers")?,
            ..this
        })
    }

    /// The settings of a run in this folder, with everything else as usual.
    pub(crate) fn in_workspace(folder: &Path, strategy: &StrategyName, context: &str) -> Self {
        Self {
            workspace: Some(folder.to_owned()),
            strategy: Some(strategy.to_string()),
            context: Some(context.to_owned()),
            ..Self::default()
        }
    }

    /// The strategy, by name.
    pub(crate) fn strategy(&self) -> Result<StrategyName, CliError> {
        let [default, ..] = &STRATEGIES;
        let Some(name) = &self.strategy else { return Ok(default.clone()) };
        Ok(strategy_name(name)?)
    }

    /// What the agent is given besides its model, whose window is this.
    pub(crate) fn outfit(&self, window: Option<usize>) -> Outfit {
        Outfit::new(&self.tools, window)
    }

    /// The effort of a deep search, if a flag gives it.
    pub(crate) fn effort(&self) -> Option<Effort> {
        self.effort.as_deref().and_then(Effort::from_name)
    }

    /// Adds the settings file that was named.
    pub(crate) fn with_file(self, file: Option<PathBuf>) -> Self {
        Self { settings: file, ..self }
    }

    /// The settings file that was named when the run began.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.settings.as_deref()
    }

    /// Sets this context policy, whatever another model's prices would choose.
    pub(crate) fn with_context(self, name: &str) -> Self {
        Self { context: Some(name.to_owned()), ..self }
    }

    /// Whether a model is given, or where one is to be found.
    pub(crate) fn names_a_model(&self) -> bool {
        [&self.model, &self.base_url, &self.provider, &self.tool_calls]
            .into_iter()
            .any(Option::is_some)
            || self.settings.is_some()
    }

    /// The settings of an earlier turn, overridden by `newer`.
    pub(crate) fn with_newer(self, newer: Self) -> Result<Self, CliError> {
        let (kept, looks) = (self.clone().with_newer_model(newer.clone())?, newer.clone());
        let names = newer.allow_net.is_empty();
        let settings = Self {
            strategy: newer.strategy.or(self.strategy),
            context: newer.context.or(self.context),
            workspace: newer.workspace.or(self.workspace),
            allow_private_net: newer.allow_private_net || names && self.allow_private_net,
            allow_net: if names { self.allow_net } else { newer.allow_net },
            mcp: newer.mcp.or(self.mcp),
            documents: newer.documents.or(self.documents),
            tools: if newer.tools.is_empty() { self.tools } else { newer.tools },
            effort: newer.effort.or(self.effort),
            // A turn may begin long after the one before it, when the server has been restarted.
            server: None,
            steps: self.steps.with_newer(newer.steps),
            ..kept
        };
        Ok(settings.with_newer_looks(&looks))
    }

    /// Sets the model that `newer` names. It is on the same server, unless `newer` says where it is, or that address
    /// belongs to another provider.
    pub(crate) fn with_newer_model(self, newer: Self) -> Result<Self, CliError> {
        // A name that has not changed adds nothing.
        let settings = full(newer.settings, "settings file")?;
        let settings = settings.filter(|file| self.settings.as_ref() != Some(file));
        let is_elsewhere = newer.provider.is_some() || settings.is_some();
        let name = newer.model.as_deref().unwrap_or_default();
        let kept = self.base_url.filter(|at| !is_elsewhere && !is_of_another(at, name));
        // The form of tools depends on the server.
        let is_kept = settings.is_none() && newer.base_url.is_none() && kept.is_some();
        Ok(Self {
            // What the server reported about its model depends on both.
            server: self.server.filter(|_| is_kept && newer.model.is_none()),
            base_url: newer.base_url.or(kept),
            model: newer.model.or(self.model.filter(|_| settings.is_none())),
            provider: newer.provider.or(self.provider.filter(|_| settings.is_none())),
            tool_calls: newer.tool_calls.or(self.tool_calls.filter(|_| is_kept)),
            settings: settings.or(self.settings),
            ..self
        })
    }

    /// Refuses a strategy that lacks something to work with.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let search = self.search_in()?;
        if self.strategy()? == DeepSearch::NAME && search.is_none() {
            return Err(CliError::Usage(NO_DOCUMENTS.to_owned()));
        }
        self.steps.react(None)?;
        // The tools of listed servers are known only once the servers are started.
        if self.mcp.is_none() {
            let names = self.tools.iter().map(String::as_str);
            check_tool_families(names.filter(|name| *name != ALL && *name != PLANNING))?;
        }
        if matches!(search, Some(SearchIn::Mcp { .. })) && self.mcp.is_none() {
            let what =
                "--search mcp:SERVER/TOOL needs the list of servers; name it with --mcp FILE";
            return Err(CliError::Usage(what.to_owned()));
        }
        self.check_summaries()?;
        match &self.documents {
            Some(file) if file.is_file() => Err(CliError::Usage(format!(
                "--documents {} is a file, not a folder; give the folder that contains it",
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The context policy that was asked for by name, or that prices choose.
    pub(crate) fn context(&self) -> Result<PolicyChoice, CliError> {
        let choice = self.context.as_deref().unwrap_or(PolicyChoice::AUTO);
        Ok(choice.parse()?)
    }

    /// The sources of the model's settings.
    pub(crate) fn model_sources(&self, settings: &Settings) -> ModelSources {
        let mut flags = ModelFlags::default();
        flags.name.clone_from(&self.model);
        flags.base_url.clone_from(&self.base_url);
        flags.provider.clone_from(&self.provider);
        flags.tool_calls.clone_from(&self.tool_calls);
        of_its_server(ModelSources::of_process(flags, None).with_settings(settings.model.clone()))
    }

    /// Names the model that was found, so that a resumed run uses the same one.
    pub(crate) fn with_model(self, name: &str, base_url: &str) -> Self {
        Self { model: Some(name.to_owned()), base_url: Some(base_url.to_owned()), ..self }
    }

    /// Sets the form of tool calls that was found to suit the model's server.
    pub(crate) fn with_tool_calls(self, tool_calls: ToolCalls) -> Self {
        let told = (tool_calls != ToolCalls::default()).then(|| tool_calls.name().to_owned());
        Self { tool_calls: told.or(self.tool_calls), ..self }
    }

    /// Adds what the model's server reported about itself.
    pub(crate) fn with_server(self, server: KnownServer) -> Self {
        Self { server: Some(server), ..self }
    }

    /// What the model's server reported about itself, if it was asked.
    pub(crate) fn server(&self) -> Option<KnownServer> {
        self.server
    }
}

/// The full path of an existing file or folder.
pub(super) fn full(path: Option<PathBuf>, what: &str) -> Result<Option<PathBuf>, CliError> {
    match path {
        None => Ok(None),
        Some(path) => path.canonicalize().map(Some).map_err(|source| CliError::Io {
            what: format!("the {what} {} cannot be used", path.display()),
            source,
        }),
    }
}

/// A host in the form that the tools take.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let host = text.trim().to_owned();
    match Permissions::default().with_host(&host).check() {
        Ok(()) => Ok(host),
        Err(_) => Err("expected only a host, such as docs.rs, *.example.org or *".to_owned()),
    }
}

#[cfg(test)]
mod tests;
