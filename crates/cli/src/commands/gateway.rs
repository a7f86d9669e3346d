//! `foldback gateway`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{Hosted, Providers, RecallArg, notes, runtime};
use crate::output::Output;
use crate::run::Signals;
use clap::Args;
use serde::Serialize;

/// Stand between any agent and its model provider, and record what is said
///
/// An agent is pointed at the gateway by its base URL, and nothing else of it changes: requests go to the provider
/// byte for byte, but for what a long conversation can do without for the moment, which the model loads from the store
/// when it needs it. The agent's own key is passed on and never kept. Each
/// conversation is recorded into a todo of its own, which `foldback todos`, `search`, `load` and `export` read.
///
/// It answers programs of this machine alone, until Ctrl-C; a second one does not wait for answers that are being
/// given. Another address needs a token, which clients send as `x-foldback-token`. A conversation that cannot be
/// recorded passes all the same; a note and the header `x-foldback-notice` say so.
///
/// JSON, once it listens: {"url", "anthropic", "openai", "recording"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback gateway
  ANTHROPIC_BASE_URL=http://127.0.0.1:8377 claude
  OPENAI_BASE_URL=http://127.0.0.1:8377/v1 aider")]
pub(crate) struct Gateway {
    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377")]
    listen: String,

    /// What clients must send as x-foldback-token [env: FOLDBACK_GATEWAY_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    #[command(flatten)]
    providers: Providers,
}

#[derive(Serialize)]
struct GatewayJson<'a> {
    url: &'a str,
    anthropic: String,
    openai: String,
    recording: bool,
}

impl Gateway {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if self.providers.recall == Some(RecallArg::Mcp) {
            let why = "--recall mcp is for `foldback wrap`, which gives a program the tools; expected stream or off";
            return Err(CliError::Usage(why.to_owned()));
        }
        let mut config = self.providers.config(globals, out, notes(out))?;
        let from_environment = || std::env::var("FOLDBACK_GATEWAY_TOKEN").ok();
        config.token = self.token.or_else(from_environment).filter(|token| !token.is_empty());
        let (anthropic, openai) = (config.anthropic.to_string(), config.openai.to_string());
        let recording = matches!(config.keeping, foldback_gateway::Keeping::On(_));
        runtime()?.block_on(async {
            let mut signals = Signals::open();
            let mut hosted = Hosted::begin(config, &self.listen).await?;
            let url = hosted.url();
            if out.is_json() {
                out.json(&GatewayJson { url: &url, anthropic, openai, recording })?;
            } else {
                out.line(format!("{url} passes on to {anthropic} and {openai}"))?;
                out.note("Ctrl-C ends it");
            }
            tokio::select! {
                ended = hosted.ended() => return ended,
                _ = signals.next() => {}
            }
            hosted.end(&mut signals).await
        })?;
        Ok(Outcome::Done)
    }
}
