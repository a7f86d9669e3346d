//! `search_block` over todos none of which is the reader's own.

use super::argument::Arguments;
use super::block_text::BlockText;
use super::search_block::{
    BUDGET, CUTOFF_COMPLEX, FRAME, LINE, TOOL, answered_by, nothing_fits, request, score_line,
    show_around, shown_query,
};
use super::{Answer, RecallSource, not_searched};
use crate::Error;
use crate::cut::{cut_tokens, one_line};
use crate::quote::escaped;
use crate::quoted_text::QuotedText;
use foldback_blockstore::{Error as BlockError, Hit, NotSearched, PassageHit, SearchRequest};
use foldback_core::{PayloadRef, thousands};

/// A call of `search_block` whose answer may come from any todo: only a caller that may read all of
/// them makes one. Everything in the answer has its full name, and nothing in it is a quote.
#[derive(Debug)]
pub struct SearchElsewhere(Arguments);

impl SearchElsewhere {
    /// Reads the arguments of the call.
    ///
    /// # Errors
    /// Returns the answer that says what is wrong with them.
    pub fn read(arguments: &str) -> Result<Self, Box<Answer>> {
        TOOL.read(arguments).map(Self)
    }

    /// Returns what is to be searched for.
    #[must_use]
    pub fn request(&self) -> SearchRequest<'_> {
        request(&self.0).cutoff(CUTOFF_COMPLEX)
    }

    /// Returns the answer of these hits, the best first, each with the source of its todo. About
    /// `waiting` messages were not searched; `not_searched` names the other parts.
    ///
    /// # Errors
    /// When the store fails.
    pub fn answer(
        &self,
        found: &[(RecallSource<'_>, &Hit)],
        waiting: u64,
        not_searched: &NotSearched,
    ) -> Result<Answer, Error> {
        let asked = shown_query(self.0.text("query").unwrap_or_default());
        let unsearched = match waiting {
            0 => String::new(),
            waiting => format!(
                "\nAbout {} messages are not indexed yet and were not searched; `foldback search \
                 --all-todos --index` does it.",
                thousands(waiting)
            ),
        };
        if found.is_empty() {
            let nothing = nothing_fits(&asked, not_searched.clone());
            let said = Answer::said(&format!("{}{unsearched}", nothing.text));
            return Ok(Answer { unsearched: nothing.unsearched, ..said });
        }
        let unsearched = match not_searched.is_empty() {
            true => unsearched,
            false => format!("\n{}{unsearched}", not_searched::line(not_searched)),
        };
        let ids: Vec<String> = found.iter().map(|(_, hit)| id(hit)).collect();
        let mut answer = QuotedText::default();
        answer.push(&answered_by(&asked, &ids));
        let told = found.first().map_or(0, |(recall, _)| recall.tokens.count(&unsearched));
        let mut left = BUDGET.saturating_sub(FRAME + told);
        let (mut unshown, mut damaged) = (Vec::new(), Vec::new());
        for (i, (recall, hit)) in found.iter().enumerate() {
            let room = left.saturating_sub(LINE * (found.len() - i - 1));
            match show(recall, hit, room, unshown.len() + damaged.len() == i) {
                Ok(Some(shown)) => {
                    left = left.saturating_sub(recall.tokens.count(shown.text()));
                    answer.append(&shown);
                }
                Ok(None) => {
                    left = left.saturating_sub(LINE);
                    let about = one_line(&hit.block.header.core_semantic, 160);
                    let line = escaped(&format!("{} | {about}", id(hit)));
                    unshown.push(cut_tokens(&line, LINE - 8, recall.tokens));
                }
                Err(BlockError::Corrupt { detail, .. }) => {
                    damaged.push(not_searched::unshown(&id(hit), &detail));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !unshown.is_empty() {
            answer.push("Not shown for lack of room; load shows them:\n");
        }
        for line in unshown {
            answer.push(&format!("- {line}\n"));
        }
        damaged.iter().for_each(|line| answer.push(line));
        answer.push(unsearched.trim_start());
        let references = found.iter().flat_map(|(_, hit)| references(hit)).collect();
        Ok(Answer::of(answer).showing(references).without(not_searched.clone()))
    }
}

/// Returns a hit in at most `room` tokens: its block whole or, if `partly` is set, the messages
/// around the best; followed by the places of its payloads. `None` if it does not fit.
fn show(
    recall: &RecallSource<'_>,
    hit: &Hit,
    room: usize,
    partly: bool,
) -> Result<Option<QuotedText>, BlockError> {
    let text = BlockText::read_elsewhere(recall, &hit.block)?;
    let body = text.body();
    let mut shown = QuotedText::default();
    shown.push(&score_line(hit));
    shown.push(&text.open());
    let places: String =
        hit.passages.iter().map(|passage| format!("in {}\n", place(hit, passage))).collect();
    let frame = format!("{}{}{places}", shown.text(), text.close());
    let Some(room) = room.checked_sub(recall.tokens.count(&frame)) else { return Ok(None) };
    if recall.tokens.count(body.text()) <= room {
        shown.append(&body);
    } else if partly {
        show_around(recall, (hit, &id(hit)), &text, room, &mut shown);
    } else {
        return Ok(None);
    }
    shown.push(&text.close());
    shown.push(&places);
    Ok(Some(shown))
}

/// Returns the block's full name.
fn id(hit: &Hit) -> String {
    hit.block.header.block_id.to_string()
}

/// Returns a payload of the hit under its full name.
fn full(hit: &Hit, payload: &PayloadRef) -> PayloadRef {
    PayloadRef { todo: Some(hit.block.header.todo_id.clone()), ..payload.clone() }
}

fn place(hit: &Hit, passage: &PassageHit) -> String {
    PassageHit { payload: full(hit, &passage.payload), ..passage.clone() }.to_string()
}

fn references(hit: &Hit) -> Vec<String> {
    let mut references = vec![id(hit)];
    for passage in &hit.passages {
        let payload = full(hit, &passage.payload).to_string();
        if !references.contains(&payload) {
            references.push(payload);
        }
    }
    references
}
