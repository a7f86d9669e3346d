//! Large payloads: is a part of one read just as quickly whatever its size, and does storing it take
//! just as little memory?

use super::failed;
use crate::index::again::Again;
use crate::index::ladder;
use crate::index::machine::{self, MB, Times};
use crate::index::part::Part;
use crate::index::table::Column;
use crate::index::words::Random;
use foldback::{Memory, Options};
use foldback_bench::BenchError;
use foldback_kv::{Batch, Engine, Mode, Registry};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

/// The bytes of a part that is read, and the number of parts.
const RANGE: u64 = 64 << 10;
const RANGES: u64 = 100;

/// A payload that was stored and read. Times are in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Stored {
    megabytes: u32,
    stored_mb: f64,
    /// Storing, until durable; the same bytes in a plain file, synced; and reading and checking all of
    /// it: megabytes per second.
    store_mb_per_s: f64,
    plain_mb_per_s: f64,
    read_mb_per_s: f64,
    /// The peak growth of the process's memory while it stored and read.
    grown_mb: Option<f64>,
    /// Reading 64 KiB from anywhere: first with nothing of the store in memory, then 100 times.
    first_range: f64,
    range_p50: f64,
    range_p99: f64,
    /// The total bytes of the parts that were read.
    ranges_bytes: u64,
}

pub(super) fn step(megabytes: u32, dir: &Path, again: &Again) -> Result<Stored, BenchError> {
    again.run(&Part::Payload { megabytes, store: dir.join(megabytes.to_string()) })
}

/// Stores a payload of lines, and reads it in whole and in parts.
pub(in crate::index) fn measure(megabytes: u32, dir: &Path) -> Result<Stored, BenchError> {
    let bytes = u64::from(megabytes) << 20;
    let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadWrite).map_err(failed)?;
    let memory = Memory::open_on(kv.clone(), Some(dir), Options::default())?;
    let todo = Registry::new(kv.clone()).create(&ladder::todo(0)?, b"").map_err(failed)?;
    let plain_mb_per_s = plain(bytes, dir)?;
    let payloads = memory.payloads();

    let before = machine::peak_mb();
    let begin = Instant::now();
    let mut pending = payloads.begin(&todo).map_err(failed)?;
    let meta = payloads.prepare_stream(&mut pending, Lines::new(bytes)).map_err(failed)?.meta;
    kv.commit(Batch { put: pending.into_puts(), ..Batch::default() }).map_err(failed)?;
    let stored = begin.elapsed().as_secs_f64();
    machine::evict(dir)?;
    let mut random = Random::new(1);
    let mut ranges_bytes = 0;
    let mut range = |times: &mut Times| {
        let from = random.below(bytes.saturating_sub(RANGE));
        let read =
            || payloads.read_range(&todo, meta.n, from..bytes.min(from + RANGE)).map_err(failed);
        ranges_bytes += times.of(read)?.len() as u64;
        Ok::<_, BenchError>(())
    };
    let (mut first, mut ranges) = (Times::default(), Times::default());
    range(&mut first)?;
    (0..RANGES).try_for_each(|_| range(&mut ranges))?;
    let begin = Instant::now();
    payloads.write_to(&todo, meta.n, &mut io::sink()).map_err(failed)?;
    let read = begin.elapsed().as_secs_f64();
    let grown_mb = machine::peak_mb().zip(before).map(|(after, before)| after - before);
    Ok(Stored {
        megabytes,
        stored_mb: meta.stored as f64 / MB,
        store_mb_per_s: f64::from(megabytes) / stored,
        plain_mb_per_s,
        read_mb_per_s: f64::from(megabytes) / read,
        grown_mb,
        first_range: first.p50(),
        range_p50: ranges.p50(),
        range_p99: ranges.p99(),
        ranges_bytes,
    })
}

/// Writes the same bytes to a plain file, and returns megabytes per second until they are durable.
fn plain(bytes: u64, dir: &Path) -> Result<f64, BenchError> {
    let path = dir.join("plain");
    let begin = Instant::now();
    let written = File::create(&path).and_then(|mut file| {
        io::copy(&mut Lines::new(bytes), &mut file)?;
        file.sync_all()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let removed = written.and_then(|()| std::fs::remove_file(&path));
    removed.map_err(|source| BenchError::Io {
        what: format!("{} could not be written and removed", path.display()),
        source,
    })?;
    Ok(bytes as f64 / MB / seconds)
}

/// The lines of a log: a block of them repeated, each time with another number.
struct Lines {
    left: u64,
    block: Vec<u8>,
    blocks: u64,
    at: usize,
}

impl Lines {
    fn new(bytes: u64) -> Self {
        let line = |n: u64| {
            let id = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{n:016} GET /item/{} in {} us id={id:x}\n", id % 999, id % 7_919)
        };
        let block = (0..20_000).flat_map(|n| line(n).into_bytes()).collect();
        Self { left: bytes, block, blocks: 0, at: 0 }
    }
}

impl Read for Lines {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            self.blocks += 1;
            self.at = 0;
            let number = format!("{:016}", self.blocks);
            self.block.iter_mut().zip(number.bytes()).for_each(|(byte, digit)| *byte = digit);
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = self.block.get(self.at..).unwrap_or_default().take(left as u64).read(out)?;
        self.at += count;
        self.left -= count as u64;
        Ok(count)
    }
}

pub(super) const TITLE: &str = "Payloads: megabytes per second, and milliseconds for 64 KiB";

pub(super) const NOTE: &str = "Lines of a log, streamed into a payload. \"plain\" is the same bytes in a file that is synced. \
    \"grown\" is the peak growth of the process's memory while it stored and read. The first 64 KiB are read \
    with nothing of the store in memory, 100 more from anywhere.";

pub(super) const COLUMNS: [Column<Stored>; 9] = [
    ("MB", |row| row.megabytes.to_string()),
    ("stored MB", |row| format!("{:.1}", row.stored_mb)),
    ("store MB/s", |row| format!("{:.0}", row.store_mb_per_s)),
    ("plain MB/s", |row| format!("{:.0}", row.plain_mb_per_s)),
    ("read MB/s", |row| format!("{:.0}", row.read_mb_per_s)),
    ("grown MB", |row| machine::told(row.grown_mb, 1)),
    ("first 64 KiB", |row| format!("{:.2}", row.first_range)),
    ("64 KiB", |row| format!("{:.2}", row.range_p50)),
    ("p99", |row| format!("{:.2}", row.range_p99)),
];
