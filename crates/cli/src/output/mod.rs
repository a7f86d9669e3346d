//! What a command prints: results on stdout, everything else on stderr.

pub(crate) mod block;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod snippet;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod text;
pub(crate) mod title;

use crate::cli::Globals;
use crate::error::CliError;
use progress::Progress;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal as _};
use std::process::ExitCode;
use terminal::Form;

/// The output of a command, and its form.
#[derive(Clone)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    width: usize,
    is_bounded: bool,
    finishes: bool,
}

/// The width of anything but a terminal.
const WIDTH: usize = 80;

/// The least width of a terminal: nothing could be laid out in a narrower one.
const LEAST_WIDTH: usize = 40;

impl Output {
    pub(crate) fn new(globals: &Globals) -> Self {
        let known = width();
        let width = known.unwrap_or(WIDTH).max(LEAST_WIDTH);
        let is_bounded = known.is_some();
        Self { json: globals.json, quiet: globals.quiet, width, is_bounded, finishes: false }
    }

    /// Returns the same output for a command that writes to a store: it finishes its work when
    /// nobody reads its results any more, and prints nothing further.
    pub(crate) fn finishing(&self) -> Self {
        Self { finishes: true, ..self.clone() }
    }

    /// An output like a pipe.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { json: false, quiet: false, width: WIDTH, is_bounded: false, finishes: false }
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only results are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The columns of a line.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether a longer line would be broken: on a terminal, or if `COLUMNS` is set.
    pub(crate) fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// Prints a line for a person. Its styles reach terminals only, and none if `NO_COLOR` is set.
    pub(crate) fn line(&self, line: impl Display) -> Result<(), CliError> {
        // One write per line, so that the lines of a progress bar do not come between.
        self.written(terminal::print(&format!("{line}\n")))
    }

    /// Prints bytes exactly as they are; on a terminal, control characters are made visible.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        self.written(terminal::print_bytes(bytes, Form::Bytes))
    }

    /// Prints JSON exactly as it is; on a terminal, control characters are escaped.
    pub(crate) fn json_bytes(&self, json: &[u8]) -> Result<(), CliError> {
        self.written(terminal::print_bytes(json, Form::Json))
    }

    fn written(&self, written: std::io::Result<()>) -> Result<(), CliError> {
        match written {
            Err(error) if self.finishes && error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(CliError::Output),
        }
    }

    /// Prints a note on stderr that is not a result; nothing with `--quiet`.
    pub(crate) fn note(&self, note: impl Display) {
        if !self.quiet {
            let style = style::DIM;
            let note = text::plain(&note.to_string()).into_owned();
            // A note that nobody can read is no reason to stop.
            drop(terminal::print_aside(&format!("{style}note:{style:#} {note}\n")));
        }
    }

    /// Prints a remark on stderr besides the results; nothing with `--quiet`.
    pub(crate) fn remark(&self, remark: impl Display) {
        if !self.quiet {
            let style = style::DIM;
            let remark = text::plain(&remark.to_string()).into_owned();
            // A remark that nobody can read is no reason to stop.
            drop(terminal::print_aside(&format!("{style}{remark}{style:#}\n")));
        }
    }

    /// A progress bar for long work on stderr, if that is a terminal.
    pub(crate) fn progress(&self, what: &'static str, steps: u64) -> Progress {
        Progress::new(what, steps, !self.quiet && std::io::stderr().is_terminal())
    }
}

/// Warns on stderr that something is less than was asked for; nothing with `--quiet`.
pub(crate) fn warn(globals: &Globals, warning: impl Display) {
    if !globals.quiet {
        let (style, warning) = (style::BAD, text::plain(&warning.to_string()).into_owned());
        // A warning that nobody can read is no reason to stop.
        drop(terminal::print_aside(&format!("{style}warning:{style:#} {warning}\n")));
    }
}

/// Reports an error on stderr.
pub(crate) fn error(error: impl Display) {
    let (style, error) = (style::BAD, text::plain(&error.to_string()).into_owned());
    // Nothing can be reported if stderr is gone.
    drop(terminal::print_aside(&format!("{style}error:{style:#} {error}\n")));
}

/// Reports a misused command line, or shows the help that was asked for; returns the exit code.
pub(crate) fn misused(error: &clap::Error) -> ExitCode {
    let steers = |arg: OsString| arg.to_string_lossy().contains(text::steers);
    // Nothing can be reported if the stream is gone.
    drop(match error.use_stderr() && std::env::args_os().any(steers) {
        // Without this, an argument that the error names would reach the terminal as it is.
        true => terminal::print_aside(&text::plain(&error.render().to_string())),
        false => error.print(),
    });
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// `COLUMNS` if it is set (shells rarely export it, so it was intended), or else the terminal's width, if there is one.
fn width() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || comfy_table::Table::new().width().map(usize::from);
    named.or_else(terminal)
}
