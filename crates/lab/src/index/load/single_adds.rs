//! Messages that are added one by one: is such a todo searched as quickly as one that was built in
//! bulk?

use crate::index::again::Again;
use crate::index::ladder::{self, ASKED, TIMED};
use crate::index::machine::{self, Times};
use crate::index::part::Part;
use crate::index::table::Column;
use crate::index::words::Random;
use foldback::{Memory, SearchRequest};
use foldback_bench::BenchError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The numbers of messages that are added.
pub(super) const ADDS: [u32; 3] = [200, 2_000, 10_000];
/// The number of blocks in the todo before.
const BEFORE: u32 = 1_000;
/// The number of messages in a transaction of the todo that is built in bulk.
const BATCH: usize = 256;
const ADDED: u64 = 1 << 40;
const QUESTIONS: u64 = 2 << 40;

/// A todo to which messages were added one by one, compared with the same todo built in bulk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Grown {
    adds: u32,
    blocks: u32,
    /// Unindexed blocks right after the adds, and once the index had caught up.
    behind: u64,
    settled_behind: u64,
    /// The number of files in the todo's index, and in that of the todo built in bulk.
    files: u64,
    bulk_files: u64,
    /// The median of a search, in milliseconds: right after the adds, once the index had caught up, and
    /// in the todo built in bulk.
    search_p50: f64,
    settled_p50: f64,
    bulk_p50: f64,
    /// The greater of the first two, divided by the third.
    over_bulk: f64,
}

pub(super) fn step(adds: u32, dir: &Path, again: &Again) -> Result<Grown, BenchError> {
    again.run(&Part::SingleAdds { blocks: BEFORE, adds, store: dir.join(adds.to_string()) })
}

/// Builds both todos, and asks both the same questions in turn.
pub(in crate::index) fn measure(blocks: u32, adds: u32, dir: &Path) -> Result<Grown, BenchError> {
    let todo = ladder::todo(0)?;
    let folders = ["one-by-one", "bulk"].map(|name| dir.join(name));
    let [grown, bulk] = folders.each_ref().map(|folder| Memory::open(folder, ladder::options()));
    let (grown, bulk) = (grown?, bulk?);
    for memory in [&bulk, &grown] {
        ladder::fill(&mut memory.session(&todo)?, blocks, 0)?;
        memory.maintenance().index()?;
    }
    let mut session = bulk.session(&todo)?;
    let mut random = Random::new(ADDED);
    let first = session.len();
    let messages: Vec<_> = (first..first + u64::from(adds)).map(|at| random.message(at)).collect();
    for batch in messages.chunks(BATCH) {
        session.record_all(batch.to_vec())?;
    }
    bulk.maintenance().index()?;
    let mut session = grown.session(&todo)?;
    for message in messages {
        session.record(message)?;
    }

    let at_once = ask(&grown, &bulk)?;
    let behind = grown.maintenance().doctor()?.index_lag;
    grown.maintenance().index()?;
    let settled = ask(&grown, &bulk)?;
    let settled_behind = grown.maintenance().doctor()?.index_lag;
    let [files, bulk_files] = folders.map(|folder| machine::files(&folder.join("index").join("1")));
    let over = |[own, bulk]: [f64; 2]| own / bulk;
    Ok(Grown {
        adds,
        blocks: session.blocks(),
        behind,
        settled_behind,
        files: files?.len() as u64,
        bulk_files: bulk_files?.len() as u64,
        search_p50: at_once[0],
        settled_p50: settled[0],
        bulk_p50: settled[1],
        over_bulk: over(at_once).max(over(settled)),
    })
}

/// Returns the median search time of each.
fn ask(grown: &Memory, bulk: &Memory) -> Result<[f64; 2], BenchError> {
    let todo = ladder::todo(0)?;
    let mut random = Random::new(QUESTIONS);
    let mut times = [Times::default(), Times::default()];
    for at in 0..=TIMED {
        let text = random.text(ASKED);
        for (memory, times) in [grown, bulk].into_iter().zip(&mut times) {
            let search = || Ok(memory.search(&todo, &SearchRequest::new(&text))?);
            // The first search reads what the others find in memory.
            if at == 0 {
                search()?
            } else {
                times.of(search)?
            };
        }
    }
    Ok(times.map(|times| times.p50()))
}

pub(super) const TITLE: &str =
    "Single adds: search p50 in milliseconds, compared with the same todo built in bulk";

pub(super) const NOTE: &str = "Messages are recorded one by one into a todo of 1,000 blocks, each durable; the index catches up in the \
    background. Both todos are then asked the same 100 questions in turn, at once and after the index has caught up. \
    \"behind\" is unindexed blocks.";

pub(super) const COLUMNS: [Column<Grown>; 9] = [
    ("adds", |row| row.adds.to_string()),
    ("blocks", |row| row.blocks.to_string()),
    ("behind", |row| row.behind.to_string()),
    ("at once", |row| format!("{:.3}", row.search_p50)),
    ("caught up", |row| format!("{:.3}", row.settled_p50)),
    ("in bulk", |row| format!("{:.3}", row.bulk_p50)),
    ("over bulk", |row| format!("{:.2}", row.over_bulk)),
    ("files", |row| row.files.to_string()),
    ("files in bulk", |row| row.bulk_files.to_string()),
];
