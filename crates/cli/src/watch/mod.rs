//! Files and folders of conversations that are followed while other programs write them.

mod file;

pub(crate) use file::Batch;

use crate::error::CliError;
use crate::gateway::runtime;
use crate::output::{Output, text};
use crate::run::Signals;
use crate::sources::{Holders, files_in};
use file::WatchedFile;
use foldback::Memory;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The interval at which files are checked.
const PAUSE: Duration = Duration::from_millis(500);

/// Checking takes at most one part in this many of the time.
const SHARE: u32 = 10;

/// The last lines of this many files are held back, those that grew last.
const HELD: usize = 64;

/// Follows files until the command is asked to end.
pub(crate) struct Watch<'a> {
    holders: Holders<'a>,
    out: &'a Output,
    paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, WatchedFile>,
}

/// Receives each batch of messages once it is recorded.
type Report<'a> = dyn Fn(&Batch<'_>) -> Result<(), CliError> + 'a;

impl<'a> Watch<'a> {
    /// All files of a folder are followed, including those that appear later.
    pub(crate) fn new(paths: Vec<PathBuf>, memory: &'a Memory, out: &'a Output) -> Self {
        Self { holders: Holders::new(memory), out, paths, files: BTreeMap::new() }
    }

    /// Follows them until Ctrl-C; recording in progress is finished first.
    pub(crate) fn run(mut self, report: &Report<'_>) -> Result<(), CliError> {
        runtime()?.block_on(async {
            let (stop, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
            let (is_meant, ended) = (Arc::clone(&stop), Arc::clone(&ends));
            let mut signals = Signals::open();
            tokio::spawn(async move {
                loop {
                    let heard = signals.next().await;
                    if is_meant.swap(true, Ordering::Relaxed) {
                        std::process::exit(heard.code());
                    }
                    ended.notify_one();
                }
            });
            let mut is_told = false;
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                tokio::task::block_in_place(|| self.look(&stop, report))?;
                if !is_told {
                    is_told = true;
                    let files = text::count(self.files.len() as u64, "file");
                    self.out.note(format_args!("{files} followed; press Ctrl-C to stop"));
                }
                tokio::select! {
                    () = ends.notified() => {}
                    () = tokio::time::sleep(PAUSE.max(began.elapsed() * SHARE)) => {}
                }
            }
            tokio::task::block_in_place(|| self.end(report))
        })
    }

    /// Takes what was written since the last check.
    fn look(&mut self, stop: &AtomicBool, report: &Report<'_>) -> Result<(), CliError> {
        let found: Vec<_> = self.paths.iter().flat_map(|path| files_in(path)).collect();
        let there: HashSet<_> = found.iter().collect();
        self.files.retain(|path, _| there.contains(path));
        for path in found {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let file = self.files.entry(path).or_insert_with_key(|path| WatchedFile::new(path));
            file.look(&self.holders, self.out, report)?;
        }
        let mut held: Vec<_> =
            self.files.values_mut().filter_map(|f| Some((f.grew()?, f))).collect();
        held.sort_by_key(|(grew, _)| std::cmp::Reverse(*grew));
        held.into_iter().skip(HELD).for_each(|(_, file)| file.rest());
        Ok(())
    }

    /// Updates the data around the messages.
    fn end(&mut self, report: &Report<'_>) -> Result<(), CliError> {
        let mut files = self.files.values_mut();
        files.try_for_each(|file| file.end(&self.holders, self.out, report))
    }
}
