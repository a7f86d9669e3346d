//! `foldback wrap`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{
    Client, Hosted, LAST_ANSWERS, Pointer, Providers, Recall, RecallArg, gateway_address, runtime,
};
use crate::output::{Output, text};
use crate::run::{Heard, Signals};
use crate::store;
use clap::Args;
use foldback_core::{TodoId, nodes_by_affinity};
use foldback_gateway::{GatewayConfig, Keeping, Log, Running, TODO, TOKEN};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Run an agent and record its conversations
///
/// Starts a gateway for this one program, points the program at it, and exits with the program's exit code: 127 if
/// there is no such program, 126 if it cannot be executed. Nothing is left behind: the address is set for the program
/// alone. Claude Code, Codex, OpenCode and aider are known by name; any other program finds the address in
/// ANTHROPIC_BASE_URL, OPENAI_BASE_URL and OPENAI_API_BASE. If these are already set, the gateway passes requests on
/// to their addresses.
///
/// With --gateway it uses a running gateway, which has its own store, providers and way of recalling; a note says if
/// that store is not the one that other commands use. Of several gateways over one store it uses the one that the
/// conversation belongs to, by its todo or by the folder that the program is started in, or the next one that is ready.
///
/// foldback's options come before the program's name; everything after it belongs to the program.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback wrap claude
  foldback wrap codex exec \"what does this repository do?\"
  foldback wrap --todo release-7 claude
  foldback wrap --gateway http://127.0.0.1:8377 claude
  foldback wrap --gateway http://node-1:8377,http://node-2:8377 claude
  foldback wrap --openai-url http://127.0.0.1:8080/v1 aider --model openai/qwen3
  foldback wrap python my_agent.py")]
pub(crate) struct Wrap {
    #[command(flatten)]
    providers: Providers,

    /// Use the gateway that runs at this URL, or one of several with the same store, separated by commas [token:
    /// FOLDBACK_GATEWAY_TOKEN]
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = gateway_address, conflicts_with_all = [
        "anthropic_url", "openai_url", "no_record", "record", "recall", "fail_closed",
    ])]
    gateway: Vec<String>,

    /// The todo that the conversation is recorded in, instead of one that is named after the program; sub-agents have
    /// todos of their own
    #[arg(long, value_name = "ID")]
    todo: Option<TodoId>,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

impl Wrap {
    pub(crate) fn run(mut self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if !self.gateway.is_empty() {
            return self.beside(globals, out);
        }
        let lines = Arc::new(Mutex::new(Vec::<(String, u64)>::new()));
        let taken = Arc::clone(&lines);
        // The terminal belongs to the program until it ends. A program that retries meets the same problem again.
        let log: Log = Arc::new(move |line| {
            let mut lines = taken.lock();
            match lines.iter_mut().find(|(known, _)| known == line) {
                Some((_, times)) => *times += 1,
                None => lines.push((line.to_owned(), 1)),
            }
        });
        let name = PathBuf::from(self.program.first().cloned().unwrap_or_default());
        let client = Client::of(&name);
        self.take_addresses(client);
        let by_client = if client.has_tools() { RecallArg::Mcp } else { RecallArg::Stream };
        let recall = *self.providers.recall.get_or_insert(by_client);
        let mut config = self.providers.config(globals, out, log)?;
        config.todo = self.todo.take();
        config.folder = std::env::current_dir().ok().map(|dir| dir.display().to_string());
        let ended = runtime()?.block_on(self.wrapped(&name, client, recall, config, out));
        for (line, times) in lines.lock().iter() {
            match times {
                1 => out.note(line),
                _ => out.note(format_args!("{line} ({times} times)")),
            }
        }
        ended
    }

    /// Uses the addresses that the user has set for the program, unless flags name others. Codex does not read these
    /// variables; they are meant for other programs.
    fn take_addresses(&mut self, client: Client) {
        if client == Client::Codex {
            return;
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|url| !url.is_empty());
        let anthropic = &mut self.providers.anthropic_url;
        *anthropic = anthropic.take().or_else(|| variable("ANTHROPIC_BASE_URL"));
        let openai = &mut self.providers.openai_url;
        *openai = openai
            .take()
            .or_else(|| variable("OPENAI_BASE_URL"))
            .or_else(|| variable("OPENAI_API_BASE"));
    }

    async fn wrapped(
        self,
        name: &Path,
        client: Client,
        recall: RecallArg,
        mut config: GatewayConfig,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        let mut signals = Signals::open();
        let memory = match &config.keeping {
            Keeping::On(memory) if recall == RecallArg::Mcp && client.has_tools() => {
                Some(memory.clone())
            }
            _ => None,
        };
        let mark = memory.as_ref().map(Keeping::load_mark).unwrap_or_default();
        config.load_mark.clone_from(&mark);
        let hosted = Hosted::begin(config, "127.0.0.1:0").await?;
        let ledger = hosted.recorder().ledger().clone();
        let recall = match memory {
            Some(memory) => {
                let todos = hosted.recorder().session_todos();
                let begun = Recall::begin(memory, todos, &mark).await;
                // Without the tools nothing is left out, and the program runs all the same.
                begun.map_err(|error| out.note(error)).ok()
            }
            None => None,
        };
        let url = hosted.url();
        let address = recall.as_ref().map(|recall| recall.url.as_str());
        let pointer = Pointer { url: &url, recall: address, headers: &[] };
        let status = self.ended(name, client, &pointer, &mut signals).await;
        if let Some(recall) = recall {
            recall.end().await;
        }
        // The Ctrl-C that ended the program does not end what is recorded of it.
        let mut signals = Signals::open();
        // The program's own result takes precedence over the gateway's.
        if let Err(error) = hosted.end(&mut signals, LAST_ANSWERS).await {
            out.note(error);
        }
        let sums = ledger.sums();
        if sums.cost() < sums.whole.cost {
            let saved = text::saved(sums.cost(), sums.whole.cost);
            let (sent, whole) = (sums.sent.tokens.total(), sums.whole.tokens.total());
            out.note(format_args!(
                "{}, {} tokens sent instead of {}: {saved} saved",
                text::count(sums.requests, "request"),
                text::short(sent),
                text::short(whole),
            ));
        }
        Ok(Outcome::Program(code_of(status?)))
    }

    /// Runs the program with a gateway that is already running.
    fn beside(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let token = std::env::var("FOLDBACK_GATEWAY_TOKEN").ok().filter(|token| !token.is_empty());
        let name = PathBuf::from(self.program.first().cloned().unwrap_or_default());
        runtime()?.block_on(async {
            let mut signals = Signals::open();
            let found = Running::at(&self.node(out).await, token.as_deref()).await;
            let gateway = found.map_err(CliError::NotFound)?;
            tell_of_store(&gateway, globals, out)?;
            let todo = self.todo.as_ref().map(|todo| (TODO, todo.to_string()));
            let headers: Vec<_> =
                todo.into_iter().chain(token.map(|token| (TOKEN, token))).collect();
            let pointer = Pointer { url: &gateway.url, recall: None, headers: &headers };
            let status = self.ended(&name, Client::of(&name), &pointer, &mut signals).await?;
            Ok(Outcome::Program(code_of(status)))
        })
    }

    /// Returns the gateway that the conversation belongs to: the first by affinity that is ready, or the first if none is.
    async fn node(&self, out: &Output) -> String {
        // One gateway has one place in the order, however its address ends.
        let nodes: Vec<&str> = self.gateway.iter().map(|url| Running::bare(url)).collect();
        let folder = || std::env::current_dir().unwrap_or_default().display().to_string();
        let key = self.todo.as_ref().map_or_else(folder, TodoId::to_string);
        let order = nodes_by_affinity(&nodes, &key);
        let first = order.first().copied().unwrap_or_default();
        if let [_, _, ..] = *order {
            for node in &order {
                if Running::is_ready(node).await {
                    return (*node).to_owned();
                }
                out.note(format_args!("the gateway at {node} is not ready"));
            }
        }
        first.to_owned()
    }

    /// Starts the program, and waits for it to end.
    async fn ended(
        &self,
        name: &Path,
        client: Client,
        pointer: &Pointer<'_>,
        signals: &mut Signals,
    ) -> Result<ExitStatus, CliError> {
        let variable = |name: &str| std::env::var(name).ok();
        let launch = client.launch(pointer, variable).map_err(CliError::Usage)?;
        let started = Command::new(name)
            .args(launch.arguments)
            .args(self.program.iter().skip(1))
            .envs(launch.environment)
            .kill_on_drop(true)
            .spawn();
        let failed = |what: &str, source| CliError::Io {
            what: format!("{what} {}", name.display()),
            source,
        };
        let mut child = started.map_err(|source| {
            not_started(name, &source).unwrap_or_else(|| failed("starting", source))
        })?;
        waited(&mut child, signals).await.map_err(|source| failed("waiting for", source))
    }
}

/// The error of a program that is not there or cannot be executed, with the exit code of shells; `None` for any other.
fn not_started(name: &Path, source: &std::io::Error) -> Option<CliError> {
    let shown = name.display();
    let has_folder = name.components().nth(1).is_some();
    let is_no_program = || Errno::from_io_error(source) == Some(Errno::NOEXEC);
    let (what, code) = match source.kind() {
        ErrorKind::NotFound if !has_folder => (format!("{shown} is not in PATH"), 127),
        ErrorKind::NotFound if !name.exists() => (format!("there is no program {shown}"), 127),
        // Its interpreter is missing.
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory => {
            (format!("{shown} cannot be executed: {source}"), 126)
        }
        _ if is_no_program() => (format!("{shown} cannot be executed: {source}"), 126),
        _ => return None,
    };
    Some(CliError::NotStarted { what, code })
}

/// Notes that what passes through a gateway is not found in the store that this command would use.
fn tell_of_store(gateway: &Running, globals: &Globals, out: &Output) -> Result<(), CliError> {
    let Some(theirs) = &gateway.store else {
        out.note(format_args!("the gateway at {} records nothing", gateway.url));
        return Ok(());
    };
    let own = match store::open_for_reading(globals) {
        Ok(memory) => Some(Keeping::store_name(&memory)),
        Err(CliError::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    if own.as_ref() != Some(theirs) {
        let dir = store::folder(globals)?;
        out.note(format_args!(
            "the gateway at {} records into another store than {}; name that one with --store to read it",
            gateway.url,
            dir.display()
        ));
    }
    Ok(())
}

/// Waits for the program. In the foreground of a terminal, Ctrl-C reaches it directly; any other request to end is
/// passed on. A lost terminal ends the program, and what it said is recorded first.
async fn waited(child: &mut Child, signals: &mut Signals) -> std::io::Result<ExitStatus> {
    let mut hangup = signal(SignalKind::hangup())?;
    loop {
        let passed_on = tokio::select! {
            status = child.wait() => return status,
            _ = hangup.recv() => Some(Signal::HUP),
            heard = signals.next() => match heard {
                Heard::Terminate => Some(Signal::TERM),
                Heard::Interrupt => (!is_in_foreground()).then_some(Signal::INT),
            },
        };
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let (Some(signal), Some(id)) = (passed_on, id) {
            // A program that has ended needs no signal.
            let _ = kill_process(id, signal);
        }
    }
}

/// Whether this process is in the foreground of its terminal: there, Ctrl-C interrupts every process of the group, wherever
/// their input and output go.
fn is_in_foreground() -> bool {
    // Without a terminal it cannot be opened.
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty).is_ok_and(|group| group == getpgrp()))
}

/// The exit code; for a program that a signal ended, the one that shells report.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
