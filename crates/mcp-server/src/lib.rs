//! A store of conversations as a Model Context Protocol server.
//!
//! A [`MemoryServer`] offers [the tools of a memory](foldback::MemoryTool) to another program's agent: over
//! [standard input and output](MemoryServer::serve_stdio), or over [HTTP on loopback](HttpServer). Their
//! names, arguments and answers are not decided here. Blocks and stored parts are also resources, and
//! answers link to them.
//!
//! The person who starts the server decides which conversation it serves ([`Scope`]), or the folders that
//! the person's client names as its roots do; never a model. Recalled text keeps its marks. Each call reads
//! the store in its current state, so that other processes may write to it meanwhile; if the store cannot be
//! read, the answer says so.
//!
//! This crate is not a gateway: it sees no other traffic of the client, and records only what the client
//! asks it to.
//!
//! ```
//! use foldback::core::TodoId;
//! use foldback::{Memory, Options};
//! use foldback_mcp_server::{MemoryServer, Scope};
//!
//! let scope = Scope::todo(TodoId::new("trip")?).recording();
//! let open = || Memory::in_memory(Options::default()).map_err(|error| error.to_string());
//! let server = MemoryServer::new(open, scope);
//! let names: Vec<_> = server.tools().map(|tool| tool.name).collect();
//! assert_eq!(names, ["search_block", "list_blocks", "load", "record"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any_todo;
mod declared;
mod error;
mod http;
mod line;
mod lines;
mod place;
mod resources;
mod scope;
mod server;
mod stdio;
mod store;
mod turn;
mod uri;

pub use error::ServeError;
pub use http::HttpServer;
pub use scope::{Hears, Scope, Todos};
pub use server::MemoryServer;
