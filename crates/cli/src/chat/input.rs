//! The input of a chat, line by line: typed at a terminal with an editor, or sent by a program.

use super::command::COMMANDS;
use crate::cli::Globals;
use crate::encryption_key::encryption_key;
use crate::error::CliError;
use crate::output::Output;
use crate::store;
use foldback_redaction::plain as redacted;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

/// The prompt before what is typed.
pub(super) const PROMPT: &str = "› ";

/// The number of typed texts that are kept.
const HISTORY: usize = 1_000;

/// The source of the input.
pub(super) enum Input {
    /// A person at a terminal.
    Edited {
        editor: Box<Editor<Typing, FileHistory>>,
        /// The file that keeps what is typed; none for an encrypted store.
        history: Option<PathBuf>,
        /// Whether secrets are replaced in the history.
        redacts: bool,
    },
    /// A program, or a terminal whose output goes elsewhere.
    Plain,
}

/// A piece of input.
pub(super) enum Typed {
    Text(String),
    /// A text that is not UTF-8.
    Unreadable,
    /// Ctrl-C.
    Interrupt,
    /// The end of the input.
    End,
}

impl Input {
    pub(super) fn open(globals: &Globals, out: &Output) -> Result<Self, CliError> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if !is_terminal || out.is_json() {
            return Ok(Self::Plain);
        }
        let config = Config::builder().max_history_size(HISTORY).map_err(failed)?;
        let mut editor = Editor::with_config(config.build()).map_err(failed)?;
        editor.set_helper(Some(Typing));
        let history = match encryption_key(globals)? {
            None => Some(store::folder(globals)?.join("chat_history")),
            Some(_) => None,
        };
        // There is no history yet, or it cannot be read.
        drop(history.as_ref().map(|history| editor.load_history(history)));
        let redacts = globals.settings.memory.redact;
        Ok(Self::Edited { editor: Box::new(editor), history, redacts })
    }

    /// Whether a person edits what they type.
    pub(super) fn is_edited(&self) -> bool {
        matches!(self, Self::Edited { .. })
    }

    /// The next text. A line that ends in a backslash continues on the next one.
    pub(super) fn next(&mut self) -> Result<Typed, CliError> {
        match self {
            Self::Edited { editor, redacts, .. } => match editor.readline(PROMPT) {
                Ok(text) => {
                    let kept = if *redacts { redacted(&text) } else { Cow::Borrowed(&*text) };
                    editor.add_history_entry(kept.as_ref()).map_err(failed)?;
                    self.keep();
                    Ok(Typed::Text(text.replace("\\\n", "\n")))
                }
                Err(ReadlineError::Interrupted) => Ok(Typed::Interrupt),
                Err(ReadlineError::Eof) => Ok(Typed::End),
                Err(error) => Err(failed(error)),
            },
            Self::Plain => plain(&mut io::stdin().lock()),
        }
    }

    /// Saves the history for the next time.
    pub(super) fn keep(&mut self) {
        if let Self::Edited { editor, history: Some(history), .. } = self
            && editor.append_history(history).is_err()
        {
            // If there is no store yet, it is saved later.
        }
    }
}

/// The next text of a program.
fn plain(input: &mut impl io::BufRead) -> Result<Typed, CliError> {
    let mut text = Vec::new();
    loop {
        let begin = text.len();
        let read = input.read_until(b'\n', &mut text).map_err(|source| CliError::Io {
            what: "the input could not be read".to_owned(),
            source,
        })?;
        if read == 0 && text.is_empty() {
            return Ok(Typed::End);
        }
        let last = text[begin..].iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
        let end = begin + last.map_or(0, |last| last + 1);
        let is_whole = text.len() == end;
        text.truncate(end);
        if is_whole || !text[begin..].ends_with(b"\\") {
            return Ok(String::from_utf8(text).map_or(Typed::Unreadable, Typed::Text));
        }
        text.pop();
        text.push(b'\n');
    }
}

fn failed(error: ReadlineError) -> CliError {
    let source = match error {
        ReadlineError::Io(source) => source,
        other => io::Error::other(other.to_string()),
    };
    CliError::Io { what: "the terminal could not be read".to_owned(), source }
}

/// The editor's knowledge of the input: when a text continues, and the names of commands.
pub(super) struct Typing;

impl Helper for Typing {}

impl Highlighter for Typing {}

impl Hinter for Typing {
    type Hint = String;
}

impl Validator for Typing {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match typed.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Typing {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..at).and_then(|line| line.strip_prefix('/'));
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let fit = names.filter(|name| begun.is_some_and(|begun| name.starts_with(begun)));
        Ok((0, fit.map(|name| format!("/{name} ")).collect()))
    }
}

/// The state of a terminal, to be restored later.
#[cfg(unix)]
pub(super) type Terminal = rustix::termios::Termios;
#[cfg(not(unix))]
pub(super) type Terminal = ();

/// The current state of the terminal, if there is one.
pub(super) fn terminal_as_it_is() -> Option<Terminal> {
    #[cfg(unix)]
    return rustix::termios::tcgetattr(io::stdin()).ok();
    #[cfg(not(unix))]
    None
}

/// Restores the terminal: the process may end while something is typed.
pub(super) fn restore_terminal(terminal: Option<&Terminal>) {
    #[cfg(unix)]
    if let Some(terminal) = terminal {
        let at_once = rustix::termios::OptionalActions::Now;
        // The process ends in any case.
        let _ = rustix::termios::tcsetattr(io::stdin(), at_once, terminal);
    }
    #[cfg(not(unix))]
    let _ = terminal;
    drop(io::stdout().flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_a_text_a_line() {
        let mut sent = "谁在？\r\nfirst\\\nsecond \\\n\nlast\\".as_bytes();
        let mut texts = Vec::new();
        while let Typed::Text(text) = plain(&mut sent).unwrap() {
            texts.push(text);
        }
        assert_eq!(texts, ["谁在？", "first\nsecond \n", "last\\"]);
        let mut sent = &b"\xff\\\nmore\nlast"[..];
        assert!(matches!(plain(&mut sent).unwrap(), Typed::Unreadable));
        assert!(matches!(plain(&mut sent).unwrap(), Typed::Text(last) if last == "last"));
    }

    #[test]
    fn a_command_is_completed() {
        let history = FileHistory::new();
        let completed =
            |typed: &str| Typing.complete(typed, typed.len(), &Context::new(&history)).unwrap().1;
        assert_eq!(completed("/re"), ["/recall "]);
        assert_eq!(completed("/").len(), COMMANDS.len());
        assert!(completed("re").is_empty() && completed("/召").is_empty());
    }
}
