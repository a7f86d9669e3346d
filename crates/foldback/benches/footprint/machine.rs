//! Measures the machine: its minimum for a durable write, and what a process uses.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Prints the time of a 4 KiB write with its sync, the floor under every durable append.
pub(crate) fn print_floor() {
    let mut file = tempfile::tempfile_in(std::env::temp_dir()).unwrap();
    let page = [7_u8; 4096];
    let times = (0..200).map(|_| {
        let start = Instant::now();
        file.rewind().unwrap();
        file.write_all(&page).unwrap();
        file.sync_data().unwrap();
        start.elapsed()
    });
    println!("floor: write and sync of 4 KiB in {}", Times::new(times.collect()));
}

/// Times of one operation, repeated.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Runs `work` this many times.
    pub(crate) fn of(count: usize, mut work: impl FnMut(usize)) -> Self {
        let run = |n| {
            let start = Instant::now();
            work(n);
            start.elapsed()
        };
        Self::new((0..count).map(run).collect())
    }

    fn share(&self, share: f64) -> Duration {
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.1?}, p99 {:.1?} of {}", self.share(0.5), self.share(0.99), self.0.len())
    }
}

/// The memory of this process in bytes: its own, and the pages of files that it maps.
pub(crate) fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    (of("RssAnon:"), of("RssFile:"))
}

/// Bytes that this process has had written to the disk so far.
pub(crate) fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The bytes of all files under `dir`.
pub(crate) fn size(dir: &Path) -> u64 {
    files(dir).iter().map(|path| std::fs::metadata(path).map_or(0, |meta| meta.len())).sum()
}

/// Asks the system to forget the pages of all files under `dir`.
pub(crate) fn evict(dir: &Path) {
    for path in files(dir) {
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns how many syncs a part of this benchmark makes; `None` without `strace`.
pub(crate) fn syncs(part: &str, arguments: &[&str]) -> Option<u64> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let ran = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--part", part])
        .args(arguments)
        .output()
        .ok()?;
    if !ran.status.success() {
        return None;
    }
    let log = std::fs::read_to_string(log.path()).unwrap();
    Some(log.lines().filter(|line| line.contains("sync(")).count() as u64)
}
