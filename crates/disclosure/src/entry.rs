//! A message in the live view, in the forms in which it may be shown.

use crate::ViewConfig;
use crate::called::called;
use crate::light::light_of;
use crate::once::{Answered, Once, text_of};
use crate::repair::{Changes, instruction, sendable};
use crate::repetition::Line;
use foldback_core::{
    Content, Estimate, Message, Offload, Role, SeqNo, Shortened, Timestamp, TokenCounter,
    message_tokens,
};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// A message as it arrives in the live view.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its number.
    pub seq: SeqNo,
    /// The exact message.
    pub message: Arc<Message>,
    /// Its parts that are stored outside.
    pub offloads: Vec<Offload>,
    /// For a memory tool's answer: the line that replaces it once it is folded.
    pub recall: Option<String>,
    /// When it was recorded, if that is known.
    pub recorded_at: Option<Timestamp>,
}

impl Shown {
    /// Creates it from a message, its parts that are stored outside, and the note of a memory tool's answer.
    #[must_use]
    pub fn new(
        seq: SeqNo,
        message: Arc<Message>,
        offloads: Vec<Offload>,
        recall: Option<String>,
    ) -> Self {
        Self { seq, message, offloads, recall, recorded_at: None }
    }

    /// Sets when it was recorded.
    #[must_use]
    pub fn with_recorded_at(self, at: Timestamp) -> Self {
        Self { recorded_at: Some(at), ..self }
    }
}

/// A message that can be sent, with its tokens once counted.
#[derive(Clone, Debug)]
pub(crate) struct Form(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    message: Arc<Message>,
    tokens: OnceLock<usize>,
    estimate: OnceLock<u64>,
    lines: OnceLock<Vec<Line>>,
    compact: OnceLock<Option<Form>>,
}

impl Form {
    pub(crate) fn new(message: Arc<Message>) -> Self {
        Self(Arc::new(Counted {
            message,
            tokens: OnceLock::new(),
            estimate: OnceLock::new(),
            lines: OnceLock::new(),
            compact: OnceLock::new(),
        }))
    }

    pub(crate) fn message(&self) -> &Arc<Message> {
        &self.0.message
    }

    /// Returns its tokens, counted once: a view is used with one counter.
    pub(crate) fn tokens(&self, counter: &dyn TokenCounter) -> usize {
        *self.0.tokens.get_or_init(|| message_tokens(counter, &self.0.message))
    }

    /// Returns its estimated tokens, whatever counter the view uses.
    pub(crate) fn estimate(&self) -> u64 {
        *self.0.estimate.get_or_init(|| message_tokens(&Estimate, &self.0.message) as u64)
    }

    /// Returns the lines of its one text, found once.
    pub(crate) fn lines(&self) -> &[Line] {
        self.0.lines.get_or_init(|| text_of(&self.0.message).map_or(Vec::new(), Line::of))
    }

    /// Returns the same with its JSON in fewer tokens, made once.
    pub(crate) fn compact(&self, make: impl FnOnce() -> Option<Self>) -> Option<&Self> {
        self.0.compact.get_or_init(make).as_ref()
    }

    /// Returns the same message with another content.
    pub(crate) fn with_content(&self, content: Content) -> Self {
        let changes = Changes { content: Some(content), ..Changes::default() };
        Self::new(Arc::new(changes.apply(self.message())))
    }
}

/// How a message relates to the calls around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Calls,
    Result,
    /// An instruction that came after the conversation had begun. It abandons no call.
    Instruction,
}

/// A message of a closed block in view or of the open tail.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) seq: SeqNo,
    pub(crate) kind: Kind,
    /// The first message of its unit.
    pub(crate) unit: SeqNo,
    /// How it is shown.
    form: Form,
    /// How it is shown once it is no longer fresh, if that differs.
    light: Option<Form>,
    /// How it is shown once its block is sealed, if it is a memory tool's answer.
    note: Option<Form>,
    /// Whether its text is at the beginning.
    pinned: bool,
    /// Whether it is shown in another role, like an instruction or a speaker of unknown role.
    is_restated: bool,
    /// Whether it follows the result of a call.
    pub(crate) follows_result: bool,
    /// Whether a part of it is shown by its notice, however fresh it is.
    pub(crate) is_cut: bool,
    /// Whether it is shown by the line that replaces a memory tool's answer.
    is_noted: bool,
    /// The payload that holds its content, if that is stored outside.
    pub(crate) stored: Option<String>,
    /// Its calls, as lines for when it has left.
    pub(crate) called: Arc<[String]>,
    /// The call that it answers.
    pub(crate) answered: Option<Arc<Answered>>,
    /// How it is shown if that takes fewer tokens.
    once: Option<Arc<Once>>,
}

impl Entry {
    /// Returns `None` if the message has nothing that can be sent.
    pub(crate) fn new(shown: &Shown, config: &ViewConfig) -> Option<Self> {
        let sendable = |message: &Arc<Message>| match message.role().is_instruction() {
            true => instruction(message).map(Arc::new),
            false => sendable(message),
        };
        let sent = sendable(&shown.message)?;
        let message = &shown.message;
        let kind = match message.role() {
            Role::Tool => Kind::Result,
            role if role.is_instruction() && message.tool_calls().is_empty() => Kind::Instruction,
            _ if !sent.tool_calls().is_empty() => Kind::Calls,
            _ => Kind::Plain,
        };
        let mut entry = Self {
            seq: shown.seq,
            kind,
            unit: shown.seq,
            form: Form::new(Arc::clone(&sent)),
            light: None,
            note: None,
            pinned: false,
            is_restated: sent.role() != message.role(),
            follows_result: false,
            is_cut: false,
            is_noted: false,
            stored: None,
            called: message.tool_calls().iter().filter_map(called).collect(),
            answered: None,
            once: None,
        };
        if let Some(note) = &shown.recall {
            let text = if note.trim().is_empty() { "(recalled text)" } else { note };
            entry.note = Some(entry.form.with_content(Content::Text(text.to_owned())));
        } else if !shown.offloads.is_empty() {
            // The places of the parts refer to the exact message.
            let lightened = |offloads: &[&Offload]| {
                let light = light_of(&shown.message, offloads.iter().copied(), &config.names);
                sendable(&Arc::new(light)).map(Form::new)
            };
            let all: Vec<&Offload> = shown.offloads.iter().collect();
            let large: Vec<&Offload> = all
                .iter()
                .filter(|offload| offload.tokens >= config.fresh_tokens)
                .copied()
                .collect();
            entry.light = if large.len() < all.len() { lightened(&all) } else { None };
            if !large.is_empty()
                && let Some(form) = lightened(&large)
            {
                entry.form = form;
                entry.is_cut = true;
            }
            entry.stored = shown.offloads.first().map(|offload| offload.reference().to_string());
        }
        Some(entry)
    }

    /// Returns the message as it is shown if it is not pinned.
    pub(crate) fn shown(&self) -> &Arc<Message> {
        self.form.message()
    }

    /// Returns the message with its exact calls, to determine what it calls or answers.
    pub(crate) fn message(&self) -> &Message {
        self.form.message()
    }

    /// Returns how it is shown now; `None` if it is pinned and shown elsewhere.
    pub(crate) fn form(&self, light: bool) -> Option<Cow<'_, Form>> {
        if !self.pinned {
            return Some(Cow::Borrowed(
                self.once().map_or(self.unpinned(light), |once| &once.form),
            ));
        }
        let form = self.unpinned(light);
        // What connects calls and results stays. It is made from the current form, so that it does
        // not depend on when the message was pinned.
        let content = match self.kind {
            Kind::Plain | Kind::Instruction => return None,
            Kind::Result => Content::Text("(pinned: see the beginning)".to_owned()),
            Kind::Calls => Content::Empty,
        };
        Some(Cow::Owned(form.with_content(content)))
    }

    /// Returns how it is shown if it has every recorded word.
    pub(crate) fn whole(&self, light: bool) -> Option<&Form> {
        let is_light = light && self.light.is_some();
        let is_whole = !self.pinned && !self.is_cut && !self.is_noted && self.note.is_none();
        (is_whole && !is_light).then_some(&self.form)
    }

    /// Returns how it is shown if that takes fewer tokens.
    pub(crate) fn once(&self) -> Option<&Once> {
        self.once.as_deref()
    }

    /// Returns the estimated tokens that this saves.
    pub(crate) fn once_saved(&self) -> u64 {
        self.once().map_or(0, |once| self.form.estimate().saturating_sub(once.form.estimate()))
    }

    /// Returns what a prompt says about that.
    pub(crate) fn shortened(&self) -> Option<Shortened> {
        let once = self.once().filter(|_| !self.pinned)?;
        let (seq, how) = (self.seq, once.how);
        let (whole, shown) = (self.form.message().clone(), once.form.message().clone());
        Some(Shortened { seq, how, whole, shown })
    }

    /// Shows it in this form from now on.
    pub(crate) fn show_once(&mut self, once: Option<Arc<Once>>) {
        self.once = once;
    }

    /// Returns the message as it is shown now, if it is shown in its place and in its speaker's role.
    pub(crate) fn said(&self, light: bool) -> Option<&Arc<Message>> {
        (!self.pinned && !self.is_restated).then(|| self.unpinned(light).message())
    }

    fn unpinned(&self, light: bool) -> &Form {
        if light { self.light.as_ref().unwrap_or(&self.form) } else { &self.form }
    }

    pub(crate) fn is_visible(&self) -> bool {
        !self.pinned || matches!(self.kind, Kind::Calls | Kind::Result)
    }

    pub(crate) fn is_large_and_fresh(&self) -> bool {
        self.light.is_some() && (!self.pinned || self.kind == Kind::Calls)
    }

    /// Ends its freshness; in a sealed block, recalled text becomes a note.
    pub(crate) fn settle(&mut self, sealed: bool) {
        if let Some(light) = self.light.take() {
            self.form = light;
            self.is_cut = true;
        }
        if sealed && let Some(note) = self.note.take() {
            self.form = note;
            self.is_noted = true;
        }
    }

    /// Returns whether it is shown in its place, as it was recorded.
    pub(crate) fn is_exact(&self) -> bool {
        !self.pinned && !self.is_cut && !self.is_noted && self.once.is_none()
    }

    /// Returns whether it is still shown as when it was new, and will later change.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.light.is_some() || self.note.is_some()
    }

    /// Returns its estimated tokens as it is shown now.
    pub(crate) fn estimate(&self) -> u64 {
        self.form(false).map_or(0, |form| form.estimate())
    }

    /// Returns its estimated tokens if nothing is shortened.
    pub(crate) fn words(&self, light: bool) -> u64 {
        if self.pinned {
            self.form(light).map_or(0, |form| form.estimate())
        } else {
            self.unpinned(light).estimate()
        }
    }

    /// Returns its estimated tokens once it is no longer fresh, if they differ.
    pub(crate) fn light_estimate(&self) -> Option<u64> {
        self.light.as_ref().map(Form::estimate)
    }

    /// Returns its calls, one line each.
    pub(crate) fn called_lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.called.iter().map(String::as_str)
    }

    /// Returns whether a conversation may begin with it: a user's message, or one shown as such.
    pub(crate) fn is_beginning(&self) -> bool {
        match self.kind {
            Kind::Calls => false,
            Kind::Plain => *self.message().role() == Role::User,
            Kind::Result | Kind::Instruction => true,
        }
    }

    /// Returns whether a user asks it, and not a loop in the user's place.
    pub(crate) fn is_question(&self) -> bool {
        let message = self.message();
        self.kind == Kind::Plain
            && !self.is_restated
            && *message.role() == Role::User
            && !message.is_observation()
    }

    /// Returns whether a turn begins with it: what a client says beside results belongs to their turn.
    pub(crate) fn opens_turn(&self) -> bool {
        self.is_question() && !self.follows_result
    }

    /// Returns whether its text is at the beginning.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Moves its text to the beginning.
    pub(crate) fn pin(&mut self) {
        self.pinned = true;
    }
}
