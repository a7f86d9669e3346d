//! A store of conversations as a Model Context Protocol server.
//!
//! A [`MemoryServer`] offers [the tools of a memory](foldback::MemoryTool) to another program's agent: over
//! [standard input and output](MemoryServer::serve_stdio), or over [HTTP on loopback](HttpServer). What
//! they are called, take and answer is not decided here. Blocks and stored parts are resources, too, and
//! answers link to them.
//!
//! For which conversation it speaks is decided by the person who starts it ([`Scope`]), or by the folders
//! that the person's client names as its roots; never by a model. What is recalled keeps its marks. Each
//! call reads the store as it is then, so that other processes may write to it meanwhile; a store that
//! cannot be read is an answer.
//!
//! It is not a gateway: it sees no other traffic of the client, and records only what the client asks it to.
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
mod place;
mod resources;
mod scope;
mod server;
mod store;
mod uri;

pub use error::ServeError;
pub use http::HttpServer;
pub use scope::{Hears, Scope, Todos};
pub use server::MemoryServer;
