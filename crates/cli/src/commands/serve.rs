//! `foldback serve`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::runtime;
use crate::output::Output;
use crate::report::Replaying;
use crate::run::{Runs, Signals};
use crate::store;
use clap::Args;
use foldback_inspector::{Inspector, InspectorError};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Show the store in a browser: the sessions, what they saved, and what the model saw
///
/// The first page lists the sessions, the newest first, with what the gateway saved, and searches all of them. The page
/// of a session has its blocks and why each closed, the transcript beside what a model sees at any call, its branches,
/// what each request cost, the plans of the agent's runs, its searches and its payloads.
///
/// It only reads, and serves only browsers and programs on this machine that know the token, until Ctrl-C. A browser
/// shows the token once, with the printed address, and keeps a cookie until the command ends. The same data are a JSON
/// API below /api/v1, for which programs send the token as `Authorization: Bearer TOKEN`; /api/v1/openapi.json
/// describes it.
///
/// JSON, once it listens: {"listening", "token"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback serve
  foldback serve --listen 127.0.0.1:0          any free port
  foldback --store shared/store serve")]
pub(crate) struct Serve {
    /// The address on this machine to listen on; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8378")]
    listen: SocketAddr,
}

#[derive(Serialize)]
struct ServeJson<'a> {
    listening: String,
    token: &'a str,
}

/// How long a request in progress may take when the command ends.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

impl Serve {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let globals = &Globals { door: Some("serve"), ..globals.clone() };
        let memory = store::open_for_search(globals)?;
        let drawing = Replaying::new(store::temporary_options(globals)?, globals.settings.clone());
        let runs = Runs::of(globals)?;
        let folder = store::folder(globals)?;
        let runtime = runtime()?;
        let served: Result<(), CliError> = runtime.block_on(async {
            let mut signals = Signals::open();
            let (drawing, runs) = (Arc::new(drawing), Arc::new(runs));
            let inspector = Inspector::bind(self.listen, memory, &folder, drawing, runs);
            let inspector = inspector.await.map_err(failed)?;
            if out.is_json() {
                let listening = inspector.address();
                out.json(&ServeJson { listening, token: inspector.token() })?;
            } else {
                out.line(inspector.address_with_token())?;
                out.note("open it in a browser; press Ctrl-C to stop");
            }
            let end = async {
                signals.next().await;
            };
            inspector.serve(end).await.map_err(failed)
        });
        runtime.shutdown_timeout(LAST_REQUESTS);
        served?;
        Ok(Outcome::Done)
    }
}

fn failed(error: InspectorError) -> CliError {
    match error {
        InspectorError::Bind { address, source } => {
            CliError::Io { what: format!("listening on {address}"), source }
        }
        InspectorError::Ended(source) => {
            CliError::Io { what: "the inspector ended".to_owned(), source }
        }
        error => CliError::Usage(error.to_string()),
    }
}
