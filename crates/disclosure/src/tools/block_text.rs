//! A block's messages as text, held as references to where they are stored.

use super::other_part::{has_unshown, told};
use super::{RecallSource, recall_note};
use crate::Marks;
use crate::attribution::{Attribution, CallSearch, backwards, readable};
use crate::cut::one_line;
use crate::ledger::shown_id;
use crate::light::{light, light_elsewhere};
use crate::marks::Origin;
use crate::quoted_text::QuotedText;
use crate::repair::NO_OUTPUT;
use foldback_backend_store::Position;
use foldback_blockstore::Error;
use foldback_core::{
    Block, Content, Message, Offload, Part, SeqNo, Site, Source, StoredMessage, TodoId, Trust,
};
use std::ops::Range;

/// A block's messages, each as its text.
pub(crate) struct BlockText {
    marks: Marks,
    id: String,
    time: String,
    kind: &'static str,
    /// The lowest of all its messages.
    trust: Trust,
    pub(crate) messages: Vec<(SeqNo, QuotedText)>,
    /// Their origins, in the same order.
    whose: Vec<String>,
    /// The part of each that asks the memory, or is its answer, in the same order: it repeats the question.
    asks: Vec<Vec<Range<usize>>>,
    /// The line of the whole text in which each begins, in the same order.
    firsts: Vec<u64>,
    /// Whether something of them that is not text is not shown.
    pub(crate) leaves_out: bool,
}

impl BlockText {
    /// Reads the block's messages. Parts that are stored outside are shown by their notice.
    pub(crate) fn read(recall: &RecallSource<'_>, block: &Block) -> Result<Self, Error> {
        Self::read_as(recall, block, None)
    }

    /// Does the same as [`read`](Self::read) for a block that is shown in another todo: everything
    /// in it has its full name, and nothing is a quote, because a quote leads into the own todo.
    /// Nothing in it is trusted more than a model: the asker there may have been one.
    pub(crate) fn read_elsewhere(recall: &RecallSource<'_>, block: &Block) -> Result<Self, Error> {
        Self::read_as(recall, block, Some(recall.todo.id()))
    }

    fn read_as(
        recall: &RecallSource<'_>,
        block: &Block,
        of: Option<&TodoId>,
    ) -> Result<Self, Error> {
        let stored = recall.blocks.messages(recall.todo, block.range.as_u64())?;
        let first = block.range.first();
        let mut before: Vec<(SeqNo, Message)> = Vec::with_capacity(stored.len());
        // The messages before the block, for results that came too late: as far as they were read, and further.
        let mut earlier: Vec<(SeqNo, Message)> = Vec::new();
        let mut unread = backwards(recall.blocks, recall.todo, first);
        let mut messages = Vec::with_capacity(stored.len());
        let mut whose_all = Vec::with_capacity(stored.len());
        let mut calls: Vec<Vec<Range<usize>>> = Vec::with_capacity(stored.len());
        let mut asks: Vec<Vec<Range<usize>>> = vec![Vec::new(); stored.len()];
        let mut leaves_out = false;
        let mut trust = if of.is_some() { Trust::Model } else { Trust::User };
        for (at, (seq, stored)) in block.range.iter().zip(&stored).enumerate() {
            let Some(message) = readable(stored) else {
                let mut quoted = QuotedText::default();
                quoted.push(&format!("#{seq} (this message cannot be read)\n"));
                messages.push((seq, quoted));
                whose_all.push(format!("#{seq}"));
                calls.push(Vec::new());
                trust = Trust::Untrusted;
                leaves_out = true;
                continue;
            };
            let mut search = CallSearch::of(&message);
            search.look_through(before.iter().rev().map(borrowed));
            // Of another todo, only what was granted is read.
            if of.is_none() {
                search.look_through(earlier.iter().map(borrowed));
                while search.goes_on() {
                    let Some(next) = unread.next() else { break };
                    let (seq, message) = next?;
                    search.look_at(seq, &message);
                    earlier.push((seq, message));
                }
            }
            let whose = Attribution::answering(seq, &message, search);
            trust = trust.min(whose.trust());
            leaves_out |= has_unshown(&message);
            let (quoted, called) = quote_message(&whose, &message, stored, of);
            if stored.recall {
                let asked = whose.call().and_then(|(seq, index)| {
                    let at = usize::try_from(seq.0.checked_sub(first.0)?).ok()?;
                    Some((asks.get_mut(at)?, calls.get(at)?.get(index)?.clone()))
                });
                if let Some((asks, asked)) = asked {
                    asks.push(asked);
                }
                if let Some(asks) = asks.get_mut(at) {
                    asks.push(0..quoted.text().len());
                }
            }
            messages.push((seq, quoted));
            whose_all.push(whose.to_string());
            calls.push(called);
            before.push((seq, message));
        }
        let id = &block.header.block_id;
        let firsts = messages.iter().scan(1, |line, (_, message): &(_, QuotedText)| {
            let feeds = message.text().matches('\n').count() as u64;
            Some(std::mem::replace(line, *line + feeds))
        });
        Ok(Self {
            firsts: firsts.collect(),
            leaves_out,
            marks: recall.marks,
            id: of.map_or_else(|| shown_id(id), |_| id.to_string()),
            time: one_line(&block.header.create_time.replace(['"', '<', '>'], ""), 19),
            kind: block.header.block_type.as_str(),
            trust,
            messages,
            whose: whose_all,
            asks,
        })
    }

    /// Returns the same, but only says that these messages are in view.
    pub(crate) fn without(mut self, is_in_view: impl Fn(SeqNo) -> bool) -> Self {
        let texts = self.messages.iter_mut().zip(&self.whose).zip(&mut self.asks);
        for (((_, text), whose), asks) in texts.filter(|(((seq, _), _), _)| is_in_view(*seq)) {
            *text = QuotedText::default();
            text.push(&format!("{whose}: (in view)\n"));
            asks.clear();
        }
        self
    }

    /// Returns the messages without the memory's calls and answers: only the rest shows what was found.
    pub(crate) fn without_recalls(&self) -> impl Iterator<Item = (SeqNo, String)> + '_ {
        self.messages.iter().zip(&self.asks).map(|((seq, message), asks)| {
            let mut asks = asks.clone();
            asks.sort_by_key(|asked| asked.start);
            let (mut text, mut from) = (String::new(), 0);
            for asked in asks {
                text.push_str(message.text().get(from..asked.start).unwrap_or(""));
                from = from.max(asked.end);
            }
            text.push_str(message.text().get(from..).unwrap_or(""));
            (*seq, text)
        })
    }

    /// Returns all messages, one after the other.
    pub(crate) fn body(&self) -> QuotedText {
        let mut body = QuotedText::default();
        for (_, message) in &self.messages {
            body.append(message);
        }
        body
    }

    /// Returns the beginning of a part of the body that does not begin with a head: whose message
    /// continues there. It has the form of a head, which no text can forge.
    pub(crate) fn goes_on(&self, body: &QuotedText, at: usize) -> Option<String> {
        let (before, part) = body.text().split_at_checked(at)?;
        let is_line = before.is_empty() || before.ends_with('\n');
        let digit = part.strip_prefix('#').and_then(|rest| rest.chars().next());
        if is_line && digit.is_some_and(|c| c.is_ascii_digit()) {
            return None;
        }
        let ends = self.messages.iter().scan(0, |end, (_, message)| {
            *end += message.text().len();
            Some(*end)
        });
        let (_, which) = ends.zip(0..).find(|(end, _)| at < *end)?;
        Some(self.continues(which))
    }

    /// Returns the beginning of a later part of the message at this place in the order.
    pub(crate) fn continues(&self, at: usize) -> String {
        self.whose.get(at).map_or_else(String::new, |whose| format!("{whose} goes on: "))
    }

    /// Returns where in the whole text this byte of a message is.
    pub(crate) fn place(&self, at: usize, byte: usize) -> Position {
        let text = self.messages.get(at).map_or("", |(_, message)| message.text());
        let before = text.get(..text.floor_char_boundary(byte)).unwrap_or(text);
        let feeds = before.matches('\n').count() as u64;
        let skip = before.len() - before.rfind('\n').map_or(0, |feed| feed + 1);
        Position { line: self.firsts.get(at).map_or(1, |first| first + feeds), skip: skip as u64 }
    }

    /// Returns the mark before the block's text.
    pub(crate) fn open(&self) -> String {
        let origin = Origin {
            block: Some(&self.id),
            time: Some(&self.time),
            kind: Some(self.kind),
            trust: self.trust,
            ..Origin::default()
        };
        format!("{}\n", self.marks.open(&origin))
    }

    /// Returns the mark after it.
    pub(crate) fn close(&self) -> String {
        format!("{}\n", self.marks.close())
    }
}

fn borrowed((seq, message): &(SeqNo, Message)) -> (SeqNo, &Message) {
    (*seq, message)
}

/// Returns a message as its text, and where in that each of its calls is.
fn quote_message(
    whose: &Attribution,
    message: &Message,
    stored: &StoredMessage,
    of: Option<&TodoId>,
) -> (QuotedText, Vec<Range<usize>>) {
    let mut quoted = QuotedText::default();
    let seq = whose.seq();
    let shown = match of {
        _ if stored.offloads.is_empty() => None,
        Some(todo) => Some(light_elsewhere(message, &stored.offloads, todo)),
        None => Some(light(message, &stored.offloads)),
    };
    let is_own = of.is_none();
    let shown = shown.as_ref().unwrap_or(message);
    if !shown.content().is_blank() || shown.tool_calls().is_empty() {
        quoted.push(&format!("{whose}: "));
        if stored.recall {
            quoted.push_quote(&recall_note(&message.text()), None);
        } else {
            quote_content(&mut quoted, seq, shown, &stored.offloads, is_own);
        }
        quoted.push("\n");
    }
    let mut calls = Vec::with_capacity(shown.tool_calls().len());
    for (index, call) in (0_u32..).zip(shown.tool_calls()) {
        let begins = quoted.text().len();
        quoted.push(&format!("{} ", whose.of_call(message, index as usize)));
        let is_offloaded = stored.offloads.iter().any(|offload| match offload.site {
            Site::Arguments(at) | Site::Argument(at, _) => at == index,
            Site::Content | Site::Part(_) => false,
        });
        let source = Source::Message(seq, Site::Arguments(index));
        quoted.push_quote(&call.arguments, (is_own && !is_offloaded).then_some((source, 0)));
        quoted.push("\n");
        calls.push(begins..quoted.text().len());
    }
    (quoted, calls)
}

fn quote_content(
    quoted: &mut QuotedText,
    seq: SeqNo,
    message: &Message,
    offloads: &[Offload],
    is_own: bool,
) {
    let source = |site: Site| {
        let is_offloaded = offloads.iter().any(|offload| offload.site == site);
        (is_own && !is_offloaded).then_some((Source::Message(seq, site), 0))
    };
    match message.content() {
        content if content.is_blank() => quoted.push(NO_OUTPUT),
        Content::Empty => {}
        Content::Text(text) => quoted.push_quote(text, source(Site::Content)),
        Content::Parts(parts) => {
            for (index, part) in (0_u32..).zip(parts) {
                if index > 0 {
                    quoted.end_part();
                }
                match part {
                    Part::Text(text) => quoted.push_quote(text, source(Site::Part(index))),
                    Part::Other(json) => quoted.push_quote(&told(json), None),
                }
            }
        }
    }
}
