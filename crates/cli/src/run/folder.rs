//! The folders of runs inside the store's folder: a record, a journal and a trajectory each.

use super::record::{RunRecord, RunState, VERSION};
use crate::cli::Globals;
use crate::error::CliError;
use crate::{outfile, store};
use data_encoding::BASE32_NOPAD;
use foldback_agent::trajectory::write_trajectory;
use foldback_agent::{FileJournal, Trajectory};
use foldback_core::TodoId;
use foldback_redaction::{plain, without_numbers};
use std::borrow::Cow;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folders of a store's runs.
pub(crate) struct Runs {
    dir: PathBuf,
    /// Whether secrets are replaced before anything is kept.
    redacts: bool,
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    dir: PathBuf,
    redacts: bool,
}

/// A run of the list, or why it cannot be read.
type Listed = Result<(RunFolder, RunRecord), CliError>;

/// A run's name begins with at most this many characters of its task.
const SLUG: usize = 28;

impl Runs {
    pub(crate) fn of(globals: &Globals) -> Result<Self, CliError> {
        let redacts = globals.settings.memory.redact;
        Ok(Self { dir: store::folder(globals)?.join("runs"), redacts })
    }

    /// Creates a folder for a new run, with this name or a readable new one.
    pub(crate) fn create(
        &self,
        task: &str,
        name: Option<TodoId>,
    ) -> Result<(TodoId, RunFolder), CliError> {
        private_folder(&self.dir)?;
        let (task, mut attempt) = (&*self.kept(task), 0);
        loop {
            let id = match &name {
                Some(name) => name.clone(),
                None => new_id(task, attempt)?,
            };
            let dir = self.dir.join(folder_name(&id));
            match fs::create_dir(&dir) {
                Ok(()) => return Ok((id, self.run_folder(dir))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match &name {
                    Some(name) => {
                        return Err(CliError::Usage(format!(
                            "there is already a run {name}; `foldback run --resume {name}` continues \
                             it, and `foldback run --todo {name} \"...\"` asks the next question"
                        )));
                    }
                    None => attempt += 1,
                },
                Err(source) => return Err(failed(&dir, "created", source)),
            }
        }
    }

    /// A unique name for a run with this task.
    pub(crate) fn name_for(&self, task: &str) -> Result<TodoId, CliError> {
        let (task, mut attempt) = (&*self.kept(task), 0);
        loop {
            let id = new_id(task, attempt)?;
            if !self.dir.join(folder_name(&id)).exists() {
                return Ok(id);
            }
            attempt += 1;
        }
    }

    /// Creates a folder for the next turn of a conversation that had this many: `trip:2`.
    pub(crate) fn create_turn(
        &self,
        todo: &TodoId,
        turns: usize,
        task: &str,
    ) -> Result<(TodoId, RunFolder), CliError> {
        private_folder(&self.dir)?;
        for turn in turns + 1.. {
            // A todo's name may already have the greatest length.
            let Ok(id) = TodoId::new(&format!("{todo}:{turn}")) else { break };
            let dir = self.dir.join(folder_name(&id));
            match fs::create_dir(&dir) {
                Ok(()) => return Ok((id, self.run_folder(dir))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(failed(&dir, "created", source)),
            }
        }
        self.create(task, None)
    }

    /// Keeps other turns out of a conversation for as long as the file is held.
    ///
    /// # Errors
    /// When another process holds it.
    pub(crate) fn hold(&self, todo: &TodoId) -> Result<File, CliError> {
        private_folder(&self.dir)?;
        let path = self.held_by(todo);
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|source| failed(&path, "opened", source))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(is_at_work(todo)),
            Err(TryLockError::Error(source)) => Err(failed(&path, "locked", source)),
        }
    }

    /// The file that a turn of a conversation holds. No run has such a name.
    fn held_by(&self, todo: &TodoId) -> PathBuf {
        self.dir.join(format!("{}~", folder_name(todo)))
    }

    /// Removes the runs that are turns of a conversation, and returns how many there were.
    pub(crate) fn forget(&self, todo: &TodoId) -> Result<u64, CliError> {
        if !self.dir.exists() {
            return Ok(0);
        }
        let _held = self.hold(todo)?;
        let mut runs = Vec::new();
        for folder in self.folders()? {
            match folder.read() {
                Ok(Some(run)) if run.todo() == todo => match run.state {
                    RunState::Running => return Err(is_at_work(todo)),
                    _ => runs.push(folder),
                },
                // The run cannot be read, but its name says which conversation it belongs to.
                Err(_) if folder.is_named_after(todo) => runs.push(folder),
                _ => {}
            }
        }
        for RunFolder { dir, .. } in &runs {
            fs::remove_dir_all(dir).map_err(|source| failed(dir, "removed", source))?;
        }
        let held = self.held_by(todo);
        fs::remove_file(&held).map_err(|source| failed(&held, "removed", source))?;
        Ok(runs.len() as u64)
    }

    /// The runs that are turns of a conversation, oldest first. Runs that cannot be read are left out.
    pub(crate) fn of_todo(&self, todo: &TodoId) -> Result<Vec<RunRecord>, CliError> {
        let records = self.list()?.into_iter().flatten().map(|(_, record)| record);
        Ok(records.filter(|record| record.todo() == todo).collect())
    }

    /// Opens the run of this name.
    pub(crate) fn open(&self, id: &TodoId) -> Result<(RunFolder, RunRecord), CliError> {
        let folder = self.folder(id);
        match folder.read()? {
            Some(record) => Ok((folder, record)),
            None => Err(CliError::NotFound(format!(
                "there is no run {id}; `foldback sessions` lists the runs"
            ))),
        }
    }

    /// The folder of the run of this name, if there is one.
    pub(super) fn folder(&self, id: &TodoId) -> RunFolder {
        self.run_folder(self.dir.join(folder_name(id)))
    }

    fn run_folder(&self, dir: PathBuf) -> RunFolder {
        RunFolder { dir, redacts: self.redacts }
    }

    /// A text as it is kept: with secrets replaced if that is set.
    fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.redacts { unnumbered(text) } else { Cow::Borrowed(text) }
    }

    /// Every run, oldest first. A run that cannot be read is an error in its place.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, CliError> {
        let read = |folder: RunFolder| match folder.read() {
            Ok(record) => Some(Ok((folder, record?))),
            Err(error) => Some(Err(error)),
        };
        let mut runs: Vec<_> = self.folders()?.into_iter().filter_map(read).collect();
        let key =
            |run: &Listed| run.as_ref().ok().map(|(_, record)| (record.began, record.id.clone()));
        runs.sort_by_key(key);
        Ok(runs)
    }

    /// Everything in the folder of runs, in any order.
    fn folders(&self) -> Result<Vec<RunFolder>, CliError> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| failed(&self.dir, "read", source))?,
        };
        Ok(entries.flatten().map(|entry| self.run_folder(entry.path())).collect())
    }
}

impl RunFolder {
    /// A text as it is kept: with secrets replaced if that is set.
    pub(super) fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.redacts { unnumbered(text) } else { Cow::Borrowed(text) }
    }

    /// The run's own working folder, for a run that is given none.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    /// Whether it is the folder of a conversation's first run or of a later turn, by its name.
    fn is_named_after(&self, todo: &TodoId) -> bool {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        let is_turn = |turn: &str| turn.strip_prefix('+').is_some_and(|n| n.parse::<u32>().is_ok());
        name.strip_prefix(&folder_name(todo)).is_some_and(|rest| rest.is_empty() || is_turn(rest))
    }

    fn record(&self) -> PathBuf {
        self.dir.join("run.json")
    }

    /// The file of the last request of one of its contexts.
    pub(super) fn sent(&self, todo: &TodoId) -> PathBuf {
        self.dir.join("sent").join(format!("{}.json", folder_name(todo)))
    }

    fn journal_path(&self) -> PathBuf {
        self.dir.join("journal")
    }

    pub(crate) fn trajectory(&self) -> PathBuf {
        self.dir.join("trajectory.jsonl")
    }

    /// Opens the run's journal for this process alone.
    pub(crate) fn journal(&self) -> Result<FileJournal, CliError> {
        let journal = FileJournal::open(self.journal_path())?;
        Ok(if self.redacts { journal.with_change(unnumbered) } else { journal })
    }

    /// Writes the record to a new file that replaces the old one at once, so a kill leaves one of the two.
    pub(crate) fn save(&self, record: &RunRecord) -> Result<(), CliError> {
        outfile::write(&self.record(), |out| {
            let json = serde_json::to_string_pretty(record).map_err(io::Error::from);
            let written = json.and_then(|json| writeln!(out, "{}", self.kept(&json)));
            written.map_err(|source| failed(&self.record(), "written", source))
        })
    }

    /// Writes the trajectory, replacing one that an earlier part of the run has left.
    pub(crate) fn save_trajectory(&self, trajectory: &Trajectory) -> Result<(), CliError> {
        let path = self.trajectory();
        outfile::write(&path, |out| {
            let mut text = Vec::new();
            let written = write_trajectory(trajectory, &mut text);
            let written = written.and_then(|()| match str::from_utf8(&text) {
                Ok(text) => out.write_all(self.kept(text).as_bytes()),
                Err(_) => out.write_all(&text),
            });
            written.map_err(|source| failed(&path, "written", source))
        })
    }

    /// Removes the folder of a run that has no record yet, so that its name is free again.
    pub(crate) fn discard_unrecorded(&self) {
        if !self.record().exists() {
            self.discard();
        }
    }

    /// Removes the run, which must not have begun.
    pub(crate) fn discard(&self) {
        // What stays is an empty folder, which nothing reads.
        drop(fs::remove_dir_all(&self.dir));
    }

    /// The record; `None` if there is none.
    fn read(&self) -> Result<Option<RunRecord>, CliError> {
        let path = self.record();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => return Err(failed(&path, "read", source)),
        };
        let bad = |what: String| {
            CliError::Usage(format!("{} is not the record of a run: {what}", path.display()))
        };
        let mut record: RunRecord =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if record.version != VERSION {
            return Err(bad(format!("its version is {}, not {VERSION}", record.version)));
        }
        if record.state == RunState::Running && !self.is_at_work() {
            record.state = RunState::Interrupted;
        }
        Ok(Some(record))
    }

    /// Whether a process holds the run's journal.
    fn is_at_work(&self) -> bool {
        let Ok(journal) = File::open(self.journal_path()) else { return false };
        matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// The error for a second turn.
pub(super) fn is_at_work(todo: &TodoId) -> CliError {
    CliError::InProgress(format!("a turn of the todo {todo} is in progress"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn failed(path: &Path, what: &str, source: io::Error) -> CliError {
    CliError::Io { what: format!("{} could not be {what}", path.display()), source }
}

/// Creates a folder that other users cannot read, like the store's.
fn private_folder(dir: &Path) -> Result<(), CliError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|source| failed(dir, "created", source))
}

/// The folder's name for a run: its name without characters that some file systems refuse.
fn folder_name(id: &TodoId) -> String {
    id.as_str().replace(':', "+")
}

/// A readable, unique name: words of the task, and five characters.
fn new_id(task: &str, attempt: u32) -> Result<TodoId, CliError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = (since.as_nanos(), std::process::id(), attempt, task);
    let hash = xxhash_rust::xxh3::xxh3_64(format!("{seed:?}").as_bytes()).to_le_bytes();
    let unique = &BASE32_NOPAD.encode(&hash).to_lowercase()[..5];
    let id = format!("{}-{unique}", slug(task));
    TodoId::new(&id).map_err(|error| CliError::Usage(error.to_string()))
}

/// The first words of a task as part of a name; `run` for a task without Latin letters.
fn slug(task: &str) -> String {
    let mut slug = String::new();
    let words = task.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        let room = SLUG.saturating_sub(slug.len() + usize::from(!slug.is_empty()));
        if word.len() > room && !slug.is_empty() {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase()[..word.len().min(room)]);
    }
    if slug.is_empty() { "run".to_owned() } else { slug }
}

/// A text with marks without numbers in place of its secrets. The numbers of marks that it holds already are removed:
/// they are the store's, and a text that was kept once stays as it is.
fn unnumbered(text: &str) -> Cow<'_, str> {
    match plain(text) {
        Cow::Borrowed(text) => without_numbers(text),
        Cow::Owned(text) => Cow::Owned(without_numbers(&text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_of_any_task() {
        assert_eq!(slug("Mend the tide report, please!"), "mend-the-tide-report-please");
        assert_eq!(slug("把潮汐报告修好"), "run");
        assert_eq!(slug("修好 report 3"), "report-3");
        assert_eq!(slug("Donaudampfschifffahrtsgesellschaft"), "donaudampfschifffahrtsgesell");
        assert_eq!(slug(""), "run");
        let [one, two] = [0, 1].map(|attempt| new_id("a task", attempt).unwrap());
        assert_ne!(one, two);
        assert!(one.as_str().starts_with("a-task-"), "{one}");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert!([".", "..", "...", "a/b", "a+b"].map(TodoId::new).iter().all(Result::is_err));
        assert_eq!(folder_name(&TodoId::new("a:b.c").unwrap()), "a+b.c");
    }
}
