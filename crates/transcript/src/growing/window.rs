//! The last lines of a growing log, and what they need to make the messages that the whole log makes.

use crate::conversation::line_of;
use crate::format::{Context, Log};
use crate::input::Input;
use crate::record::Record;
use crate::{Conversation, Limits, Place};
use foldback_core::Message;
use std::io::Read;

/// The settings with which lines are read.
pub(super) struct Source {
    pub(super) log: &'static Log,
    pub(super) name: String,
    pub(super) limits: Limits,
    pub(super) meta: Option<String>,
}

/// The end of a conversation that will grow.
pub(super) struct End {
    id: Option<String>,
    /// The line of its first message.
    first_line: u64,
    /// Its last messages, as far as they stay as they are.
    messages: Vec<Message>,
}

/// The last lines of a log.
pub(super) struct Window {
    source: Source,
    id: Option<String>,
    first_line: u64,
    /// A few lines that later ones depend on, then the last ones.
    records: Vec<Record>,
    /// The first of the last lines: the line before it may be missing.
    from: u64,
    /// The messages that these lines make, as far as they were returned.
    given: Vec<Message>,
    /// With more lines than this, some are left out.
    most: usize,
}

/// The minimum of lines that are held, if there are that many.
const LEAST: usize = 32;

/// At how many places dropping the earlier lines is tried.
const TRIES: usize = 8;

impl End {
    pub(super) fn of(conversation: &Conversation) -> Option<Self> {
        let settled = conversation.messages.get(..conversation.settled())?;
        let last = settled.get(settled.len().saturating_sub(4 * LEAST)..)?;
        let first_line = line_of(conversation.messages.first()?)?;
        Some(Self { id: conversation.id.clone(), first_line, messages: last.to_vec() })
    }
}

impl Window {
    /// Returns the last lines of a text, which make the messages of `end`; `None` if they do not make them without the
    /// others.
    pub(super) fn of(source: Source, text: &mut (impl Read + Send), end: &End) -> Option<Self> {
        let mut input = Input::open(source.name.clone(), Box::new(text), source.limits).ok()?;
        let mut window = Self {
            source,
            id: end.id.clone(),
            first_line: end.first_line,
            records: Vec::new(),
            from: 0,
            given: Vec::new(),
            most: 4 * LEAST,
        };
        while let Some(line) = input.line().ok()? {
            let place = Place { file: window.source.name.clone(), line: line.number };
            // Damaged lines are skipped.
            let Ok(record) = Record::of(&line, &place, &window.source.limits) else { continue };
            window.records.push(record);
            if window.records.len() > 6 * LEAST {
                let at = window.records.len() - 4 * LEAST;
                window.records = window.needed_from(at);
                window.from = line.number;
            }
        }
        let is_all = window.from == 0 && window.starts_at(0, &end.messages);
        (is_all || window.cut(&end.messages)).then_some(window)
    }

    /// Takes further lines, of which the first `lasting` are ended. Returns the messages that are new; `None` if
    /// the lines do not make those that were returned before, with more after them.
    pub(super) fn grow(&mut self, records: Vec<Record>, lasting: usize) -> Option<Vec<Message>> {
        let held = self.records.len() + lasting;
        self.records.extend(records);
        let made = self.convert(&self.records, self.from)?;
        self.records.truncate(held);
        let settled = made.messages.get(..made.settled())?;
        let new = settled.strip_prefix(self.given.as_slice())?.to_vec();
        self.given.extend_from_slice(&new);
        if self.records.len() > self.most {
            let given = std::mem::take(&mut self.given);
            if !self.cut(&given) {
                self.given = given;
            }
            self.most = (2 * self.records.len()).max(4 * LEAST);
        }
        Some(new)
    }

    /// Drops lines before one of these messages, the last of the conversation.
    fn cut(&mut self, messages: &[Message]) -> bool {
        let places = || {
            messages.iter().enumerate().skip(1).rev().filter_map(|(k, message)| {
                let line = line_of(message)?;
                let at = self.records.binary_search_by_key(&line, |record| record.line).ok()?;
                Some((k, at, self.records.len() - at >= LEAST))
            })
        };
        let long = places().filter(|(.., is_long)| *is_long).take(TRIES);
        let short: Vec<_> = places().filter(|(.., is_long)| !is_long).collect();
        let tried: Vec<_> = long.chain(short.into_iter().rev().take(TRIES)).collect();
        tried.into_iter().any(|(k, at, _)| {
            messages.get(k..).is_some_and(|messages| self.starts_at(at, messages))
        })
    }

    /// Drops what is before a record, if the rest makes these messages.
    fn starts_at(&mut self, at: usize, messages: &[Message]) -> bool {
        let records = self.needed_from(at);
        let from = self.records.get(at).map_or(0, |record| record.line);
        let Some(made) = self.convert(&records, from) else { return false };
        let settled = made.messages.get(..made.settled()).unwrap_or_default();
        let does = settled.ends_with(messages);
        if does {
            (self.records, self.from, self.given) = (records, from, settled.to_vec());
        }
        does
    }

    /// Returns the records from one on, after those of the others that they depend on: the first of the log, that
    /// of the first message, and the last of those that apply to what follows.
    fn needed_from(&self, at: usize) -> Vec<Record> {
        let (before, behind) = self.records.split_at(at.min(self.records.len()));
        let last = before.iter().rposition(self.source.log.holds_on);
        let needed = before
            .iter()
            .enumerate()
            .filter(|(n, record)| *n == 0 || Some(*n) == last || record.line == self.first_line);
        needed.map(|(_, record)| record).chain(behind).cloned().collect()
    }

    /// Returns the one conversation that records make; `None` if they make several, or if a line other than
    /// `from` follows one that is missing.
    fn convert(&self, records: &[Record], from: u64) -> Option<Conversation> {
        let Source { log, name, limits, meta } = &self.source;
        let place = Place { file: name.clone(), line: records.first()?.line };
        let context = Context { place: &place, limits, meta: meta.as_deref() };
        let mut damage = Vec::new();
        let made = (log.read)(records, context, &mut damage).ok()?;
        let [mut conversion] = <[_; 1]>::try_from(made).ok()?;
        conversion.drain(context, &mut damage);
        let made = conversion.finish();
        let seams = made.fact("seams");
        let is_sound = seams.is_none_or(|seams| seams == format!("[{from}]"));
        (damage.is_empty() && is_sound && made.id == self.id).then_some(made)
    }
}
