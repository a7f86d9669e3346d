//! A POSIX shell.

use super::Refusal;
use crate::bind::BoundValue;

/// The reader's state in a command.
#[derive(Debug, Default)]
pub(crate) struct Code {
    state: State,
    escaped: bool,
    /// The word so far, its quotes included.
    word: String,
    /// The word so far as the shell sees it, without quotes and backslashes.
    plain: String,
    /// The characters directly before, as far as they belong to an expansion that the following text
    /// could change.
    expansion: Expansion,
    /// Whether the word names a command, unless it turns out to be an assignment.
    is_command: bool,
    /// Whether the next word begins a command.
    begins: Begins,
    /// Whether the command so far names a program that runs the text after its option `-c`.
    runs_code: bool,
    /// Whether the command is `find`, which starts other commands.
    is_find: bool,
    /// Whether anything but white space was passed.
    any: bool,
}

/// An unfinished expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Expansion {
    #[default]
    None,
    /// A `$` without a backslash.
    Dollar,
    /// `$` and the letters of a name.
    Name,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Bare,
    Single,
    Double,
    Comment,
    /// Nothing more can be inserted, for this reason.
    Lost(&'static str),
}

/// Whether a word here would name a command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Begins {
    #[default]
    Command,
    Argument,
}

/// Words after which a command is named.
const KEYWORDS: [&str; 17] = [
    "!", "{", "if", "then", "else", "elif", "do", "while", "until", "time", "exec", "command",
    "nohup", "sudo", "env", "xargs", "builtin",
];

/// Commands that may run their arguments.
const RUN_ARGUMENTS: [&str; 13] = [
    "eval", ".", "source", "trap", "alias", "case", "[[", "let", "declare", "typeset", "unset",
    "read", "ssh",
];

/// Programs that run the text after their option `-c`, wherever they are named in a command, because
/// other commands may run them.
const RUN_TEXT: [&str; 13] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "su", "runuser",
    "script",
];

/// Options of `find` after which a command is named.
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// The character that an option begins with.
const OPTION: [char; 2] = ['-', '+'];

const RUNS_TEXT: &str = "in a text that another shell runs";

impl Code {
    pub(super) fn pass(&mut self, code: &str) {
        self.any |= !code.trim().is_empty();
        let mut chars = code.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            match self.state {
                State::Lost(_) => return,
                State::Comment if c == '\n' => {
                    self.state = State::Bare;
                    self.begin_command();
                }
                State::Comment => {}
                State::Single if c == '\'' => self.state = State::Bare,
                State::Single => self.plain.push(c),
                State::Double => self.pass_double(c),
                State::Bare => self.pass_bare(c, next),
            }
        }
    }

    /// Records the effect of a character on an expansion and returns what was open before.
    fn expand(&mut self, c: char) -> Expansion {
        let is_name = c.is_ascii_alphanumeric() || c == '_';
        let next = match self.expansion {
            // A backslash followed by a line end disappears.
            open if self.escaped && c == '\n' => open,
            _ if self.escaped => Expansion::None,
            open if c == '\\' => open,
            _ if c == '$' => Expansion::Dollar,
            Expansion::Dollar | Expansion::Name if is_name => Expansion::Name,
            _ => Expansion::None,
        };
        std::mem::replace(&mut self.expansion, next)
    }

    fn pass_double(&mut self, c: char) {
        let open = self.expand(c);
        match c {
            _ if std::mem::take(&mut self.escaped) => self.push_plain(c),
            '\\' => self.escaped = true,
            '"' => self.state = State::Bare,
            '`' => self.state = State::Lost("after a command substitution inside quotes"),
            '(' | '{' | '[' if open == Expansion::Dollar => {
                self.state = State::Lost("after a substitution inside quotes");
            }
            _ => self.plain.push(c),
        }
    }

    fn pass_bare(&mut self, c: char, next: Option<char>) {
        let is_behind_dollar = self.expand(c) == Expansion::Dollar;
        if std::mem::take(&mut self.escaped) {
            self.push_word(c);
            self.push_plain(c);
            return;
        }
        match (c, next) {
            ('\\', _) => {
                self.escaped = true;
                self.push_word(c);
            }
            ('`', _) => self.state = State::Lost("after a command substitution in backticks"),
            ('<', Some('<')) => self.state = State::Lost("after a here-document"),
            ('{' | '[' | '\'' | '"', _) if is_behind_dollar => {
                self.state = State::Lost("after an expansion with braces, brackets or quotes");
            }
            ('(', _) if self.word == "$(" => {
                self.state = State::Lost("after an arithmetic expansion");
            }
            ('(', Some('(')) if self.word.is_empty() => {
                self.state = State::Lost("after an arithmetic command");
            }
            ('(', _) if self.word.ends_with('=') => {
                self.state = State::Lost("after the beginning of an array");
            }
            ('#', _) if self.word.is_empty() => self.state = State::Comment,
            ('(', _) if is_behind_dollar => {
                self.end_word();
                self.begin_command();
                // Kept so that a second parenthesis is recognised.
                "$(".clone_into(&mut self.word);
                self.is_command = true;
            }
            (';' | '|' | '&' | '\n' | '(' | ')', _) => {
                self.end_word();
                self.begin_command();
            }
            // A carriage return is an ordinary character.
            (' ' | '\t' | '<' | '>', _) => self.end_word(),
            ('\'', _) => {
                self.push_word(c);
                self.state = State::Single;
            }
            ('"', _) => {
                self.push_word(c);
                self.state = State::Double;
            }
            _ => {
                self.push_word(c);
                self.plain.push(c);
            }
        }
    }

    /// Adds a character after a backslash.
    fn push_plain(&mut self, c: char) {
        if c != '\n' {
            self.plain.push(c);
        }
    }

    fn begin_command(&mut self) {
        self.begins = Begins::Command;
        (self.runs_code, self.is_find) = (false, false);
    }

    fn push_word(&mut self, c: char) {
        if self.word.is_empty() {
            self.is_command = self.begins == Begins::Command;
            self.begins = Begins::Argument;
        }
        self.word.push(c);
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let word = word.strip_prefix("$(").unwrap_or(&word);
        let plain = std::mem::take(&mut self.plain);
        if word.is_empty() || matches!(self.state, State::Lost(_)) {
            return;
        }
        let is_command = std::mem::take(&mut self.is_command);
        let program = plain.rsplit('/').next().unwrap_or(&plain);
        if self.runs_code && is_code_option(&plain) {
            self.state = State::Lost(RUNS_TEXT);
        } else if self.is_find && FIND_RUNS.contains(&plain.as_str()) {
            self.begins = Begins::Command;
        }
        self.runs_code |= RUN_TEXT.contains(&program);
        self.is_find |= program == "find";
        if !is_command {
            return;
        }
        if is_assignment(word) || KEYWORDS.contains(&word) {
            self.begins = Begins::Command;
        } else if RUN_ARGUMENTS.contains(&word) {
            self.state = State::Lost("after a command that may run its arguments as code");
        } else if !word.chars().all(|c| c.is_alphanumeric() || "_-+./:[".contains(c)) {
            // `\\eval`, `"$x"`: what it names, and whether it is present at all, is unknown.
            self.state = State::Lost("after a command whose name is not written plainly");
        }
    }

    pub(super) fn encode(
        &mut self,
        value: &BoundValue<'_>,
        behind: &str,
    ) -> Result<String, Refusal> {
        let instead = "as an argument of a command";
        let place = |place| Err(Refusal::Place { place, instead });
        if let State::Lost(why) = self.state {
            return place(why);
        }
        if self.state == State::Comment {
            return place("in a comment");
        }
        if self.escaped {
            return place("after a backslash");
        }
        if !self.any && behind.is_empty() {
            return Err(Refusal::Whole);
        }
        let is_start = self.word.is_empty() || self.word == "$(";
        let names_command = if is_start {
            self.begins == Begins::Command
        } else {
            self.is_command && !is_assignment(&self.word)
        };
        if names_command {
            return place("where a command is named");
        }
        match (self.expansion, self.state) {
            (Expansion::Dollar, _) => return place("directly after a `$`"),
            (Expansion::Name, State::Double) => return place("directly after `$` and a name"),
            _ => {}
        }
        if self.runs_code && self.plain.starts_with(OPTION) {
            return place(RUNS_TEXT);
        }
        let text = value.text();
        if text.contains('\0') {
            return Err(Refusal::Value { what: "a NUL character" });
        }
        if self.runs_code && self.plain.is_empty() && text.starts_with(OPTION) {
            return Err(Refusal::Value { what: "the beginning of an option" });
        }
        self.any = true;
        self.expansion = Expansion::None;
        let mut out = String::with_capacity(text.len() + 2);
        match self.state {
            State::Double => {
                for c in text.chars() {
                    if matches!(c, '\\' | '"' | '$' | '`') {
                        out.push('\\');
                    }
                    out.push(c);
                }
            }
            State::Single => out.push_str(&text.replace('\'', r"'\''")),
            _ => {
                self.push_word('\'');
                out.push('\'');
                out.push_str(&text.replace('\'', r"'\''"));
                out.push('\'');
            }
        }
        Ok(out)
    }
}

/// Returns whether a word is an option that is followed by a text to run: `-c`, `-ec`, `--command`.
fn is_code_option(word: &str) -> bool {
    if word.starts_with("--") {
        word.starts_with("--c")
    } else {
        word.starts_with(OPTION) && word.contains('c')
    }
}

/// Returns whether a word is `NAME=..`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
