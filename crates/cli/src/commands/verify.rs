//! `foldback verify`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use foldback::Checkup;
use serde::Serialize;

/// Check every hash of the store, and rebuild every message
///
/// JSON: {"clean", "todos", "messages", "blocks", "payloads", "findings": [...], "tail"}. The exit
/// code is 1 if something was found.
#[derive(Args)]
pub(crate) struct Verify {}

#[derive(Serialize)]
struct VerifyJson<'a> {
    clean: bool,
    todos: u64,
    messages: u64,
    blocks: u64,
    payloads: u64,
    findings: &'a [String],
    tail: u64,
}

impl Verify {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        // The exit code says what was found, even if nobody reads all of it.
        let out = &out.finishing();
        let checkup = store::open_for_reading(globals)?.maintenance().verify()?;
        if out.is_json() {
            out.json(&VerifyJson {
                clean: checkup.is_clean(),
                todos: checkup.todos,
                messages: checkup.messages,
                blocks: checkup.blocks,
                payloads: checkup.payloads,
                findings: &checkup.findings,
                tail: checkup.tail,
            })?;
        } else {
            print(out, &checkup)?;
        }
        Ok(Outcome::clean_if(checkup.is_clean()))
    }
}

/// Prints what was checked and what was found.
pub(super) fn print(out: &Output, checkup: &Checkup) -> Result<(), CliError> {
    let verdict = if checkup.is_clean() {
        style::paint(style::GOOD, "clean")
    } else {
        style::paint(style::BAD, text::count(checkup.findings.len() as u64, "finding"))
    };
    out.line(format!(
        "{verdict}: {}, {}, {}, {} checked",
        text::count(checkup.todos, "todo"),
        text::count(checkup.messages, "message"),
        text::count(checkup.blocks, "block"),
        text::count(checkup.payloads, "payload"),
    ))?;
    for finding in &checkup.findings {
        out.line(format!("  {}", text::one_line(finding)))?;
    }
    Ok(())
}
