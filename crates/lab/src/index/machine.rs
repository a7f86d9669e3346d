//! What the system reports about a process and files; `None` if it reports nothing.

use foldback_bench::BenchError;
use foldback_bench::quantile;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of bytes in a megabyte, as in the keys of results.
pub(super) const MB: f64 = (1 << 20) as f64;

/// The resident memory of this process, in megabytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident {
    /// The total.
    pub(super) all: f64,
    /// The part without file pages, which the system can reclaim.
    pub(super) own: f64,
}

/// Returns the current resident memory of this process.
pub(super) fn resident() -> Option<Resident> {
    let of = |name| of_proc("status", name).map(|kb| kb / 1024.0);
    Some(Resident { all: of("VmRSS:")?, own: of("RssAnon:")? })
}

/// Returns the peak resident memory of this process so far, in megabytes.
pub(super) fn peak_mb() -> Option<f64> {
    of_proc("status", "VmHWM:").map(|kb| kb / 1024.0)
}

/// Returns what this process has written to disk so far, in megabytes.
pub(super) fn written_mb() -> Option<f64> {
    of_proc("io", "write_bytes:").map(|bytes| bytes / MB)
}

/// Returns a number that the system reports for this process.
fn of_proc(file: &str, name: &str) -> Option<f64> {
    let told = fs::read_to_string(Path::new("/proc/self").join(file)).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the seconds of processor that this process has used so far.
#[cfg(feature = "postgres")]
pub(super) fn cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Returns the seconds of processor that all processes of this machine have used since it started.
#[cfg(feature = "postgres")]
pub(super) fn machine_cpu_s() -> Option<f64> {
    let told = fs::read_to_string("/proc/stat").ok()?;
    let numbers = told.lines().next()?.split_whitespace().skip(1).map(str::parse::<f64>);
    let ticks: Vec<f64> = numbers.collect::<Result<_, _>>().ok()?;
    // The fourth and fifth are idle; a tick is a hundredth of a second on all Linux systems.
    let is_busy = |at: &usize| !matches!(at, 3 | 4) && *at < 8;
    Some(
        ticks.iter().enumerate().filter(|(at, _)| is_busy(at)).map(|(_, t)| t).sum::<f64>() / 100.0,
    )
}

/// Returns the number of open descriptors of this process.
pub(super) fn descriptors() -> Option<u64> {
    // The listing itself uses one.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64)
}

/// Returns the files under a folder.
pub(super) fn files(dir: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let failed = |source| BenchError::Io {
        what: format!("the folder {} could not be listed", dir.display()),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// Returns the files of a store, without the space that it reserves for a full disk.
pub(super) fn store_files(dir: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut all = files(dir)?;
    all.retain(|path| path != &dir.join("RESERVE"));
    Ok(all)
}

/// Returns the total bytes of some files.
pub(super) fn size(files: &[PathBuf]) -> u64 {
    files.iter().map(|path| fs::metadata(path).map_or(0, |meta| meta.len())).sum()
}

/// Removes the files under a folder from the page cache, if the system allows it.
pub(super) fn evict(dir: &Path) -> Result<(), BenchError> {
    for path in files(dir)? {
        let drop_pages = || {
            let file = fs::File::open(&path)?;
            file.sync_all()?;
            #[cfg(target_os = "linux")]
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            Ok(())
        };
        drop_pages().map_err(|source| BenchError::Io {
            what: format!("{} could not be removed from the page cache", path.display()),
            source,
        })?;
    }
    Ok(())
}

/// Formats what the system reported, with this many decimal places.
pub(super) fn told(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns the milliseconds since an instant.
pub(super) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The times of one operation, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// Times `work`.
    pub(super) fn of<T>(
        &mut self,
        work: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let begin = Instant::now();
        let done = work()?;
        self.0.push(ms(begin));
        Ok(done)
    }

    /// Records a time.
    pub(super) fn push(&mut self, ms: f64) {
        self.0.push(ms);
    }

    /// Returns all times, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = f64> {
        self.0.iter().copied()
    }

    /// Returns a percentile of the times, interpolated in proportion between two of them; 0 if there
    /// are none.
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, percent / 100.0)
    }

    pub(super) fn p50(&self) -> f64 {
        self.percentile(50.0)
    }

    pub(super) fn p99(&self) -> f64 {
        self.percentile(99.0)
    }
}

impl FromIterator<f64> for Times {
    fn from_iter<I: IntoIterator<Item = f64>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_its_neighbours() {
        let times: Times = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!((times.percentile(0.0), times.p50(), times.percentile(100.0)), (1.0, 2.5, 4.0));
        assert!((times.percentile(99.0) - 3.97).abs() < 1e-9);
        assert_eq!(Times::default().p99(), 0.0);
    }

    #[test]
    fn files_are_found_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), [0; 5]).unwrap();
        fs::write(dir.path().join("c"), [0; 7]).unwrap();
        let found = files(dir.path()).unwrap();
        assert_eq!((found.len(), size(&found)), (2, 12));
        evict(dir.path()).unwrap();
        assert!(files(&dir.path().join("missing")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_is_seen() {
        let resident = resident().unwrap();
        assert!(resident.all >= resident.own && resident.own > 0.0, "{resident:?}");
        let open: Vec<_> = (0..50).map(|_| fs::File::open("/proc/self/status").unwrap()).collect();
        assert!(descriptors().unwrap() > open.len() as u64);
    }
}
