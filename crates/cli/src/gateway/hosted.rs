//! A gateway in this process.

use crate::cli::Globals;
use crate::error::CliError;
use crate::output::Output;
use crate::run::Signals;
use crate::store;
use clap::{Args, ValueEnum};
use foldback_gateway::{
    Finisher, Gateway, GatewayConfig, GatewayError, Keeping, Ledger, Log, RecallBy, Recorder,
    Upstream,
};
use foldback_kv::Engine;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The providers behind a gateway, and what it does besides passing requests on.
#[derive(Args, Clone)]
#[allow(rustdoc::bare_urls, reason = "help texts for a terminal show addresses as they are")]
pub(crate) struct Providers {
    /// The server for requests of Anthropic's API [default: https://api.anthropic.com]
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic_url: Option<String>,

    /// The server for requests of OpenAI's APIs, or any server that speaks them [default: https://api.openai.com/v1]
    #[arg(long, value_name = "URL")]
    pub(crate) openai_url: Option<String>,

    /// Record nothing in the store
    #[arg(long)]
    no_record: bool,

    /// Keep each exchange of a conversation as a file in this folder: request and answer as text, without keys
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// How the model reaches what is left out of its requests: "stream" through tools that the gateway answers within a
    /// turn, unseen by the client; "always" does the same, also in conversations recorded earlier although nothing is
    /// left out; "mcp", only with `wrap`, through tools that Claude Code or OpenCode is given; "off" leaves nothing out
    /// [default: stream; with `wrap`, mcp for those two]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    pub(crate) recall: Option<RecallArg>,

    /// Have the provider count every Nth request of Anthropic's API that has something left out as a whole, with the
    /// client's key, and keep the difference in the ledger
    #[arg(long, value_name = "N", conflicts_with = "no_record")]
    check_every: Option<NonZeroU64>,

    /// Record each request before it is sent, and refuse one that cannot be recorded instead of passing it on
    #[arg(long, conflicts_with = "no_record")]
    fail_closed: bool,
}

/// How a model reaches what its requests do not show.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecallArg {
    Off,
    Mcp,
    Stream,
    Always,
}

impl Providers {
    /// The configuration of a gateway. A store that cannot be opened stops nobody, unless `--fail-closed` is set.
    pub(crate) fn config(
        &self,
        globals: &Globals,
        out: &Output,
        log: Log,
    ) -> Result<GatewayConfig, CliError> {
        let mut config = GatewayConfig::new()?;
        if let Some(url) = &self.anthropic_url {
            config.anthropic = Upstream::new(url)?;
        }
        if let Some(url) = &self.openai_url {
            config.openai = Upstream::new(url)?;
        }
        config.keeping = match self.no_record {
            true => Keeping::Off,
            false => match store::open_for_gateway(globals, out) {
                Ok(memory) => Keeping::On(memory),
                Err(error) if self.fail_closed => return Err(error),
                Err(error) => Keeping::Impossible(error.sentence()),
            },
        };
        // The memory engine has no folder.
        config.ledger = match &config.keeping {
            Keeping::On(_) if globals.engine() != Engine::Memory => {
                Some(store::folder(globals)?.join(Ledger::FILE))
            }
            _ => None,
        };
        if self.record.is_some() && globals.settings.memory.redact {
            return Err(CliError::Usage(
                "--record keeps requests as they are, with the secrets in them, but memory.redact keeps those out of \
                 all files; choose one of the two"
                    .to_owned(),
            ));
        }
        config.traffic.clone_from(&self.record);
        config.recall = match self.recall.unwrap_or(RecallArg::Stream) {
            RecallArg::Off => RecallBy::Off,
            RecallArg::Mcp => RecallBy::Mcp,
            RecallArg::Stream => RecallBy::Stream,
            RecallArg::Always => RecallBy::Always,
        };
        config.check_every = self.check_every.map_or(0, NonZeroU64::get);
        config.fail_closed = self.fail_closed;
        config.log = log;
        Ok(config)
    }
}

/// How long answers in progress may take when the gateway ends, unless another time is set.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// How long recording may take once a signal has ended the wait.
const LAST_RECORDS: Duration = Duration::from_secs(1);

/// The runtime of a gateway.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| CliError::Io { what: "starting threads".to_owned(), source })
}

/// A running gateway.
pub(crate) struct Hosted {
    pub(crate) address: SocketAddr,
    recorder: Recorder,
    finisher: Finisher,
    log: Log,
    /// The same socket as the gateway's, for one that takes its place.
    listener: std::net::TcpListener,
    stop: oneshot::Sender<()>,
    served: Served,
    /// The gateway before this one, which finishes its answers.
    before: Option<(Served, Finisher)>,
}

/// A gateway that serves until it is stopped.
type Served = JoinHandle<Result<(), GatewayError>>;

impl Hosted {
    /// Starts to serve at an address.
    pub(crate) async fn begin(config: GatewayConfig, address: &str) -> Result<Self, CliError> {
        let listening = |source| CliError::Io { what: format!("listening on {address}"), source };
        let listener = TcpListener::bind(address).await.and_then(TcpListener::into_std);
        let listener = listener.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        Self::on(config, listener, address)
    }

    fn on(
        config: GatewayConfig,
        listener: std::net::TcpListener,
        address: SocketAddr,
    ) -> Result<Self, CliError> {
        let listening = |source| CliError::Io { what: format!("listening on {address}"), source };
        // It is refused before anything says that it listens.
        config.check_address(address)?;
        let accepting = listener.try_clone().and_then(TcpListener::from_std).map_err(listening)?;
        let (stop, stopped) = oneshot::channel();
        let log = Arc::clone(&config.log);
        let gateway = Gateway::new(config)?;
        let (recorder, finisher) = (gateway.recorder().clone(), gateway.finisher());
        let stopped = async {
            // A dropped sender means the same.
            let _ = stopped.await;
        };
        let served = tokio::spawn(gateway.serve(accepting, stopped));
        Ok(Self { address, recorder, finisher, log, listener, stop, served, before: None })
    }

    /// Serves with another configuration from now on, at the same address. Answers in progress are finished.
    pub(crate) fn succeeded_by(self, config: GatewayConfig) -> Result<Self, CliError> {
        let next = Self::on(config, self.listener, self.address)?;
        drop(self.stop);
        Ok(Self { before: Some((self.served, self.finisher)), ..next })
    }

    /// What records its conversations.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Its address, as clients receive it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it ends by itself, which it does only if it cannot continue.
    pub(crate) async fn ended(&mut self) -> Result<(), CliError> {
        joined((&mut self.served).await)
    }

    /// Finishes answers in progress, as long as that takes no longer than `patience`; records what was said, and ends.
    /// A signal ends both, but for [`LAST_RECORDS`].
    pub(crate) async fn end(
        self,
        signals: &mut Signals,
        patience: Duration,
    ) -> Result<(), CliError> {
        let Self { finisher, log, listener, stop, mut served, before, .. } = self;
        let (before, finisher_before) = before.unzip();
        drop(stop);
        // No connection is accepted from now on.
        drop(listener);
        let finished = async {
            if let Some(before) = before {
                let _ = before.await;
            }
            joined((&mut served).await)
        };
        let mut is_urgent = false;
        let ended = tokio::select! {
            ended = finished => ended,
            () = tokio::time::sleep(patience) => Ok(()),
            _ = signals.next() => {
                is_urgent = true;
                Ok(())
            }
        };
        let finishers = finisher_before.iter().chain([&finisher]);
        match finishers.map(Finisher::answers).sum::<usize>() {
            0 => {}
            1 => log("1 answer in progress was cut off"),
            count => log(&format!("{count} answers in progress were cut off")),
        }
        served.abort();
        let hurried = async {
            if !is_urgent {
                signals.next().await;
            }
            tokio::time::sleep(LAST_RECORDS).await;
        };
        tokio::select! {
            () = finisher.finish() => {}
            // What is not recorded comes with the next request of its conversation.
            () = hurried => {}
        }
        ended
    }
}

fn joined(
    served: Result<Result<(), GatewayError>, tokio::task::JoinError>,
) -> Result<(), CliError> {
    match served {
        Ok(served) => Ok(served?),
        Err(error) => Err(CliError::Usage(format!("the gateway failed: {error}"))),
    }
}

/// Shows the lines of a gateway's log as notes.
pub(crate) fn notes(out: &Output) -> Log {
    let out = out.clone();
    Arc::new(move |line| out.note(line))
}
