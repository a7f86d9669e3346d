//! One conversation through a live session.

mod again;

use super::beside::own_tools;
use super::proof::prove;
use super::{Beside, Report};
use crate::error::CliError;
use crate::sources::Sourced;
use crate::walk;
use again::Again;
use foldback::{Close, ErrorKind, Memory, Session};
use foldback_backend_store::Meta;
use foldback_bench::{Calls, Counts, Meter};
use foldback_core::{
    Block, BlockId, Budget, Estimate, Message, Prompt, SeqNo, TodoId, TokenCounter, ToolCallId,
    check_request, thousands,
};
use foldback_disclosure::ledger_line;
use foldback_kv::Todo;
use foldback_policies::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a replay is asked for.
pub(crate) struct Run<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) todo: TodoId,
    pub(crate) sourced: &'a Sourced,
    /// How the memory was told to show it: one of its own.
    pub(crate) policy: Policy,
    /// Where to stop.
    pub(crate) stop: Stop,
}

/// Where a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Behind the last message, with the conversation closed and the proof made.
    End,
    /// At this call, counted from 1: it is the last event.
    Call(u64),
}

/// What happens while a conversation is replayed.
pub(crate) enum Event<'a> {
    /// A part of a message was stored outside.
    Offloaded {
        /// The message.
        seq: SeqNo,
        /// What it is of the message: `the result of read_file`.
        what: &'a str,
        /// The payload.
        meta: &'a Meta,
    },
    /// A block closed.
    Closed {
        /// The block.
        block: &'a Block,
        /// How many messages there are so far.
        at: usize,
        /// The tokens of its messages.
        tokens: u64,
        /// The tokens of the line that stands for it.
        line: u64,
        /// Why it closed, in a sentence.
        evidence: &'a str,
    },
    /// How large the live view is, at intervals.
    Size {
        /// The tokens of the prompt.
        view: u64,
        /// The tokens of everything so far.
        full: u64,
    },
    /// The model is asked.
    Call {
        /// How many messages there are so far.
        at: usize,
        /// What it gets.
        prompt: &'a Prompt,
        /// The tokens of that.
        sent: u64,
        /// The baselines, which were asked too.
        beside: &'a [Beside],
    },
}

type Watch<'w> = &'w mut dyn FnMut(Event<'_>) -> Result<(), CliError>;

/// The live view's size is told about this often.
const SIZES: usize = 8;

/// But not more often than after this many messages.
const SIZE_STEP: usize = 6;

/// A part under this size is never stored outside, so nothing needs to be looked for.
const OFFLOAD_BYTES: usize = 500;

/// More violations than this are counted, not told.
const VIOLATIONS_MOST: usize = 5;

/// Replays a conversation into its todo. One that the todo holds the beginning of goes on there.
///
/// # Errors
/// When the todo holds something else, the store fails, or `watch` does.
pub(crate) fn replay(run: &Run<'_>, watch: Watch<'_>) -> Result<Report, CliError> {
    let messages = &run.sourced.conversation.messages;
    let mut session = begin(run)?;
    // So many messages the todo holds, and is known to hold as the source has them.
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
                // Somebody else records the same; the session stands where the todo does now.
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
            // The todo stands further on, so what a model was sent here is found once more.
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

/// Whether a message was not recorded because the todo holds others.
fn is_behind(error: &foldback::Error, session: &Session, seq: SeqNo) -> bool {
    error.kind() == ErrorKind::Conflict && session.len() != seq.0
}

/// How many messages the todo holds, as far as the session knows: another process may have added more. They
/// have to be the conversation's first; those before `from` are known to be.
fn check_held(run: &Run<'_>, session: &Session, from: usize) -> Result<usize, CliError> {
    let range = from as u64..session.len();
    let held = usize::try_from(range.end).unwrap_or(usize::MAX);
    run.memory.conversations().check_exact(&run.todo, range, &run.sourced.conversation)?;
    Ok(held)
}

/// What a replay keeps while it goes on.
struct Player {
    report: Report,
    handle: Todo,
    counts: Counts,
    meter: Meter,
    beside: Vec<Beside>,
    /// The tokens of the first messages together, by their number.
    sums: Vec<u64>,
    /// Which tool a call belongs to, until its id is used again.
    tools: BTreeMap<ToolCallId, String>,
    /// The last payload that was told.
    payload: u64,
    /// Violations that were counted and not told.
    untold: u64,
    /// Whether every block that closed was found.
    found_all: bool,
}

impl Player {
    fn new(run: &Run<'_>) -> Result<Self, CliError> {
        let report = Report::new(run.sourced, &run.todo, run.policy);
        let handle = run.memory.find(&run.todo)?;
        let mut counts = Counts::default();
        let own_tools = own_tools(run.sourced, &mut counts);
        let mut player = Self {
            report,
            handle,
            counts,
            meter: Meter::default().with_own_tools(own_tools),
            beside: Beside::standing(&run.todo, own_tools),
            sums: vec![0],
            tools: BTreeMap::new(),
            payload: 0,
            untold: 0,
            found_all: true,
        };
        player.pass_payloads(run)?;
        Ok(player)
    }

    /// What another replay stored outside is no news.
    fn pass_payloads(&mut self, run: &Run<'_>) -> Result<(), CliError> {
        let payloads = run.memory.payloads();
        while let Some(last) = payloads.metas(&self.handle, self.payload, 512)?.last() {
            self.payload = last.n;
        }
        Ok(())
    }

    fn append(&mut self, message: &Message) -> Result<(), CliError> {
        self.sums.push(self.tokens() + self.counts.message(message));
        for call in message.tool_calls() {
            self.tools.insert(call.id.clone(), call.name.clone());
        }
        self.beside.iter_mut().try_for_each(|beside| beside.record(message))
    }

    /// The tokens of all messages so far.
    fn tokens(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The model is asked behind the first `at` messages.
    fn call(
        &mut self,
        run: &Run<'_>,
        at: usize,
        prompt: &Prompt,
        watch: Watch<'_>,
    ) -> Result<(), CliError> {
        let so_far = run.sourced.conversation.messages.get(..at).unwrap_or_default();
        let sent = self.meter.call(&mut self.counts, prompt);
        for beside in &mut self.beside {
            beside.call(&mut self.counts, so_far);
        }
        watch(Event::Call { at, prompt, sent, beside: &self.beside })
    }

    fn is_there(&self, stop: Stop) -> bool {
        stop == Stop::Call(self.meter.usage().calls)
    }

    /// Every prompt has to be a valid request, whether it is sent or not, and its window has to
    /// keep the bound.
    fn check(&mut self, seq: SeqNo, prompt: &Prompt) {
        self.report.window_max_messages = self.report.window_max_messages.max(prompt.window);
        let violations = check_request(prompt.messages.iter().map(Arc::as_ref));
        self.report.orphans += violations.len() as u64;
        for violation in violations {
            if self.report.problems.len() < VIOLATIONS_MOST {
                self.report.problems.push(format!("the prompt after message {seq}: {violation}"));
            } else {
                self.untold += 1;
            }
        }
    }

    fn offloads(
        &mut self,
        run: &Run<'_>,
        seq: SeqNo,
        message: &Message,
        watch: Watch<'_>,
    ) -> Result<(), CliError> {
        if message.json().len() < OFFLOAD_BYTES {
            return Ok(());
        }
        let metas = run.memory.payloads().metas(&self.handle, self.payload, 64)?;
        if metas.is_empty() {
            return Ok(());
        }
        let what = match message.tool_call_id() {
            Some(id) => match self.tools.get(id) {
                Some(tool) => format!("the result of {tool}"),
                None => "a result".to_owned(),
            },
            None => match message.tool_calls() {
                [call] => format!("an argument of {}", call.name),
                _ => "an argument".to_owned(),
            },
        };
        for meta in &metas {
            self.payload = self.payload.max(meta.n);
            watch(Event::Offloaded { seq, what: &what, meta })?;
        }
        Ok(())
    }

    fn closed(
        &mut self,
        run: &Run<'_>,
        session: &Session,
        closed: &[BlockId],
        watch: Watch<'_>,
    ) -> Result<(), CliError> {
        for id in closed {
            let Some(block) = run.memory.block(&run.todo, id)? else {
                let what = format!("block {id} was closed and cannot be found");
                self.report.problems.push(what);
                self.found_all = false;
                continue;
            };
            let sum = |seq: u64| {
                let at = usize::try_from(seq).unwrap_or(usize::MAX);
                self.sums.get(at).copied().unwrap_or(self.tokens())
            };
            let range = block.range.as_u64();
            let tokens = sum(range.end).saturating_sub(sum(range.start));
            let line = Estimate.count(&ledger_line(&block.header, &Estimate)) as u64;
            let why =
                session.last_closed().iter().find(|(closed, _)| closed.header.block_id == *id);
            let evidence = why.map_or("", |(_, evidence)| evidence.as_str());
            watch(Event::Closed {
                block: &block,
                at: self.sums.len() - 1,
                tokens,
                line,
                evidence,
            })?;
        }
        Ok(())
    }

    fn finish(mut self, run: &Run<'_>, session: &Session) -> Result<Report, CliError> {
        let tokens = self.tokens();
        let report = &mut self.report;
        report.used(self.meter.usage());
        report.used_beside(&self.beside);
        report.tokens = tokens;
        report.blocks = u64::from(session.blocks());
        report.prefix_moves = self.meter.moves();
        if self.untold > 0 {
            let more = thousands(self.untold);
            report.problems.push(format!("and {more} more that make a prompt no valid request"));
        }
        if let Some(bound) = run.policy.window_bound()
            && report.window_max_messages > bound
        {
            report.problems.push(format!(
                "the window held {} messages, more than its bound of {bound}",
                report.window_max_messages
            ));
        }
        for block in walk::blocks(run.memory, &run.todo) {
            *report.close_reasons.entry(block?.close_reason.as_str()).or_default() += 1;
        }
        report.proved(prove(run.memory, &run.todo, &run.sourced.conversation.messages)?);
        report.lossless &= self.found_all;
        Ok(self.report)
    }
}
