//! A few recalls made by the program itself, to show a newcomer that folded content is found.

use crate::error::CliError;
use crate::output::snippet::{Snippet, snippets};
use crate::walk;
use foldback::{Memory, question_words};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::SearchRequest;
use foldback_core::{Block, BlockId, Message, PayloadKind, PayloadRef, Role, SeqRange, TodoId};
use std::collections::{BTreeMap, BTreeSet};

/// Something that folded, and how it was found.
pub(crate) enum Sample {
    /// A search.
    Search {
        /// Words that one early block has and no other.
        query: String,
        /// The block that was found first.
        found: BlockId,
        /// Its messages.
        range: SeqRange,
        /// Whether it is the block that the words were taken from.
        right: bool,
        /// The line in it with most of the words.
        snippet: Option<Snippet>,
    },
    /// A line of a payload.
    Load {
        /// The payload.
        reference: PayloadRef,
        /// A word in it that no other block has.
        pattern: String,
        /// The line, counted from 1.
        line: u64,
        /// All lines.
        lines: u64,
        /// The text of the line.
        text: String,
    },
}

/// With fewer blocks everything may still be in view.
const BLOCKS_LEAST: usize = 4;

/// The number of words of a query.
const WORDS: usize = 4;

/// A larger payload is not searched for a sample.
const PAYLOAD_MOST: u64 = 1 << 20;

/// Searches for what only early blocks have said, and loads a line that was stored outside.
pub(crate) fn samples(memory: &Memory, todo: &TodoId) -> Result<Vec<Sample>, CliError> {
    let blocks: Vec<Block> = walk::blocks(memory, todo).collect::<Result<_, _>>()?;
    let count = blocks.len();
    if count < BLOCKS_LEAST {
        return Ok(Vec::new());
    }
    let spoken = Spoken::of(memory, todo, &blocks)?;
    let mut samples = Vec::new();
    // The first block has the task, which stays in view.
    for at in BTreeSet::from([1, (count / 3).max(2)]) {
        let Some(block) = blocks.get(at) else { continue };
        if let Some(query) = spoken.query(memory, todo, block)? {
            samples.extend(search(memory, todo, block, query)?);
        }
    }
    let early = blocks.get(..count / 2).unwrap_or_default();
    samples.extend(load(memory, todo, early, &spoken)?);
    Ok(samples)
}

fn search(
    memory: &Memory,
    todo: &TodoId,
    block: &Block,
    query: String,
) -> Result<Option<Sample>, CliError> {
    let hits = memory.search(todo, &SearchRequest::new(&query).k(1))?.hits;
    let Some(hit) = hits.first() else { return Ok(None) };
    let range = hit.block.range;
    let messages = memory.messages(todo, range.as_u64())?;
    let numbered: Vec<_> = range.iter().zip(&messages).collect();
    Ok(Some(Sample::Search {
        snippet: snippets(&numbered, &question_words(&query), 1).into_iter().next(),
        right: hit.block.header.block_id == block.header.block_id,
        found: hit.block.header.block_id.clone(),
        range,
        query,
    }))
}

/// The first line of an early payload that a single identifier finds.
fn load(
    memory: &Memory,
    todo: &TodoId,
    early: &[Block],
    spoken: &Spoken,
) -> Result<Option<Sample>, CliError> {
    let (handle, payloads) = (memory.find(todo)?, memory.payloads());
    let references = early.iter().flat_map(|block| &block.header.data_ids);
    for reference in references.filter_map(|id| id.parse::<PayloadRef>().ok()) {
        let meta = match payloads.resolve(&handle, &reference) {
            // Of another todo, or named by a block that was closed before references were looked up.
            Err(PayloadError::NotFound { .. } | PayloadError::WrongCheck { .. }) => continue,
            meta => meta?,
        };
        if meta.kind == PayloadKind::Binary || meta.bytes > PAYLOAD_MOST {
            continue;
        }
        let Ok(text) = String::from_utf8(payloads.get(&handle, meta.n)?) else { continue };
        let identifier = |line: &str| {
            let word = tokens(line).find(|word| word.contains('_') && spoken.is_rare(word));
            word.filter(|_| line.len() <= 120)
        };
        // A line that assigns a value says most.
        let found = || text.lines().filter(|line| identifier(line).is_some());
        let line = found().find(|line| line.contains(['=', ':'])).or_else(|| found().next());
        let Some(pattern) = line.and_then(identifier) else { continue };
        // The pattern is case-sensitive, but the words are in lower case.
        let pattern_any_case = format!("(?i){pattern}");
        let excerpt = payloads.matching(&handle, meta.n, &pattern_any_case, 0, 500, 1)?;
        let Some(run) = excerpt.runs.first() else { continue };
        return Ok(Some(Sample::Load {
            reference,
            pattern,
            line: run.first_line,
            lines: excerpt.total_lines,
            text: run.text().lines().next().unwrap_or_default().to_owned(),
        }));
    }
    Ok(None)
}

/// The number of blocks with each word.
struct Spoken {
    spread: BTreeMap<String, u32>,
    tools: BTreeSet<String>,
}

impl Spoken {
    fn of(memory: &Memory, todo: &TodoId, blocks: &[Block]) -> Result<Self, CliError> {
        let mut spoken = Self { spread: BTreeMap::new(), tools: BTreeSet::new() };
        for block in blocks {
            spoken.take(&memory.messages(todo, block.range.as_u64())?);
        }
        Ok(spoken)
    }

    /// Takes the messages of one block.
    fn take(&mut self, messages: &[Message]) {
        let mut words = BTreeSet::new();
        for message in messages {
            words.extend(tokens(&message.text()));
            for call in message.tool_calls() {
                self.tools.insert(call.name.to_lowercase());
                words.extend(tokens(&call.arguments));
            }
        }
        for word in words {
            *self.spread.entry(word).or_default() += 1;
        }
    }

    /// Whether only one block has the word.
    fn is_rare(&self, word: &str) -> bool {
        self.spread.get(word) == Some(&1) && !self.tools.contains(word)
    }

    /// The rare words of the line that has most of them, from what was said in the block.
    fn query(
        &self,
        memory: &Memory,
        todo: &TodoId,
        block: &Block,
    ) -> Result<Option<String>, CliError> {
        let messages = memory.messages(todo, block.range.as_u64())?;
        Ok(self.query_of(&messages))
    }

    fn query_of(&self, messages: &[Message]) -> Option<String> {
        let mut best: Vec<String> = Vec::new();
        let said = |message: &&Message| {
            matches!(message.role(), Role::User | Role::Assistant) && !message.content().is_blank()
        };
        for message in messages.iter().filter(said) {
            for line in message.text().lines() {
                let mut rare: Vec<String> = Vec::new();
                for word in tokens(line).filter(|word| self.is_rare(word)) {
                    if !rare.contains(&word) && rare.len() < WORDS {
                        rare.push(word);
                    }
                }
                if rare.len() > best.len() {
                    best = rare;
                }
            }
        }
        (!best.is_empty()).then(|| best.join(" "))
    }
}

/// Words that a person would search for: mostly letters, neither short nor endless.
fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter_map(|word| {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        let chars = word.chars().count();
        let wide = !word.is_ascii();
        let fits = (if wide { 2..=8 } else { 5..=24 }).contains(&chars);
        (fits && letters * 4 >= chars * 3).then(|| word.to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_the_rare_words_of_one_line() {
        let blocks = [
            vec![
                Message::user(
                    "The harbour shares nothing.\nThe harbour charged a lost lease_token",
                ),
                Message::assistant("Sweeper"),
            ],
            vec![Message::user("nothing shares a quokka")],
        ];
        let mut spoken = Spoken { spread: BTreeMap::new(), tools: BTreeSet::new() };
        blocks.iter().for_each(|block| spoken.take(block));
        let query = spoken.query_of(&blocks[0]);
        assert_eq!(query.as_deref(), Some("harbour charged lease_token"));
        spoken.tools.insert("quokka".to_owned());
        assert_eq!(spoken.query_of(&blocks[1]), None);
    }

    #[test]
    fn tokens_are_what_a_person_would_type() {
        let text = "nt-0042 lease_token 4f3a9b21cc x 船闸重复 verylongwordverylongwordverylong";
        assert_eq!(tokens(text).collect::<Vec<_>>(), ["lease_token", "船闸重复"]);
    }
}
