//! `foldback wrap`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{Client, Hosted, Providers};
use crate::output::Output;
use crate::run::{Heard, Signals};
use clap::Args;
use foldback_gateway::Log;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use tokio::process::{Child, Command};

/// Run an agent whose conversations are recorded
///
/// Starts a gateway for this one program, points the program at it, and ends with the program's exit code. Nothing
/// is left behind: the address is set for the program alone. Claude Code, Codex, OpenCode and aider are known by
/// name; any other program finds the address in ANTHROPIC_BASE_URL, OPENAI_BASE_URL and OPENAI_API_BASE. Where these
/// are set already, that is where the gateway passes requests on to.
///
/// Options of foldback stand before the program's name; everything behind it is the program's.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback wrap claude
  foldback wrap codex exec \"what does this repository do?\"
  foldback wrap --openai-url http://127.0.0.1:8080/v1 aider --model openai/qwen3
  foldback wrap python my_agent.py")]
pub(crate) struct Wrap {
    #[command(flatten)]
    providers: Providers,

    /// The program, and what it is started with
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
        let lines = Arc::new(Mutex::new(Vec::<String>::new()));
        let taken = Arc::clone(&lines);
        // The terminal is the program's until it ends.
        let log: Log = Arc::new(move |line| taken.lock().push(line.to_owned()));
        self.take_addresses();
        let mut config = self.providers.config(globals, out, log)?;
        config.folder = std::env::current_dir().ok().map(|dir| dir.display().to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime
            .map_err(|source| CliError::Io { what: "starting a gateway".to_owned(), source })?;
        let ended = runtime.block_on(self.wrapped(config));
        for line in lines.lock().iter() {
            out.note(line);
        }
        ended
    }

    /// Takes the addresses that the user has set for the program, unless flags name others.
    fn take_addresses(&mut self) {
        let variable = |name: &str| std::env::var(name).ok().filter(|url| !url.is_empty());
        let anthropic = &mut self.providers.anthropic_url;
        *anthropic = anthropic.take().or_else(|| variable("ANTHROPIC_BASE_URL"));
        let openai = &mut self.providers.openai_url;
        *openai = openai
            .take()
            .or_else(|| variable("OPENAI_BASE_URL"))
            .or_else(|| variable("OPENAI_API_BASE"));
    }

    async fn wrapped(self, config: foldback_gateway::GatewayConfig) -> Result<Outcome, CliError> {
        let mut program = self.program.into_iter();
        let name = PathBuf::from(program.next().unwrap_or_default());
        let mut signals = Signals::open();
        let hosted = Hosted::begin(config, "127.0.0.1:0").await?;
        let variable = |name: &str| std::env::var(name).ok();
        let launch = Client::of(&name).launch(&hosted.url(), variable).map_err(CliError::Usage)?;
        let started = Command::new(&name)
            .args(launch.arguments)
            .args(program)
            .envs(launch.environment)
            .kill_on_drop(true)
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(source) => {
                hosted.end().await?;
                return Err(CliError::Io { what: format!("starting {}", name.display()), source });
            }
        };
        let status = waited(&mut child, &mut signals).await;
        hosted.end().await?;
        let status = status.map_err(|source| CliError::Io {
            what: format!("waiting for {}", name.display()),
            source,
        })?;
        Ok(Outcome::Program(code_of(status)))
    }
}

/// Waits for the program. Ctrl-C reaches it by itself, for it is in the foreground too; a request to end is
/// passed on.
async fn waited(child: &mut Child, signals: &mut Signals) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            heard = signals.next() => {
                let id = child.id().and_then(|id| i32::try_from(id).ok());
                if let (true, Some(id)) = (heard == Heard::Terminate, id.and_then(rustix::process::Pid::from_raw)) {
                    // A program that is gone needs no signal.
                    let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
                }
            }
        }
    }
}

/// The exit code; of a program that a signal ended, as shells tell it.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
