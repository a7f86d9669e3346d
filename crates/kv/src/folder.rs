//! The folder of a store: its format file, and how a store is created.
//!
//! `FORMAT` is a text of three lines and is written first: the words `foldback store`, `version 4`, and `engine` with a
//! name. While the engine's files are being made it has a fourth line, `unfinished`; the next process that opens the
//! store for writing then creates them again. An encrypted store states `version 5` and has the fourth line
//! `encrypted`, so that programs that do not know encryption refuse it; in all else it is of version 4. A folder with a
//! complete format file and no database is damaged, and never gets a new, empty database.
//!
//! The folder of a store whose records are on a server states `engine postgres`, and `database` with the id that the
//! database has, in its fourth line. It states no address: that may hold a password, and may change.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::error::{reading, writing};
use crate::lock::Lock;
use crate::{Engine, Error, FORMAT_VERSION, Mode};

const MAGIC: &str = "foldback store";
const FORMAT: &str = "FORMAT";
const UNFINISHED: &str = "unfinished";
const ENCRYPTED: &str = "encrypted";
/// What the fourth line begins with if the records are in a database, followed by the database's id.
const DATABASE: &str = "database ";
/// The version stated by an encrypted store.
const ENCRYPTED_VERSION: u64 = 5;
/// How long a process that creates a store waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for a process that has the whole store to itself.
const OWNER_PATIENCE: Duration = Duration::from_millis(700);
/// The names of the engines' databases in the folder.
pub(crate) const SQLITE_FILE: &str = "store.sqlite";
pub(crate) const REDB_FILE: &str = "store.redb";
pub(crate) const SLED_FOLDER: &str = "store.sled";
const DATABASES: [&str; 3] = [SQLITE_FILE, REDB_FILE, SLED_FOLDER];

/// Checks the folder's format. For writing, it also creates the store if there is none, and upgrades
/// one of an earlier format to the present one. `make` builds the engine's files; it may find the
/// remains of an earlier attempt. `upgrade` adds what later versions have; it may find that it is
/// there already. Returns the version that the store now has.
pub(crate) fn open(
    dir: &Path,
    engine: Engine,
    mode: Mode,
    make: impl FnOnce() -> Result<(), Error>,
    upgrade: impl FnOnce() -> Result<(), Error>,
) -> Result<u64, Error> {
    match (read(dir, engine)?, mode) {
        (Some((FORMAT_VERSION, State::Finished)), _) => return Ok(FORMAT_VERSION),
        (Some((version, State::Finished)), Mode::ReadOnly) => return Ok(version),
        (None, Mode::ReadOnly) => {
            check_bare(dir)?;
            return Err(Error::NotFound { path: dir.to_owned() });
        }
        (Some((_, State::Unfinished)), Mode::ReadOnly) => {
            return Err(Error::Format {
                path: dir.to_owned(),
                detail: "it was not completely created; open it once for writing".to_owned(),
            });
        }
        (_, Mode::ReadWrite) => {}
    }
    make_private(dir)?;
    let lock = Lock::open(dir)?;
    take(&lock, dir, engine)?;
    // Another process may have done it while this one waited.
    match read(dir, engine)? {
        Some((FORMAT_VERSION, State::Finished)) => return Ok(FORMAT_VERSION),
        Some((version, State::Finished)) => match upgrade() {
            // A damaged store keeps its version, and is read as far as it can be.
            Err(Error::Damaged { .. }) => return Ok(version),
            upgraded => {
                upgraded?;
                return write(dir, engine, FORMAT_VERSION, State::Finished);
            }
        },
        Some((_, State::Unfinished)) => {}
        None => {
            check_bare(dir)?;
            write(dir, engine, FORMAT_VERSION, State::Unfinished)?;
            foldback_core::failpoint!("kv.folder.begun");
        }
    }
    make()?;
    foldback_core::failpoint!("kv.folder.made");
    let version = write(dir, engine, FORMAT_VERSION, State::Finished)?;
    foldback_core::failpoint!("kv.folder.finished");
    Ok(version)
}

/// Returns [`Error::Format`] if a folder without a format file holds a database.
fn check_bare(dir: &Path) -> Result<(), Error> {
    match DATABASES.iter().find(|name| dir.join(name).exists()) {
        Some(name) => {
            let detail = format!("it has {name} and no {FORMAT} file; {MENDED}");
            Err(Error::Format { path: dir.to_owned(), detail })
        }
        None => Ok(()),
    }
}

/// Reads the version in the format file again: another process may have upgraded the store.
#[cfg(feature = "sqlite")]
pub(crate) fn version(dir: &Path, engine: Engine) -> Result<u64, Error> {
    let found = read(dir, engine)?;
    found.map(|(version, _)| version).ok_or_else(|| Error::NotFound { path: dir.to_owned() })
}

/// Waits for the folder's lock. A process that has a store of an exclusive engine open holds it all the time.
fn take(lock: &Lock, dir: &Path, engine: Engine) -> Result<(), Error> {
    let path = dir.to_owned();
    let is_whole = matches!(read(dir, engine)?, Some((_, State::Finished)));
    let (patience, refused) = if engine.is_exclusive() && is_whole {
        (OWNER_PATIENCE, Error::Locked { path })
    } else {
        (PATIENCE, Error::Busy { path, doing: "another process was creating it" })
    };
    if lock.take(patience, Duration::from_millis(2))? { Ok(()) } else { Err(refused) }
}

/// Ties the folder to the database with this id, so that its indexes and payload files are never taken for those of
/// another one. Returns whether it is tied: a folder that is only read may not exist.
#[cfg(feature = "postgres")]
pub(crate) fn tie(dir: &Path, id: &str, mode: Mode) -> Result<bool, Error> {
    let engine = Engine::Postgres;
    if read(dir, engine)?.is_none() {
        if mode == Mode::ReadOnly {
            return Ok(false);
        }
        check_bare(dir)?;
        make_private(dir)?;
        let lock = Lock::open(dir)?;
        take(&lock, dir, engine)?;
        // Another process may have done it while this one waited.
        if read(dir, engine)?.is_none() {
            replace(
                dir,
                &format!("{MAGIC}\nversion {FORMAT_VERSION}\nengine {engine}\n{DATABASE}{id}\n"),
            )?;
        }
    }
    let text = text(dir)?.unwrap_or_default();
    match text.lines().nth(3).and_then(|line| line.strip_prefix(DATABASE)) {
        Some(found) if found == id => Ok(true),
        Some(found) => {
            let detail = format!(
                "it belongs to the database with the id {found}, and this one has the id {id}; name another folder"
            );
            Err(Error::Format { path: dir.to_owned(), detail })
        }
        None => {
            let detail = format!("its {FORMAT} file states no database");
            Err(Error::Format { path: dir.to_owned(), detail })
        }
    }
}

/// Fills an empty folder with a copy of a store. The format file comes last, so that an incomplete
/// copy is not a store.
pub(crate) fn fill(
    dir: &Path,
    engine: Engine,
    copy: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    make_private(dir)?;
    let mut entries = fs::read_dir(dir).map_err(reading("list", dir))?;
    if entries.next().is_some() {
        return Err(Error::NotEmpty { path: dir.to_owned() });
    }
    copy()?;
    write(dir, engine, FORMAT_VERSION, State::Finished).map(drop)
}

/// Makes renamed, created and removed entries of a folder durable.
pub(crate) fn sync(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|file| file.sync_all()).map_err(writing("sync", dir))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unfinished,
    Finished,
}

/// Returns whether the format file of a folder says that the store is encrypted. Faults in that file are reported when
/// the store is opened.
///
/// # Errors
///
/// [`Error::Io`] when its format file cannot be read.
pub fn is_encrypted(dir: &Path) -> Result<bool, Error> {
    let text = text(dir)?.unwrap_or_default();
    Ok(parse(dir, &text).is_ok() && text.lines().nth(3) == Some(ENCRYPTED))
}

/// Returns the engine that the format file of a folder states; `None` if there is no such file.
///
/// # Errors
///
/// [`Error::Format`] and [`Error::FormatVersion`] when the file is damaged or of another version, and [`Error::Io`] when
/// it cannot be read.
pub fn engine_of(dir: &Path) -> Result<Option<Engine>, Error> {
    let parsed = text(dir)?.map(|text| parse(dir, &text)).transpose()?;
    Ok(parsed.map(|(_, engine, _)| engine))
}

/// Rewrites the format file of a complete store so that it says that the store is encrypted.
pub(crate) fn mark_encrypted(dir: &Path) -> Result<(), Error> {
    let text = text(dir)?.ok_or_else(|| Error::NotFound { path: dir.to_owned() })?;
    let (_, engine, _) = parse(dir, &text)?;
    let marked = format!("{MAGIC}\nversion {ENCRYPTED_VERSION}\nengine {engine}\n{ENCRYPTED}\n");
    if text == marked { Ok(()) } else { replace(dir, &marked) }
}

/// Checks that the folder's format file is sound, whichever engine it states. Returns [`Error::NotFound`] if there
/// is neither such a file nor a database.
pub(crate) fn judge(dir: &Path) -> Result<(), Error> {
    match text(dir)? {
        Some(text) => parse(dir, &text).map(drop),
        None => check_bare(dir).and(Err(Error::NotFound { path: dir.to_owned() })),
    }
}

/// Writes the format file of a store that has lost it.
pub(crate) fn restore(dir: &Path, engine: Engine, version: u64) -> Result<(), Error> {
    let lock = Lock::open(dir)?;
    if !lock.take(OWNER_PATIENCE, Duration::from_millis(2))? {
        return Err(Error::Locked { path: dir.to_owned() });
    }
    write(dir, engine, version, State::Finished).map(drop)
}

/// What to do about a database that is gone.
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
pub(crate) fn without(name: &str) -> String {
    format!(
        "it has lost its {name}; restore a backup into a new store (`foldback --store NEW restore BACKUP`)"
    )
}

/// What to do about a format file that is damaged beside a database.
const MENDED: &str = "`doctor --repair` rewrites that file";

/// Returns the version and the state of the store in a folder, if there is one.
fn read(dir: &Path, engine: Engine) -> Result<Option<(u64, State)>, Error> {
    let Some(text) = text(dir)? else { return Ok(None) };
    let has_database = || DATABASES.iter().any(|name| dir.join(name).exists());
    let (version, found, state) = parse(dir, &text).map_err(|error| match error {
        Error::Format { path, detail } if has_database() => {
            Error::Format { path, detail: format!("{detail}; {MENDED}") }
        }
        error => error,
    })?;
    if found != engine {
        let (path, found) = (dir.to_owned(), found.to_string());
        return Err(Error::FormatEngine { path, found, expected: engine });
    }
    Ok(Some((version, state)))
}

/// Returns the contents of the format file, if there is one.
fn text(dir: &Path) -> Result<Option<String>, Error> {
    let path = dir.join(FORMAT);
    let mut text = Vec::new();
    match File::open(&path) {
        // Bounded, because a file of this name may be anything.
        Ok(file) => file.take(4096).read_to_end(&mut text).map_err(reading("read", &path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(reading("open", &path)(error)),
    };
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn parse(dir: &Path, text: &str) -> Result<(u64, Engine, State), Error> {
    let wrong = |detail: String| Error::Format { path: dir.to_owned(), detail };
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err(wrong(format!("its {FORMAT} file does not begin with {MAGIC:?}")));
    }
    let version = lines.next().and_then(|line| line.strip_prefix("version ")?.parse().ok());
    let stated: u64 =
        version.ok_or_else(|| wrong(format!("its {FORMAT} file states no version")))?;
    // Apart from its values, such a store is one of the version before.
    let is_encrypted = stated == ENCRYPTED_VERSION && text.lines().nth(3) == Some(ENCRYPTED);
    let version = if is_encrypted { FORMAT_VERSION } else { stated };
    if !(1..=FORMAT_VERSION).contains(&version) {
        let (path, expected) = (dir.to_owned(), FORMAT_VERSION);
        return Err(Error::FormatVersion { path, found: version, expected });
    }
    let found = lines.next().and_then(|line| line.strip_prefix("engine "));
    let found = found.ok_or_else(|| wrong(format!("its {FORMAT} file states no engine")))?;
    let engine = found
        .parse()
        .map_err(|_| wrong(format!("its {FORMAT} file names the unknown engine {found:?}")))?;
    match (lines.next(), lines.next()) {
        (None, None) => Ok((version, engine, State::Finished)),
        (Some(ENCRYPTED), None) if is_encrypted => Ok((version, engine, State::Finished)),
        (Some(line), None) if engine == Engine::Postgres && line.starts_with(DATABASE) => {
            Ok((version, engine, State::Finished))
        }
        (Some(UNFINISHED), None) => Ok((version, engine, State::Unfinished)),
        _ => Err(wrong(format!("its {FORMAT} file has lines that this version does not know"))),
    }
}

/// Writes a format file that states a version, and returns that version.
fn write(dir: &Path, engine: Engine, version: u64, state: State) -> Result<u64, Error> {
    let mut text = format!("{MAGIC}\nversion {version}\nengine {engine}\n");
    if state == State::Unfinished {
        text.push_str(UNFINISHED);
        text.push('\n');
    }
    replace(dir, &text)?;
    Ok(version)
}

/// Replaces the format file.
fn replace(dir: &Path, text: &str) -> Result<(), Error> {
    let new = dir.join("FORMAT.new");
    let mut file = File::create(&new).map_err(writing("create", &new))?;
    file.write_all(text.as_bytes()).map_err(writing("write", &new))?;
    file.sync_all().map_err(writing("sync", &new))?;
    let path = dir.join(FORMAT);
    fs::rename(&new, &path).map_err(writing("rename into", &path))?;
    sync(dir)
}

/// Creates the folder if there is none, and closes it to everybody but its owner.
fn make_private(dir: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if dir.is_symlink() && !dir.exists() {
        let detail = "it is a link that leads to nothing".to_owned();
        return Err(Error::Format { path: dir.to_owned(), detail });
    }
    builder.create(dir).map_err(writing("create", dir))?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(dir, mode).map_err(writing("close to others", dir))?;
    }
    // Best effort: this user may not be able to open the folder above.
    if let Some(parent) = dir.parent() {
        let _ = sync(parent);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
