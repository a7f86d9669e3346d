//! Hits of a search with the explanation of their scores. The keys are those of `foldback search --json --explain`.

use foldback::Memory;
use foldback::core::{CloseReason, Message};
use foldback_blockstore::{Hit, PassageHit, TermShare};
use serde::Serialize;
use utoipa::ToSchema;

/// A block that answers a question.
#[derive(Serialize, ToSchema)]
pub(crate) struct HitRow {
    /// The session.
    todo_id: String,
    block_id: String,
    /// Whether it is still open.
    open: bool,
    score: f64,
    bm25: f64,
    cosine: f64,
    first_seq: u64,
    last_seq: u64,
    block_type: &'static str,
    /// What happened in it, in a sentence.
    core_semantic: String,
    create_time: String,
    /// Its messages, each with its number. Of a long one the beginning and the end.
    messages: Vec<Said>,
    payloads: Vec<PassageRow>,
    explanation: Explained,
}

/// A message of a hit.
#[derive(Serialize, ToSchema)]
struct Said {
    seq: u64,
    role: String,
    text: String,
}

/// Lines of a payload that answer the question.
#[derive(Serialize, ToSchema)]
struct PassageRow {
    #[serde(rename = "ref")]
    reference: String,
    first_line: u64,
    /// The bytes of the first line before the text.
    skip: u64,
    last_line: u64,
    /// Null if the payload is damaged.
    text: Option<String>,
    /// Other blocks with the same payload.
    also_in: Vec<String>,
}

/// How a score was computed.
#[derive(Serialize, ToSchema)]
struct Explained {
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
    best_seq: Option<u64>,
    terms: Vec<Term>,
    payload_bm25: f64,
    payload_terms: Vec<String>,
    /// Whether the block is in a different script from the question.
    another_script: bool,
    /// All of it in one line.
    line: String,
}

/// What a word of the question added.
#[derive(Serialize, ToSchema)]
struct Term {
    term: String,
    idf: f64,
    tf: u32,
    bm25: f64,
    exact: bool,
}

/// The most characters of a message that a hit shows.
const TEXT_CHARS: usize = 4_000;

/// The most messages of a block that a hit shows: almost all blocks are shorter.
const MESSAGES_MOST: usize = 200;

impl HitRow {
    /// A hit with the texts that can be read.
    pub(crate) fn of(memory: &Memory, hit: &Hit) -> Self {
        let header = &hit.block.header;
        let explanation = &hit.explanation;
        Self {
            todo_id: header.todo_id.to_string(),
            block_id: header.block_id.to_string(),
            open: hit.block.close_reason == CloseReason::Open,
            score: rounded(hit.score),
            bm25: rounded(hit.bm25),
            cosine: rounded(hit.cosine),
            first_seq: hit.block.range.first().0,
            last_seq: hit.block.range.last().0,
            block_type: header.block_type.as_str(),
            core_semantic: header.core_semantic.clone(),
            create_time: header.create_time.clone(),
            messages: messages(memory, hit),
            payloads: hit
                .passages
                .iter()
                .map(|passage| PassageRow::of(memory, hit, passage))
                .collect(),
            explanation: Explained {
                exact: hit.exact,
                relevance: rounded(hit.relevance),
                neighbours: rounded(explanation.neighbours),
                recent: rounded(explanation.recent),
                dated: rounded(explanation.dated),
                bonus: rounded(explanation.bonus),
                lexical_weight: rounded(explanation.lexical_weight),
                best_bm25: rounded(explanation.best_bm25),
                best_seq: hit.best_seq.map(|seq| seq.0),
                terms: explanation.terms.iter().map(Term::from).collect(),
                payload_bm25: rounded(explanation.passage),
                payload_terms: explanation
                    .passage_terms
                    .iter()
                    .map(|(term, _)| term.clone())
                    .collect(),
                another_script: explanation.another_script,
                line: hit.to_string(),
            },
        }
    }
}

impl From<&TermShare> for Term {
    fn from(share: &TermShare) -> Self {
        Self {
            term: share.term.clone(),
            idf: rounded(share.idf),
            tf: share.tf,
            bm25: rounded(share.bm25),
            exact: share.exact,
        }
    }
}

impl PassageRow {
    fn of(memory: &Memory, hit: &Hit, passage: &PassageHit) -> Self {
        let read = memory.find(&hit.block.header.todo_id).ok().and_then(|todo| {
            memory.payloads().read_range(&todo, passage.payload.n, passage.bytes.clone()).ok()
        });
        Self {
            reference: passage.payload.to_string(),
            first_line: passage.first_line,
            skip: passage.skip,
            last_line: passage.last_line,
            text: read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            also_in: passage.also_in.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The messages of the block. One that is damaged is left out.
fn messages(memory: &Memory, hit: &Hit) -> Vec<Said> {
    let todo = &hit.block.header.todo_id;
    let range = hit.block.range.as_u64();
    let range = range.start..range.end.min(range.start + MESSAGES_MOST as u64);
    let numbered: Vec<(u64, Message)> = match memory.messages(todo, range.clone()) {
        Ok(messages) => range.zip(messages).collect(),
        Err(_) => range
            .filter_map(|seq| Some((seq, memory.messages(todo, seq..seq + 1).ok()?.pop()?)))
            .collect(),
    };
    let said = |(seq, message): (u64, Message)| {
        let mut text = cut(&message.text());
        for call in message.tool_calls() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("→ {} {}", call.name, cut(&call.arguments)));
        }
        Said { seq, role: message.role().as_str().to_owned(), text }
    };
    numbered.into_iter().map(said).collect()
}

/// Removes the middle of a long text: logs end with what matters.
fn cut(text: &str) -> String {
    let half = TEXT_CHARS / 2;
    let head = text.char_indices().nth(half).map(|(at, _)| at);
    let tail = text.char_indices().nth_back(half).map(|(at, _)| at);
    match head.zip(tail).filter(|(head, tail)| head < tail) {
        Some((head, tail)) => format!(
            "{}\n[...]\n{}",
            text.get(..head).unwrap_or_default(),
            text.get(tail..).unwrap_or_default()
        ),
        None => text.to_owned(),
    }
}

/// Rounds a score to its meaningful digits.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(cut("short 短"), "short 短");
        let shown = cut(&format!("begin {} end", "长".repeat(TEXT_CHARS)));
        assert!(shown.starts_with("begin 长") && shown.ends_with("长 end"), "{shown}");
        assert!(shown.chars().count() < TEXT_CHARS + 20);
    }
}
