//! The volumes compared with the truth.

use super::AllTodos;
use super::catalogue::{Catalogue, Run, Volume, volume_folder};
use super::shelf::{Filling, Numbering};
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::disk::{Damage, DiskIndex, NewCodes, OF_MANY, TermsOf};
use crate::omission::Omission;
use crate::records::pages;
use crate::{Error, Finding, FindingKind};
use foldback_kv::Todo;
use rustc_hash::FxHashSet;

impl AllTodos {
    /// Compares every volume with the records from which it was made, to its last term. With `repair`, those that do
    /// not match are deleted, for [`catch_up`](Self::catch_up) to rebuild them.
    ///
    /// # Errors
    /// When the store cannot be read at all, or a volume cannot be deleted. Damage is a finding.
    pub fn examine(&self, repair: bool) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let Some(folder) = &self.folder else { return Ok(findings) };
        let find = |kind, detail| Finding { kind, detail, repaired: repair };
        let catalogue = match Catalogue::read(folder) {
            Ok(catalogue) => catalogue,
            Err(damage) => {
                let what = format!("the index over all todos is damaged: {damage}");
                findings.push(find(FindingKind::IndexDamaged, what));
                if repair {
                    self.clear()?;
                }
                return Ok(findings);
            }
        };
        let living = self.living()?;
        let mut bad = FxHashSet::default();
        for volume in &catalogue.volumes {
            let opened = DiskIndex::open(&volume_folder(folder, volume.number), OF_MANY, None);
            let found = match opened {
                Ok(Some(disk)) => self.examine_volume(volume, &disk, &living)?,
                Ok(None) => Some((FindingKind::IndexDamaged, "it is missing".to_owned())),
                Err(damage) => Some((FindingKind::IndexDamaged, damage)),
            };
            // A volume that another process has replaced meanwhile is not a finding.
            let is_there = || {
                Catalogue::read(folder)
                    .is_ok_and(|now| now.volumes.iter().any(|known| known.number == volume.number))
            };
            if let Some((kind, what)) = found.filter(|_| is_there()) {
                let number = volume.number;
                let what = format!("volume {number} of the index over all todos: {what}");
                findings.push(find(kind, what));
                bad.insert(volume.number);
            }
        }
        if repair && !bad.is_empty() {
            self.drop_where(|volume| bad.contains(&volume.number))?;
        }
        Ok(findings)
    }

    /// Returns how many blocks are in no volume, if they are enough to be worth one.
    ///
    /// # Errors
    /// When the store fails.
    pub fn lag(&self) -> Result<u64, Error> {
        let Some(folder) = &self.folder else { return Ok(0) };
        let catalogue = Catalogue::read(folder).unwrap_or_default();
        let heads = self.registry.heads().map_err(Error::Kv)?;
        let covered = catalogue.covered(&FxHashSet::default());
        let pending = self.pending(&catalogue.heads, &covered, &heads, usize::MAX, &|| false)?;
        let blocks: u64 = pending.parts.iter().map(|part| u64::from(part.blocks())).sum();
        Ok(if blocks >= u64::from(self.config.batch_blocks) { blocks } else { 0 })
    }

    /// Returns what is wrong with a volume that is intact.
    fn examine_volume(
        &self,
        volume: &Volume,
        disk: &DiskIndex,
        living: &FxHashSet<u32>,
    ) -> Result<Option<(FindingKind, String)>, Error> {
        if disk.blocks() != volume.blocks() {
            let (held, told) = (disk.blocks(), volume.blocks());
            let what = format!("it holds {held} blocks, but the catalogue names {told}");
            return Ok(Some((FindingKind::IndexDiffers, what)));
        }
        if volume.holds(|todo| !living.contains(&todo)) {
            let what = "it holds blocks of a todo that is gone".to_owned();
            return Ok(Some((FindingKind::IndexDiffers, what)));
        }
        let mut check = match Check::new(disk) {
            Ok(check) => check,
            Err(damage) => return Ok(Some((FindingKind::IndexDamaged, damage))),
        };
        let mut numbering = Numbering::default();
        for run in &volume.runs {
            let Some(todo) = self.todo(run.todo)? else { continue };
            if let Some(what) = self.ahead(&todo, run)? {
                return Ok(Some((FindingKind::IndexAhead, what)));
            }
            let state = self.records.vector_state(&todo)?;
            if state.indexes_stale || state.generation != run.generation {
                // Its vectors are being replaced; the volume is rebuilt afterwards.
                return Ok(None);
            }
            for page in pages(run.first..=run.last) {
                let docs = self.records.block_docs(&todo, page)?;
                numbering.fill(&self.records, &todo, docs, &mut check)?;
            }
        }
        Ok(check.finish().map(|what| (FindingKind::IndexDiffers, what)))
    }

    fn ahead(&self, todo: &Todo, run: &Run) -> Result<Option<String>, Error> {
        let (truth, index) = (self.records.last_block_n(todo)?, run.last);
        Ok((truth < index).then(|| {
            format!(
                "it holds {index} blocks of {} and the store {truth}: acknowledged blocks are lost",
                todo.id()
            )
        }))
    }
}

/// The terms of this many blocks are read at once.
const STEP: u32 = 4_096;

/// Blocks and passages of the truth, each compared with what a volume holds in its place.
struct Check<'a> {
    disk: &'a DiskIndex,
    /// The terms of the blocks up to `until`.
    terms: TermsOf,
    until: u32,
    passage_terms: TermsOf,
    passages: u32,
    codes: NewCodes,
    wrong: Option<String>,
}

impl<'a> Check<'a> {
    fn new(disk: &'a DiskIndex) -> Result<Self, Damage> {
        let passages = disk.passages().len() as u32;
        Ok(Self {
            disk,
            terms: TermsOf::new(),
            until: 0,
            passage_terms: disk.passage_terms_of(0..passages)?,
            passages: 0,
            codes: NewCodes::default(),
            wrong: None,
        })
    }

    fn finish(self) -> Option<String> {
        if self.wrong.is_some() {
            return self.wrong;
        }
        if self.passages as usize != self.disk.passages().len() {
            return Some("it holds passages of payloads that the store does not".to_owned());
        }
        let other = !self.codes.are(&self.disk.codes);
        other.then(|| "its vectors differ from those of the store".to_owned())
    }
}

impl Filling for Check<'_> {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error> {
        self.codes.push(&doc);
        let carried = doc.carried();
        let BlockDoc { n, meta, terms, .. } = doc;
        if n > self.until {
            self.until += STEP;
            match self.disk.terms_of(n..=self.until) {
                Ok(terms) => self.terms = terms,
                Err(damage) => self.wrong = Some(damage),
            }
        }
        let indexed = self.terms.remove(&n).unwrap_or_default();
        let is_same = indexed.len() == terms.len()
            && indexed.into_iter().eq(terms)
            && self.disk.carried.payloads_of(n) == carried
            && self.disk.meta(n) == Some(meta);
        if !is_same && self.wrong.is_none() {
            self.wrong = Some(format!("its block {n} differs from the store"));
        }
        Ok(())
    }

    fn passage(&mut self, doc: PassageDoc) -> Result<bool, Error> {
        let place = self.passages;
        self.passages += 1;
        let indexed = self.passage_terms.remove(&place).unwrap_or_default();
        let is_same = self.disk.passages().get(place as usize) == Some(&doc.meta)
            && indexed.into_iter().eq(doc.terms);
        if !is_same && self.wrong.is_none() {
            self.wrong = Some(format!("its passage {place} differs from the store"));
        }
        Ok(true)
    }

    fn lack(&mut self, _: Vec<Omission>) {
        // The volume lacks it as well, or its passages differ.
    }
}
