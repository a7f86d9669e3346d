//! Measures foldback for its developers: its executor, its store, its agent.
//!
//! - [`plans`]: how plans run, what they save compared with working step by step, and whether mistakes
//!   in them are detected.
//! - [`index`]: the speed of the store, compared with others on the same files, and as it grows.
//! - [`agent`]: one task, done by one agent with real tools under several context policies.
//! - [`recall`]: what a real model knows about facts that were stated long ago, under several context
//!   policies.
//!
//! Users measure their own conversations with `foldback-bench`, which ships with the command.
//! `foldback` has the measurements of this crate if it is built with the feature `lab`:
//!
//! ```text
//! cargo run --release -p foldback-cli --features lab -- bench plans
//! ```
//!
//! A measurement gives the same figures each time, except for times:
//!
//! ```
//! use foldback_core::Prices;
//! use foldback_lab::agent::{Config, measure};
//! use foldback_policies::Policy;
//!
//! let policies = vec![Policy::named("foldback").ok_or("no such policy")?];
//! let prices = Prices::default();
//! let config = Config { policies, services: 2, seed: 7, prices, summary_model: None, told: |_| {} };
//! let measured = measure(&config)?;
//! assert_eq!(measured.policies[0].facts.lost, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
pub mod index;
pub mod plans;
pub mod recall;
