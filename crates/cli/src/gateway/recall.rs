//! The memory's tools for a client that is wrapped, as a server of tools in this process.

use crate::error::CliError;
use foldback::Memory;
use foldback_gateway::SessionTodos;
use foldback_mcp_server::{HttpServer, MemoryServer, Scope};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The name under which a client knows the server.
pub(crate) const SERVER: &str = "foldback";

/// A word that nobody guesses.
fn random_word() -> Result<String, CliError> {
    let mut word = [0; 16];
    getrandom::fill(&mut word).map_err(|error| CliError::Io {
        what: "asking for a random word".to_owned(),
        source: error.into(),
    })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(word)))
}

/// A server of the memory's tools that is being served to one program.
pub(crate) struct Recall {
    /// Where the program finds it: nobody else knows the last word of the address.
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Recall {
    /// Begins to serve what the todos of a session hold.
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
            // A server that ends by itself leaves the program without the tools, and says so in their answers.
            drop(server.serve(memory, async { drop(stopped.await) }).await);
        });
        Ok(Self { url, stop, served })
    }

    /// Ends it.
    pub(crate) async fn end(self) {
        drop(self.stop);
        drop(self.served.await);
    }
}
