//! `foldback gateway`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{Hosted, KnownTenants, LAST_ANSWERS, Providers, RecallArg, notes, runtime};
use crate::output::Output;
use crate::run::{Signals, Time};
use clap::Args;
use foldback_gateway::{GatewayConfig, Keeping};
use foldback_kv::{Engine, Truth};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Run a gateway between any agent and its model provider that records the conversations
///
/// The agent only needs the gateway's address as its base URL. Requests go to the provider byte for byte, except for
/// what a long conversation can do without for the moment; the model loads that from the store when it needs it. The
/// agent's own key is passed on and never stored. Each conversation is recorded into a todo of its own, which `foldback
/// todos`, `search`, `load` and `export` read.
///
/// It serves only programs on this machine, until Ctrl-C or SIGTERM; a second signal does not wait for answers in progress.
/// Any other address needs a token, which clients send as `x-foldback-token`, or `--tenants`. A conversation that cannot be recorded is
/// passed on all the same; a note and the header `x-foldback-notice` say so. If the database is unreachable when the gateway
/// starts, the gateway retries until it answers.
///
/// JSON, once it listens: {"listening", "url", "anthropic", "openai", "recording"}; `listening` and `url` are both its
/// address
#[derive(Args, Clone)]
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

    /// Answer the tenants of the store, each by its own token, and record what they say in their own stores. Only they
    /// and those with the gateway's token, if it has one, are answered. `foldback tenant` adds them
    #[arg(long, conflicts_with = "no_record")]
    tenants: bool,

    /// How long answers in progress may take when the gateway is asked to end: 90s, 10m, 2h [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = Time::read)]
    drain: Option<Time>,

    #[command(flatten)]
    providers: Providers,
}

#[derive(Serialize)]
struct GatewayJson<'a> {
    listening: &'a str,
    /// The same address, under the key's older name.
    url: &'a str,
    anthropic: String,
    openai: String,
    recording: bool,
}

/// How long to wait before an unreachable database is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Gateway {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if self.providers.recall == Some(RecallArg::Mcp) {
            let why = "--recall mcp is for `foldback wrap`, which gives a program the tools; expected stream or off";
            return Err(CliError::Usage(why.to_owned()));
        }
        if self.tenants && globals.tenant().is_some() {
            let why = "a gateway answers one tenant, or with --tenants all of them; choose one of the two";
            return Err(CliError::Usage(why.to_owned()));
        }
        let config = self.config(globals, out)?;
        let (anthropic, openai) = (config.anthropic.to_string(), config.openai.to_string());
        let recording = matches!(config.keeping, Keeping::On(_));
        let mut is_waiting = is_without_store(&config) && globals.engine() == Engine::Postgres;
        let drain = self.drain.map_or(LAST_ANSWERS, |time| Duration::from_secs(time.seconds()));
        let runtime = runtime()?;
        let served = runtime.block_on(async {
            let mut signals = Signals::open();
            let mut hosted = Hosted::begin(config, &self.listen).await?;
            let url = hosted.url();
            if out.is_json() {
                let (listening, url) = (&*url, &*url);
                out.json(&GatewayJson { listening, url, anthropic, openai, recording })?;
            } else {
                out.line(format!("{url} forwards to {anthropic} and {openai}"))?;
                out.note("press Ctrl-C to stop");
            }
            let mut found = std::pin::pin!(self.with_store(globals, out));
            loop {
                tokio::select! {
                    ended = hosted.ended() => return ended,
                    _ = signals.next() => break,
                    config = &mut found, if is_waiting => {
                        is_waiting = false;
                        hosted = hosted.succeeded_by(config)?;
                        out.note("the database can be reached now: conversations are recorded");
                    }
                }
            }
            hosted.end(&mut signals, drain).await
        });
        // What was said is recorded. An attempt to open the store may still wait for a database.
        runtime.shutdown_background();
        served.map(|()| Outcome::Done)
    }

    fn config(&self, globals: &Globals, out: &Output) -> Result<GatewayConfig, CliError> {
        let mut config = self.providers.config(globals, out, notes(out))?;
        let from_environment = || std::env::var("FOLDBACK_GATEWAY_TOKEN").ok();
        let token = self.token.clone().or_else(from_environment);
        config.token = token.filter(|token| !token.is_empty());
        if self.tenants {
            if let (Keeping::On(memory), Some(token)) = (&config.keeping, &config.token)
                && memory.tenants().list()?.iter().any(|known| known.has_token(token.as_bytes()))
            {
                let why = "the gateway's own token is that of a tenant; give it another, or none";
                return Err(CliError::Usage(why.to_owned()));
            }
            let truth = globals.truth()?;
            if matches!(truth, Truth::Server(_)) && globals.payloads().is_none() {
                out.note(
                    "a tenant's payloads over 1 MiB stay on this machine; --payloads keeps them where all machines \
                     reach them",
                );
            }
            let known = KnownTenants::new(&config.keeping, &self.providers, globals, out);
            config.tenants = Some(Arc::new(known));
        }
        Ok(config)
    }

    /// Tries to open the store until that succeeds, and says each new reason why it does not.
    async fn with_store(&self, globals: &Globals, out: &Output) -> GatewayConfig {
        let mut told = String::new();
        loop {
            tokio::time::sleep(AGAIN).await;
            let (own, globals, notes) = (self.clone(), globals.clone(), out.clone());
            let tried = tokio::task::spawn_blocking(move || own.config(&globals, &notes)).await;
            let why = match tried {
                Ok(Ok(GatewayConfig { keeping: Keeping::Impossible(why), .. })) => why,
                Ok(Ok(config)) => return config,
                Ok(Err(error)) => error.sentence(),
                Err(error) => error.to_string(),
            };
            if why != told {
                out.note(format!("the store cannot be opened yet: {why}"));
                told = why;
            }
        }
    }
}

fn is_without_store(config: &GatewayConfig) -> bool {
    matches!(config.keeping, Keeping::Impossible(_))
}
