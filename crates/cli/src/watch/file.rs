//! One file that is followed.

use super::{Report, SHARE};
use crate::error::CliError;
use crate::output::Output;
use crate::sources::{Database, Holders, Sourced, as_named, is_database, log_of, stem, trunks};
use foldback::{ErrorKind, Followed};
use foldback_core::{Recorded, TodoId};
use foldback_transcript::{Conversation, Error as InputError, Growing, Grown, Limits};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Messages of one conversation that were recorded together.
pub(crate) struct Batch<'a> {
    /// The conversation's own id.
    pub(crate) id: Option<&'a str>,
    pub(crate) todo: &'a TodoId,
    /// How many messages the conversation has by now.
    pub(crate) messages: u64,
    pub(crate) recorded: &'a [Recorded],
}

/// A file, and what was recorded of it.
pub(super) struct WatchedFile {
    path: PathBuf,
    content: Content,
    /// Its state when it was last read.
    stamp: Option<[Stamp; 2]>,
    /// Reading it again waits until then.
    not_before: Instant,
    /// When it was last found to have grown, while its last lines are held back.
    grew: Option<Instant>,
    reader: Reader,
}

/// The length of a file and when it was last written; `None` if there is none.
type Stamp = Option<(u64, Option<SystemTime>)>;

/// The contents of a file.
enum Content {
    Lines(Box<Growing>),
    /// OpenCode's sessions, and the state of each when it was last read.
    Sessions(HashMap<String, String>),
}

impl Content {
    /// Makes the next look read the file from its beginning if it has changed.
    fn forget(&mut self) {
        match self {
            Self::Lines(growing) => growing.forget(),
            Self::Sessions(seen) => seen.clear(),
        }
    }
}

/// The progress of recording a file.
struct Reader {
    file: String,
    /// The place of its first conversation.
    first: Option<Place>,
    /// The line of its first conversation without an id.
    nameless: Option<u64>,
    /// Damage that was reported.
    told: HashSet<String>,
}

/// The place where a conversation is recorded.
#[derive(Clone)]
struct Place {
    id: Option<String>,
    followed: Followed,
    /// How many messages the conversation has.
    messages: u64,
}

impl WatchedFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            content: match is_database(path) {
                true => Content::Sessions(HashMap::new()),
                false => Content::Lines(Box::new(Growing::new(path, Limits::default()))),
            },
            stamp: None,
            not_before: Instant::now(),
            grew: None,
            reader: Reader {
                file: path.display().to_string(),
                first: None,
                nameless: None,
                told: HashSet::new(),
            },
        }
    }

    /// When it was last found to have grown, while its last lines are held back.
    pub(super) fn grew(&self) -> Option<Instant> {
        self.grew
    }

    /// Stops holding back its last lines.
    pub(super) fn rest(&mut self) {
        self.grew = None;
        if let Content::Lines(growing) = &mut self.content {
            growing.rest();
        }
    }

    /// Records what was written since the last look.
    pub(super) fn look(
        &mut self,
        holders: &Holders<'_>,
        out: &Output,
        report: &Report<'_>,
    ) -> Result<(), CliError> {
        let stamp = Some([stamp_of(&self.path), stamp_of(&log_of(&self.path))]);
        if stamp == self.stamp || Instant::now() < self.not_before {
            return Ok(());
        }
        self.grew = self.stamp.map(|_| Instant::now());
        self.stamp = stamp;
        self.read(holders, out, report)
    }

    /// Updates the data around the messages.
    pub(super) fn end(
        &mut self,
        holders: &Holders<'_>,
        out: &Output,
        report: &Report<'_>,
    ) -> Result<(), CliError> {
        match &mut self.content {
            Content::Lines(growing) if growing.is_behind() => growing.forget(),
            _ => return Ok(()),
        }
        self.read(holders, out, report)
    }

    /// Makes the next look read the file again.
    fn forget(&mut self) {
        self.stamp = None;
        self.content.forget();
    }

    fn read(
        &mut self,
        holders: &Holders<'_>,
        out: &Output,
        report: &Report<'_>,
    ) -> Result<(), CliError> {
        let began = Instant::now();
        let (reader, mut places) = (&mut self.reader, Vec::new());
        let read = match &mut self.content {
            Content::Sessions(seen) => {
                let changed = Database::open(&self.path).and_then(|all| all.changed(seen));
                let failed = |error: CliError| CliError::Usage(error.sentence());
                changed.map_err(failed).and_then(|mut changed| {
                    changed.try_for_each(|sourced| {
                        let Sourced { conversation, line, .. } = sourced.map_err(failed)?;
                        reader.follow(holders, out, report, &conversation, line, &mut Vec::new())
                    })
                })
            }
            Content::Lines(growing) => growing.read(|grown| match grown {
                Grown::Conversation(conversation, line) => {
                    reader.follow(holders, out, report, &conversation, line, &mut places)
                }
                Grown::Messages(messages) => {
                    let Some(place) = &mut reader.first else { return Ok(()) };
                    let recorded = holders
                        .memory()
                        .conversations()
                        .follow_on(&mut place.followed, &messages)?;
                    place.messages += messages.len() as u64;
                    place.report(&recorded, report)
                }
                Grown::Damage(error) => {
                    reader.tell(out, &error);
                    Ok(())
                }
            }),
        };
        self.not_before = Instant::now() + began.elapsed() * SHARE;
        match read {
            // Another process writes to the store; the next look takes everything.
            Err(CliError::Memory(error))
                if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Locked) =>
            {
                self.forget();
                Ok(())
            }
            // What a todo may not hold does not keep others from being recorded.
            Err(CliError::Memory(error)) if error.kind() == ErrorKind::Quota => {
                self.content.forget();
                self.reader.say(out, format!("skipped: {error}"));
                Ok(())
            }
            // Its program may be writing it.
            Err(CliError::Usage(why)) => {
                self.forget();
                self.reader.say(out, format!("skipped: {why}"));
                Ok(())
            }
            // A file that cannot be read does not keep others from being read. It may be readable the next time,
            // although nobody has written it.
            Err(CliError::Input(error)) => {
                if matches!(error, InputError::Io { .. }) {
                    self.forget();
                }
                self.reader.tell(out, &error);
                Ok(())
            }
            read => read,
        }
    }
}

fn stamp_of(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

impl Reader {
    /// Records the new messages of a conversation. `places` are those of the conversations before it.
    fn follow(
        &mut self,
        holders: &Holders<'_>,
        out: &Output,
        report: &Report<'_>,
        conversation: &Conversation,
        line: u64,
        places: &mut Vec<Place>,
    ) -> Result<(), CliError> {
        let settled = conversation.settled();
        let name = match &conversation.id {
            Some(id) => id.clone(),
            None if line <= *self.nameless.get_or_insert(line) => stem(&self.file),
            None => format!("{}-{line}", stem(&self.file)),
        };
        // Messages that a branch has left may have been recorded earlier.
        let trunk = trunks(conversation).find_map(|trunk| {
            let place = places.iter().find(|place| place.id.as_deref() == Some(trunk))?;
            Some(place.followed.todo().clone())
        });
        let known = holders.of(&name, &self.file, conversation);
        let known = known.into_iter().map(|(todo, _)| todo);
        for todo in known.chain(holders.new_todo(&name, &self.file)) {
            let conversations = holders.memory().conversations();
            let named = as_named(conversation, &name, &todo);
            let kept = named.as_ref().unwrap_or(conversation);
            let followed = conversations.follow(&todo, kept, settled, trunk.as_ref());
            let followed = match followed {
                // The others have their turn.
                Err(error) if error.kind() == ErrorKind::Quota => {
                    if places.is_empty() {
                        self.first = None;
                    }
                    self.say(out, format!("skipped: {error}"));
                    return Ok(());
                }
                followed => followed?,
            };
            let Some((followed, recorded)) = followed else { continue };
            let id = conversation.id.clone();
            let place = Place { id, followed, messages: settled as u64 };
            if !recorded.is_empty() && conversation.id.as_deref() != Some(todo.as_str()) {
                self.say(out, format!("{name:?} of {} goes into the todo {todo}", self.file));
            }
            place.report(&recorded, report)?;
            if places.is_empty() {
                self.first = Some(place.clone());
            }
            places.push(place);
            break;
        }
        Ok(())
    }

    /// Reports damage. That a file is not a conversation at all is reported once, whatever it contains.
    fn tell(&mut self, out: &Output, error: &InputError) {
        match error {
            InputError::Unknown { .. } if self.told.contains(OTHER) => {}
            InputError::Unknown { .. } => {
                self.told.insert(OTHER.to_owned());
                self.say(out, format!("skipped: {error}"));
            }
            _ => self.say(out, format!("skipped: {error}")),
        }
    }

    /// Reports something once.
    fn say(&mut self, out: &Output, note: String) {
        if !self.told.contains(&note) {
            out.note(&note);
            self.told.insert(note);
        }
    }
}

/// Represents all reports on a file that is not a conversation.
const OTHER: &str = "other";

impl Place {
    fn report(&self, recorded: &[Recorded], report: &Report<'_>) -> Result<(), CliError> {
        if recorded.is_empty() {
            return Ok(());
        }
        let Self { id, followed, messages } = self;
        let (id, todo) = (id.as_deref(), followed.todo());
        report(&Batch { id, todo, messages: *messages, recorded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::{Memory, Options};

    /// A file that cannot be read once is read later, although nobody has written it meanwhile.
    #[test]
    fn rc6_a_file_that_could_not_be_read_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.json");
        let memory = Memory::in_memory(Options::default()).unwrap();
        let look = |file: &mut WatchedFile| {
            file.not_before = Instant::now();
            file.look(&Holders::new(&memory), &Output::plain(), &|_| Ok(())).unwrap();
            memory.todos(None, 9).unwrap().len()
        };
        // What is read is a folder first, and then a file of its size and time.
        std::fs::create_dir(&path).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let mut text = "[{\"role\":\"user\",\"content\":\"好\"}]".to_owned();
        let Some(rest) = usize::try_from(meta.len()).unwrap().checked_sub(text.len()) else {
            return;
        };
        let mut file = WatchedFile::new(&path);
        assert_eq!(look(&mut file), 0);
        std::fs::remove_dir(&path).unwrap();
        text.push_str(&" ".repeat(rest));
        std::fs::write(&path, text).unwrap();
        let written = std::fs::File::options().append(true).open(&path).unwrap();
        written.set_modified(meta.modified().unwrap()).unwrap();
        assert_eq!(look(&mut file), 1);
    }
}
