//! The files that conversations come from.

use crate::error::CliError;
use crate::output::{Output, text};
use foldback_core::TodoId;
use foldback_transcript::{Conversation, Conversations, Limits};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The inputs of one command. They are read twice: once to see that all of them are sound, before
/// anything is written, and once for the work.
pub(crate) struct Sources {
    inputs: Vec<Input>,
    lenient: bool,
}

enum Input {
    File(PathBuf),
    /// What can be read only once (a pipe, standard input) and is therefore held.
    Held {
        name: String,
        bytes: Vec<u8>,
    },
}

/// A conversation, and where it came from.
pub(crate) struct Sourced {
    pub(crate) conversation: Conversation,
    /// The file.
    pub(crate) file: String,
    /// The line on which the conversation begins, counted from 1.
    pub(crate) line: u64,
}

/// What the first reading has seen.
pub(crate) struct Survey {
    /// How many conversations there are.
    pub(crate) conversations: u64,
    /// How many messages they hold.
    pub(crate) messages: u64,
    /// How many damaged lines, and files without a conversation, were passed over.
    pub(crate) skipped: u64,
    places: Vec<Identity>,
}

struct Identity {
    id: Option<String>,
    todo: TodoId,
    file: String,
    place: String,
}

/// Endings of files that are taken from a folder.
const ENDINGS: [&str; 4] = [".jsonl", ".json", ".jsonl.zst", ".json.zst"];

/// Of what is odd in a conversation, this much is told.
const ODD_MOST: usize = 10;

/// Folders in folders are looked into so deep.
const DEPTH: usize = 16;

impl Sources {
    /// Takes files as they are named, `-` for standard input, and of a folder every file with a
    /// name that conversations have, in the order of names.
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Self, CliError> {
        let mut inputs = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                inputs.push(Input::held("standard input", std::io::stdin())?);
                continue;
            }
            let meta = std::fs::metadata(path).map_err(|source| cannot_read(path, source))?;
            if meta.is_dir() {
                let before = inputs.len();
                walk(path, DEPTH, &mut inputs)?;
                if inputs.len() == before {
                    return Err(CliError::Usage(format!(
                        "the folder {} holds no conversations; expected were files named {}",
                        path.display(),
                        ENDINGS.map(|ending| format!("*{ending}")).join(", ")
                    )));
                }
            } else if meta.is_file() {
                inputs.push(Input::File(path.clone()));
            } else {
                let file = std::fs::File::open(path).map_err(|source| cannot_read(path, source))?;
                inputs.push(Input::held(&path.display().to_string(), file)?);
            }
        }
        Ok(Self { inputs, lenient: false })
    }

    /// Whether damaged lines, and files that hold no conversation, are reported and passed over.
    pub(crate) fn lenient(self, lenient: bool) -> Self {
        Self { lenient, ..self }
    }

    /// Reads everything once. The first input that is not sound is an error, or a note where
    /// reading is lenient.
    pub(crate) fn survey(&self, out: &Output) -> Result<Survey, CliError> {
        let mut progress = out.progress("reading", self.inputs.len() as u64);
        let mut survey = Survey { conversations: 0, messages: 0, skipped: 0, places: Vec::new() };
        for input in &self.inputs {
            for sourced in input.conversations()? {
                let sourced = match sourced {
                    Err(CliError::Input(error)) if self.passes(&error) => {
                        progress.around(|| out.note(format_args!("skipped: {error}")));
                        survey.skipped += 1;
                        continue;
                    }
                    sourced => sourced?,
                };
                survey.conversations += 1;
                survey.messages += sourced.conversation.messages.len() as u64;
                survey.places.push(Identity {
                    id: sourced.conversation.id.clone(),
                    todo: sourced.todo(),
                    place: format!("{}, line {}", sourced.file, sourced.line),
                    file: sourced.file,
                });
            }
            progress.advance(1);
        }
        Ok(survey)
    }

    /// The conversations, one after the other.
    pub(crate) fn conversations(&self) -> impl Iterator<Item = Result<Sourced, CliError>> + '_ {
        let all = self.inputs.iter().flat_map(|input| match input.conversations() {
            Ok(conversations) => conversations,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
        all.filter(|sourced| match sourced {
            Err(CliError::Input(error)) => !self.passes(error),
            _ => true,
        })
    }

    fn passes(&self, error: &foldback_transcript::Error) -> bool {
        self.lenient && error.is_damage()
    }
}

impl Input {
    fn held(name: &str, mut reader: impl std::io::Read) -> Result<Self, CliError> {
        let limit = Limits::default().conversation_bytes;
        let mut bytes = Vec::new();
        let read = reader.by_ref().take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|source| cannot_read(Path::new(name), source))?;
        if bytes.len() as u64 > limit {
            return Err(CliError::Usage(format!(
                "{name} has over {limit} bytes, which is too much to be held; write it to a file"
            )));
        }
        Ok(Self::Held { name: name.to_owned(), bytes })
    }

    fn conversations(
        &self,
    ) -> Result<Box<dyn Iterator<Item = Result<Sourced, CliError>> + '_>, CliError> {
        let (file, mut conversations) = match self {
            Self::File(path) => {
                (path.display().to_string(), Conversations::from_file(path, Limits::default())?)
            }
            Self::Held { name, bytes } => (
                name.clone(),
                Conversations::from_reader(name.as_str(), bytes.as_slice(), Limits::default())?,
            ),
        };
        Ok(Box::new(std::iter::from_fn(move || {
            let next = conversations.next()?;
            let line = conversations.line();
            Some(match next {
                Ok(conversation) => Ok(Sourced { conversation, file: file.clone(), line }),
                Err(error) => Err(error.into()),
            })
        })))
    }
}

impl Sourced {
    /// The conversation's own id; of one that has none, the name of its file.
    pub(crate) fn id(&self) -> String {
        self.conversation.id.clone().unwrap_or_else(|| stem(&self.file))
    }

    /// What is odd about the conversation, in sentences; of many, the first and how many more.
    pub(crate) fn findings(&self) -> Vec<String> {
        let odd = self.conversation.check();
        let mut told: Vec<_> = odd.iter().take(ODD_MOST).map(ToString::to_string).collect();
        if odd.len() > told.len() {
            told.push(format!("and {} more", odd.len() - told.len()));
        }
        told
    }

    /// The todo that the conversation belongs into.
    pub(crate) fn todo(&self) -> TodoId {
        TodoId::from_foreign(&self.id())
    }
}

impl Survey {
    /// How much was passed over, in words; `None` where nothing was.
    pub(crate) fn skipped(&self) -> Option<String> {
        match self.skipped {
            0 => None,
            1 => Some("1 line or file skipped".to_owned()),
            many => Some(format!("{} lines or files skipped", text::number(many))),
        }
    }

    /// Checks that every conversation has a todo of its own, before any of them is written.
    /// `named` is the todo that was asked for.
    pub(crate) fn check_todos(&self, named: Option<&TodoId>) -> Result<(), CliError> {
        let wrong = |what: String| Err(CliError::Usage(what));
        if named.is_some() && self.conversations > 1 {
            return wrong(format!(
                "--todo names one todo, and the input holds {} conversations; leave --todo out, and \
                 each goes into the todo of its own id",
                self.conversations
            ));
        }
        let mut seen: BTreeMap<&TodoId, &Identity> = BTreeMap::new();
        for second in &self.places {
            let Some(first) = seen.insert(&second.todo, second) else { continue };
            return wrong(match (&first.id, &second.id) {
                (Some(_), Some(id)) => format!(
                    "the conversations in {} and in {} have the same id {id:?}; two conversations \
                     cannot share a todo",
                    first.place, second.place
                ),
                (None, None) if first.file == second.file => format!(
                    "neither the conversation in {} nor that in {} has an \"id\"; give each its \
                     id, or a file of its own",
                    first.place, second.place
                ),
                _ => format!(
                    "the conversations in {} and in {} would both go into the todo {}, because one \
                     without an \"id\" goes into that of its file's name; give each its id, or \
                     import them one at a time with --todo ID",
                    first.place, second.place, second.todo
                ),
            });
        }
        Ok(())
    }
}

fn walk(dir: &Path, depth: usize, inputs: &mut Vec<Input>) -> Result<(), CliError> {
    let mut entries = std::fs::read_dir(dir)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| cannot_read(dir, source))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(|source| cannot_read(&path, source))?;
        if name.starts_with('.') {
            continue;
        }
        // What a session log of Claude Code refers to, and no conversation.
        if name == "tool-results" || name.ends_with(".meta.json") {
            continue;
        }
        // A link to a folder is not followed: it could lead in a circle.
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, inputs)?;
        } else if !kind.is_dir() && path.is_file() && ENDINGS.iter().any(|e| name.ends_with(e)) {
            inputs.push(Input::File(path));
        }
    }
    Ok(())
}

/// The name of a file without folder and endings.
fn stem(file: &str) -> String {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| file.to_owned());
    let ending =
        ENDINGS.iter().filter_map(|ending| name.strip_suffix(ending)).min_by_key(|s| s.len());
    match ending.filter(|stem| !stem.is_empty()) {
        Some(stem) => stem.to_owned(),
        None => name,
    }
}

fn cannot_read(path: &Path, source: std::io::Error) -> CliError {
    CliError::Io { what: format!("{} could not be read", path.display()), source }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn a_conversation_without_id_is_called_as_its_file() {
        for (file, name) in [
            ("/data/run-7.jsonl.zst", "run-7"),
            ("chat.json", "chat"),
            ("会话.json", "会话"),
            ("log.txt", "log.txt"),
            ("standard input", "standard input"),
            (".json", ".json"),
        ] {
            assert_eq!(stem(file), name);
        }
    }
}
