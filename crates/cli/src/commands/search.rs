//! `foldback search`.

mod filter;
mod hit_json;
mod not_searched;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::block::range;
use crate::output::snippet::{snippet_line, snippets};
use crate::output::{self, Output, style, text};
use crate::store;
use clap::Args;
use filter::{block_type, nothing_found, time, until};
use foldback::{
    AllTodosAnswer, AllTodosRequest, Memory, NotSearched, SearchAnswer, Unsearched, question_words,
};
use foldback_blockstore::{Hit, PassageHit, SearchRequest};
use foldback_core::{BlockType, CloseReason, Message, SeqNo, Timestamp, TodoId, thousands};
use hit_json::{HitJson, hit_json};
use not_searched::warn_of;
use serde::Serialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Instant;

/// Find the blocks of a todo that answer a question, best first
///
/// Both words and meaning count: BM25 over the todo's own words, and the similarity of vectors. An exact hit on an id,
/// a path or a rare word ranks first. The text of stored payloads is searched as part of their blocks, and its lines
/// are shown. Blocks that have little to do with the question are left out, as in the agent's own search; --all shows
/// them. The open messages after the last closed block are searched as a block, under the id that they get when it
/// closes.
///
/// With --todo only blocks of that todo are ever read, as for an agent. --all-todos is for the owner of the store: one
/// list over everything in it, from an index that import and recording maintain in the background. What the index does
/// not hold yet is read from the records, up to some hundreds of blocks; the number of messages beyond that is
/// reported, and --index indexes them first.
///
/// JSON: {"hits": [{"block_id", "open", "score", "bm25", "cosine", "first_seq", "last_seq", "text", "payloads":
/// [{"ref", "first_line", "skip", "last_line", "text", "also_in"}]}], "took_us"}; for messages over 4,000 characters
/// `text` has the beginning and the end, a payload that is damaged has no `text`, and `skip` is how many bytes of a
/// long first line come before it. With --explain each hit also has "explanation", where "neighbours", "recent",
/// "dated" and "bonus" are the parts of its score besides words and meaning, and "another_script": true marks a block
/// in a different script from the question, which may be at a rank that is reserved for such blocks. If the question
/// could not be compared by meaning, "by_words_alone" says why. With --all-todos each hit also has "todo_id", and
/// beside "hits" there are "blocks", how many were searched, and "waiting", about how many messages were not.
///
/// Damaged, missing or unreadable parts do not keep anything else from being found. A warning names them, and so
/// does, with --json, "unsearched": [{"ref", "block_id", "messages" or "vectors", "why"}], with the first and the last
/// number of the messages, and "why" one of damaged, missing, unreadable (with "detail") and no_room; beyond 16 parts
/// the rest is counted in "unsearched_more". With --all-todos each also has "todo_id". If only "vectors" of messages
/// are named, their words were searched. The exit code is 1 if nothing was found, whether or not everything was
/// searched, and otherwise 0.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback search --todo coding-session what was the retry limit
  foldback search --todo coding-session -k 1 --explain \"no such column: lease_token\"
  foldback search --all-todos -k 10 --since 2025-01-01T00:00:00Z what did we decide about retries
  foldback search --all-todos --source claude-code --folder . flaky test")]
pub(crate) struct Search {
    /// The todo; `foldback todos` lists them
    #[arg(long, value_name = "ID", required_unless_present = "all_todos")]
    todo: Option<TodoId>,

    /// Search every todo of the store, and rank what is found as one list
    #[arg(long, conflicts_with = "todo")]
    all_todos: bool,

    /// With --all-todos, only todos of this source: a format such as claude-code, codex, lang-chain, chat-completions
    /// or foldback, or run
    #[arg(long, value_name = "SOURCE", conflicts_with = "todo")]
    source: Option<String>,

    /// With --all-todos, only todos with work in or below this folder
    #[arg(long, value_name = "DIR", conflicts_with = "todo")]
    folder: Option<PathBuf>,

    /// With --all-todos, bring its index up to date first
    #[arg(long, conflicts_with = "todo")]
    index: bool,

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

    /// Only blocks that began at this time or later, for example 2025-01-01 or 2025-01-01T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,

    /// Only blocks that began at this time or earlier; a day counts to its end
    #[arg(long, value_name = "TIME", value_parser = until)]
    until: Option<Timestamp>,

    /// Show blocks that have little to do with the question, too
    #[arg(long)]
    all: bool,

    /// Show how each score was computed: the terms that matched, words against meaning
    #[arg(long)]
    explain: bool,
}

#[derive(Serialize)]
struct SearchJson<'a> {
    hits: Vec<HitJson<'a>>,
    took_us: u64,
    #[serde(flatten)]
    extent: Option<Extent>,
    /// The reason why the question was not compared by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_words_alone: Option<String>,
    /// The parts that were not searched, and how many more there are.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unsearched: &'a [Unsearched],
    #[serde(skip_serializing_if = "is_zero")]
    unsearched_more: u64,
}

/// The extent of a search over all todos.
#[derive(Clone, Copy, Serialize)]
struct Extent {
    /// How many blocks were searched.
    blocks: u64,
    /// About how many messages were not, because no index holds them yet.
    waiting: u64,
}

/// A hit shows about this much of a longer message; `load` gives it whole.
const TEXT_CHARS: usize = 4_000;

/// A block below this relevance does not answer the question, unless it has an id, a path or a rare word of the
/// question; the agent's own search drops it, too.
const CUTOFF: f32 = 0.675;

/// The number of lines of a block that are shown for a hit.
const SNIPPETS: usize = 3;

impl Search {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let query = self.query.join(" ");
        if query.trim().is_empty() {
            let what =
                "the question is blank; words, names, paths or an error message were expected";
            return Err(CliError::Usage(what.to_owned()));
        }
        if self.since.zip(self.until).is_some_and(|(since, until)| since > until) {
            return Err(CliError::Usage("--since is after --until".to_owned()));
        }
        let memory = self.open(globals, out)?;
        let begun = Instant::now();
        let (answer, extent) = self.ask(&memory, &query)?;
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let SearchAnswer { mut hits, by_words_alone, not_searched } = answer;
        warn_of(globals, &not_searched);
        if let Some(Extent { waiting: waiting @ 1.., .. }) = extent {
            output::warn(
                globals,
                format_args!(
                    "about {} messages are not indexed yet and were not searched; --index indexes them first",
                    thousands(waiting)
                ),
            );
        }
        if let Some(error) = &by_words_alone {
            output::warn(globals, format_args!("{error}; this search uses words alone"));
        }
        // Even with --all, a block that shares neither a word nor any meaning is not an answer.
        hits.retain(|hit| hit.bm25 > 0.0 || hit.cosine > 0.0);
        let mut found = Vec::with_capacity(hits.len());
        for hit in &hits {
            let body = body(&memory, hit, out);
            let payloads = hit.passages.iter().map(|passage| passage_text(&memory, hit, passage));
            found.push(ShownHit { hit, body, payloads: payloads.collect() });
        }
        if out.is_json() {
            let hits = found.iter().map(|found| hit_json(&self, found)).collect();
            let by_words_alone = by_words_alone.map(|error| error.to_string());
            let NotSearched { parts: unsearched, more: unsearched_more } = &not_searched;
            let unsearched_more = *unsearched_more;
            out.json(&SearchJson {
                hits,
                took_us,
                extent,
                by_words_alone,
                unsearched,
                unsearched_more,
            })?;
        } else if found.is_empty() {
            out.note(nothing_found(&self, &memory)?);
        } else {
            let words = question_words(&query);
            for (at, found) in found.iter().enumerate() {
                self.print(out, at + 1, found, &words)?;
            }
        }
        Ok(Outcome::clean_if(!found.is_empty()))
    }

    /// Opens the store for reading; with --index its index over all todos is brought up to date first.
    fn open(&self, globals: &Globals, out: &Output) -> Result<Memory, CliError> {
        if !self.index {
            return store::open_for_search(globals);
        }
        let memory = store::open_existing(globals)?;
        let mut progress = None;
        let mut before = 0;
        memory.owner().index(|done, all| {
            let progress = progress.get_or_insert_with(|| out.progress("indexing", all));
            progress.advance(done - before);
            before = done;
        })?;
        Ok(memory)
    }

    /// Returns the folder as logs name folders: by its full path.
    fn folder(&self) -> Option<PathBuf> {
        let dir = self.folder.as_ref()?;
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        Some(dir.canonicalize().unwrap_or(dir))
    }

    fn ask(
        &self,
        memory: &Memory,
        query: &str,
    ) -> Result<(SearchAnswer, Option<Extent>), CliError> {
        let request = SearchRequest::new(query)
            .k(usize::from(self.k))
            .block_type(self.block_type)
            .since(self.since)
            .until(self.until)
            .cutoff((!self.all).then_some(CUTOFF));
        if let Some(todo) = &self.todo {
            return Ok((memory.search(todo, &request)?, None));
        }
        let folder = self.folder();
        let source = self.source.as_deref();
        let request = AllTodosRequest::new(request).source(source).folder(folder.as_deref());
        let AllTodosAnswer { hits, by_words_alone, blocks, waiting, not_searched, .. } =
            memory.owner().search(&request)?;
        let answer = SearchAnswer { hits, by_words_alone, not_searched };
        Ok((answer, Some(Extent { blocks, waiting })))
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
        let todo = match self.all_todos {
            true => format!("{}  ", style::paint(style::DIM, &header.todo_id)),
            false => String::new(),
        };
        out.line(format!(
            "{rank}. {}  {todo}score {:.2}{}",
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
                    text::utc_minute(&header.create_time)
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A hit, its messages, and the texts of its passages if they can be read.
struct ShownHit<'a> {
    hit: &'a Hit,
    body: Vec<(SeqNo, Message)>,
    payloads: Vec<Option<String>>,
}

/// The text of a passage; `None` if its payload is damaged.
fn passage_text(memory: &Memory, hit: &Hit, passage: &PassageHit) -> Option<String> {
    let todo = memory.find(&hit.block.header.todo_id).ok()?;
    let bytes = memory.payloads().read_range(&todo, passage.payload.n, passage.bytes.clone());
    bytes.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages of a hit's block, with their numbers. A message that is damaged, or whose payload
/// is, is reported and left out: the others answer as well without it.
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

/// The text of a block, message by message, each with its role in front.
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

/// Removes the middle of a long text: logs end with what matters.
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
