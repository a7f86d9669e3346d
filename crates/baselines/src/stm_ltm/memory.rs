//! L: what is remembered of everything older than the last step.

use super::fields;
use super::scene::{Mode, Scene};
use crate::Counters;
use crate::compressor::{Compression, Compressor, Extractive, Written};
use crate::extractive::BY_RULE;
use crate::note::{Note, NoteKind, excerpt};
use foldback_core::{Message, TokenCounter};

/// The long-term memory: one text that is appended to, until a summary takes its place.
pub(crate) struct Memory {
    /// The description of how a model's summary comes about.
    writer: String,
    /// The hint on how to look back.
    pointer: String,
    with_ids: bool,
    notes: Vec<Note>,
    text: String,
    tokens: usize,
}

impl Memory {
    pub(crate) fn new(scene: &Scene, compressor: &dyn Compressor) -> Self {
        let mut pointer = String::new();
        if scene.mode == Mode::Offload {
            pointer.push_str(
                " Whole messages are kept under their ids, such as r7: search_raw finds their words, \
                 read_raw reads them.",
            );
        }
        let (writer, with_ids) = (compressor.name().to_owned(), scene.mode == Mode::Offload);
        Self { writer, pointer, with_ids, notes: Vec::new(), text: String::new(), tokens: 0 }
    }

    /// The tokens of the notes.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub(crate) fn append(&mut self, notes: Vec<Note>, counter: &dyn TokenCounter) {
        for note in notes {
            self.text.push_str(&note.line(self.with_ids));
            self.tokens += note.tokens(self.with_ids, counter);
            self.notes.push(note);
        }
    }

    /// Replaces the oldest `count` notes by a summary.
    pub(crate) fn replace(&mut self, count: usize, summary: Vec<Note>, counter: &dyn TokenCounter) {
        let newer = self.notes.split_off(count.min(self.notes.len()));
        (self.notes, self.text, self.tokens) = (Vec::new(), String::new(), 0);
        self.append(summary, counter);
        self.append(newer, counter);
    }

    /// Returns the message that shows the memory; `late` steps are not in it yet. `None` if there is
    /// nothing to say.
    pub(crate) fn message(&self, late: usize) -> Option<Message> {
        let notice = match late {
            0 if self.notes.is_empty() => return None,
            0 => "",
            1 => "\n(It lags: one step is not in it yet and follows unchanged.)",
            _ => &format!("\n(It lags: {late} steps are not in it yet and follow unchanged.)"),
        };
        let (by, pointer, text) = (self.written_by(), &self.pointer, &self.text);
        let head = format!("Memory of the steps before the last one ({by}).");
        Some(Message::user(&format!("{head}{pointer}{text}{notice}")))
    }

    /// Returns who actually wrote the current notes.
    fn written_by(&self) -> String {
        match self.notes.iter().any(|note| note.kind == NoteKind::Summary) {
            true => format!("{}, newer steps extracted by rule", self.writer),
            false => BY_RULE.to_owned(),
        }
    }
}

/// Sums up `notes`, and ensures what every summary must respect: its limit, and the fields of the
/// schema. If the compressor fails, the rule takes over.
pub(crate) fn sum_up(
    notes: &[Note],
    max_tokens: usize,
    scene: &Scene,
    compressor: &dyn Compressor,
    counters: &Counters,
) -> Written {
    let counter = counters.sizes.as_ref();
    let with_ids = scene.mode == Mode::Offload;
    let mut fields = fields::latest(&scene.schema, notes);
    let taken: usize = fields.iter().map(|note| note.tokens(with_ids, counter)).sum();
    let max_tokens = max_tokens.saturating_sub(taken);
    let task = |notes| Compression { notes, max_tokens, schema: &scene.schema, with_ids };
    let mut written = compressor
        .compress(&task(notes), counters)
        .or_else(|_| Extractive.compress(&task(notes), counters))
        .unwrap_or_default();
    written.notes.retain(|note| note.kind != NoteKind::Field);
    for note in &mut written.notes {
        // The leading mark and the ellipsis take a few tokens.
        note.text = excerpt(&note.text, max_tokens.saturating_sub(8), counter);
    }
    let tokens: usize = written.notes.iter().map(|note| note.tokens(with_ids, counter)).sum();
    if tokens > max_tokens {
        written.notes =
            Extractive.compress(&task(&written.notes), counters).unwrap_or_default().notes;
    }
    written.notes.append(&mut fields);
    written
}
