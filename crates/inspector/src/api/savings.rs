//! What the gateway saved: sums over its ledger, which is read on as it grows.

use super::answer::ApiError;
use foldback_gateway::{Bill, Entry, Ledger, Sums};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use utoipa::ToSchema;

/// What passed through the gateway, what it cost, and what it would have cost in full. Costs are in weighted tokens (tokens
/// at the plain price of the model) and cover the input.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Savings {
    /// How many requests.
    requests: u64,
    /// Those from which something was left out.
    folded: u64,
    /// Those whose tokens the provider reported. Of the others four bytes count as one token.
    billed: u64,
    /// Those whose tokens are estimated.
    estimated: u64,
    sent: Amount,
    /// What would have been sent in full.
    whole: Amount,
    /// What the model looked up within a turn, unseen by the client.
    recalls: Recalled,
    /// The tokens that were not sent, those of recalls taken from them; below 0 if more were sent.
    tokens_saved: i64,
    /// The cost of what was sent and of the recalls.
    cost: f64,
    /// The part of the full cost that was saved; below 0 if it cost more.
    saved: Option<f64>,
}

/// The size and cost of requests.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Amount {
    bytes: u64,
    tokens: u64,
    cost: f64,
}

/// Requests for recalls, and their tokens and cost.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Recalled {
    requests: u64,
    tokens: u64,
    cost: f64,
}

impl From<&Bill> for Amount {
    fn from(bill: &Bill) -> Self {
        Self { bytes: bill.bytes, tokens: bill.tokens.total(), cost: rounded(bill.cost) }
    }
}

impl From<&Sums> for Savings {
    fn from(sums: &Sums) -> Self {
        let whole = sums.whole.cost;
        Self {
            requests: sums.requests,
            folded: sums.folded,
            billed: sums.requests - sums.estimated,
            estimated: sums.estimated,
            sent: (&sums.sent).into(),
            whole: (&sums.whole).into(),
            recalls: Recalled {
                requests: sums.recalls.requests,
                tokens: sums.recalls.tokens.total(),
                cost: rounded(sums.recalls.cost),
            },
            tokens_saved: tokens_saved(sums),
            cost: rounded(sums.cost()),
            saved: (whole > 0.0).then(|| ((1.0 - sums.cost() / whole) * 1e4).round() / 1e4),
        }
    }
}

/// The tokens that were not sent.
fn tokens_saved(sums: &Sums) -> i64 {
    let sent = sums.sent.tokens.total().saturating_add(sums.recalls.tokens.total());
    sums.whole.tokens.total().cast_signed().saturating_sub(sent.cast_signed())
}

fn rounded(cost: f64) -> f64 {
    (cost * 10.0).round() / 10.0
}

/// The ledger in a store's folder, of which each line is read once.
pub(crate) struct Ledgers {
    path: PathBuf,
    read: Mutex<Read>,
}

/// What was read of the file so far.
#[derive(Default)]
pub(crate) struct Read {
    version: Option<Version>,
    /// The last entry, and the byte at which its line begins.
    last: Option<(u64, Entry)>,
    each: HashMap<String, OfSession>,
    all: Sums,
}

/// The length of the file, and when it was written.
type Version = (u64, Option<SystemTime>);

/// The requests of a session.
#[derive(Default)]
struct OfSession {
    sums: Sums,
    /// The bytes at which their lines begin.
    starts: Vec<u64>,
}

impl Ledgers {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { path: folder.join(Ledger::FILE), read: Mutex::default() }
    }

    /// The file as of now. What was read before is read again only if the file was replaced. Without a file there are
    /// no requests.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn now(&self) -> Result<MutexGuard<'_, Read>, ApiError> {
        let mut read = self.read.lock();
        read.go_on(&self.path).map_err(failed)?;
        Ok(read)
    }

    /// How many requests a session has, and those that `which` chooses by their places, in the order of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn entries(
        &self,
        session: &str,
        which: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<(usize, Vec<Entry>), ApiError> {
        let read = self.now()?;
        let Some(OfSession { starts, .. }) = read.each.get(session) else {
            return Ok((0, Vec::new()));
        };
        let total = starts.len();
        let starts = starts.get(which(total)).unwrap_or_default().to_vec();
        drop(read);
        let replaced = || io::Error::other("it was replaced while it was read; ask again");
        let mut entries = Ledger::read(&self.path).map_err(failed)?;
        let found = starts.into_iter().map(|start| {
            entries.go_to(start)?;
            let entry = entries.next().transpose()?;
            entry.filter(|entry| entry.session == session).ok_or_else(replaced)
        });
        Ok((total, found.collect::<io::Result<_>>().map_err(failed)?))
    }
}

fn failed(error: io::Error) -> ApiError {
    ApiError::failed(format!("the ledger: {error}"))
}

impl Read {
    pub(crate) fn of(&self, session: &str) -> Option<Savings> {
        self.each.get(session).map(|of| Savings::from(&of.sums))
    }

    /// What a session cost, and how many tokens of it were not sent; `None` if it did not pass through the gateway.
    pub(crate) fn cost_and_saved(&self, session: &str) -> Option<(f64, i64)> {
        self.each.get(session).map(|of| (of.sums.cost(), tokens_saved(&of.sums)))
    }

    /// The sums of everything; `None` without any request.
    pub(crate) fn all(&self) -> Option<Savings> {
        (self.all.requests > 0).then(|| Savings::from(&self.all))
    }

    fn go_on(&mut self, path: &Path) -> io::Result<()> {
        let version = match std::fs::metadata(path) {
            Ok(meta) => (meta.len(), meta.modified().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *self = Self::default();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.version == Some(version) {
            return Ok(());
        }
        let last = self.last.as_ref();
        let mut entries = Ledger::read_from(path, last.map_or(0, |(start, _)| *start))?;
        if let Some((start, last)) = last {
            let again = entries.next().transpose()?;
            if entries.start() != *start || again.as_ref() != Some(last) {
                *self = Self::default();
                entries = Ledger::read(path)?;
            }
        }
        while let Some(entry) = entries.next().transpose()? {
            self.add(entries.start(), entry);
        }
        self.version = Some(version);
        Ok(())
    }

    fn add(&mut self, start: u64, entry: Entry) {
        self.all.add(&entry);
        let of = self.each.entry(entry.session.clone()).or_default();
        of.sums.add(&entry);
        of.starts.push(start);
        self.last = Some((start, entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(session: &str, sent: u64, whole: u64, is_estimate: bool) -> String {
        let bill = |plain: u64| {
            format!(r#"{{"bytes":{plain},"read":0,"written":0,"plain":{plain},"cost":{plain}.0}}"#)
        };
        format!(
            "{{\"at\":1767225600000,\"client\":\"c\",\"session\":\"{session}\",\"model\":\"m\",\"class\":\"chat\",\
             \"sent\":{},\"whole\":{},\"output\":1,\"is_estimate\":{is_estimate}}}\n",
            bill(sent),
            bill(whole)
        )
    }

    #[test]
    fn in1_savings_are_summed_for_each_session_and_read_on_when_the_ledger_grows() {
        let dir = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::new(dir.path());
        assert!(ledgers.now().unwrap().all().is_none(), "there is no ledger");
        let path = dir.path().join(Ledger::FILE);
        let mut text = entry("a", 100, 400, false)
            + &entry("a", 100, 600, true)
            + &entry("泊位", 50, 50, false);
        std::fs::write(&path, &text).unwrap();
        let sums = ledgers.now().unwrap();
        let a = sums.of("a").unwrap();
        assert_eq!((a.requests, a.billed, a.estimated, a.folded), (2, 1, 1, 2), "{a:?}");
        assert_eq!((a.sent.tokens, a.whole.tokens, a.saved), (200, 1000, Some(0.8)), "{a:?}");
        assert_eq!(sums.all().unwrap().requests, 3);
        assert!(sums.of("c").is_none());
        drop(sums);
        text += &entry("c", 1, 1, false);
        std::fs::write(&path, &text).unwrap();
        assert!(ledgers.now().unwrap().of("c").is_some());
    }

    #[test]
    fn in8_what_was_read_of_a_ledger_is_not_read_again_unless_it_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::new(dir.path());
        let path = dir.path().join(Ledger::FILE);
        let tokens = |session: &str, which: Range<usize>| {
            let (total, found) = ledgers.entries(session, |_| which).unwrap();
            (total, found.iter().map(|entry| entry.sent.tokens.total()).collect::<Vec<_>>())
        };
        assert_eq!(tokens("a", 0..1), (0, Vec::new()));
        let first = entry("a", 1, 9, false) + "{\"torn\n" + &entry("泊位", 2, 9, false);
        let third = entry("a", 3, 9, false);
        // A line that is being written is read once it is whole.
        let (begun, rest) = third.split_at(third.len() / 2);
        std::fs::write(&path, first.clone() + begun).unwrap();
        assert_eq!(tokens("a", 0..1), (1, vec![1]));
        // What was read could not be read any more, and its place is left alone.
        let blank = " ".repeat(first.len() - entry("泊位", 2, 9, false).len());
        let grown = blank + &entry("泊位", 2, 9, false) + begun + rest;
        std::fs::write(&path, &grown).unwrap();
        assert_eq!(ledgers.now().unwrap().of("a").unwrap().requests, 2);
        assert_eq!(tokens("a", 1..2), (2, vec![3]));
        assert_eq!(tokens("泊位", 0..1), (1, vec![2]));
        assert_eq!(tokens("a", 2..3), (2, Vec::new()), "there is no such request");
        // Another file of the same name is read from its beginning, be it shorter or longer.
        for lines in [1, 9] {
            std::fs::write(&path, entry("b", 5, 9, false).repeat(lines)).unwrap();
            assert_eq!(tokens("b", 0..1), (lines, vec![5]));
            assert!(ledgers.now().unwrap().of("a").is_none());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(ledgers.now().unwrap().all().is_none());
    }
}
