//! Names, at the end of a prompt, earlier blocks that relate to what is said now, before the model asks for them.

use crate::cut::one_line;
use crate::ledger::short_id;
use crate::quote::escaped;
use crate::tools::{RecallSource, is_recall_tool, passage_of};
use crate::{Error, LiveView};
use foldback_blockstore::{Finder, Hit, SearchRequest};
use foldback_core::{BlockId, Message, Role, TokenCounter};

/// The text before the named blocks.
const MATCH: &str = "Blocks that match: ";

/// The greatest number of tokens of the line that names blocks.
const POINTER_TOKENS: usize = 60;

/// The greatest number of named blocks.
const POINTERS: usize = 2;

/// The number of hits that are examined: some are in view.
const HITS: usize = 16;

/// A block that contains no name from the question is named from this relevance on; 0.72 means "this answers it".
const RELEVANT: f32 = 0.95;

/// Of two blocks that match equally, the one that left later is needed more often. Its age in blocks counts for this
/// share of the order, and falls to a third over this many blocks.
const RECENCY: f32 = 0.3;
const RECENT_BLOCKS: f32 = 3.0;

/// The words that a block is named for: the greatest number of them, and of their characters.
const WORDS: usize = 2;
const WORD_CHARS: usize = 32;

/// The greatest number of tokens of a passage, including its marks.
const PASSAGE_TOKENS: usize = 150;

/// A block answers a question beyond doubt from this relevance on, if its score is this many times that of the next.
const BEYOND_DOUBT: f32 = 0.9;
const MARGIN: f32 = 1.2;

/// The hints to earlier blocks at the end of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    said: Option<String>,
    blocks: Vec<BlockId>,
}

impl Hints {
    /// Returns the hints for the newest messages of the view in `recall`; none while everything is in view, if the
    /// model is not to answer now, or if it has just searched for itself. What still matches is named again: the end of
    /// a prompt is written anew each time, so nothing else keeps it before the model.
    ///
    /// The same store and the same messages give the same words. No model except the embedder is called.
    ///
    /// # Errors
    /// When the store fails.
    pub fn find(recall: &RecallSource<'_>) -> Result<Self, Error> {
        let may_hint = |view: &&LiveView| view.config().hints && view.has_left();
        let Some(view) = recall.view.filter(may_hint) else { return Ok(Self::default()) };
        let newest = view.newest();
        let Some(last) = newest.last().filter(|last| *last.role() != Role::Assistant) else {
            return Ok(Self::default());
        };
        let mut calls = newest.iter().flat_map(|message| message.tool_calls());
        if *last.role() == Role::Tool && calls.any(|call| is_recall_tool(&call.name)) {
            return Ok(Self::default());
        }
        let search = |question: &str| -> Result<Vec<Hit>, Error> {
            let request = SearchRequest::new(question).k(HITS);
            let mut hits = recall.searcher()?.search_with(&request, recall.embedder)?.hits;
            // What was said on another branch is not an earlier part of this conversation.
            hits.retain(|hit| !view.is_of_others(&hit.block));
            Ok(hits)
        };
        let whole = question(newest.iter().copied());
        let mut hits = None;
        if *last.role() == Role::User {
            // Searched by the user's own words: what the model said before would drown them.
            let asked = newest.iter().copied().filter(|message| *message.role() == Role::User);
            let asked = question(asked);
            let found = search(&asked)?;
            if let Some(best) = beyond_doubt(&found)
                && !view.shows_block(best.block.header.block_id.n())
                && let Some(passage) = passage_of(recall, best, PASSAGE_TOKENS)
            {
                // A block that answers needs no other beside it.
                let blocks = vec![best.block.header.block_id.clone()];
                return Ok(Self { said: Some(passage), blocks });
            }
            hits = (asked == whole).then_some(found);
        }
        let mut hits = hits.map_or_else(|| search(&whole), Ok)?;
        hits.retain(|hit| {
            let is_match = hit.exact || hit.relevance >= RELEVANT;
            is_match && !view.shows_block(hit.block.header.block_id.n())
        });
        recent_first(&mut hits, view.last_left());
        let (said, blocks) = pointers(&hits, &whole, recall.tokens);
        Ok(Self { said, blocks })
    }

    /// Returns whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the named blocks, the best first.
    #[must_use]
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Returns what is said about them, a section of the end of a prompt.
    pub(crate) fn section(&self) -> Option<&str> {
        self.said.as_deref()
    }
}

/// Returns the first hit if it answers the question beyond doubt.
fn beyond_doubt(hits: &[Hit]) -> Option<&Hit> {
    // A hit in another script may come before one with a better score.
    let next = hits.iter().skip(1).map(|hit| hit.score).fold(0.0, f32::max);
    hits.first().filter(|best| best.relevance >= BEYOND_DOUBT && best.score >= MARGIN * next)
}

/// Orders hits by their score and by how recently they left; the block with the number `last` left last.
fn recent_first(hits: &mut [Hit], last: u32) {
    let rank = |hit: &Hit| {
        let age = last.saturating_sub(hit.block.header.block_id.n()) as f32;
        hit.score * (1.0 - RECENCY) + RECENCY * (-age / RECENT_BLOCKS).exp()
    };
    hits.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
}

/// Returns the line that names the best hits, with the question's words that each is named for; `None` if there is no
/// hit.
fn pointers(
    hits: &[Hit],
    question: &str,
    tokens: &dyn TokenCounter,
) -> (Option<String>, Vec<BlockId>) {
    let (mut line, mut blocks) = (None, Vec::new());
    for hit in hits.iter().take(POINTERS) {
        let id = &hit.block.header.block_id;
        let named = match words(hit, question) {
            words if words.is_empty() => short_id(id.n()),
            words => format!("{} ({})", short_id(id.n()), words.join(", ")),
        };
        let longer = match &line {
            None => format!("{MATCH}{named}"),
            Some(line) => format!("{line}; {named}"),
        };
        if tokens.count(&longer) > POINTER_TOKENS {
            break;
        }
        line = Some(longer);
        blocks.push(id.clone());
    }
    (line, blocks)
}

/// Returns the question's words that a block contains, names first, then the most telling ones.
fn words(hit: &Hit, question: &str) -> Vec<String> {
    let mut terms: Vec<_> = hit.explanation.terms.iter().collect();
    terms.sort_by(|a, b| b.exact.cmp(&a.exact).then(b.bm25.total_cmp(&a.bm25)));
    let mut words: Vec<String> = Vec::new();
    for term in terms {
        let Some(word) = word_of(&term.term, question) else { continue };
        if !words.iter().any(|other| other.contains(&word)) {
            words.push(word);
        }
        if words.len() == WORDS {
            break;
        }
    }
    words
}

/// Returns a term as the question writes it. A term is a stem, or a pair of characters in scripts without word breaks.
fn word_of(term: &str, question: &str) -> Option<String> {
    if !term.is_ascii() {
        return Some(escaped(&one_line(term, WORD_CHARS)));
    }
    let from = Finder::new([(term, 1.0)]).find(question)?;
    let ends = |c: char| c.is_whitespace() || "\"'`<>(){}[],;|=".contains(c) || !c.is_ascii();
    let word =
        question.get(from..)?.split(ends).next()?.trim_end_matches(['.', ':', '?', '!', '\\']);
    (!word.is_empty()).then(|| escaped(&one_line(word, WORD_CHARS)))
}

/// How many bytes of the beginning and the end of what was said last go into the query, for a message, a call's
/// arguments, and a result.
const SAID: (usize, usize) = (2_000, 1_000);
const ARGUMENTS: (usize, usize) = (800, 200);
const RESULT: (usize, usize) = (600, 300);

/// Returns the query: what was said last, and the calls that it answers.
fn question<'m>(newest: impl IntoIterator<Item = &'m Message>) -> String {
    let mut question = String::new();
    for message in newest {
        let is_result = *message.role() == Role::Tool;
        push_ends(&mut question, &message.text(), if is_result { RESULT } else { SAID });
        for call in message.tool_calls() {
            question.push_str(&call.name);
            question.push(' ');
            push_ends(&mut question, &call.arguments, ARGUMENTS);
        }
    }
    question
}

/// Adds a text on a line of its own; of a longer one, its beginning and its end.
fn push_ends(question: &mut String, text: &str, (beginning, end): (usize, usize)) {
    if text.len() <= beginning + end {
        question.push_str(text);
    } else {
        question.push_str(text.get(..text.floor_char_boundary(beginning)).unwrap_or_default());
        question.push('\n');
        question
            .push_str(text.get(text.ceil_char_boundary(text.len() - end)..).unwrap_or_default());
    }
    question.push('\n');
}
