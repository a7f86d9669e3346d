//! What the runs of one command share: a chat has a run for each of its turns.

use super::interrupt::Leaving;
use super::person::AtTerminal;
use super::screen::Screen;
use super::settings::RunSettings;
use super::setup;
use crate::cli::Globals;
use crate::error::CliError;
use crate::output::Output;
use foldback_mcp::McpServers;
use foldback_tool::Tool;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

/// What the runs of one command share: threads, MCP servers, and the person at the keyboard.
pub(crate) struct Desk<'a> {
    pub(crate) globals: &'a Globals,
    pub(crate) out: &'a Output,
    /// What an interrupt ends.
    pub(crate) ends: Ends,
    /// Whether the command ends after its current run.
    pub(crate) leaving: Leaving,
    /// Whether a run is in progress, which then handles signals itself.
    pub(crate) is_at_work: Arc<AtomicBool>,
    /// Whether the answer of the last run is on the terminal already, as the model wrote it.
    pub(crate) is_said: AtomicBool,
    runtime: Option<Runtime>,
    /// The started servers of a list.
    servers: Mutex<Option<(Option<PathBuf>, McpServers)>>,
    person: OnceLock<Option<AtTerminal>>,
}

/// What an interrupt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The run, and the command with it.
    Command,
    /// The run alone: a turn of a chat.
    Turn,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(globals: &'a Globals, out: &'a Output, ends: Ends) -> Result<Self, CliError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|source| CliError::Io {
            what: "the run's threads could not be started".to_owned(),
            source,
        })?;
        Ok(Self {
            globals,
            out,
            ends,
            leaving: Leaving::default(),
            is_at_work: Arc::default(),
            is_said: AtomicBool::default(),
            runtime: Some(runtime),
            servers: Mutex::default(),
            person: OnceLock::new(),
        })
    }

    /// Blocks on a future.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, CliError> {
        let gone = || CliError::Usage("the run's threads have ended".to_owned());
        Ok(self.runtime.as_ref().ok_or_else(gone)?.block_on(work))
    }

    /// Runs a task in the background for as long as the command runs.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// The tools of the servers that the settings name; those of the run before if it had the same.
    pub(crate) async fn tools(
        &self,
        settings: &RunSettings,
        screen: &Screen,
    ) -> Result<Vec<Arc<dyn Tool>>, CliError> {
        let known = |servers: &Option<(Option<PathBuf>, McpServers)>| match servers {
            Some((list, servers)) if *list == settings.mcp => Some(servers.tools()),
            _ => None,
        };
        if let Some(tools) = known(&self.servers.lock()) {
            return Ok(tools);
        }
        let servers = setup::servers(settings, screen).await?;
        let tools = servers.tools();
        let others = self.servers.lock().replace((settings.mcp.clone(), servers));
        if let Some((_, others)) = others {
            others.close().await;
        }
        Ok(tools)
    }

    /// The person at the terminal, with output on this screen.
    pub(crate) fn person(&self, screen: &Arc<Screen>) -> Option<AtTerminal> {
        let person = self.person.get_or_init(|| AtTerminal::find(screen));
        person.as_ref().map(|person| person.at(screen))
    }

    /// A line that the person types, if the keyboard is still being read for a question that nobody waits for any more;
    /// `None` if it is not.
    pub(crate) fn pending_line(&self, prompt: &str) -> Result<Option<Option<String>>, CliError> {
        let Some(Some(person)) = self.person.get() else { return Ok(None) };
        self.block_on(person.pending_line(prompt))
    }

    /// Ends what was started.
    pub(crate) fn close(&self) -> Result<(), CliError> {
        let servers = self.servers.lock().take();
        match servers {
            Some((_, servers)) => self.block_on(servers.close()),
            None => Ok(()),
        }
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        // A person may still be typing an answer that nobody waits for any more.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
