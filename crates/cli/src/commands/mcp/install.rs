//! `foldback mcp install` and `foldback mcp uninstall`.

use super::What;
use super::client::{Client, Start};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::outfile;
use crate::output::{Output, question, style, text};
use clap::Args;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Set up a client to start this server
///
/// The change to the client's configuration is shown, and made once you have agreed. For Codex and opencode, the server
/// works in the folder that they start it in (--folder .), because not all of them name it as their root; --todo or
/// --folder overrides that.
///
/// JSON: {"path", "changed"}; for the client json, the lines that belong in its configuration
#[derive(Args)]
pub(super) struct Install {
    #[command(flatten)]
    what: What,

    #[command(flatten)]
    place: FileOf,
}

/// Remove this server from a client's configuration
///
/// The change is shown, and made once you have agreed. Nothing else in the file is touched.
///
/// JSON: {"path", "changed"}
#[derive(Args)]
pub(super) struct Uninstall {
    #[command(flatten)]
    place: FileOf,
}

/// The configuration file of a client.
#[derive(Args)]
struct FileOf {
    /// The client
    #[arg(value_name = "CLIENT")]
    client: Client,

    /// Change the project's file in the working folder (.mcp.json, .codex/config.toml, opencode.json,
    /// .cursor/mcp.json) instead of your own
    #[arg(long)]
    project: bool,

    /// Change the file without asking
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct ChangeJson {
    path: String,
    changed: bool,
}

impl Install {
    pub(super) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let client = self.place.client;
        let start = Start::of(&self.what, client, globals)?;
        let Some(path) = client.file(self.place.project)? else {
            let text = client.with("", &start).map_err(CliError::Usage)?;
            out.bytes(text.as_bytes())?;
            return Ok(Outcome::Done);
        };
        let before = read(&path)?;
        let after = client.with(&before, &start).map_err(|what| unusable(&path, &what))?;
        self.place.change(&path, &before, &after, out)
    }
}

impl Uninstall {
    pub(super) fn run(self, out: &Output) -> Result<Outcome, CliError> {
        let Some(path) = self.place.client.file(self.place.project)? else {
            let what = "the lines for other clients were only printed; take them out by hand";
            return Err(CliError::Usage(what.to_owned()));
        };
        let before = read(&path)?;
        let after = self.place.client.without(&before).map_err(|what| unusable(&path, &what))?;
        let Some(after) = after else {
            out.note(format_args!("foldback is not set up in {}", path.display()));
            return report(&path, false, out);
        };
        self.place.change(&path, &before, &after, out)
    }
}

impl FileOf {
    /// Shows a change, and makes it if the user agrees.
    fn change(
        &self,
        path: &Path,
        before: &str,
        after: &str,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        if before == after {
            out.note(format_args!("{} already has it", path.display()));
            return report(path, false, out);
        }
        // The file is changed even if nobody reads how.
        let out = &out.finishing();
        let name = path.display().to_string();
        let lines = changed(before, after);
        let mut lines =
            lines.into_iter().map(|(sign, line)| format!("{sign} {}", text::plain(line)));
        // With --json the question is not a result.
        if out.is_json() {
            std::iter::once(name).chain(lines).for_each(|line| out.remark(line));
        } else {
            out.line(style::paint(style::NAME, text::plain(&name)))?;
            lines.try_for_each(|line| out.line(line))?;
        }
        if !self.yes && !agreed()? {
            out.note("nothing was changed");
            report(path, false, out)?;
            return Ok(Outcome::NotClean);
        }
        // Clients write their files while the question is open.
        if read(path)? != before {
            return Err(CliError::Usage(format!(
                "{} was changed meanwhile, and is left as it is now; give the command again",
                path.display()
            )));
        }
        let failed = |source| CliError::Io {
            what: format!("{} could not be written", path.display()),
            source,
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        outfile::write(path, |file| file.write_all(after.as_bytes()).map_err(failed))?;
        out.note(format_args!("changed {}; restart the client", path.display()));
        report(path, true, out)
    }
}

/// Says as JSON whether the file was changed. A person has read it in a note.
fn report(path: &Path, changed: bool, out: &Output) -> Result<Outcome, CliError> {
    if out.is_json() {
        out.json(&ChangeJson { path: path.display().to_string(), changed })?;
    }
    Ok(Outcome::Done)
}

/// The removed and the added lines, each with its sign.
fn changed<'a>(before: &'a str, after: &'a str) -> Vec<(char, &'a str)> {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let first = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let old = before.get(first..).unwrap_or_default();
    let new = after.get(first..).unwrap_or_default();
    let last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let gone = old.iter().take(old.len() - last).map(|line| ('-', *line));
    gone.chain(new.iter().take(new.len() - last).map(|line| ('+', *line))).collect()
}

/// Asks the user at the terminal whether to make the change.
fn agreed() -> Result<bool, CliError> {
    if !question::can_be_answered() {
        let what = "this change needs a terminal to confirm it; --yes makes it without asking";
        return Err(CliError::Usage(what.to_owned()));
    }
    question::agreed("Make this change?")
}

/// The text of a file; empty for a missing one.
fn read(path: &Path) -> Result<String, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => {
            Err(CliError::Io { what: format!("{} could not be read", path.display()), source })
        }
    }
}

fn unusable(path: &Path, what: &str) -> CliError {
    CliError::Usage(format!(
        "{} is left as it is: {what}; `foldback mcp install json` prints what belongs there",
        path.display()
    ))
}
