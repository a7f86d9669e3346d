//! The `foldback` command: records conversations, folds them, searches and loads what folded, and
//! proves that everything came back byte for byte.
//!
//! This crate is only a front end: it parses arguments, calls the library and prints. Its JSON
//! output is a contract that scripts depend on.
//!
//! - `cli` has the options of every command, `commands` a file for each command;
//! - `settings`, `store` and `encryption_key` lead to the store that a command works on, and `walk` goes through it;
//! - `output` prints, and `error` turns outcomes and errors into exit codes;
//! - `run`, `chat`, `replay` and `gateway` do the work of the large commands of these names;
//! - `sources` finds the files of conversations, and `watch` follows them;
//! - `report` draws a session as a page, for `replay` and `serve`;
//! - `demo` is what `run --demo` plays.

mod chat;
mod cli;
#[allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "doc comments here are help texts for a terminal, which shows brackets as they are"
)]
mod commands;
mod demo;
mod encryption_key;
mod error;
mod gateway;
mod model_args;
mod outfile;
mod output;
mod payloads;
mod policy_names;
mod replay;
mod report;
mod run;
mod settings;
mod sources;
mod store;
mod truth_parser;
mod walk;
mod watch;

use clap::Parser;
use cli::Cli;
use error::Outcome;
use output::Output;
use std::process::ExitCode;

/// A gateway runs for weeks. What glibc's allocator keeps per thread grows with the requests; this allocator gives it
/// back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { globals, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::misused(&error),
    };
    let mut out = Output::new(&globals);
    let loss = globals.loss.clone();
    let ran = match command.reads_settings() {
        true => {
            globals.with_settings().and_then(|globals| commands::run(command, &globals, &mut out))
        }
        false => commands::run(command, &globals, &mut out),
    };
    match ran {
        Ok(Outcome::Done) if loss.is_noticed() => Outcome::NotClean.code(),
        Ok(outcome) => outcome.code(),
        Err(error) => error.report(),
    }
}
