//! The index on disk and the one in memory, as one.

use crate::analysis::Script;
use crate::block_doc::{BlockMeta, PassageMeta};
use crate::disk::{Damage, DiskIndex};
use crate::memory_index::MemoryView;
use crate::pool::{Cosine, PassagePool, Pool};
use crate::rank::{Corpus, Question};
use crate::scores::AskedVector;
use std::ops::Range;

/// All that is searched: the blocks on disk, after them those in memory, and after those the open one.
pub(crate) struct Parts<'a> {
    pub(crate) disk: Option<&'a DiskIndex>,
    pub(crate) memory: MemoryView<'a>,
    /// The open messages as a block, if they are searched.
    pub(crate) open: Option<MemoryView<'a>>,
}

impl<'a> Parts<'a> {
    /// Returns what is searched in memory: the closed blocks, then the open one.
    pub(crate) fn in_memory(&self) -> impl Iterator<Item = MemoryView<'a>> + use<'a> {
        [Some(self.memory), self.open].into_iter().flatten()
    }

    /// Returns what holds block `n` in memory.
    pub(crate) fn view_of(&self, n: u32) -> MemoryView<'a> {
        self.open.filter(|open| open.meta(n).is_some()).unwrap_or(self.memory)
    }

    pub(crate) fn terms(&self) -> u64 {
        let in_memory = self.in_memory().map(|view| view.terms());
        self.disk.map_or(0, |disk| disk.manifest.terms) + in_memory.sum::<u64>()
    }

    pub(crate) fn metas(&self, mut sink: impl FnMut(u32, BlockMeta)) {
        let disk = self.disk.into_iter().flat_map(DiskIndex::metas);
        let in_memory = self.in_memory().flat_map(|view| view.metas());
        disk.chain(in_memory).for_each(|(n, meta)| sink(n, meta));
    }

    /// Returns whether any block may be in another script.
    pub(crate) fn any_differs(&self, script: Script) -> bool {
        self.disk.is_some_and(|disk| disk.scripts.any_differs(script))
            || self.in_memory().any(|view| view.index.scripts.any_differs(script))
    }

    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        self.disk.and_then(|disk| disk.meta(n)).or_else(|| self.view_of(n).meta(n))
    }

    /// Notes the cosines of the blocks in memory.
    pub(crate) fn cosines(&self, query: &AskedVector<'_>, pool: &mut Pool) {
        for view in self.in_memory() {
            view.cosines(query.model, &query.unit, |n, cosine| {
                pool.meet(n, Cosine::exact(cosine));
            });
        }
    }

    pub(crate) fn df(&self, term: &str) -> Result<u64, Damage> {
        let on_disk = self.disk.map_or(Ok(0), |disk| disk.df(term))?;
        Ok(on_disk + self.in_memory().map(|view| view.df(term)).sum::<u64>())
    }

    pub(crate) fn postings(
        &self,
        term: &str,
        mut sink: impl FnMut(u32, u32, u32),
    ) -> Result<(), Damage> {
        if let Some(disk) = self.disk {
            disk.postings(term, &mut sink)?;
        }
        let in_memory = self.in_memory().flat_map(|view| view.postings(term));
        in_memory.for_each(|(n, tf, len)| sink(n, tf, len));
        Ok(())
    }

    pub(crate) fn tf(&self, term: &str, n: u32) -> Result<u32, Damage> {
        match self.disk.filter(|disk| n <= disk.blocks()) {
            Some(disk) => disk.tf(term, n),
            None => Ok(self.view_of(n).tf(term, n)),
        }
    }

    /// Returns the passages on disk; those in memory follow them.
    fn passages_on_disk(&self) -> &[PassageMeta] {
        self.disk.map_or(&[], DiskIndex::passages)
    }

    pub(crate) fn passages(&self) -> usize {
        let in_memory = self.in_memory().map(|view| view.passages().len());
        self.passages_on_disk().len() + in_memory.sum::<usize>()
    }

    pub(crate) fn passage_terms(&self) -> u64 {
        let in_memory = self.in_memory().map(|view| view.passage_terms());
        self.disk.map_or(0, |disk| disk.manifest.passage_terms) + in_memory.sum::<u64>()
    }

    /// Returns the passage at this place.
    pub(crate) fn passage(&self, place: u32) -> Option<&PassageMeta> {
        let in_memory = self.in_memory().map(|view| view.passages());
        let mut place = place as usize;
        for passages in std::iter::once(self.passages_on_disk()).chain(in_memory) {
            match place.checked_sub(passages.len()) {
                None => return passages.get(place),
                Some(behind) => place = behind,
            }
        }
        None
    }

    /// Returns the payloads of block `n`.
    pub(crate) fn payloads_of(&self, n: u32) -> &[u64] {
        match self.disk.filter(|disk| n <= disk.blocks()) {
            Some(disk) => disk.carried.payloads_of(n),
            None => self.view_of(n).payloads_of(n),
        }
    }

    /// Returns the blocks that carry a payload, ascending.
    pub(crate) fn blocks_of(&self, payload: u64) -> impl DoubleEndedIterator<Item = u32> {
        let on_disk = self.disk.map_or(&[][..], |disk| disk.carried.blocks_of(payload));
        let open = self.open.as_ref().map_or(&[][..], |open| open.blocks_of(payload));
        on_disk.iter().chain(self.memory.blocks_of(payload)).chain(open).copied()
    }

    /// Returns the places of a payload's passages; the rest of what an index on disk lacks is in memory.
    pub(crate) fn passages_of(&self, payload: u64) -> impl Iterator<Item = Range<usize>> {
        let on_disk = self.disk.map_or(0..0, |disk| disk.carried.passages_of(payload));
        let on_disk = (on_disk, self.passages_on_disk().len());
        let in_memory = self.in_memory();
        let in_memory =
            in_memory.map(move |view| (view.passages_of(payload), view.passages().len()));
        let mut before = 0;
        std::iter::once(on_disk).chain(in_memory).map(move |(places, all)| {
            let here = before + places.start as usize..before + places.end as usize;
            before += all;
            here
        })
    }

    pub(crate) fn passage_df(&self, term: &str) -> Result<u64, Damage> {
        let on_disk = self.disk.map_or(Ok(0), |disk| disk.passage_df(term))?;
        let in_memory = self.in_memory().map(|view| view.passage_postings(term).len() as u64);
        Ok(on_disk + in_memory.sum::<u64>())
    }

    /// Returns how well every passage matches the question, on the scale of blocks.
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
            let mut before = on_disk;
            for view in self.in_memory() {
                let passages = view.passages();
                for &(place, tf) in view.passage_postings(&term.text) {
                    if let Some(meta) = passages.get(place as usize) {
                        add(before + place, tf, meta);
                    }
                }
                before += passages.len() as u32;
            }
        }
        Ok(pool)
    }

    pub(crate) fn models(&self) -> Vec<(&str, usize)> {
        let groups = self.disk.into_iter().flat_map(|disk| disk.codes.groups());
        let on_disk = groups.map(|group| (group.model_id.as_str(), group.dim));
        on_disk.chain(self.in_memory().flat_map(|view| view.models())).collect()
    }
}
