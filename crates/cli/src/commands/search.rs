//! `foldback search`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::block::range;
use crate::output::json::rounded;
use crate::output::snippet::{Snippet, show, snippets, words};
use crate::output::{self, Output, style, text};
use crate::store;
use clap::Args;
use foldback::{Memory, SearchAnswer};
use foldback_blockstore::{Hit, PassageHit, SearchRequest};
use foldback_core::{BlockId, BlockType, CloseReason, Message, PayloadRef, SeqNo, Timestamp};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Instant;

/// Find the blocks of a todo that answer a question, best first
///
/// Words and meaning count: BM25 over the todo's own words, and the similarity of vectors. An exact
/// hit on an id, a path or a rare word goes first. What stored payloads say is searched under their
/// blocks, and told with its lines. Blocks that have little to do with the question are left out, as
/// the agent's own search does it; --all shows them. Only blocks of this todo are ever looked at. The
/// open messages behind the last closed block are searched as a block, under the id that they get when
/// it closes.
///
/// JSON: {"hits": [{"block_id", "open", "score", "bm25", "cosine", "first_seq", "last_seq", "text",
/// "payloads": [{"ref", "first_line", "skip", "last_line", "text", "also_in"}]}], "took_us"}; of
/// messages over 4,000 characters `text` has beginning and end, a payload that is damaged has no
/// `text`, and `skip` is how many bytes of a long first line stand before it. With
/// --explain each hit has "explanation" too; what stands beside words and meaning in its score is
/// "neighbours", "recent", "dated" and "bonus" there. Where the question could not be compared by
/// meaning, "by_words_alone" says why. The exit code is 1 when nothing was found.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback search --todo coding-session what was the retry limit
  foldback search --todo coding-session -k 1 --explain \"no such column: lease_token\"")]
pub(crate) struct Search {
    #[command(flatten)]
    todo: TodoArg,

    /// The question: words, names, paths, error messages
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,

    /// At most this many blocks
    #[arg(short, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..=SearchRequest::MAX_K as i64))]
    k: u16,

    /// Only blocks of this type: tool_call, qa or chat
    #[arg(long = "type", value_name = "TYPE", value_parser = block_type)]
    block_type: Option<BlockType>,

    /// Only blocks that began at this time or later, for example 2025-01-01T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,

    /// Only blocks that began at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,

    /// Show blocks that have little to do with the question too
    #[arg(long)]
    all: bool,

    /// Show how each score came about: the terms that matched, words against meaning
    #[arg(long)]
    explain: bool,
}

#[derive(Serialize)]
struct SearchJson<'a> {
    hits: Vec<HitJson<'a>>,
    took_us: u64,
    /// Why the question was not compared by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_words_alone: Option<String>,
}

#[derive(Serialize)]
struct HitJson<'a> {
    block_id: &'a BlockId,
    /// Whether it is not closed yet.
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
    /// Bytes of the first line that stand before the text.
    skip: u64,
    last_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// Other blocks that carry the payload.
    also_in: &'a [BlockId],
}

#[derive(Serialize)]
struct ExplanationJson<'a> {
    exact: bool,
    relevance: f64,
    /// What the better of the blocks before and behind added to the score.
    neighbours: f64,
    /// What it added that work with tools has just seen the block.
    recent: f64,
    /// What it added that the question names the days on which the block was told.
    dated: f64,
    /// What exact hits added.
    bonus: f64,
    lexical_weight: f64,
    best_bm25: f64,
    best_seq: Option<SeqNo>,
    terms: Vec<TermJson<'a>>,
    payload_bm25: f64,
    payload_terms: Vec<&'a str>,
}

#[derive(Serialize)]
struct TermJson<'a> {
    term: &'a str,
    idf: f64,
    tf: u32,
    bm25: f64,
    exact: bool,
}

/// Of a longer message, about this much stands in a hit's text; `load` gives it whole.
const TEXT_CHARS: usize = 4_000;

/// A block under this relevance answers nothing, unless an id, a path or a rare word of the question
/// stands in it: what the agent's own search drops.
const CUTOFF: f32 = 0.675;

/// Lines of a block that are shown for a hit.
const SNIPPETS: usize = 3;

impl Search {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_search(globals)?;
        let todo = &self.todo.todo;
        let query = self.query.join(" ");
        let request = SearchRequest::new(&query)
            .k(usize::from(self.k))
            .block_type(self.block_type)
            .since(self.since)
            .until(self.until)
            .cutoff((!self.all).then_some(CUTOFF));
        let begun = Instant::now();
        let answer = memory.search(todo, &request)?;
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let SearchAnswer { mut hits, by_words_alone } = answer;
        if let Some(error) = &by_words_alone {
            output::warn(globals, format_args!("{error}; this search goes by words alone"));
        }
        // Even of everything, a block that shares neither a word nor any meaning answers nothing.
        hits.retain(|hit| hit.bm25 > 0.0 || hit.cosine > 0.0);
        let mut found = Vec::with_capacity(hits.len());
        for hit in &hits {
            let body = body(&memory, hit, out);
            let payloads = hit.passages.iter().map(|passage| passage_text(&memory, hit, passage));
            found.push(ShownHit { hit, body, payloads: payloads.collect() });
        }
        if out.is_json() {
            let hits = found.iter().map(|found| self.hit_json(found)).collect();
            let by_words_alone = by_words_alone.map(|error| error.to_string());
            out.json(&SearchJson { hits, took_us, by_words_alone })?;
        } else if found.is_empty() {
            let more = if self.all { "" } else { "; --all shows what is nearest" };
            out.note(format_args!(
                "nothing was found; try other words, a name, or `foldback blocks --todo {todo}`{more}"
            ));
        } else {
            let words = words(&query);
            for (at, found) in found.iter().enumerate() {
                self.print(out, at + 1, found, &words)?;
            }
        }
        Ok(Outcome::clean_if(!found.is_empty()))
    }

    fn hit_json<'a>(&self, found: &'a ShownHit<'a>) -> HitJson<'a> {
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
            block_id: &hit.block.header.block_id,
            open: hit.block.close_reason == CloseReason::Open,
            score: rounded(hit.score),
            bm25: rounded(hit.bm25),
            cosine: rounded(hit.cosine),
            first_seq: hit.block.range.first(),
            last_seq: hit.block.range.last(),
            text: text_of(body),
            payloads: hit.passages.iter().zip(payloads).map(payload).collect(),
            explanation: self.explain.then(|| ExplanationJson {
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
            }),
        }
    }

    fn print(
        &self,
        out: &Output,
        rank: usize,
        ShownHit { hit, body, .. }: &ShownHit<'_>,
        words: &[String],
    ) -> Result<(), CliError> {
        let header = &hit.block.header;
        if rank > 1 {
            out.line("")?;
        }
        out.line(format!(
            "{rank}. {}  score {:.2}{}",
            style::paint(style::NAME, &header.block_id),
            hit.score,
            style::paint(
                style::DIM,
                format!(
                    "  {} {} · {}{} · {}",
                    if hit.block.range.len() == 1 { "message" } else { "messages" },
                    range(hit.block.range),
                    if hit.block.close_reason == CloseReason::Open { "still open · " } else { "" },
                    header.block_type,
                    header.create_time
                )
            ),
        ))?;
        for line in text::wrap(&text::one_line(&header.core_semantic), out.width() - 3, 0) {
            out.line(format!("   {}", style::paint(style::HEAD, line)))?;
        }
        let messages: Vec<_> = body.iter().map(|(seq, message)| (*seq, message)).collect();
        for snippet in snippets(&messages, words, SNIPPETS) {
            out.line(format!("   {}", snippet_line(&snippet, words, out.width() - 3)))?;
        }
        for passage in &hit.passages {
            out.line(format!("   {}", style::paint(style::DIM, passage)))?;
        }
        if self.explain {
            for line in text::wrap(&text::one_line(&hit.to_string()), out.width() - 3, 0) {
                out.line(format!("   {}", style::paint(style::DIM, line)))?;
            }
        }
        Ok(())
    }
}

/// A line of a hit with the message that it stands in.
pub(crate) fn snippet_line(snippet: &Snippet, words: &[String], width: usize) -> String {
    let place = format!("{:>4} {:<9} ", snippet.seq.0, text::fit(&snippet.role, 9));
    let room = width.saturating_sub(text::columns(&place));
    format!("{}{}", style::paint(style::DIM, place), show(&snippet.line, words, room))
}

/// A hit, its messages, and the texts of its passages where they can be read.
struct ShownHit<'a> {
    hit: &'a Hit,
    body: Vec<(SeqNo, Message)>,
    payloads: Vec<Option<String>>,
}

/// What a passage says; `None` when its payload is damaged.
fn passage_text(memory: &Memory, hit: &Hit, passage: &PassageHit) -> Option<String> {
    let todo = memory.find(&hit.block.header.todo_id).ok()?;
    let bytes = memory.payloads().read_range(&todo, passage.payload.n, passage.bytes.clone());
    bytes.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages of a hit's block, with their numbers. One that is damaged, or whose payload is, is
/// told and left out: the others answer as well without it.
fn body(memory: &Memory, hit: &Hit, out: &Output) -> Vec<(SeqNo, Message)> {
    let mut body = Vec::new();
    for seq in hit.block.range.iter() {
        match memory.messages(&hit.block.header.todo_id, seq.0..seq.0 + 1) {
            Ok(messages) => body.extend(messages.into_iter().map(|message| (seq, message))),
            Err(error) => out.note(format_args!("message {seq} cannot be shown: {error}")),
        }
    }
    body
}

/// What a block says, message by message, each with its role in front.
fn text_of(body: &[(SeqNo, Message)]) -> String {
    let mut out = String::new();
    for (_, message) in body {
        out.push_str(&format!("{}: {}\n", message.role().as_str(), cut(&message.text())));
        for call in message.tool_calls() {
            out.push_str(&format!("→ {} {}\n", call.name, cut(&call.arguments)));
        }
    }
    out
}

fn block_type(name: &str) -> Result<BlockType, String> {
    let all = [BlockType::ToolCall, BlockType::Qa, BlockType::Chat];
    let found = all.into_iter().find(|known| known.as_str() == name);
    found.ok_or_else(|| "a block is of the type tool_call, qa or chat".to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    let expected = "a time looks like 2025-01-01T10:00:00Z, or 2025-01-01 10:00:00 for UTC";
    Timestamp::parse(text).ok_or_else(|| expected.to_owned())
}

/// A long text without its middle: logs end with what counts.
fn cut(text: &str) -> Cow<'_, str> {
    let half = TEXT_CHARS / 2;
    let Some((head, _)) = text.char_indices().nth(half) else { return Cow::Borrowed(text) };
    let Some((tail, _)) = text.char_indices().nth_back(half) else { return Cow::Borrowed(text) };
    if tail <= head {
        return Cow::Borrowed(text);
    }
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    Cow::Owned(format!("{}\n[...]\n{}", part(0..head), part(tail..text.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(cut("short 短"), "short 短");
        let exact = "长".repeat(TEXT_CHARS);
        assert_eq!(cut(&exact), exact);
        let long = format!("begin {} end", "长".repeat(TEXT_CHARS));
        let shown = cut(&long);
        assert!(shown.starts_with("begin 长") && shown.ends_with("长 end"), "{shown}");
        assert!(shown.chars().count() < TEXT_CHARS + 20);
    }
}
