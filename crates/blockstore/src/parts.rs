//! The index on disk and the one in memory, as one.

use crate::block_doc::{BlockMeta, PassageMeta};
use crate::disk::{Damage, DiskIndex};
use crate::memory_index::MemoryView;
use crate::pool::PassagePool;
use crate::rank::{Corpus, Question};
use std::ops::Range;

/// All that is searched: the blocks on disk, and behind them those in memory.
pub(crate) struct Parts<'a> {
    pub(crate) disk: Option<&'a DiskIndex>,
    pub(crate) memory: MemoryView<'a>,
}

impl Parts<'_> {
    pub(crate) fn terms(&self) -> u64 {
        self.disk.map_or(0, |disk| disk.manifest.terms) + self.memory.terms()
    }

    pub(crate) fn metas(&self, mut sink: impl FnMut(u32, BlockMeta)) {
        let disk = self.disk.into_iter().flat_map(DiskIndex::metas);
        disk.chain(self.memory.metas()).for_each(|(n, meta)| sink(n, meta));
    }

    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        self.disk.and_then(|disk| disk.meta(n)).or_else(|| self.memory.meta(n))
    }

    pub(crate) fn df(&self, term: &str) -> Result<u64, Damage> {
        let on_disk = self.disk.map_or(Ok(0), |disk| disk.df(term))?;
        Ok(on_disk + self.memory.df(term))
    }

    pub(crate) fn postings(
        &self,
        term: &str,
        mut sink: impl FnMut(u32, u32, u32),
    ) -> Result<(), Damage> {
        if let Some(disk) = self.disk {
            disk.postings(term, &mut sink)?;
        }
        self.memory.postings(term).for_each(|(n, tf, len)| sink(n, tf, len));
        Ok(())
    }

    pub(crate) fn tf(&self, term: &str, n: u32) -> Result<u32, Damage> {
        match self.disk.filter(|disk| n <= disk.blocks()) {
            Some(disk) => disk.tf(term, n),
            None => Ok(self.memory.tf(term, n)),
        }
    }

    /// The passages on disk; behind them come those in memory.
    fn passages_on_disk(&self) -> &[PassageMeta] {
        self.disk.map_or(&[], DiskIndex::passages)
    }

    pub(crate) fn passages(&self) -> usize {
        self.passages_on_disk().len() + self.memory.passages().len()
    }

    pub(crate) fn passage_terms(&self) -> u64 {
        self.disk.map_or(0, |disk| disk.manifest.passage_terms) + self.memory.passage_terms()
    }

    /// The passage at this place.
    pub(crate) fn passage(&self, place: u32) -> Option<&PassageMeta> {
        let on_disk = self.passages_on_disk();
        match (place as usize).checked_sub(on_disk.len()) {
            None => on_disk.get(place as usize),
            Some(behind) => self.memory.passages().get(behind),
        }
    }

    /// The payloads of block `n`.
    pub(crate) fn payloads_of(&self, n: u32) -> &[u64] {
        match self.disk.filter(|disk| n <= disk.blocks()) {
            Some(disk) => disk.carried.payloads_of(n),
            None => self.memory.payloads_of(n),
        }
    }

    /// The blocks that carry a payload, ascending.
    pub(crate) fn blocks_of(&self, payload: u64) -> impl DoubleEndedIterator<Item = u32> {
        let on_disk = self.disk.map_or(&[][..], |disk| disk.carried.blocks_of(payload));
        on_disk.iter().chain(self.memory.blocks_of(payload)).copied()
    }

    /// The places of a payload's passages.
    pub(crate) fn passages_of(&self, payload: u64) -> Range<usize> {
        let on_disk = self.disk.map_or(0..0, |disk| disk.carried.passages_of(payload));
        let (places, before) = match on_disk.is_empty() {
            true => (self.memory.passages_of(payload), self.passages_on_disk().len()),
            false => (on_disk, 0),
        };
        before + places.start as usize..before + places.end as usize
    }

    pub(crate) fn passage_df(&self, term: &str) -> Result<u64, Damage> {
        let on_disk = self.disk.map_or(Ok(0), |disk| disk.passage_df(term))?;
        Ok(on_disk + self.memory.passage_postings(term).len() as u64)
    }

    /// What every passage has of the question, on the scale of blocks.
    pub(crate) fn passage_pool(
        &self,
        question: &Question,
        corpus: Corpus,
    ) -> Result<PassagePool, Damage> {
        let mut pool = PassagePool::new(self.passages());
        let scale = question.passage_scale();
        let on_disk = self.passages_on_disk().len() as u32;
        for (at, term) in question.terms.iter().enumerate() {
            let mut add = |place, tf, meta: &PassageMeta| {
                let weight = scale * term.passage_weight(corpus, tf, meta.len);
                pool.add(place, meta.payload, at, weight);
            };
            if let Some(disk) = self.disk {
                disk.passage_postings(&term.text, &mut add)?;
            }
            let in_memory = self.memory.passages();
            for &(place, tf) in self.memory.passage_postings(&term.text) {
                if let Some(meta) = in_memory.get(place as usize) {
                    add(on_disk + place, tf, meta);
                }
            }
        }
        Ok(pool)
    }

    pub(crate) fn models(&self) -> Vec<(&str, usize)> {
        let groups = self.disk.into_iter().flat_map(|disk| disk.codes.groups());
        let on_disk = groups.map(|group| (group.model_id.as_str(), group.dim));
        on_disk.chain(self.memory.models()).collect()
    }
}
