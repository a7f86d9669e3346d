//! Blocks by their words, and by the texts of their payloads.

use crate::SearchRequest;
use crate::analysis::{Analyzer, Form, cut};
use crate::block_doc::BlockMeta;
use crate::disk::Damage;
use crate::parts::Parts;
use crate::pool::{PassagePool, Pool};
use crate::rank::{AskedTerm, Corpus, Question};
use rustc_hash::FxHashMap;

/// This many distinct terms of a question are looked up; the rarest of them are searched for.
const MAX_ASKED: usize = 256;

/// Whether a block may be returned.
pub(crate) type Allows<'a> = &'a dyn Fn(u32, BlockMeta) -> bool;

/// Returns the blocks and passages that hold terms of the question, weighted. `blocks` is how many there are.
pub(crate) fn by_words(
    blocks: u32,
    question: &Question,
    (corpus, told): (Corpus, Corpus),
    parts: &Parts<'_>,
    allows: Option<Allows<'_>>,
) -> Result<ByWords, Damage> {
    let mut pool = Pool::new(blocks as usize);
    pool.has_another_script = parts.any_differs(question.script);
    if allows.is_some() || pool.has_another_script {
        parts.metas(|n, meta| {
            if let Some(entry) = pool.get(n) {
                entry.allowed = allows.is_none_or(|allows| allows(n, meta));
                entry.another_script = meta.script.differs(question.script);
            }
        });
    }
    for (place, term) in question.terms.iter().enumerate() {
        parts.postings(&term.text, |n, tf, len| {
            pool.add(n, place, corpus.weight(term.idf, tf, len));
        })?;
    }
    let passages = parts.passage_pool(question, told)?;
    let mut carriers: FxHashMap<u64, Option<u32>> = FxHashMap::default();
    for score in passages.held(0..parts.passages()) {
        let carrier = carriers
            .entry(score.payload)
            .or_insert_with(|| pool.carrier(parts.blocks_of(score.payload), question));
        if let Some(n) = *carrier {
            pool.propose(n, *score, question);
        }
    }
    if told.texts > 0 {
        pool.take_passages(question);
    }
    Ok(ByWords { pool, passages, carriers })
}

/// The texts that hold terms of the question.
pub(crate) struct ByWords {
    pub(crate) pool: Pool,
    pub(crate) passages: PassagePool,
    /// The block that each payload's passages count for.
    pub(crate) carriers: FxHashMap<u64, Option<u32>>,
}

/// Returns the question's terms, each with how many blocks and how many passages hold it.
pub(crate) fn asked_terms(
    request: &SearchRequest<'_>,
    mut held: impl FnMut(&str) -> Result<(u64, u64), Damage>,
) -> Result<Vec<AskedTerm>, Damage> {
    let query = cut(request.query, SearchRequest::MAX_QUERY_BYTES);
    let asked = Analyzer::new().question(query, MAX_ASKED).into_iter().map(|(text, form)| {
        let (df, passage_df) = held(&text)?;
        Ok(AskedTerm { df, passage_df, name: form == Form::Name, text })
    });
    asked.collect()
}
