//! The context policies by name: foldback's own, and third-party ones.
//!
//! A [`Policy`] decides what is sent to a model. [`Policy::names`] lists them all, [`Policy::named`] finds one, a
//! [`PolicyChoice`] is a user's choice, and [`Policy::open`] returns a context over a memory. This is the only list:
//! users and reports call a policy by its name in this crate.
//!
//! It implements no policy itself: foldback's own is in `foldback`, the others are in `foldback-baselines`. It measures
//! nothing.
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
