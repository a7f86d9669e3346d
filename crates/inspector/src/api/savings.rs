//! What the gateway saved: sums over its ledger, read again when the file has changed.

use super::answer::ApiError;
use foldback_gateway::{Bill, Entry, Ledger, Sums};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use utoipa::ToSchema;

/// What passed through the gateway, what it cost, and what it would have cost in full. Costs are in tokens at the plain
/// price and cover the input.
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
    recalls: Lookups,
    /// The cost of what was sent and of the look-ups.
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

/// Requests for look-ups, and their tokens and cost.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct Lookups {
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
            recalls: Lookups {
                requests: sums.recalls.requests,
                tokens: sums.recalls.tokens.total(),
                cost: rounded(sums.recalls.cost),
            },
            cost: rounded(sums.cost()),
            saved: (whole > 0.0).then(|| ((1.0 - sums.cost() / whole) * 1e4).round() / 1e4),
        }
    }
}

fn rounded(cost: f64) -> f64 {
    (cost * 10.0).round() / 10.0
}

/// The sums of the ledger in a store's folder.
pub(crate) struct Ledgers {
    path: PathBuf,
    read: Mutex<Option<(Version, Arc<ByTodo>)>>,
    /// The todo of which entries were asked for last.
    last: Mutex<Option<(Version, String, Arc<LastEntries>)>>,
}

/// How many entries a todo has, and the last of them, in the order of the file.
pub(crate) type LastEntries = (usize, VecDeque<Entry>);

/// The sums of each todo, and of all.
#[derive(Default)]
pub(crate) struct ByTodo {
    each: HashMap<String, Sums>,
    all: Sums,
}

/// The length of the file, and when it was written.
type Version = (u64, Option<SystemTime>);

impl Ledgers {
    pub(crate) fn new(folder: &Path) -> Self {
        let (read, last) = (Mutex::default(), Mutex::default());
        Self { path: folder.join(Ledger::FILE), read, last }
    }

    /// The entries of a todo, at most `most`. Without a file there are none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn last(&self, todo: &str, most: usize) -> Result<Arc<LastEntries>, ApiError> {
        self.last_read(todo, most).map_err(|error| ApiError::failed(format!("the ledger: {error}")))
    }

    fn last_read(&self, todo: &str, most: usize) -> io::Result<Arc<LastEntries>> {
        let Some(version) = self.version()? else { return Ok(Arc::default()) };
        let mut read = self.last.lock();
        let known = read.as_ref().filter(|(of, whose, _)| *of == version && whose == todo);
        if let Some((_, _, last)) = known {
            return Ok(Arc::clone(last));
        }
        let (mut total, mut last) = (0, VecDeque::new());
        for entry in Ledger::read(&self.path)? {
            let entry = entry?;
            if entry.session == todo {
                total += 1;
                last.push_back(entry);
                if last.len() > most {
                    last.pop_front();
                }
            }
        }
        let last = Arc::new((total, last));
        *read = Some((version, todo.to_owned(), Arc::clone(&last)));
        Ok(last)
    }

    /// The version of the file; `None` if there is none.
    fn version(&self) -> io::Result<Option<Version>> {
        match std::fs::metadata(&self.path) {
            Ok(meta) => Ok(Some((meta.len(), meta.modified().ok()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The sums as of now. Without a file there are none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn now(&self) -> io::Result<Arc<ByTodo>> {
        let mut read = self.read.lock();
        let Some(version) = self.version()? else { return Ok(Arc::default()) };
        if let Some((of, sums)) = read.as_ref().filter(|(of, _)| *of == version) {
            debug_assert_eq!(*of, version);
            return Ok(Arc::clone(sums));
        }
        let mut sums = ByTodo::default();
        for entry in Ledger::read(&self.path)? {
            let entry = entry?;
            sums.all.add(&entry);
            sums.each.entry(entry.session.clone()).or_default().add(&entry);
        }
        let sums = Arc::new(sums);
        *read = Some((version, Arc::clone(&sums)));
        Ok(sums)
    }
}

impl ByTodo {
    pub(crate) fn of(&self, todo: &str) -> Option<Savings> {
        self.each.get(todo).map(Savings::from)
    }

    /// The sums of everything; `None` without any request.
    pub(crate) fn all(&self) -> Option<Savings> {
        (self.all.requests > 0).then(|| Savings::from(&self.all))
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
    fn in1_savings_are_summed_for_each_session_and_read_again_when_the_ledger_grows() {
        let dir = tempfile::tempdir().unwrap();
        let ledgers = Ledgers::new(dir.path());
        assert!(ledgers.now().unwrap().all().is_none(), "there is no ledger");
        let path = dir.path().join(Ledger::FILE);
        let mut text =
            entry("a", 100, 400, false) + &entry("a", 100, 600, true) + &entry("b", 50, 50, false);
        std::fs::write(&path, &text).unwrap();
        let sums = ledgers.now().unwrap();
        let a = sums.of("a").unwrap();
        assert_eq!((a.requests, a.billed, a.estimated, a.folded), (2, 1, 1, 2), "{a:?}");
        assert_eq!((a.sent.tokens, a.whole.tokens, a.saved), (200, 1000, Some(0.8)), "{a:?}");
        assert_eq!(sums.all().unwrap().requests, 3);
        assert!(sums.of("c").is_none());
        text += &entry("c", 1, 1, false);
        std::fs::write(&path, &text).unwrap();
        assert!(ledgers.now().unwrap().of("c").is_some());
    }
}
