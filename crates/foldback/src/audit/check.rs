//! Reads the log and checks that it is as it was written.

use super::coding::Coding;
use super::line::{AuditLine, End, LINES_LOST, digest, read};
use super::log::anchor_of;
use super::{AuditLog, FILE, check_is_file, key_of};
use crate::Error;
use crate::error::Failure;
use foldback_core::{Timestamp, TodoId};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Take};
use std::path::Path;

/// A filter for lines of the log. The default accepts all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only lines of this todo.
    pub todo: Option<TodoId>,
    /// Only lines from this time on.
    pub since: Option<Timestamp>,
    /// Only lines with this query, word for word.
    pub query: Option<String>,
}

/// The result of reading the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// How many lines were read, up to the first after which nothing can be trusted.
    pub lines: u64,
    /// The first line that is broken, counted from 1 in the file, and what is wrong with it.
    pub broken: Option<(u64, String)>,
}

impl AuditLog<'_> {
    /// Copies the log, if there is one, into another store's folder.
    pub(crate) fn copy_into(self, dir: &Path) -> Result<(), Error> {
        let Some(path) = self.memory.audit_path().filter(|path| path.exists()) else {
            return Ok(());
        };
        let copy = || {
            check_is_file(&path)?;
            let file = File::open(&path)?;
            // A line that is being written would be copied only in part.
            file.lock_shared()?;
            let to = dir.join(FILE);
            std::fs::copy(&path, &to)?;
            File::open(&to)?.sync_all()
        };
        copy().map_err(|source| Failure::Io { path: path.clone(), source }.into())
    }

    /// Passes on the wanted lines, in the order in which they were written, up to the first broken one, and reports
    /// whether there is one. It continues after a line that says that earlier ones are gone (`lines_lost`). A truncated
    /// log is recognised by its end, which is noted in the store every 64 lines and when a writing memory is closed.
    ///
    /// # Errors
    /// When the file cannot be read, or the store fails. A store without a log has none.
    pub fn read(
        self,
        filter: &AuditFilter,
        mut take: impl FnMut(AuditLine),
    ) -> Result<AuditReport, Error> {
        let mut report = AuditReport::default();
        let (Some(path), anchor) = (self.memory.audit_path(), anchor_of(self.memory.kv.as_ref())?)
        else {
            return Ok(report);
        };
        let io = |source| Error::from(Failure::Io { path: path.clone(), source });
        let coding = Coding::of(self.memory.kv.as_ref())?;
        let key = key_of(&self.memory.secret());
        let query = filter.query.as_deref().map(|query| digest(&key, query));
        let is_wanted = |line: &AuditLine| {
            filter.todo.as_ref().is_none_or(|todo| line.todo.as_deref() == Some(todo.as_str()))
                && filter.since.is_none_or(|since| Timestamp::parse(&line.at) >= Some(since))
                && query.as_ref().is_none_or(|query| line.query.as_ref() == Some(query))
        };
        let mut file = open(&path).map_err(io)?;
        let (mut end, mut bytes, mut place) = (End::begin(), Vec::new(), 0);
        let lost = "the store's secret, with which it was written, is missing or damaged";
        while let Some(file) = &mut file {
            bytes.clear();
            if file.read_until(b'\n', &mut bytes).map_err(io)? == 0 {
                break;
            }
            place += 1;
            let is_whole = bytes.pop_if(|byte| *byte == b'\n').is_some();
            let opened = coding.read(&bytes).ok_or_else(|| "it does not open".to_owned());
            let line = match opened.and_then(|line| read(&key, &line)) {
                _ if !self.memory.has_kept_secret => Err(format!("it cannot be checked: {lost}")),
                Ok(_) if !is_whole => Err("its end is missing".to_owned()),
                line => line,
            };
            let line = match line {
                Ok(line) => line,
                Err(why) => {
                    report.broken.get_or_insert((place, why));
                    break;
                }
            };
            if let Err(why) = line.follow(&end) {
                report.broken.get_or_insert((place, why));
                // The line itself says that others are gone, and was written by the store: what follows it is sound.
                if line.what != LINES_LOST {
                    break;
                }
            }
            end = End { n: line.n, check: line.check.clone() };
            if let Some(known) = anchor.as_ref().filter(|known| known.n == end.n)
                && known.check != end.check
            {
                let why = "the store knows of another line here".to_owned();
                report.broken.get_or_insert((place, why));
                break;
            }
            report.lines += 1;
            if is_wanted(&line) {
                take(line);
            }
        }
        let known = anchor.map_or(0, |known| known.n);
        if report.broken.is_none() && end.n < known {
            let why = format!("the log ends before it, and the store knows of {known} lines");
            report.broken = Some((end.n + 1, why));
        }
        Ok(report)
    }
}

/// Opens a log as it is now; `None` if there is none. A line that is still being written is not broken, and other writers
/// continue.
fn open(path: &Path) -> io::Result<Option<BufReader<Take<File>>>> {
    check_is_file(path)?;
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    file.lock_shared()?;
    let length = file.metadata()?.len();
    file.unlock()?;
    Ok(Some(BufReader::new(file.take(length))))
}
