//! The state of a replay, and its report.

use super::beside::own_tools;
use super::event::{Event, Watch};
use super::proof::prove;
use super::run::{Run, Stop};
use super::{Beside, Report};
use crate::error::CliError;
use crate::walk;
use foldback::Session;
use foldback_bench::{Counts, Meter};
use foldback_core::{
    BlockId, Estimate, Message, Prompt, SeqNo, TokenCounter, ToolCallId, check_request, thousands,
};
use foldback_disclosure::ledger_line;
use foldback_kv::Todo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A smaller part is never stored outside, so nothing needs to be looked for.
const OFFLOAD_BYTES: usize = 500;

/// Further violations are counted, not reported.
const VIOLATIONS_MOST: usize = 5;

/// The state of a replay in progress.
pub(super) struct Player {
    pub(super) report: Report,
    handle: Todo,
    pub(super) counts: Counts,
    pub(super) meter: Meter,
    beside: Vec<Beside>,
    /// The tokens of the first messages together, by their number.
    sums: Vec<u64>,
    /// The tool of each call, until its id is used again.
    tools: BTreeMap<ToolCallId, String>,
    /// The last payload that was reported.
    payload: u64,
    /// Violations that were counted and not reported.
    untold: u64,
    /// Whether every block that closed was found.
    found_all: bool,
    /// Whether any block is closed.
    has_closed: bool,
}

impl Player {
    pub(super) fn new(run: &Run<'_>) -> Result<Self, CliError> {
        let mut report = Report::new(run.sourced, &run.todo, run.policy);
        report.window_bound = Some(run.memory.options().view.unwrap_or_default().window_bound());
        let handle = run.memory.find(&run.todo)?;
        let mut counts = Counts::default();
        let own_tools = own_tools(run.sourced, &mut counts);
        let mut player = Self {
            report,
            handle,
            counts,
            meter: Meter::default().with_own_tools(own_tools).with_cache_life(run.cache_life),
            beside: Beside::standing(&run.todo, own_tools, run.cache_life),
            sums: vec![0],
            tools: BTreeMap::new(),
            payload: 0,
            untold: 0,
            found_all: true,
            has_closed: false,
        };
        player.pass_payloads(run)?;
        Ok(player)
    }

    /// Parts that another replay stored outside are not reported.
    pub(super) fn pass_payloads(&mut self, run: &Run<'_>) -> Result<(), CliError> {
        let payloads = run.memory.payloads();
        while let Some(last) = payloads.metas(&self.handle, self.payload, 512)?.last() {
            self.payload = last.n;
        }
        Ok(())
    }

    pub(super) fn append(&mut self, message: &Message) -> Result<(), CliError> {
        self.sums.push(self.tokens() + self.counts.message(message));
        message.timestamp().into_iter().for_each(|at| self.meter.wait_until(at));
        for call in message.tool_calls() {
            self.tools.insert(call.id.clone(), call.name.clone());
        }
        self.beside.iter_mut().try_for_each(|beside| beside.record(message))
    }

    /// The tokens of all messages so far.
    pub(super) fn tokens(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Handles a call of the model after the first `at` messages.
    pub(super) fn call(
        &mut self,
        run: &Run<'_>,
        at: usize,
        prompt: &Prompt,
        watch: Watch<'_>,
    ) -> Result<(), CliError> {
        let so_far = run.sourced.conversation.messages.get(..at).unwrap_or_default();
        let sent = self.meter.call(&mut self.counts, prompt);
        self.held(prompt);
        for beside in &mut self.beside {
            beside.call(&mut self.counts, so_far);
        }
        let cost = self.meter.usage().cost_units;
        watch(Event::Call { at, prompt, sent, cost, beside: &self.beside })
    }

    /// Counts what a call shows of the conversation.
    fn held(&mut self, prompt: &Prompt) {
        let report = &mut self.report;
        *report.loose_messages.entry(prompt.loose).or_default() += 1;
        self.has_closed |= prompt.block.is_some();
        match prompt.block {
            Some(_) => report.latest_block.whole += 1,
            None => report.latest_block.line += u64::from(self.has_closed),
        }
    }

    pub(super) fn is_there(&self, stop: Stop) -> bool {
        stop == Stop::Call(self.meter.usage().calls)
    }

    /// Checks that a prompt is a valid request, whether it is sent or not, and that its window
    /// keeps the bound.
    pub(super) fn check(&mut self, seq: SeqNo, prompt: &Prompt) {
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

    pub(super) fn offloads(
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

    pub(super) fn closed(
        &mut self,
        run: &Run<'_>,
        session: &Session,
        closed: &[BlockId],
        watch: Watch<'_>,
    ) -> Result<(), CliError> {
        self.has_closed |= !closed.is_empty();
        for id in closed {
            let Some(block) = run.memory.block(&run.todo, id)? else {
                let what = format!("block {id} was closed but cannot be found");
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

    pub(super) fn finish(mut self, run: &Run<'_>, session: &Session) -> Result<Report, CliError> {
        let tokens = self.tokens();
        let report = &mut self.report;
        report.used(self.meter.usage());
        report.used_beside(&self.beside);
        report.tokens = tokens;
        report.blocks = u64::from(session.blocks());
        report.prefix_moves = self.meter.moves();
        if self.untold > 0 {
            let more = thousands(self.untold);
            report.problems.push(format!("and {more} more that make a prompt invalid"));
        }
        if let Some(bound) = report.window_bound
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
