//! Shows each thing once: a result in fewer tokens if what is left out is in view anyway.
//!
//! A result that is above, word for word, becomes a line that names the place; so do lines of it. JSON is shown without
//! white space, and objects with the same keys as rows ([`compact_json`](mod@crate::compact_json)). How a message is
//! shown follows from the messages before it and from how those are shown, so it is the same in every prompt until one
//! of these leaves or becomes light; then the prompt changes from there on in any case.

use crate::ViewConfig;
use crate::called::called;
use crate::compact_json::{compact_json, note};
use crate::contents::Contents;
use crate::cut::one_line;
use crate::entry::{Entry, Form, Kind};
use crate::fold_policy::FoldPolicy;
use crate::marks::Marks;
use crate::repetition::{Run, Standing};
use crate::tools::is_recall_tool;
use foldback_core::{Content, Estimate, Message, Part, Role, Shortening, TokenCounter, ToolCall};
use std::ops::Range;
use std::sync::Arc;

/// A form that saves fewer estimated tokens is not worth its note.
const TOKENS_LEAST: u64 = 24;

/// A compact form that saves less than one part in this many of a message is not used.
const SHARE_LEAST: u64 = 10;

/// The greatest length in characters of a call's name and values in a note.
const CALL_CHARS: usize = 60;

/// How a message is shown if that takes fewer tokens than its text.
#[derive(Clone, Debug)]
pub(crate) struct Once {
    pub(crate) form: Form,
    pub(crate) how: Shortening,
    /// The lines that a note replaces.
    gone: Vec<Range<usize>>,
    /// Whether the whole message is shown elsewhere.
    is_elsewhere: bool,
}

/// The things that a view shows once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) marks: Marks,
    pub(crate) compact_json: bool,
    pub(crate) deduplicate: bool,
    /// Whether parts that are stored outside are shown by their notice even if they are fresh.
    pub(crate) light: bool,
    /// How many tokens a prompt must have before a message that is shortened: a prompt that is too short for a
    /// provider's cache is more expensive than a longer one.
    pub(crate) tokens_least: u64,
}

/// The call that a result answers, as far as its form depends on that.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// Its name and values.
    label: String,
    /// Whether its arguments name a file: an edit may depend on every byte of its result.
    names_file: bool,
}

impl Answered {
    /// Returns `None` for a recall tool, whose answers are shown as they are.
    pub(crate) fn new(call: &ToolCall) -> Option<Self> {
        if is_recall_tool(&call.name) {
            return None;
        }
        let line = called(call);
        let label =
            line.as_deref().map_or(call.name.as_str(), |line| line.trim_start_matches("- "));
        let label = one_line(label, CALL_CHARS);
        Some(Self { label, names_file: names_file(&call.arguments) })
    }
}

impl Contents {
    /// Determines what is shown once, and how.
    pub(crate) fn rules(&self) -> Rules {
        let ViewConfig { compact_json, deduplicate, .. } = self.config;
        // What a fold leaves is long enough in any case.
        let least = match self.config.fold_policy {
            FoldPolicy::CacheAware(settings) if self.ledger.folds() == 0 => {
                settings.tokens_cached()
            }
            FoldPolicy::CacheAware(_) | FoldPolicy::Strict => 0,
        };
        let system_prompt: u64 = self.system_prompt.iter().map(|(_, form)| form.estimate()).sum();
        let tokens_least = least.saturating_sub(system_prompt);
        Rules { marks: self.marks, compact_json, deduplicate, light: false, tokens_least }
    }

    /// Shows each thing once, after something has left or has become light.
    pub(crate) fn show_once(&mut self) {
        let rules = self.rules();
        if rules.compact_json || rules.deduplicate {
            let shown = once_of_all(self.entries(), rules);
            self.entries_mut().zip(shown).for_each(|(entry, once)| entry.show_once(once));
        }
    }

    /// Shows the last message once, after its arrival.
    pub(crate) fn show_last_once(&mut self) {
        let rules = self.rules();
        if rules.compact_json || rules.deduplicate {
            let once = once_of_last(self.entries(), rules);
            if let Some(last) = self.open_tail.last_mut() {
                last.show_once(once);
            }
        }
    }

    /// Returns the call that a result answers.
    pub(crate) fn answered_by(&self, result: &Entry) -> Option<Answered> {
        let id = result.message().tool_call_id().filter(|_| result.kind == Kind::Result)?;
        let mut calls = self.entries().rev().flat_map(|entry| entry.message().tool_calls());
        calls.find(|call| call.id == *id).and_then(Answered::new)
    }
}

/// Returns how each of the entries is shown once, in order.
pub(crate) fn once_of_all<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    rules: Rules,
) -> Vec<Option<Arc<Once>>> {
    let entries: Vec<&Entry> = entries.collect();
    let mut shown = Vec::with_capacity(entries.len());
    let (mut standing, mut before) = (Standing::default(), 0);
    for (n, entry) in entries.iter().enumerate() {
        let once = rules.once(&entries, n, before, &standing).map(Arc::new);
        before += once.as_ref().map_or(entry.words(rules.light), |once| once.form.estimate());
        rules.stand(&mut standing, n, entry, once.as_deref());
        shown.push(once);
    }
    shown
}

/// Returns how the last of the entries is shown once, given the others.
pub(crate) fn once_of_last<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    rules: Rules,
) -> Option<Arc<Once>> {
    let entries: Vec<&Entry> = entries.collect();
    let (last, before) = entries.split_last()?;
    let form = rules.may_be_short(last)?;
    let mut standing = Standing::wanting(form.lines());
    if rules.deduplicate {
        for (n, entry) in before.iter().enumerate() {
            rules.stand(&mut standing, n, entry, entry.once());
        }
    }
    let tokens = before.iter().map(|entry| entry.estimate()).sum();
    rules.once(&entries, before.len(), tokens, &standing).map(Arc::new)
}

impl Rules {
    /// Returns the exact form of a result that may be shown in another.
    fn may_be_short(self, entry: &Entry) -> Option<&Form> {
        let form = entry.whole(self.light)?;
        let is_result = entry.kind == Kind::Result && entry.answered.is_some();
        (is_result && form.estimate() > TOKENS_LEAST).then_some(form)
    }

    /// Returns how the entry `n` is shown after this many tokens and what is already there.
    fn once(
        self,
        entries: &[&Entry],
        n: usize,
        before: u64,
        standing: &Standing<'_>,
    ) -> Option<Once> {
        let once = self.shorter(entries, n, standing)?;
        (before + once.form.estimate() >= self.tokens_least).then_some(once)
    }

    /// Returns the same, however few tokens precede it.
    fn shorter(self, entries: &[&Entry], n: usize, standing: &Standing<'_>) -> Option<Once> {
        let entry = *entries.get(n)?;
        let form = self.may_be_short(entry)?;
        let text = text_of(form.message())?;
        if let Some(source) = standing.whole(text).filter(|_| self.deduplicate) {
            let place = place_of(entries, n, source);
            let note = self.note("same", &format!("word for word {place}"));
            let short = with_text(form, note);
            return saves(form, &short, 0).then_some(Once {
                form: short,
                how: Shortening::Repetition,
                gone: Vec::new(),
                is_elsewhere: true,
            });
        }
        let names_file = entry.answered.as_ref().is_none_or(|call| call.names_file);
        if self.compact_json
            && !names_file
            && let Some(short) = form.compact(|| self.compact(form, text))
        {
            return Some(Once {
                form: short.clone(),
                how: Shortening::CompactJson,
                gone: Vec::new(),
                is_elsewhere: false,
            });
        }
        if !self.deduplicate {
            return None;
        }
        self.without_runs(entries, n, standing.runs(text, form.lines()))
    }

    /// Returns the message with its JSON in fewer tokens.
    fn compact(self, form: &Form, text: &str) -> Option<Form> {
        let compact = compact_json(text)?;
        let note = self.note("compact", note(compact.has_rows));
        let short = with_text(form, format!("{note}\n{}", compact.text));
        saves(form, &short, form.estimate() / SHARE_LEAST).then_some(short)
    }

    /// Returns the message with notes in place of runs of lines.
    fn without_runs(self, entries: &[&Entry], n: usize, runs: Vec<Run>) -> Option<Once> {
        let form = entries.get(n)?.whole(self.light)?;
        let (text, lines) = (text_of(form.message())?, form.lines());
        let (mut short, mut gone, mut at) = (String::new(), Vec::new(), 0);
        for Run { lines: run, source, from } in runs {
            let start = lines.get(run.start)?.place().start;
            let end = lines.get(run.end.checked_sub(1)?)?.place().end;
            let of = format!("lines {}-{} of", from + 1, from + run.len());
            let place = place_of(entries, n, source);
            let note = format!("{} lines, word for word {of} {place}", run.len());
            let note = self.note("same", &note);
            let words = text.get(start..end)?;
            if Estimate.count(words) as u64 >= Estimate.count(&note) as u64 + TOKENS_LEAST {
                short.push_str(text.get(at..start)?);
                short.push_str(&note);
                at = end;
                gone.push(run);
            }
        }
        if gone.is_empty() {
            return None;
        }
        short.push_str(text.get(at..)?);
        let form = with_text(form, short);
        Some(Once { form, how: Shortening::Repetition, gone, is_elsewhere: false })
    }

    /// Returns the view's note about a text that it shows differently. Its nonce distinguishes it from what a tool
    /// wrote.
    fn note(self, word: &str, text: &str) -> String {
        format!("[{}: {text}]", self.marks.name(word))
    }

    /// Adds what remains of an entry that is shown in this form.
    fn stand<'e>(
        self,
        standing: &mut Standing<'e>,
        n: usize,
        entry: &'e Entry,
        once: Option<&Once>,
    ) {
        let stands = match entry.kind {
            Kind::Result => entry.answered.is_some(),
            Kind::Plain | Kind::Calls => true,
            Kind::Instruction => false,
        };
        let Some(form) = entry.whole(self.light).filter(|_| stands) else { return };
        let Some(text) = text_of(form.message()) else { return };
        match once {
            Some(once) if once.is_elsewhere => {}
            Some(once) if once.how == Shortening::CompactJson => standing.add_whole(n, text),
            Some(once) => standing.add(n, text, form.lines(), once.gone.clone()),
            None => standing.add(n, text, form.lines(), Vec::new()),
        }
    }
}

/// Returns whether a form saves enough, and at least this many tokens.
fn saves(form: &Form, short: &Form, least: u64) -> bool {
    short.estimate() + least.max(TOKENS_LEAST) <= form.estimate()
}

/// Returns what later entries call an entry. Recalled text, and an entry that is shown elsewhere, have no name.
fn label(entry: &Entry) -> (&str, &str) {
    match (&entry.answered, entry.message().role()) {
        _ if !entry.is_visible() => ("", ""),
        (Some(call), _) => ("the result of ", &call.label),
        (None, Role::Assistant) => ("the assistant's message", ""),
        (None, Role::User) => ("the user's message", ""),
        (None, _) => ("", ""),
    }
}

/// Returns where the entry `source` is, for the entry `n`.
fn place_of(entries: &[&Entry], n: usize, source: usize) -> String {
    let Some(entry) = entries.get(source) else { return String::new() };
    let name = label(entry);
    let between = entries.get(source + 1..n).unwrap_or_default();
    let back = match between.iter().filter(|entry| label(entry) == name).count() {
        0 => String::new(),
        more => format!(", number {} counting back", more + 1),
    };
    format!("{}{} above{back}", name.0, name.1)
}

/// Returns the one text of a message.
pub(crate) fn text_of(message: &Message) -> Option<&str> {
    let mut texts = message.content().texts();
    texts.next().filter(|_| texts.next().is_none())
}

/// Returns the message with another text in place of its own.
fn with_text(form: &Form, text: String) -> Form {
    let content = match form.message().content() {
        Content::Parts(parts) => {
            let parts = parts.iter().map(|part| match part {
                Part::Text(_) => Part::Text(text.clone()),
                Part::Other(json) => Part::Other(json.clone()),
            });
            Content::Parts(parts.collect())
        }
        Content::Empty | Content::Text(_) => Content::Text(text),
    };
    form.with_content(content)
}

/// Returns whether one of the words is a path or a name with an extension, and not the address of a page.
fn names_file(arguments: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'`,;:=|<>(){}[]".contains(c);
    let pages = arguments.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let words = pages.filter(|word| !word.contains("://")).flat_map(|word| word.split(ends));
    words.filter(|word| !word.contains('@')).any(|word| {
        let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
            stem.ends_with(char::is_alphanumeric)
                && extension.len() <= 8
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
        });
        has_extension || word.trim_start_matches('\\').contains('/')
    })
}
