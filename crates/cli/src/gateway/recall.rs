//! The memory's tools for a wrapped client, as an MCP server in this process.

use crate::error::CliError;
use foldback::Memory;
use foldback_gateway::SessionTodos;
use foldback_mcp_server::{HttpServer, MemoryServer, Scope};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The name by which a client knows the server.
pub(crate) const SERVER: &str = "foldback";

/// Returns a word that nobody can guess.
fn random_word() -> Result<String, CliError> {
    let mut word = [0; 16];
    getrandom::fill(&mut word).map_err(|error| CliError::Io {
        what: "asking for a random word".to_owned(),
        source: error.into(),
    })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(word)))
}

/// A server with the memory's tools for one program.
pub(crate) struct Recall {
    /// The address for the program: nobody else knows its last word.
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Recall {
    /// Starts to serve the contents of a session's todos.
    pub(crate) async fn begin(
        memory: Memory,
        todos: Arc<SessionTodos>,
        mark: &str,
    ) -> Result<Self, CliError> {
        let word = random_word()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = HttpServer::bind(address).await;
        let server = server.map_err(|error| CliError::Usage(error.to_string()))?.with_word(&word);
        let url = server.url();
        let hearing = Arc::clone(&todos);
        let scope = Scope::session(Arc::new(move |tool, arguments| todos.of_call(tool, arguments)))
            .with_mark(mark)
            .heard_by(Arc::new(move |answer| hearing.answered(answer)));
        let memory = MemoryServer::new(move || Ok(memory.clone()), scope);
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(async {
            // A server that ends by itself leaves the program without the tools, and their answers say so.
            drop(server.serve(memory, async { drop(stopped.await) }).await);
        });
        Ok(Self { url, stop, served })
    }

    /// Stops the server.
    pub(crate) async fn end(self) {
        drop(self.stop);
        drop(self.served.await);
    }
}
