//! `foldback gateway`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{Hosted, Providers, RecallArg, notes, runtime};
use crate::output::Output;
use crate::run::Signals;
use clap::Args;
use serde::Serialize;

/// Run a gateway between any agent and its model provider that records the conversations
///
/// The agent only needs the gateway's address as its base URL. Requests go to the provider byte for byte, except for
/// what a long conversation can do without for the moment; the model loads that from the store when it needs it. The
/// agent's own key is passed on and never stored. Each conversation is recorded into a todo of its own, which `foldback
/// todos`, `search`, `load` and `export` read.
///
/// It serves only programs on this machine, until Ctrl-C; a second Ctrl-C does not wait for answers in progress. Any
/// other address needs a token, which clients send as `x-foldback-token`. A conversation that cannot be recorded is
/// passed on all the same; a note and the header `x-foldback-notice` say so.
///
/// JSON, once it listens: {"url", "anthropic", "openai", "recording"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback gateway
  ANTHROPIC_BASE_URL=http://127.0.0.1:8377 claude
  OPENAI_BASE_URL=http://127.0.0.1:8377/v1 aider")]
pub(crate) struct Gateway {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377")]
    listen: String,

    /// The token that clients must send as x-foldback-token [env: FOLDBACK_GATEWAY_TOKEN]
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
                out.line(format!("{url} forwards to {anthropic} and {openai}"))?;
                out.note("press Ctrl-C to stop");
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
