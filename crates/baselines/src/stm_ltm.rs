//! The last step unchanged, and a memory of everything older: `M_s = {L_(s-2), f(T_(s-1))}`.
//!
//! A step is what came in, what the model then said or called, and every result: a wave of parallel
//! calls is one step. The prompt of step s holds the instructions, the first and the latest request,
//! the long-term memory L of every step up to s-2, and step s-1 word for word, with its results in the
//! order of their calls.
//!
//! L is written beside the loop. [`next_job`](BackgroundWork::next_job) returns a job for each finished
//! step, as soon as it is finished: the tool of the next step may run meanwhile. A result that comes
//! back early waits until its step is no longer the last one; if it comes back late, its step stays in
//! the prompt unchanged, and the prompt says so. L is appended to until it exceeds its limit; then a
//! summary replaces it. No job can hold the prompt up, and none can let it grow: beyond
//! [`StmLtmConfig::max_late_steps`] the rule takes over.
//!
//! The state of L depends on when jobs finish, so the prompts of `foldback run` may differ a little from run to run;
//! `foldback bench agent` does the work at once.
//!
//! Raw messages are kept separately under ids. In [`Mode::Offload`] the model searches and reads them;
//! in [`Mode::Compress`] it does not. What no chat API would accept as it was (a call without its
//! result, an instruction that came late) is put into a user's message.
//!
//! ```
//! use foldback_baselines::stm_ltm::{StmLtm, StmLtmConfig};
//! use foldback_core::{BackgroundWork, Budget, ContextManager, Estimate, Message, TodoId, SideCalls, SideCall};
//! use std::sync::Arc;
//!
//! let mut context = StmLtm::new(TodoId::new("trip")?, Arc::new(Estimate), StmLtmConfig::default());
//! for n in 0..20 {
//!     context.record(Message::user(&format!("Which gate has flight {n}?")))?;
//!     context.record(Message::assistant(&format!("Gate {n}.")))?;
//!     // On any thread, while the agent works.
//!     while let Some(job) = context.next_job() {
//!         context.absorb((job.0)())?;
//!     }
//! }
//! let prompt = context.prompt(&Budget::default());
//! let texts: Vec<_> = prompt.messages.iter().map(|message| message.text()).collect();
//! assert_eq!(texts[0], "Which gate has flight 0?");
//! assert!(texts[1].ends_with("\n[r37] assistant: Gate 18."));
//! assert_eq!(texts[2..], ["Which gate has flight 19?", "Gate 19."]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod fields;
mod jobs;
mod memory;
mod raw;
mod scene;
mod step;
mod turns;

pub use crate::compressor::{Compression, Compressor, Extractive, Finished, Written};
pub use crate::note::{Note, NoteKind};
pub use config::StmLtmConfig;
pub use scene::{Mode, Scene};

use crate::Counters;
use crate::refusal::{no_message, no_tool, over_budget};
use crate::tool::tool_tokens;
use foldback_core::{
    BackgroundWork, Budget, ContextError, ContextManager, Message, Prompt, Recorded, Role, SeqNo,
    SideCall, SideCalls, TodoId, ToolAnswer, ToolCall, ToolDefinition, message_tokens,
};
use jobs::fold;
use memory::Memory;
use raw::{Raw, RawStore};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use step::{Fold, Step, Steps};
use turns::Turns;

/// Short-term and long-term memory.
pub struct StmLtm {
    todo: TodoId,
    counters: Counters,
    config: StmLtmConfig,
    tools: Vec<ToolDefinition>,
    tool_tokens: usize,
    /// Everything, as it was recorded.
    raw: RawStore,
    /// Instructions before all other messages.
    head: Vec<SeqNo>,
    first_ask: Option<SeqNo>,
    latest_ask: Option<SeqNo>,
    pinned: BTreeSet<SeqNo>,
    /// L.
    memory: Memory,
    /// Finished steps that are not in L: the last one, preceded by those that are late.
    recent: VecDeque<Step>,
    steps: Steps,
    /// Calls of the policy's own tools that wait for their result.
    recalls: BTreeSet<String>,
    /// Lives as long as a job that sums L up.
    summing: Weak<()>,
    side_calls: Vec<SideCall>,
}

impl StmLtm {
    /// Returns an empty context, as a type that can be inspected.
    #[must_use]
    pub fn new(todo: TodoId, tokens: impl Into<Counters>, config: StmLtmConfig) -> Self {
        let counters = tokens.into();
        let tools = match config.scene.mode {
            Mode::Offload => raw::tools(),
            Mode::Compress => Vec::new(),
        };
        Self {
            todo,
            tool_tokens: tool_tokens(counters.sizes.as_ref(), &tools),
            memory: Memory::new(&config.scene, config.compressor.as_ref()),
            counters,
            config,
            tools,
            raw: RawStore::default(),
            head: Vec::new(),
            first_ask: None,
            latest_ask: None,
            pinned: BTreeSet::new(),
            recent: VecDeque::new(),
            steps: Steps::default(),
            recalls: BTreeSet::new(),
            summing: Weak::new(),
            side_calls: Vec::new(),
        }
    }

    /// Returns how many finished steps should be in L and are not.
    #[must_use]
    pub fn late_steps(&self) -> usize {
        self.recent.len().saturating_sub(1)
    }

    /// Returns the tokens of L.
    #[must_use]
    pub fn memory_tokens(&self) -> usize {
        self.memory.tokens()
    }

    /// Returns the words of the message with this id (`r7` is message 7), whatever has happened to it
    /// in the prompt: for a result or a plain message its text, byte for byte; for a message that calls
    /// tools its text, and each call on a line. It is for callers that look back; the model has its
    /// tools.
    #[must_use]
    pub fn raw(&self, id: &str) -> Option<String> {
        self.raw.words(id)
    }

    /// Returns whether the message is the answer of one of the policy's own tools; records calls.
    fn is_recalled(&mut self, message: &Message) -> bool {
        let calls = message.tool_calls();
        if *message.role() == Role::Tool {
            return message.tool_call_id().is_some_and(|id| self.recalls.remove(id.as_str()));
        }
        if !message.role().is_instruction() || !calls.is_empty() {
            // Earlier calls that still wait are abandoned, and their ids may be used again.
            let own = calls.iter().filter(|call| self.tools.iter().any(|t| t.name == call.name));
            self.recalls = own.map(|call| call.id.as_str().to_owned()).collect();
        }
        false
    }

    /// Brings L up to date with every step but the last whose fold is done, in order.
    fn settle(&mut self) {
        while self.recent.len() > 1 {
            if self.late_steps() > self.config.max_late_steps {
                self.fold_oldest_by_rule();
            }
            let is_done = |step: &mut Step| matches!(step.fold, Fold::Done(_));
            let Some(Step { fold: Fold::Done(written), .. }) = self.recent.pop_front_if(is_done)
            else {
                break;
            };
            self.memory.append(written.notes, self.counters.sizes.as_ref());
        }
        if self.memory.tokens() > 2 * self.config.memory_tokens {
            let written = self.sum_up_job(Arc::new(Extractive))();
            self.summing = Weak::new();
            self.take_summary(self.memory.notes().len(), written);
        }
    }

    fn fold_oldest_by_rule(&mut self) {
        let Some(step) = self.recent.front() else { return };
        if matches!(step.fold, Fold::Done(_)) {
            return;
        }
        let written = fold(&self.finished(step), &self.config.scene, &Extractive, &self.counters);
        if let Some(step) = self.recent.front_mut() {
            step.fold = Fold::Done(written);
        }
    }

    /// Returns a step as a compressor gets it: without what the memory need not hold because it repeats
    /// existing content.
    fn finished(&self, step: &Step) -> Finished {
        let kept = |seq: &&SeqNo| {
            self.first_ask != Some(**seq) && self.raw.get(**seq).is_some_and(|raw| !raw.is_recalled)
        };
        let seqs = step.asked.iter().chain(&step.wave).filter(kept);
        let message = |seq: &SeqNo| Some((*seq, Arc::clone(&self.raw.get(*seq)?.message)));
        Finished { number: step.number, messages: seqs.filter_map(message).collect() }
    }

    /// Returns the work of summing up the current L.
    fn sum_up_job(
        &self,
        compressor: Arc<dyn Compressor>,
    ) -> impl FnOnce() -> Written + Send + use<> {
        let (notes, max) = (self.memory.notes().to_vec(), self.config.summary_tokens);
        let (scene, counters) = (self.config.scene.clone(), self.counters.clone());
        move || memory::sum_up(&notes, max, &scene, compressor.as_ref(), &counters)
    }

    fn take_summary(&mut self, count: usize, written: Written) {
        self.side_calls.extend(written.call);
        self.memory.replace(count, written.notes, self.counters.sizes.as_ref());
    }

    /// Returns the messages before L: of those in L, the first and the latest request, and pinned ones.
    fn standing(&self) -> BTreeSet<SeqNo> {
        let begin = |step: &Step| step.asked.iter().chain(&step.wave).min().copied();
        let first = self.recent.front().and_then(begin).or_else(|| self.steps.first_open());
        let is_folded = |seq: &&SeqNo| first.is_none_or(|first| **seq < first);
        let pinned = self.pinned.iter().filter(|seq| !self.head.contains(*seq)).filter(is_folded);
        let mut standing: BTreeSet<SeqNo> = pinned.copied().collect();
        standing.extend([self.first_ask, self.latest_ask].iter().flatten().filter(is_folded));
        standing
    }
}

impl ContextManager for StmLtm {
    fn todo(&self) -> &TodoId {
        &self.todo
    }

    fn recorded(&self) -> u64 {
        self.raw.len() as u64
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let tokens = message_tokens(self.counters.sizes.as_ref(), &message);
        let is_recalled = self.is_recalled(&message);
        let is_head = message.role().is_instruction() && self.head.len() == self.raw.len();
        let message = Arc::new(message);
        let raw = Raw { message: Arc::clone(&message), tokens, is_recalled, is_head };
        let seq = self.raw.push(raw);
        let recorded = Recorded { seq, closed: Vec::new() };
        if is_head {
            self.head.push(seq);
            return Ok(recorded);
        }
        if *message.role() == Role::User {
            self.first_ask.get_or_insert(seq);
            self.latest_ask = Some(seq);
        }
        self.recent.extend(self.steps.push(seq, &message));
        let asked = self.steps.asked.iter().filter_map(|seq| self.raw.get(*seq));
        if asked.map(|raw| raw.tokens).sum::<usize>() > self.config.memory_tokens {
            self.recent.extend(self.steps.finish_unanswered());
        }
        self.settle();
        Ok(recorded)
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        let mut turns = Turns::new(self.counters.sizes.as_ref());
        for raw in self.head.iter().filter_map(|seq| self.raw.get(*seq)) {
            turns.push_head(raw);
        }
        let standing = self.standing();
        for raw in standing.iter().filter_map(|seq| self.raw.get(*seq)) {
            turns.push_told(raw);
        }
        let cache_marks = turns.messages.len().checked_sub(1).into_iter().collect();
        if let Some(memory) = self.memory.message(self.late_steps()) {
            turns.push_new(memory);
        }
        let before = turns.messages.len();
        for step in &self.recent {
            for raw in step.asked.iter().filter_map(|seq| self.raw.get(*seq)) {
                turns.push(raw);
            }
            let wave = step.wave.iter().filter_map(|seq| self.raw.get(*seq));
            turns.push_wave(&wave.collect::<Vec<_>>());
        }
        let open = turns.messages.len();
        for raw in self.steps.asked.iter().filter_map(|seq| self.raw.get(*seq)) {
            turns.push(raw);
        }
        let tokens = turns.tokens + self.tool_tokens;
        let over = budget.tokens.filter(|allowed| tokens > *allowed);
        Prompt {
            tokens,
            tools: self.tools.clone(),
            window: turns.messages.len() - before,
            loose: turns.messages.len() - open,
            pinned: self.pinned.iter().filter(|seq| !self.steps.is_waiting(**seq)).count(),
            cache_marks,
            unfit: over.map(over_budget).into_iter().collect(),
            messages: turns.messages,
            conversation: Some(turns.said),
            ..Prompt::default()
        }
    }

    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        let (room, counter) = (self.config.answer_tokens, self.counters.sizes.as_ref());
        let is_given = self.tools.iter().any(|tool| tool.name == call.name);
        Ok(match call.name.as_str() {
            raw::READ if is_given => self.raw.read(call, room, counter),
            raw::SEARCH if is_given => self.raw.search(call, room, counter),
            _ => no_tool(call, &self.tools),
        })
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        if self.raw.get(seq).is_none() {
            return Err(no_message(&self.todo, seq, self.raw.len() as u64));
        }
        self.pinned.insert(seq);
        Ok(())
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        Ok(Box::new(Self::new(todo, self.counters.clone(), self.config.clone())))
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        Some(self)
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        Some(self)
    }
}

impl SideCalls for StmLtm {
    fn take(&mut self) -> Vec<SideCall> {
        std::mem::take(&mut self.side_calls)
    }
}

fn error(message: String) -> ContextError {
    ContextError { message, source: None }
}
