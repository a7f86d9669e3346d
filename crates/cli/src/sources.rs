//! The files that conversations come from.

mod folder;
mod holders;
mod naming;
mod opencode;
mod ready;
mod survey;

pub(crate) use folder::{files_in, stem};
pub(crate) use holders::{Holders, holds};
pub(crate) use opencode::{Database, is_database, log_of};
pub(crate) use survey::Survey;

use crate::error::CliError;
use foldback_core::TodoId;
use foldback_transcript::{Conversation, Conversations, Error as InputError, Limits};
use folder::{ENDINGS, walk};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The inputs of one command. They are read twice: once to check them all before anything is
/// written, and once for the work.
pub(crate) struct Sources {
    inputs: Vec<Input>,
    /// Notes about the folders.
    notes: Vec<String>,
    /// `None` if the command has no `--lenient`.
    lenient: Option<bool>,
}

enum Input {
    File {
        path: PathBuf,
        /// Whether it was found in a folder rather than named by the user.
        in_folder: bool,
    },
    /// A subfolder that could not be read.
    Closed(PathBuf),
    /// An input that can be read only once (a pipe, standard input) and is therefore held in memory.
    Held { name: String, bytes: Vec<u8> },
}

/// A conversation, and where it came from.
pub(crate) struct Sourced {
    pub(crate) conversation: Conversation,
    /// The file.
    pub(crate) file: String,
    /// The line on which the conversation begins, counted from 1.
    pub(crate) line: u64,
    /// When its file was last written; `None` if it cannot grow any more.
    written: Option<SystemTime>,
    /// A name that no other conversation of the same inputs has.
    name: String,
    /// What it would be called if there were no others.
    plain: String,
}

/// At most this many oddities of a conversation are reported.
const ODD_MOST: usize = 10;

impl Sources {
    /// Takes files as named, `-` for standard input, and for a folder every file with a
    /// conversation's extension, in order of name.
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Self, CliError> {
        let (mut inputs, mut notes) = (Vec::new(), Vec::new());
        for path in paths {
            if path.as_os_str() == "-" {
                inputs.push(Input::held("standard input", std::io::stdin())?);
                continue;
            }
            let meta = std::fs::metadata(path).map_err(|source| cannot_read(path, source))?;
            if meta.is_dir() {
                let before = inputs.len();
                walk(path, &mut inputs, &mut notes)?;
                if inputs.len() == before {
                    return Err(CliError::Usage(format!(
                        "the folder {} holds no conversations; expected files named {}",
                        path.display(),
                        ENDINGS.map(|ending| format!("*{ending}")).join(", ")
                    )));
                }
            } else if meta.is_file() {
                inputs.push(Input::File { path: path.clone(), in_folder: false });
            } else {
                let file = std::fs::File::open(path).map_err(|source| cannot_read(path, source))?;
                inputs.push(Input::held(&path.display().to_string(), file)?);
            }
        }
        Ok(Self { inputs, notes, lenient: None })
    }

    /// Sets whether damage is reported and skipped.
    pub(crate) fn lenient(self, lenient: bool) -> Self {
        Self { lenient: Some(lenient), ..self }
    }

    fn is_lenient(&self) -> bool {
        self.lenient == Some(true)
    }

    /// Whether an error is skipped. Lenient mode skips damage and, in a folder, a file that
    /// cannot be read or unpacked. A file in a folder that is not a conversation is always skipped.
    fn passes(&self, input: &Input, error: &CliError) -> bool {
        let in_folder = input.is_in_folder();
        in_folder && is_other(error) || self.is_lenient() && (in_folder || is_damage(error))
    }
}

/// Whether the error means that an input holds no conversation.
fn is_other(error: &CliError) -> bool {
    use InputError as E;
    matches!(error, CliError::Input(E::Nothing { .. } | E::NoMessages { .. } | E::Unknown { .. }))
}

fn is_damage(error: &CliError) -> bool {
    matches!(error, CliError::Input(error) if error.is_damage())
}

impl Input {
    fn held(name: &str, mut reader: impl std::io::Read) -> Result<Self, CliError> {
        let limit = Limits::default().conversation_bytes;
        let mut bytes = Vec::new();
        let read = reader.by_ref().take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|source| cannot_read(Path::new(name), source))?;
        if bytes.len() as u64 > limit {
            return Err(CliError::Usage(format!(
                "{name} is larger than {limit} bytes, too much to hold in memory; write it to a file"
            )));
        }
        Ok(Self::Held { name: name.to_owned(), bytes })
    }

    fn is_in_folder(&self) -> bool {
        matches!(self, Self::File { in_folder: true, .. } | Self::Closed(_))
    }

    fn name(&self) -> String {
        match self {
            Self::File { path, .. } | Self::Closed(path) => path.display().to_string(),
            Self::Held { name, .. } => name.clone(),
        }
    }

    fn conversations(&self) -> Box<dyn Iterator<Item = Result<Sourced, CliError>> + '_> {
        let mut written = None;
        let opened = match self {
            Self::File { path, .. } if is_database(path) => {
                return match Database::open(path) {
                    Ok(sessions) => Box::new(sessions),
                    Err(error) => Box::new(std::iter::once(Err(error))),
                };
            }
            Self::File { path, .. } => {
                written = ready::written(path);
                Conversations::from_file(path, Limits::default())
            }
            Self::Held { name, bytes } => {
                Conversations::from_reader(name.as_str(), bytes.as_slice(), Limits::default())
            }
            Self::Closed(path) => {
                let error = std::fs::read_dir(path).err().map(|source| cannot_read(path, source));
                return Box::new(error.into_iter().map(Err));
            }
        };
        let mut conversations = match opened {
            Ok(conversations) => conversations,
            Err(error) => return Box::new(std::iter::once(Err(error.into()))),
        };
        let file = self.name();
        Box::new(std::iter::from_fn(move || {
            let next = conversations.next()?;
            let line = conversations.line();
            Some(match next {
                Ok(conversation) => {
                    Ok(Sourced { written, ..Sourced::new(conversation, file.clone(), line) })
                }
                Err(error) => Err(error.into()),
            })
        }))
    }
}

impl Sourced {
    /// A conversation on its own, named by its id or, without one, by its file's name.
    pub(crate) fn new(conversation: Conversation, file: String, line: u64) -> Self {
        let name = conversation.id.clone().unwrap_or_else(|| stem(&file));
        Self { conversation, file, line, written: None, plain: name.clone(), name }
    }

    /// How many of its first messages stay as they are: those before a response that is still being written.
    pub(crate) fn ready(&self) -> usize {
        ready::ready(&self.conversation, self.written, SystemTime::now())
    }

    /// The conversation's name: its own id, or else its file's name, with an addition if other
    /// conversations have the same name.
    pub(crate) fn id(&self) -> String {
        self.name.clone()
    }

    /// What is odd about the conversation, in sentences: the first ones, and how many more there are.
    pub(crate) fn findings(&self) -> Vec<String> {
        let odd = self.conversation.check();
        let mut told: Vec<_> = odd.iter().take(ODD_MOST).map(ToString::to_string).collect();
        if odd.len() > told.len() {
            told.push(format!("and {} more", odd.len() - told.len()));
        }
        told
    }

    /// Whether a todo is the one that was chosen for it among several of its name, or is named by its file.
    pub(crate) fn is_meant(&self, todo: &TodoId) -> bool {
        let is = |name: &str| TodoId::from_foreign(name) == *todo;
        let of_file = naming::other_names(&self.plain, &self.file).next();
        let is_of_file = of_file.is_some_and(|other| other.is_of_file && is(&other.name));
        is_of_file || self.name != self.plain && is(&self.name)
    }

    /// What it would be called if there were no others.
    pub(crate) fn plain(&self) -> &str {
        &self.plain
    }

    /// The todo of the conversation.
    pub(crate) fn todo(&self) -> TodoId {
        TodoId::from_foreign(&self.name)
    }
}

/// Whether a conversation is a log with an id of its own that its program may continue, even from an earlier point.
pub(crate) fn goes_back(conversation: &Conversation) -> bool {
    conversation.is_log() && conversation.id.is_some()
}

/// The ids of the conversations that may have left a log as a branch, as its own id shows.
pub(crate) fn trunks(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let id = conversation.id.as_deref().filter(|_| goes_back(conversation)).unwrap_or_default();
    id.match_indices("-branch-").filter_map(|(at, _)| id.get(..at))
}

/// Returns a conversation with its name as its id, if it has no id and that of its todo does not show the name.
pub(crate) fn as_named(
    conversation: &Conversation,
    name: &str,
    todo: &TodoId,
) -> Option<Conversation> {
    let is_hidden = todo.as_str() != name && *todo == TodoId::from_foreign(name);
    (is_hidden && conversation.id.is_none())
        .then(|| Conversation { id: Some(name.to_owned()), ..conversation.clone() })
}

fn cannot_read(path: &Path, source: std::io::Error) -> CliError {
    CliError::Io { what: format!("{} could not be read", path.display()), source }
}
/// The error of a command whose files have changed since it began.
pub(crate) fn changed(files: &[PathBuf]) -> CliError {
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    CliError::Usage(format!("{} changed while being read", files.join(", ")))
}
