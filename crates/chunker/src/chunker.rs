//! The step that cuts a conversation into blocks.

mod plan;

use crate::closed::{Closed, Evidence};
use crate::config::ChunkerConfig;
use crate::cues::Cues;
use crate::event::{Event, Input};
use crate::phase::{Complexity, Phase};
use crate::score::Score;
use crate::sketch::Sketch;
use crate::state::{Joint, State, Unit};
use crate::terms::{Terms, hash};
use crate::width::folded;
use crate::window::{Said, Speaker};
use foldback_core::{CloseReason, Role, SeqNo, SeqRange, first_chars};

/// Cuts a stream of messages into closed blocks.
///
/// Messages are counted from 0 as they are pushed. Every message is in exactly one block or in the open tail. A call
/// and its results are never separated, even if an instruction comes between.
///
/// # The tail
/// After every push, the tail holds at most as many messages as a block may (5), or it is exactly one unit that is
/// larger on its own. Such a unit is sealed as soon as the next message shows that it is complete.
///
/// # When a block is sealed
/// A change of topic is sealed when three messages newer than the first of the new topic have arrived (the look-ahead),
/// a gap or a switch of todo at once. Without these, the pending rough block (one or more complete tool loops or
/// exchanges about the same thing) is sealed when it is large enough for the phase of the task and is followed by a
/// rough block of four messages or the beginning of one, or when the tail is full; then, if units allow, three messages
/// stay loose. What must be sealed earlier is decided with the newer messages available.
///
/// # Sizes
/// A block holds 3 to 5 messages, or as many as the configuration says. It is larger when it is one unit. It is smaller
/// only at the beginning or the end of the conversation, beside a topic cut (reasons topic, gap, switch), or when the
/// next unit is so large that the two do not fit into one block.
#[derive(Clone, Debug)]
pub struct Chunker {
    config: ChunkerConfig,
    state: State,
}

impl Chunker {
    /// Creates a chunker at the beginning of a conversation.
    #[must_use]
    pub fn new(config: ChunkerConfig) -> Self {
        Self { config, state: State::default() }
    }

    /// Restores a chunker from its stored `state`.
    #[must_use]
    pub fn restore(config: ChunkerConfig, state: State) -> Self {
        Self { config, state }
    }

    /// Takes the next event, and returns the blocks that it closes, in order.
    pub fn push(&mut self, event: Event<'_>) -> Vec<Closed> {
        let mut closed = Vec::new();
        match event {
            Event::Message(input) => self.take(&input, &mut closed),
            Event::OpenItems(items) => self.state.task.set_open_items(items),
            Event::Closing(closing) => self.state.task.set_closing(closing),
            Event::Switch if self.state.open.is_empty() => {
                self.flush(CloseReason::Switch, Evidence::Switch, &mut closed);
            }
            Event::Switch => self.state.switching = true,
            Event::End => {
                self.state.open.set([]);
                self.state.switching = false;
                self.flush(CloseReason::End, Evidence::End, &mut closed);
            }
        }
        closed
    }

    /// Returns the state to store, so that the chunker can be restored.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the first message of the open tail; the number of the next message when the tail is empty.
    #[must_use]
    pub fn open_from(&self) -> SeqNo {
        SeqNo(self.state.next.saturating_sub(u64::from(self.open_len())))
    }

    /// Returns the number that the next message gets.
    #[must_use]
    pub fn next(&self) -> SeqNo {
        SeqNo(self.state.next)
    }

    /// Returns how many messages the open tail holds.
    #[must_use]
    pub fn open_len(&self) -> u32 {
        self.state.tail.iter().fold(0, |sum, unit| sum.saturating_add(unit.len))
    }

    /// Returns whether a call waits for its result.
    #[must_use]
    pub fn has_open_call(&self) -> bool {
        !self.state.open.is_empty()
    }

    /// Returns the phase of the task.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.state.task.phase()
    }

    /// Returns the complexity of the task.
    #[must_use]
    pub fn complexity(&self) -> Complexity {
        self.state.task.complexity()
    }

    fn take(&mut self, input: &Input<'_>, closed: &mut Vec<Closed>) {
        let speaker = Speaker::of(input.role, !input.calls.is_empty());
        let before = self.state.window.said().back().map(|said| said.speaker);
        let joint = Joint::between(before, speaker);
        let goes_on = self.continues_unit(input);
        if !goes_on {
            // The next message of anyone else shows that the calls before it are abandoned.
            self.state.open.set([]);
            if self.state.switching {
                self.state.switching = false;
                self.flush(CloseReason::Switch, Evidence::Switch, closed);
            }
            if let Some(ms) = self.gap_before(input, joint) {
                self.flush(CloseReason::Gap, Evidence::Gap(ms), closed);
            }
        }
        if let Some(at) = input.at {
            // Not the latest of all times: one message dated far ahead would end all gaps.
            self.state.latest = Some(at.0);
        }
        self.hear(input, speaker, before);
        self.append(input, joint, goes_on);
        self.decide(closed);
        self.settle(closed);
        if self.state.switching && self.state.open.is_empty() {
            self.state.switching = false;
            self.flush(CloseReason::Switch, Evidence::Switch, closed);
        }
    }

    /// Returns whether a message belongs to the unit before it whatever it says: a tool message does, and so does an
    /// instruction (a reminder, say) while calls wait for their results.
    fn continues_unit(&self, input: &Input<'_>) -> bool {
        let reminds = input.role.is_instruction() && input.calls.is_empty();
        *input.role == Role::Tool || (reminds && self.has_open_call())
    }

    /// Returns the silence between a message and the latest one before it that carries a time, if it is long enough to
    /// end a block. A time before the other's is not a silence. An answer may be slow: within an hour it still belongs
    /// to its question.
    fn gap_before(&self, input: &Input<'_>, joint: Joint) -> Option<i64> {
        const SLOW_ANSWER_MS: i64 = 60 * 60 * 1000;
        let ms = input.at?.0.checked_sub(self.state.latest?)?;
        let answers = matches!(joint, Joint::Answers | Joint::Reply);
        (ms >= self.config.gap_ms() && !(answers && ms < SLOW_ANSWER_MS)).then_some(ms)
    }

    /// Remembers the content of a message.
    fn hear(&mut self, input: &Input<'_>, speaker: Speaker, before: Option<Speaker>) {
        let state = &mut self.state;
        if let Some(name) = input.speaker {
            let name = hash(name);
            if state.speakers.len() < MEETING && !state.speakers.contains(&name) {
                state.speakers.push(name);
            }
        }
        // The topic cannot change before a tool message, after a call, between a question and the call that answers it,
        // or after an instruction. A greeting and its answer are not a topic either: nothing is cut before the third
        // message, nor before mere thanks. Meetings have no such turns that words or cues would show, so they are left
        // to the other signals.
        let may_begin = !matches!(speaker, Speaker::Tool | Speaker::Instruction)
            && !matches!(
                (before, speaker),
                (None | Some(Speaker::Caller | Speaker::Instruction), _)
                    | (Some(Speaker::User), Speaker::Caller)
            )
            && state.task.spoken() >= 2
            && state.speakers.len() < MEETING;
        let text = input.text.as_ref();
        let text = first_chars(text, TEXT_LIMIT);
        let mut room = TEXT_LIMIT.saturating_sub(text.chars().count());
        let mut texts = vec![folded(text)];
        for part in input.calls.iter().flat_map(|call| [&call.name, &call.arguments]) {
            if room == 0 {
                break;
            }
            let part = first_chars(part, room);
            room -= part.chars().count();
            texts.push(folded(part));
        }
        let terms = Terms::of(texts.iter().map(AsRef::as_ref));
        let cues = texts.first().map_or_else(Cues::default, |text| Cues::of(text));
        let may_begin = may_begin && !cues.has(Cues::COURTESY);
        state.window.push(Said { terms, cues, speaker, may_begin });
        if speaker != Speaker::Instruction {
            let calls: Vec<u32> = input.calls.iter().map(|call| hash(&call.name)).collect();
            state.task.observe(speaker == Speaker::Tool, speaker == Speaker::User, &calls);
        }
    }

    /// Puts a message into the tail; `goes_on` if it belongs to the unit before it.
    fn append(&mut self, input: &Input<'_>, joint: Joint, goes_on: bool) {
        let state = &mut self.state;
        state.next = state.next.saturating_add(1);
        if *input.role == Role::Tool {
            state.open.answer(input.answers);
        } else if !input.calls.is_empty() {
            state.open.set(input.calls.iter().map(|call| &call.id));
        }
        match state.tail.last_mut() {
            Some(unit) if goes_on => {
                unit.len = unit.len.saturating_add(1);
                if let Some(vector) = input.vector {
                    unit.sketch = match unit.sketch.take() {
                        Some((sketch, n)) => Some((sketch.joined(n, vector), n.saturating_add(1))),
                        None => Sketch::of(vector).map(|sketch| (sketch, 1)),
                    };
                }
            }
            _ => {
                let sketch = input.vector.and_then(Sketch::of).map(|sketch| (sketch, 1));
                state.tail.push(Unit { len: 1, joint, sketch });
            }
        }
    }

    /// Decides on changes of topic for which enough newer messages are known.
    fn decide(&mut self, closed: &mut Vec<Closed>) {
        let look_ahead = u64::from(self.config.look_ahead());
        while self.state.undecided.saturating_add(look_ahead) < self.state.next {
            let at = self.state.undecided;
            self.state.undecided += 1;
            if let Some(score) = self.topic_at(at) {
                self.seal(at, CloseReason::Topic, Evidence::Topic(score), closed);
            }
        }
    }

    /// Seals rough blocks that are complete, and makes room in a tail that is full.
    fn settle(&mut self, closed: &mut Vec<Closed>) {
        while let Some(plan) = self.plan() {
            let end = self.open_from().0.saturating_add(u64::from(plan.len));
            // What is sealed now is decided now, with the newer messages available.
            let topic = (self.state.undecided..=end).find_map(|at| Some((at, self.topic_at(at)?)));
            match topic {
                Some((at, score)) => {
                    self.state.undecided = at + 1;
                    self.seal(at, CloseReason::Topic, Evidence::Topic(score), closed);
                }
                None => {
                    self.state.undecided = self.state.undecided.max(end.saturating_add(1));
                    self.seal(end, plan.reason, plan.evidence, closed);
                }
            }
        }
    }

    /// Returns the score of a change of topic before the message `at`, if there is one.
    fn topic_at(&self, at: u64) -> Option<Score> {
        if at <= self.open_from().0 || self.state.hard_cut == at.checked_sub(1) {
            return None;
        }
        let kept = self.state.window.said().len();
        let behind = usize::try_from(self.state.next.checked_sub(at)?).ok()?;
        let index = kept.checked_sub(behind)?;
        let score = Score::of(&self.state.window, index)?;
        if score.total() < self.config.topic_threshold() + self.caution(index) {
            return None;
        }
        // Of two neighbours, the topic changes at the one with the higher score.
        let next = Score::of(&self.state.window, index + 1);
        (!next.is_some_and(|next| next.total() > score.total())).then_some(score)
    }

    /// Returns how much surer than usual a change of topic must be: more once tools were called, as service talk
    /// changes its wording within one task more often than people who chat; unless the assistant was not the last to
    /// speak, or said goodbye.
    fn caution(&self, index: usize) -> f32 {
        const WITH_TOOLS: f32 = 0.8;
        let before = index.checked_sub(1).and_then(|before| self.state.window.said().get(before));
        let goes_on = before.is_some_and(|before| {
            before.speaker == Speaker::Assistant && !before.cues.has(Cues::CLOSES | Cues::THANKS)
        });
        if goes_on && self.state.task.complexity().tools > 0 { WITH_TOOLS } else { 0.0 }
    }

    /// Closes everything that is open.
    fn flush(&mut self, reason: CloseReason, evidence: Evidence, closed: &mut Vec<Closed>) {
        while self.state.undecided < self.state.next {
            let at = self.state.undecided;
            self.state.undecided += 1;
            if let Some(score) = self.topic_at(at) {
                self.seal(at, CloseReason::Topic, Evidence::Topic(score), closed);
            }
        }
        self.seal(self.state.next, reason, evidence, closed);
    }

    /// Closes what is open before the message `end`, which begins a unit.
    fn seal(
        &mut self,
        end: u64,
        reason: CloseReason,
        evidence: Evidence,
        closed: &mut Vec<Closed>,
    ) {
        let first = self.open_from();
        let Some(range) = end.checked_sub(1).and_then(|last| SeqRange::new(first, SeqNo(last)))
        else {
            return;
        };
        let mut taken = 0_u64;
        let units = self.state.tail.iter().take_while(|unit| {
            let inside = taken < range.len();
            taken = taken.saturating_add(u64::from(unit.len));
            inside
        });
        let units = units.count();
        self.state.tail.drain(..units);
        if reason.is_topic_cut() {
            self.state.hard_cut = Some(end);
        }
        let oversize = range.len() > u64::from(self.config.max());
        let (reason, evidence) = match reason {
            CloseReason::End if oversize => (CloseReason::Size, Evidence::Oversize),
            reason => (reason, evidence),
        };
        closed.push(Closed { range, reason, oversize, evidence });
    }
}

/// With this many named speakers, a talk is a meeting.
const MEETING: usize = 3;

/// How many characters of a message are examined. More would cost time and add nothing.
const TEXT_LIMIT: usize = 3_000;
