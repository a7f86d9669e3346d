//! One conversation through a live session.

use super::Report;
use super::event::{Event, Watch};
use super::player::Player;
use crate::error::CliError;
use crate::sources::Sourced;
use foldback::{Close, ErrorKind, Memory, Session};
use foldback_bench::{Calls, Meter};
use foldback_core::{Budget, Message, Prompt, SeqNo, TodoId};
use foldback_policies::Policy;
use std::time::Duration;

/// The options of a replay.
pub(crate) struct Run<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) todo: TodoId,
    pub(crate) sourced: &'a Sourced,
    /// The view of the memory: one of its own.
    pub(crate) policy: Policy,
    /// How long the provider's cache keeps what is not read; `None` for ever.
    pub(crate) cache_life: Option<Duration>,
    /// Where to stop.
    pub(crate) stop: Stop,
}

/// The end of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// After the last message, with the conversation closed and the proof made.
    End,
    /// At this call, counted from 1: it is the last event.
    Call(u64),
}

/// The live view's size is reported about this often.
const SIZES: usize = 8;

/// The least number of messages between two such reports.
const SIZE_STEP: usize = 6;

/// Replays a conversation into its todo. If the todo already has its beginning, the replay continues there.
///
/// # Errors
/// When the todo holds something else, the store fails, or `watch` does.
pub(crate) fn replay(run: &Run<'_>, watch: Watch<'_>) -> Result<Report, CliError> {
    let messages = &run.sourced.conversation.messages;
    let mut session = begin(run)?;
    // The number of messages that the todo has, and is known to have as in the source.
    let mut held = check_held(run, &session, 0)?;
    let mut again: Option<Again> = None;
    let mut player = Player::new(run)?;
    let calls = Calls::of(messages);
    let every = (messages.len() / SIZES).max(SIZE_STEP);
    let mut prompt = Prompt::default();
    for (at, message) in messages.iter().enumerate() {
        if calls.is_before(at, message) {
            player.call(run, at, &prompt, watch)?;
            if player.is_there(run.stop) {
                return Ok(player.report);
            }
        }
        let seq = SeqNo(at as u64);
        let mut recorded = None;
        if at >= held {
            match session.record_at(seq, message.clone()) {
                // Another process records the same; the session is now where the todo is.
                Err(error) if is_behind(&error, &session, seq) => {
                    held = check_held(run, &session, at)?;
                    player.pass_payloads(run)?;
                }
                result => recorded = Some(result?),
            }
        }
        player.append(message)?;
        if let Some(recorded) = recorded {
            held = at + 1;
            prompt = session.prompt(&Budget::default());
            player.check(seq, &prompt);
            player.offloads(run, seq, message, watch)?;
            player.closed(run, &session, &recorded.closed, watch)?;
        } else {
            // The todo is further on, so the prompts of this part are built once more.
            let again = match &mut again {
                Some(again) => again,
                none => none.insert(Again::new(run)?),
            };
            prompt = again.prompt_behind(messages, at)?;
            player.check(seq, &prompt);
            player.report.resumed_at += 1;
        }
        if calls.is_behind(message) {
            player.call(run, at + 1, &prompt, watch)?;
            if player.is_there(run.stop) {
                return Ok(player.report);
            }
        }
        if (at + 1) % every == 0 {
            let view = Meter::size(&mut player.counts, &prompt);
            watch(Event::Size { view, full: player.tokens() })?;
        }
    }
    if run.stop != Stop::End {
        player.report.calls = player.meter.usage().calls;
        return Ok(player.report);
    }
    let closed = session.close(Close::End)?;
    player.closed(run, &session, &closed, watch)?;
    player.check(SeqNo(messages.len() as u64), &session.prompt(&Budget::default()));
    player.finish(run, &session)
}

fn begin(run: &Run<'_>) -> Result<Session, CliError> {
    Ok(run.memory.conversations().session_for(&run.todo, &run.sourced.conversation)?)
}

/// Whether a message was not recorded because the todo has others.
fn is_behind(error: &foldback::Error, session: &Session, seq: SeqNo) -> bool {
    error.kind() == ErrorKind::Conflict && session.len() != seq.0
}

/// How many messages the todo has, as far as the session knows: another process may have added more. They have to be
/// the conversation's first; those before `from` are known to be.
fn check_held(run: &Run<'_>, session: &Session, from: usize) -> Result<usize, CliError> {
    let range = from as u64..session.len();
    let held = usize::try_from(range.end).unwrap_or(usize::MAX);
    run.memory.conversations().check_exact(&run.todo, range, &run.sourced.conversation)?;
    Ok(held)
}

/// A conversation recorded once more, beside a todo that already has it, to find its prompts at
/// each message.
struct Again {
    session: Session,
    /// How many messages it has taken.
    taken: usize,
}

impl Again {
    fn new(run: &Run<'_>) -> Result<Self, CliError> {
        let options = run.memory.options().with_secret(run.memory.secret());
        let memory = Memory::in_memory(options)?;
        Ok(Self { session: memory.session(&run.todo)?, taken: 0 })
    }

    /// Returns the prompt after the message `at`.
    fn prompt_behind(&mut self, messages: &[Message], at: usize) -> Result<Prompt, CliError> {
        for message in messages.get(self.taken..=at).unwrap_or_default() {
            self.session.record(message.clone())?;
            self.taken += 1;
        }
        Ok(self.session.prompt(&Budget::default()))
    }
}
