//! A gateway in this process.

use crate::cli::Globals;
use crate::error::CliError;
use crate::output::Output;
use crate::store;
use clap::Args;
use foldback_gateway::{Gateway, GatewayConfig, GatewayError, Keeping, Log, Upstream};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Which providers stand behind a gateway, and what it does beside passing requests on.
#[derive(Args, Clone)]
pub(crate) struct Providers {
    /// Where requests of Anthropic's API go [default: https://api.anthropic.com]
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic_url: Option<String>,

    /// Where requests of OpenAI's APIs go, or of a server that speaks them [default: https://api.openai.com/v1]
    #[arg(long, value_name = "URL")]
    pub(crate) openai_url: Option<String>,

    /// Record nothing
    #[arg(long)]
    no_record: bool,

    /// Refuse a request whose conversation cannot be recorded, rather than pass it on
    #[arg(long, conflicts_with = "no_record")]
    fail_closed: bool,
}

impl Providers {
    /// What a gateway is set up with. A store that cannot be opened keeps nobody from working, but where
    /// nothing may pass that is not recorded.
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
            false => match store::open_for_writing(globals, out) {
                Ok(memory) => Keeping::On(memory),
                Err(error) if self.fail_closed => return Err(error),
                Err(error) => Keeping::Impossible(error.to_string()),
            },
        };
        config.fail_closed = self.fail_closed;
        config.log = log;
        Ok(config)
    }
}

/// A gateway that is being served.
pub(crate) struct Hosted {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), GatewayError>>,
}

impl Hosted {
    /// Begins to serve on an address.
    pub(crate) async fn begin(config: GatewayConfig, address: &str) -> Result<Self, CliError> {
        let listening = |source| CliError::Io { what: format!("listening on {address}"), source };
        let listener = TcpListener::bind(address).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let (stop, stopped) = oneshot::channel();
        let gateway = Gateway::new(config)?;
        let stopped = async {
            // A sender that is gone says the same.
            let _ = stopped.await;
        };
        let served = tokio::spawn(gateway.serve(listener, stopped));
        Ok(Self { address, stop, served })
    }

    /// Its address, as clients are given it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it ends by itself, which it does only where it cannot go on.
    pub(crate) async fn ended(&mut self) -> Result<(), CliError> {
        joined((&mut self.served).await)
    }

    /// Answers those that are being answered, records what was said, and ends.
    pub(crate) async fn end(self) -> Result<(), CliError> {
        drop(self.stop);
        joined(self.served.await)
    }
}

fn joined(
    served: Result<Result<(), GatewayError>, tokio::task::JoinError>,
) -> Result<(), CliError> {
    match served {
        Ok(served) => Ok(served?),
        Err(error) => {
            Err(CliError::Usage(format!("the gateway ended by a fault of its own: {error}")))
        }
    }
}

/// Takes the lines of a gateway's log as notes.
pub(crate) fn notes(out: &Output) -> Log {
    let out = out.clone();
    Arc::new(move |line| out.note(line))
}
