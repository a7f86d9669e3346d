//! The inspector: a local, read-only web page over a store, and the JSON API that the page itself uses.
//!
//! [`Inspector::bind`] listens on a loopback address only. A browser shows the token of the printed address once and
//! gets a cookie for it; a program sends the token as `Authorization: Bearer`. Every other request is refused, and so is
//! one that names another host or comes from a page of another origin. Nothing here writes to the store.
//!
//! The pages are static files without any recorded text. Their scripts ask the API, and put texts into text nodes only.
//! What a session's page draws (the view of the model at each call) is made by a [`Drawing`], and what an agent planned
//! and did comes from [`Runs`]; the caller brings both.
//!
//! ```no_run
//! use foldback::{Memory, Mode, Options};
//! use foldback_inspector::{Drawing, Drawn, Inspector, Run, Runs};
//! use std::sync::Arc;
//!
//! struct NoPictures;
//!
//! impl Drawing for NoPictures {
//!     fn draw(&self, _: &Memory, _: &foldback::core::TodoId, _: bool) -> Result<Drawn, String> {
//!         Err("this program draws nothing".to_owned())
//!     }
//!     fn scripts(&self) -> String {
//!         String::new()
//!     }
//!     fn style(&self) -> String {
//!         String::new()
//!     }
//! }
//!
//! struct NoRuns;
//!
//! impl Runs for NoRuns {
//!     fn last(&self, _: &foldback::core::TodoId, _: usize) -> Result<(usize, Vec<Run>), String> {
//!         Ok((0, Vec::new()))
//!     }
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = std::path::Path::new("store");
//! let memory = Memory::open(folder, Options::default().with_mode(Mode::ReadOnly))?;
//! let (address, pictures, runs) = ("127.0.0.1:0".parse()?, Arc::new(NoPictures), Arc::new(NoRuns));
//! let inspector = Inspector::bind(address, memory, folder, pictures, runs).await?;
//! println!("{}", inspector.address_with_token());
//! inspector.serve(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod api;
mod error;
mod guard;
mod pages;
mod pictures;
mod runs;
mod server;
mod token;

pub use error::InspectorError;
pub use pictures::{Drawing, Drawn};
pub use runs::{Chosen, Run, RunSpent, RunStep, RunSubAgent, RunTurn, Runs};
pub use server::Inspector;
