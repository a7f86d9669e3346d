//! The context policies by name: foldback's own, and what others do.
//!
//! A [`Policy`] decides what a model is sent. [`Policy::names`] lists them all, [`Policy::named`] finds
//! one, a [`PolicyChoice`] is what a person may ask for, and [`Policy::open`] gives a context over a memory. This is the only list: what a person or a
//! report calls a policy is its name in this crate.
//!
//! It is not a policy itself: foldback's own is in `foldback`, the others are in `foldback-baselines`. It
//! measures nothing.
//!
//! ```
//! use foldback::{Memory, Options};
//! use foldback_core::{Budget, Message, TodoId};
//! use foldback_policies::Policy;
//!
//! let policy = Policy::named("foldback-cache-aware").ok_or("no such policy")?;
//! let memory = Memory::in_memory(policy.options(Options::default()))?;
//! let mut context = policy.open(&TodoId::new("trip")?, &memory)?;
//! context.record(Message::user("Which gate?"))?;
//! assert_eq!(context.prompt(&Budget::default()).messages.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choice;
mod kept;
mod policy;
mod summary_model;

pub use choice::{PolicyChoice, UnknownPolicy};
pub use foldback_baselines::Summaries;
pub use policy::Policy;
pub use summary_model::SummaryModel;
