//! The results of possible searches: at some calls, the question that a model might ask its memory,
//! made from what it was just told, and the blocks that answer it.

use super::picture::{Search, SearchHit};
use crate::error::CliError;
use crate::output::json::rounded;
use crate::output::snippet::snippets;
use crate::output::text;
use foldback::{Memory, question_words};
use foldback_blockstore::SearchRequest;
use foldback_core::{BlockId, Message, Role, TodoId, argument_text};

/// About the most searches of one conversation.
const SEARCHES: usize = 12;

/// The number of blocks that a search returns.
const HITS: usize = 3;

/// The greatest length of a query or a line, in columns.
const WIDTH: usize = 160;

/// With fewer closed blocks everything may still be in view.
const BLOCKS_LEAST: usize = 2;

/// Chooses the calls, and makes the queries.
pub(super) struct Asker<'a> {
    source: &'a [Message],
    /// The next search is made after this many messages.
    next: usize,
    step: usize,
}

impl<'a> Asker<'a> {
    pub(super) fn new(source: &'a [Message]) -> Self {
        let step = source.len().div_ceil(SEARCHES).max(1);
        Self { source, next: step, step }
    }

    /// The query at a call after `at` messages, and its source. `None` if there is none: too little
    /// has folded, a recent call had one, or there is nothing to ask.
    pub(super) fn query(&mut self, at: usize, blocks: usize) -> Option<(String, &'static str)> {
        let so_far = self.source.get(..at)?;
        let newest = so_far.last()?;
        let is_user = *newest.role() == Role::User;
        // The beginning of a turn is worth waiting for.
        let due = self.next + if is_user { 0 } else { self.step / 2 };
        if blocks < BLOCKS_LEAST || at < due {
            return None;
        }
        let asked = if is_user {
            (question(&newest.text()), "the user's last message")
        } else {
            let calls = so_far.iter().rev().find(|message| !message.tool_calls().is_empty());
            (calls.map(of_arguments).unwrap_or_default(), "the arguments of the last call")
        };
        if asked.0.is_empty() {
            return None;
        }
        self.next = at + self.step;
        Some(asked)
    }
}

/// The last sentence of a text that is a question; if there is none, the first sentence.
fn question(said: &str) -> String {
    let line = text::one_line(said);
    let mut sentences: Vec<&str> = Vec::new();
    let mut begin = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_last = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if matches!(c, '。' | '！' | '？') || (matches!(c, '.' | '!' | '?') && is_last) {
            let end = at + c.len_utf8();
            sentences.extend(line.get(begin..end));
            begin = end;
        }
    }
    sentences.extend(line.get(begin..).filter(|rest| !rest.trim().is_empty()));
    let asks = sentences.iter().rev().find(|sentence| sentence.ends_with(['?', '？']));
    let sentence = asks.or(sentences.first()).copied().unwrap_or_default();
    text::fit(sentence.trim(), WIDTH)
}

/// What the first calls of a message are about: their short arguments.
fn of_arguments(message: &Message) -> String {
    let mut said: Vec<String> = Vec::new();
    for call in message.tool_calls().iter().take(2) {
        for (_, value) in call.members().unwrap_or_default().into_iter().take(2) {
            let value = text::one_line(&argument_text(value));
            if !value.is_empty() && value.len() <= WIDTH && !said.contains(&value) {
                said.push(value);
            }
        }
    }
    text::fit(&said.join(" "), WIDTH)
}

/// Searches the memory in its current state. `shown` is the block that is whole in the prompt.
pub(super) fn ask(
    memory: &Memory,
    todo: &TodoId,
    call: u64,
    (query, from): (String, &'static str),
    shown: Option<&BlockId>,
) -> Result<Search, CliError> {
    let arguments = serde_json::json!({ "query": query }).to_string();
    let answer = memory.recall(todo, "search_block", &arguments)?.text;
    let returned = answered_by(&answer);
    let mut hits = Vec::new();
    for hit in memory.search(todo, &SearchRequest::new(&query).k(HITS))?.hits {
        let id = &hit.block.header.block_id;
        let messages = memory.messages(todo, hit.block.range.as_u64())?;
        let numbered: Vec<_> = hit.block.range.iter().zip(&messages).collect();
        let best = snippets(&numbered, &question_words(&query), 1).into_iter().next();
        hits.push(SearchHit {
            block: id.n(),
            score: rounded(hit.score),
            bm25: rounded(hit.bm25),
            cosine: rounded(hit.cosine),
            relevance: rounded(hit.relevance),
            exact: hit.exact,
            in_view: shown == Some(id),
            returned: returned.contains(&id.n()),
            seq: best.as_ref().map(|best| best.seq.0),
            line: best
                .map_or_else(String::new, |best| text::fit(&text::one_line(&best.line), WIDTH)),
        });
    }
    Ok(Search { call, query, from, hits })
}

/// The numbers of the blocks that an answer of `search_block` names in its first line.
fn answered_by(answer: &str) -> Vec<u32> {
    let head = answer.lines().next().unwrap_or_default();
    let ids = head.rsplit_once("is answered by ").map_or("", |(_, ids)| ids);
    let number = |id: &str| id.trim_end_matches(']').rsplit_once('_')?.1.parse().ok();
    ids.split(", ").filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_testkit::transcript;

    #[test]
    fn a_query_is_what_was_just_asked_or_called() {
        let source = transcript(
            "
            user: repair the harbour
            assistant: it is repaired
            user: Thank you. What did lease_token say in v1.5? I forgot.
            assistant> grep({\"pattern\": \"lease_token\", \"path\": \"src/闸.py\"})
            tool: found
            assistant: found it
            user: 明白了。船闸那边收到过重复的通知吗？谢谢。
            ",
        );
        let mut asker = Asker::new(&source);
        assert_eq!(asker.query(3, 1), None, "nothing has folded");
        let user = "the user's last message";
        let call = "the arguments of the last call";
        let asked = |query: &str, from| Some((query.to_owned(), from));
        assert_eq!(asker.query(3, 2), asked("What did lease_token say in v1.5?", user));
        assert_eq!(asker.query(3, 2), None, "a call was asked at just before");
        assert_eq!(asker.query(5, 2), asked("lease_token src/闸.py", call));
        assert_eq!(asker.query(7, 2), asked("船闸那边收到过重复的通知吗？", user));
        assert_eq!(question("Now the notes. Quickly"), "Now the notes.");
        assert_eq!(question("  "), "");
    }

    #[test]
    fn the_blocks_of_an_answer_are_read() {
        let answer =
            "[search_block: \"a is answered by x_1\" is answered by b_quay_003, b_1204]\n..";
        assert_eq!(answered_by(answer), [3, 1204]);
        assert_eq!(answered_by("[search_block: no block matches \"a\"]"), Vec::<u32>::new());
    }
}
