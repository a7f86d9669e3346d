//! A hit as JSON. Its keys are a contract; see the command's help.

use super::{Search, ShownHit, text_of};
use crate::output::json::rounded;
use foldback_blockstore::PassageHit;
use foldback_core::{BlockId, CloseReason, PayloadRef, SeqNo, TodoId};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct HitJson<'a> {
    /// The block's todo, if all todos were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    todo_id: Option<&'a TodoId>,
    block_id: &'a BlockId,
    /// Whether it is still open.
    open: bool,
    score: f64,
    bm25: f64,
    cosine: f64,
    first_seq: SeqNo,
    last_seq: SeqNo,
    text: String,
    payloads: Vec<PayloadJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationJson<'a>>,
}

/// Lines of a payload that answer the question.
#[derive(Serialize)]
struct PayloadJson<'a> {
    #[serde(rename = "ref")]
    reference: &'a PayloadRef,
    first_line: u64,
    /// The bytes of the first line before the text.
    skip: u64,
    last_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// Other blocks with the same payload.
    also_in: &'a [BlockId],
}

#[derive(Serialize)]
struct ExplanationJson<'a> {
    exact: bool,
    relevance: f64,
    /// What the better of the two neighbouring blocks added to the score.
    neighbours: f64,
    /// What was added because work with tools has just seen the block.
    recent: f64,
    /// What was added because the question names the days of the block.
    dated: f64,
    /// What exact hits added.
    bonus: f64,
    lexical_weight: f64,
    best_bm25: f64,
    best_seq: Option<SeqNo>,
    terms: Vec<TermJson<'a>>,
    payload_bm25: f64,
    payload_terms: Vec<&'a str>,
    /// Whether the block is in a different script from the question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    another_script: bool,
}

#[derive(Serialize)]
struct TermJson<'a> {
    term: &'a str,
    idf: f64,
    tf: u32,
    bm25: f64,
    exact: bool,
}

/// A hit as JSON.
pub(super) fn hit_json<'a>(search: &Search, found: &'a ShownHit<'a>) -> HitJson<'a> {
    let ShownHit { hit, body, payloads } = found;
    let told = &hit.explanation;
    let payload = |(passage, text): (&'a PassageHit, &'a Option<String>)| PayloadJson {
        reference: &passage.payload,
        first_line: passage.first_line,
        skip: passage.skip,
        last_line: passage.last_line,
        text: text.as_deref(),
        also_in: &passage.also_in,
    };
    let term = |share: &'a foldback_blockstore::TermShare| TermJson {
        term: &share.term,
        idf: rounded(share.idf),
        tf: share.tf,
        bm25: rounded(share.bm25),
        exact: share.exact,
    };
    HitJson {
        todo_id: search.all_todos.then_some(&hit.block.header.todo_id),
        block_id: &hit.block.header.block_id,
        open: hit.block.close_reason == CloseReason::Open,
        score: rounded(hit.score),
        bm25: rounded(hit.bm25),
        cosine: rounded(hit.cosine),
        first_seq: hit.block.range.first(),
        last_seq: hit.block.range.last(),
        text: text_of(body),
        payloads: hit.passages.iter().zip(payloads).map(payload).collect(),
        explanation: search.explain.then(|| ExplanationJson {
            exact: hit.exact,
            relevance: rounded(hit.relevance),
            neighbours: rounded(told.neighbours),
            recent: rounded(told.recent),
            dated: rounded(told.dated),
            bonus: rounded(told.bonus),
            lexical_weight: rounded(told.lexical_weight),
            best_bm25: rounded(told.best_bm25),
            best_seq: hit.best_seq,
            terms: told.terms.iter().map(term).collect(),
            payload_bm25: rounded(told.passage),
            payload_terms: told.passage_terms.iter().map(|(term, _)| term.as_str()).collect(),
            another_script: told.another_script,
        }),
    }
}
