//! Blocks by their meaning: the question's vector, and the cosines of theirs.

use super::{Searcher, is_filtered};
use crate::block_doc::Place;
use crate::disk::{CodeGroup, DiskIndex, Query};
use crate::dot::dot;
use crate::omission::{Omission, OmissionPart};
use crate::pool::{Cosine, Pool};
use crate::rank::{self, Question};
use crate::records::{ReadAhead, Records};
use crate::scores::AskedVector;
use crate::vectors::MessageVectors;
use crate::{Error, Ranking, SearchRequest, VectorSide, WhyUnsearched};
use foldback_kv::{Space, Todo};

/// Returns the part that vectors take, and the question's vector if they do.
pub(crate) fn vector_side<'a>(
    request: &SearchRequest<'a>,
    models: &[(&str, usize)],
) -> (VectorSide, Option<AskedVector<'a>>) {
    let by_meaning = request.vector.filter(|_| request.ranking != Ranking::Words);
    let Some((embedder, vector)) = by_meaning else { return (VectorSide::NotAsked, None) };
    let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    if !norm.is_finite() || norm < 1e-6 {
        return (VectorSide::Blank, None);
    }
    let model = embedder.model_id();
    if models.contains(&(model, vector.len())) {
        let unit: Vec<f32> = vector.iter().map(|v| v / norm).collect();
        let codes = Query::new(&unit);
        let unknown = 1.0 - f64::from(embedder.knows(request.query).clamp(0.0, 1.0));
        let asked = request.lexical_weight;
        let lexical = asked + (rank::UNKNOWN_WEIGHT - asked).max(0.0) * unknown;
        return (VectorSide::Used, Some(AskedVector { model, lexical, unit, codes }));
    }
    match models.first() {
        None => (VectorSide::NoneStored, None),
        Some((stored, _)) => {
            let (asked, stored) = (model.to_owned(), (*stored).to_owned());
            (VectorSide::OtherModel { asked, stored }, None)
        }
    }
}

impl Searcher {
    /// Estimates the cosines of the blocks on disk: of all of them, or, if a graph is loaded, of those that it
    /// proposes, of those that words propose, and of those that it does not hold.
    pub(super) fn estimate(
        &self,
        request: &SearchRequest<'_>,
        question: &Question,
        query: &AskedVector<'_>,
        best: f64,
        pool: &mut Pool,
    ) {
        let Some(disk) = &self.disk else { return };
        let Some(group) = disk.codes.group(query.model, query.unit.len()) else { return };
        let mut meet = |n, estimate| pool.meet(n, Cosine::from(estimate));
        let held = disk.graph.as_ref().map_or(0, |graph| graph.rows_of(group));
        // A graph under a selective filter is slower than a scan.
        let graph = disk.graph.as_ref().filter(|_| held > 0 && !is_filtered(request));
        let Some(graph) = graph.and_then(|graph| graph.loaded()) else {
            group.scan(0..group.len(), &query.codes, meet);
            return;
        };
        group.scan(held..group.len(), &query.codes, &mut meet);
        let count = FROM_GRAPH.max(4 * request.k);
        for row in graph.nearest(&query.unit, count) {
            meet(group.block(row), group.estimate(row, &query.codes));
        }
        let mut by_words: Vec<(f64, u32)> = pool
            .known()
            .filter(|(_, entry)| !entry.held().is_nothing())
            .map(|(n, entry)| {
                (rank::base(entry.bm25, None, question, best) + question.bonus(entry.held()), n)
            })
            .collect();
        if by_words.len() > count {
            by_words.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
            by_words.truncate(count);
        }
        let met = pool.known().filter(|(_, entry)| entry.cosine.upper.is_finite());
        let by_words = by_words.into_iter().map(|(_, n)| n);
        let mut near: Vec<u32> = met.map(|(n, _)| n).chain(by_words).collect();
        near = near.into_iter().flat_map(|n| n.saturating_sub(1)..=n.saturating_add(1)).collect();
        near.sort_unstable();
        near.dedup();
        // Their neighbours are compared too, because they count for them.
        for n in near {
            for row in group.rows_of(n) {
                pool.meet(n, Cosine::from(group.estimate(row, &query.codes)));
            }
        }
    }
}

/// A graph is asked for this many vectors, or as many as four times the hits.
const FROM_GRAPH: usize = 256;

impl Searcher {
    /// Reads ahead the vectors that the comparison of these blocks needs.
    pub(crate) fn read_vectors(
        &self,
        blocks: impl Iterator<Item = u32>,
        query: &AskedVector<'_>,
    ) -> Result<ReadAhead, Error> {
        let Some(group) = self.disk.as_ref().and_then(|disk| group_of(disk, query)) else {
            return Ok(ReadAhead::default());
        };
        let rows = blocks.flat_map(|n| nearest_rows(group, n, query));
        let seqs = rows.map(|(row, _)| group.place(row).seq);
        self.records.read_ahead(&self.todo, Space::Vector, seqs)
    }
}

fn group_of<'a>(disk: &'a DiskIndex, query: &AskedVector<'_>) -> Option<&'a CodeGroup> {
    disk.codes.group(query.model, query.unit.len())
}

/// Returns the rows of a block that may be the nearest to the question, each with its estimate.
fn nearest_rows(group: &CodeGroup, n: u32, query: &AskedVector<'_>) -> Vec<(usize, Cosine)> {
    let rows = group.rows_of(n);
    let mut rows: Vec<(usize, Cosine)> =
        rows.map(|row| (row, Cosine::from(group.estimate(row, &query.codes)))).collect();
    let floor = rows.iter().map(|(_, cosine)| cosine.lower).fold(f32::NEG_INFINITY, f32::max);
    rows.retain(|(_, cosine)| cosine.upper >= floor);
    rows
}

impl Records {
    /// Returns the cosine of a block's best vector in the truth, and the source of that vector. The block is number `n`
    /// of the index. Vectors may have been read ahead.
    pub(crate) fn exact_cosine(
        &self,
        disk: &DiskIndex,
        todo: &Todo,
        n: u32,
        query: &AskedVector<'_>,
        ahead: &ReadAhead,
    ) -> Result<ExactCosine, Error> {
        let mut omissions = Vec::new();
        let Some(group) = group_of(disk, query) else { return Ok(ExactCosine::default()) };
        let rows = nearest_rows(group, n, query);
        let mut best: Option<(f32, Place)> = None;
        let mut read: Option<(u64, Option<MessageVectors>)> = None;
        for (row, estimate) in rows {
            let place = group.place(row);
            if read.as_ref().is_none_or(|(seq, _)| *seq != place.seq) {
                let mut lack = |why| {
                    omissions.push(Omission {
                        block: n,
                        part: OmissionPart::Vectors(place.seq),
                        why,
                    });
                    None
                };
                let vectors = match self.vectors_ahead(todo, place.seq, ahead) {
                    Ok(Some(vectors)) => Some(vectors),
                    Ok(None) => lack(WhyUnsearched::Missing),
                    Err(Error::Corrupt { .. }) => lack(WhyUnsearched::Damaged),
                    Err(error) => return Err(error),
                };
                read = Some((place.seq, vectors));
            }
            let vectors = read.as_ref().and_then(|(_, vectors)| vectors.as_ref());
            let cosine = vectors
                .filter(|vectors| vectors.model_id == query.model)
                .and_then(|vectors| vectors.vectors.row(usize::from(place.row)))
                // If a record was damaged after it was indexed, the estimate is kept.
                .map_or((estimate.lower + estimate.upper) / 2.0, |row| dot(row, &query.unit));
            if best.is_none_or(|(best, _)| cosine > best) {
                best = Some((cosine, place));
            }
        }
        Ok(ExactCosine { best, omissions })
    }
}

/// How near the best vector of a block in the truth is to the question.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExactCosine {
    /// The cosine, and the source of the vector; `None` if the block has none.
    pub(crate) best: Option<(f32, Place)>,
    /// The vectors that can no longer be read, so that their estimates are kept.
    pub(crate) omissions: Vec<Omission>,
}
