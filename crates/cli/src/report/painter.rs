//! Watches a replay, and keeps what its picture shows.

use super::picture::{BlockSeen, Call, PayloadSeen, Picture, Search};
use super::recall::{Asker, ask};
use super::text;
use super::view::Views;
use crate::error::CliError;
use crate::replay::{Beside, Event, Forgot, Report, Run, replay};
use foldback::Memory;
use foldback_backend_store::{Meta, preview};
use foldback_bench::Counts;
use foldback_core::{Block, Estimate, Message, Prompt, SeqNo, TodoId};
use std::collections::BTreeMap;

/// Watches the replay of one conversation into a store that had nothing of it.
pub(crate) struct Painter<'a> {
    memory: &'a Memory,
    todo: &'a TodoId,
    counts: Counts,
    views: Views<'a>,
    asker: Asker<'a>,
    tools_tokens: u64,
    calls: Vec<Call>,
    blocks: Vec<BlockSeen>,
    payloads: Vec<PayloadSeen>,
    forgot: BTreeMap<&'static str, Vec<Forgot>>,
    searches: Vec<Search>,
}

/// A longer conversation is shown by its figures alone: nobody scrolls through it, and the page
/// would not stay usable.
pub(super) const MESSAGES_MOST: usize = 10_000;

/// The greatest number of tokens of a preview.
const PREVIEW_TOKENS: usize = 200;

impl<'a> Painter<'a> {
    /// `None` for a conversation that is too long to be drawn.
    pub(crate) fn new(memory: &'a Memory, todo: &'a TodoId, source: &'a [Message]) -> Option<Self> {
        (source.len() <= MESSAGES_MOST).then(|| Self {
            memory,
            todo,
            counts: Counts::default(),
            views: Views::new(source),
            asker: Asker::new(source),
            tools_tokens: 0,
            calls: Vec::new(),
            blocks: Vec::new(),
            payloads: Vec::new(),
            forgot: BTreeMap::new(),
            searches: Vec::new(),
        })
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn watch(&mut self, event: &Event<'_>) -> Result<(), CliError> {
        match event {
            Event::Offloaded { seq, what, meta } => self.offloaded(*seq, what, meta),
            Event::Closed { block, at, tokens, line, evidence } => {
                self.closed(block, *at, (*tokens, *line), evidence);
                Ok(())
            }
            Event::Call { at, prompt, sent, cost, beside } => {
                self.called(*at, prompt, (*sent, *cost), beside)
            }
            Event::Size { .. } => Ok(()),
        }
    }

    /// The picture, once the replay is over.
    pub(crate) fn picture(mut self, report: &Report) -> Picture {
        let mut messages = self.views.all(&mut self.counts);
        Picture {
            text_chars: text::bound(&mut messages),
            report: report.clone(),
            tools_tokens: self.tools_tokens,
            messages,
            forms: self.views.forms,
            calls: self.calls,
            blocks: self.blocks,
            payloads: self.payloads,
            forgot: self.forgot,
            searches: self.searches,
        }
    }

    fn offloaded(&mut self, seq: SeqNo, what: &str, meta: &Meta) -> Result<(), CliError> {
        let handle = self.memory.find(self.todo)?;
        let bytes = self.memory.payloads().get(&handle, meta.n)?;
        self.payloads.push(PayloadSeen {
            reference: meta.reference().to_string(),
            seq: seq.0,
            what: what.to_owned(),
            kind: meta.kind,
            bytes: meta.bytes,
            lines: meta.lines,
            preview: preview(&bytes, meta.kind, PREVIEW_TOKENS, &Estimate),
        });
        Ok(())
    }

    fn closed(&mut self, block: &Block, at: usize, tokens: (u64, u64), evidence: &str) {
        let header = &block.header;
        self.blocks.push(BlockSeen {
            n: header.block_id.n(),
            id: header.block_id.to_string(),
            first: block.range.first().0,
            last: block.range.last().0,
            at,
            block_type: header.block_type,
            close_reason: block.close_reason,
            evidence: evidence.to_owned(),
            core_semantic: header.core_semantic.clone(),
            keywords: header.keywords.clone(),
            data_ids: header.data_ids.clone(),
            tokens: tokens.0,
            line_tokens: tokens.1,
        });
    }

    fn called(
        &mut self,
        at: usize,
        prompt: &Prompt,
        (sent, cost): (u64, f64),
        beside: &[Beside],
    ) -> Result<(), CliError> {
        let latest = self.blocks.last();
        let from = latest.map_or(0, |block| match prompt.block {
            Some(_) => block.first,
            None => block.last + 1,
        });
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let (v, h) = self.views.take(prompt, from, at, &mut self.counts);
        self.tools_tokens = self.counts.tools(&prompt.tools);
        self.calls.push(Call {
            at,
            v,
            h,
            b: prompt.block.as_ref().map(foldback_core::BlockId::n),
            s: prompt.volatile,
            k: sent,
            c: cost.round(),
            oc: beside.iter().map(|beside| beside.cost().round()).collect(),
            o: beside.iter().map(|beside| beside.sent).collect(),
        });
        for beside in beside.iter().filter(|beside| !beside.forgot.is_empty()) {
            self.forgot.insert(beside.baseline.name, beside.forgot.clone());
        }
        if let Some(query) = self.asker.query(at, self.blocks.len()) {
            let call = self.calls.len() as u64;
            let search = ask(self.memory, self.todo, call, query, prompt.block.as_ref())?;
            self.searches.push(search);
        }
        Ok(())
    }
}

/// Replays a conversation and, if asked to, draws its picture.
///
/// # Errors
/// When the replay fails, or `watch` does.
pub(crate) fn painted(
    run: &Run<'_>,
    paints: bool,
    watch: &mut dyn FnMut(&Event<'_>) -> Result<(), CliError>,
) -> Result<(Report, Option<Picture>), CliError> {
    let messages = &run.sourced.conversation.messages;
    let mut painter = if paints { Painter::new(run.memory, &run.todo, messages) } else { None };
    let report = replay(run, &mut |event| {
        if let Some(painter) = &mut painter {
            painter.watch(&event)?;
        }
        watch(&event)
    })?;
    let picture = painter.map(|painter| painter.picture(&report));
    Ok((report, picture))
}
