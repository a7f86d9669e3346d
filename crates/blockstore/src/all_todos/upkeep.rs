//! Writing volumes, alongside searches.

use super::AllTodos;
use super::catalogue::{Catalogue, Run, Volume, volume_folder};
use super::removal::sweep;
use super::shelf::{Filling, Numbering, run_of};
use super::snapshot::{Pending, known_heads};
use crate::Error;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::disk::{DiskIndex, Folder, Lock, OF_MANY, VolumeWriter};
use crate::omission::{Omission, TRIED_AGAIN};
use crate::records::pages;
use foldback_kv::Todo;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The most blocks in a volume. Forgetting a todo removes its volumes, and the rest of their contents is indexed again:
/// this bounds that work.
const VOLUME_BLOCKS: u32 = 16_384;

/// This many todos that were written to since they were examined are worth examining.
const LOOK_TODOS: usize = 256;

/// The blocks of this many pages are analysed in parallel.
const PAGES: usize = 16;

/// How long the lock is free between two volumes, for those who try it.
const PAUSE: Duration = Duration::from_millis(50);

/// Volumes that could not be opened are made again once in this time: what kept them from being opened may last.
const REMAKING: Duration = Duration::from_secs(60 * 60);

/// The result of [`AllTodos::catch_up`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaughtUp {
    /// How many blocks were indexed that were in no volume.
    pub indexed: u64,
    /// How many are still in none.
    pub waiting: u64,
    /// Whether another process or thread was already doing this.
    pub busy: bool,
}

impl AllTodos {
    /// Indexes the blocks that are in no volume, if there are enough of them to be worth one; with `is_forced`, even if
    /// there are fewer. It writes one volume after the other, each of which counts once it is complete, until nothing
    /// is left or [`stop`](Self::stop) is called. `report` receives how many blocks are done and how many there are.
    ///
    /// # Errors
    /// When the store fails or a volume cannot be written. Searches go on without it.
    pub fn catch_up(
        &self,
        is_forced: bool,
        mut report: impl FnMut(u64, u64),
    ) -> Result<CaughtUp, Error> {
        let mut done = CaughtUp::default();
        let Some(folder) = &self.folder else { return Ok(done) };
        loop {
            // Each round examines every changed todo, so none is begun once this is stopped.
            if !is_forced && self.stopped.load(Ordering::Relaxed) {
                return Ok(done);
            }
            let Some(lock) = Lock::take(folder)? else {
                return Ok(CaughtUp { busy: true, ..done });
            };
            let mut catalogue = self.kept(folder)?;
            let heads = self.registry.heads().map_err(Error::Kv)?;
            let none = FxHashSet::default();
            let known = known_heads(&catalogue, &none);
            let covered = catalogue.covered(&none);
            let stop = || self.stopped.load(Ordering::Relaxed);
            let pending = self.pending(&known, &covered, &heads, usize::MAX, &stop)?;
            done.waiting = pending.parts.iter().map(|part| u64::from(part.blocks())).sum();
            report(done.indexed, done.indexed + done.waiting);
            let is_due = done.waiting >= u64::from(self.config.batch_blocks)
                || is_forced && done.waiting > 0;
            if !is_due || self.stopped.load(Ordering::Relaxed) {
                if pending.settled.len() >= LOOK_TODOS || is_forced && !pending.settled.is_empty() {
                    catalogue.heads.extend(pending.settled);
                    catalogue.write(folder)?;
                }
                return Ok(done);
            }
            done.indexed += self.write_next(folder, catalogue, pending)?;
            drop(lock);
            std::thread::sleep(PAUSE);
        }
    }

    /// Abandons the search for what is to be indexed, and the writing of volumes after the current one. For a process
    /// that is about to end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the catalogue without the volumes that are no longer of use. The caller holds the lock.
    fn kept(&self, folder: &Folder) -> Result<Catalogue, Error> {
        let read = Catalogue::read(folder);
        let is_damaged = read.is_err();
        let mut catalogue = read.unwrap_or_default();
        let living: FxHashSet<u32> = self.living()?;
        let lost = self.lost(folder, &catalogue);
        let mut stale = FxHashSet::default();
        for volume in &catalogue.volumes {
            if self.is_stale(volume)? || self.lacks_what_can_be_read(folder, volume)? {
                stale.insert(volume.number);
            }
        }
        let gone = catalogue.drop_where(|volume| {
            volume.holds(|todo| !living.contains(&todo))
                || lost.contains(&volume.number)
                || stale.contains(&volume.number)
                || !volume_folder(folder, volume.number).holds_index()
        });
        if is_damaged || !gone.is_empty() {
            catalogue.write(folder)?;
        }
        sweep(folder, &catalogue)?;
        Ok(catalogue)
    }

    /// Returns the volumes that broke while they were searched, or could not be opened for it and cannot be opened now.
    fn lost(&self, folder: &Folder, catalogue: &Catalogue) -> FxHashSet<u64> {
        let known = self.known.lock().clone();
        let mut remade = self.remade.lock();
        let may_remake = remade.is_none_or(|at| at.elapsed() > REMAKING);
        let is_lost = |volume: &&Volume| {
            let opened = || DiskIndex::open(&volume_folder(folder, volume.number), OF_MANY, None);
            known.is_broken(volume)
                || may_remake
                    && known.has_lost(volume)
                    && !opened()
                        .is_ok_and(|disk| disk.is_some_and(|disk| disk.blocks() == volume.blocks()))
        };
        let lost = catalogue.volumes.iter().filter(is_lost).map(|volume| volume.number);
        let lost: FxHashSet<u64> = lost.collect();
        if may_remake && !lost.is_empty() {
            *remade = Some(Instant::now());
        }
        lost
    }

    pub(super) fn living(&self) -> Result<FxHashSet<u32>, Error> {
        let heads = self.registry.heads().map_err(Error::Kv)?;
        Ok(heads.into_iter().map(|(todo, _)| todo).collect())
    }

    /// Returns whether a volume holds vectors of another generation than the truth, or blocks that the truth does not
    /// hold, judged by its last block.
    pub(super) fn is_stale(&self, volume: &Volume) -> Result<bool, Error> {
        let Some(run) = volume.runs.last() else { return Ok(true) };
        let Some(todo) = self.todo(run.todo)? else { return Ok(true) };
        if self.records.last_block_n(&todo)? < run.last {
            return Ok(true);
        }
        Ok(self.records.vector_state(&todo)?.generation != run.generation)
    }

    /// Returns whether a volume lacks a part that can be read by now.
    fn lacks_what_can_be_read(&self, all: &Folder, volume: &Volume) -> Result<bool, Error> {
        let omissions = DiskIndex::omissions_of(&volume_folder(all, volume.number), OF_MANY);
        for omission in omissions.iter().take(TRIED_AGAIN) {
            let Some((no, n)) = volume.place(omission.block) else { continue };
            let Some(todo) = self.todo(no)? else { continue };
            if self.records.can_read(&todo, n, omission) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the next volume, of the blocks that are in none and of smaller volumes that it replaces, and returns how
    /// many blocks were in none. The caller holds the lock.
    fn write_next(
        &self,
        folder: &Folder,
        mut catalogue: Catalogue,
        pending: Pending,
    ) -> Result<u64, Error> {
        let mut settled = pending.settled;
        let (mut new, mut blocks): (Vec<Run>, u32) = (Vec::new(), 0);
        // The oldest first, so that what is written stays as long as it can.
        for part in pending.parts.iter().rev() {
            let mut is_whole = true;
            for range in &part.missing {
                let count = range.end() - range.start() + 1;
                let taken = count.min(VOLUME_BLOCKS - blocks);
                is_whole &= taken == count;
                if taken > 0 {
                    let range = *range.start()..=range.start() + taken - 1;
                    new.push(run_of(part.todo.no(), &range));
                    blocks += taken;
                }
            }
            if is_whole {
                settled.push((part.todo.no(), part.head));
            }
            if blocks >= VOLUME_BLOCKS {
                break;
            }
        }
        let waited = u64::from(blocks);
        let mut by_size: Vec<(u32, u64)> =
            catalogue.volumes.iter().map(|volume| (volume.blocks(), volume.number)).collect();
        by_size.sort_unstable();
        let mut absorbed = FxHashSet::default();
        for (held, number) in by_size {
            // This keeps the number of volumes small, and each block is rewritten only a few times.
            if held > blocks.saturating_mul(2) || held + blocks > VOLUME_BLOCKS {
                break;
            }
            blocks += held;
            absorbed.insert(number);
        }
        let (old, kept) =
            catalogue.volumes.into_iter().partition(|v: &Volume| absorbed.contains(&v.number));
        let old: Vec<Volume> = old;
        catalogue.volumes = kept;
        new.extend(old.into_iter().flat_map(|volume| volume.runs));
        let runs = joined(new);
        let number = catalogue.next;
        catalogue.next += 1;
        let volume = self.write(folder, number, runs)?;
        catalogue.volumes.push(volume);
        catalogue.heads.extend(settled);
        catalogue.write(folder)?;
        sweep(folder, &catalogue)?;
        Ok(waited)
    }

    /// Writes a volume of these runs.
    fn write(&self, all: &Folder, number: u64, runs: Vec<Run>) -> Result<Volume, Error> {
        let folder = volume_folder(all, number);
        let mut writer = VolumeWriter::create(&folder)?;
        let mut numbering = Numbering::default();
        let mut todos: FxHashMap<u32, Todo> = FxHashMap::default();
        let mut volume = Volume { number, runs, origins: Vec::new() };
        for run in std::mem::take(&mut volume.runs) {
            // A todo that was forgotten just now is left out.
            let Some(todo) = self.todo(run.todo)? else { continue };
            let generation = self.records.vector_state(&todo)?.generation;
            let origin = self.origins.origin(&todo);
            let place = volume.origins.iter().position(|known| *known == origin);
            let origin_at = place.unwrap_or(volume.origins.len()) as u32;
            if place.is_none() {
                volume.origins.push(origin);
            }
            let last = self.records.block(&todo, run.last).ok().flatten();
            let messages = last.map_or(0, |block| block.range.last().0 + 1);
            volume.runs.push(Run { messages, origin: origin_at, generation, ..run });
            todos.insert(run.todo, todo);
        }
        let pages: Vec<(&Todo, RangeInclusive<u32>)> = volume
            .runs
            .iter()
            .filter_map(|run| Some((todos.get(&run.todo)?, run.first..=run.last)))
            .flat_map(|(todo, range)| pages(range).map(move |page| (todo, page)))
            .collect();
        for pages in pages.chunks(PAGES) {
            let read = |(todo, page): &(&Todo, RangeInclusive<u32>)| {
                self.records.block_docs(todo, page.clone())
            };
            let beside = || pages.par_iter().map(read).collect();
            let read: Vec<Result<Vec<BlockDoc>, Error>> = match self.readers() {
                Some(readers) => readers.install(beside),
                None => pages.iter().map(read).collect(),
            };
            for ((todo, _), docs) in pages.iter().zip(read) {
                numbering.fill(&self.records, todo, docs?, &mut writer)?;
            }
        }
        writer.finish()?;
        Ok(volume)
    }

    /// Returns the threads that read for a volume. They are its own: those of the callers' pool may all be waiting for
    /// the volume, as for the end of a memory. `None` if the system provides no more threads.
    fn readers(&self) -> Option<&ThreadPool> {
        let made = || {
            let named = ThreadPoolBuilder::new().thread_name(|n| format!("foldback-reader-{n}"));
            named.build().ok()
        };
        self.readers.get_or_init(made).as_ref()
    }
}

impl Filling for VolumeWriter<'_> {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error> {
        self.block(doc)
    }

    fn passage(&mut self, doc: PassageDoc) -> Result<bool, Error> {
        self.passage(doc).map(|()| true)
    }

    fn lack(&mut self, omissions: Vec<Omission>) {
        self.lack(omissions);
    }
}

/// Returns the runs in the order of their todos; adjacent ones are joined.
fn joined(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_unstable();
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.todo == run.todo && last.last + 1 == run.first => {
                last.last = run.last;
            }
            _ => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_follow_each_other_are_one() {
        let run =
            |todo, first, last| Run { todo, first, last, messages: 0, origin: 0, generation: 0 };
        let runs = vec![run(2, 4, 6), run(1, 1, 1), run(2, 1, 3), run(2, 8, 9)];
        assert_eq!(joined(runs), [run(1, 1, 1), run(2, 1, 6), run(2, 8, 9)]);
    }
}
