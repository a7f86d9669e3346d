//! Tests of the public behaviour of deep search.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod citations;
mod marks;
mod runs;
mod settings;
mod shapes;
mod short_urls;
mod source;
mod state;

use foldback_testkit::agent::{script, toolkit};
