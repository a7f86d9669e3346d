//! One todo's conversation in progress.

use crate::error::Failure;
use crate::hand_over::TodoHandOver;
use crate::live::Live;
use crate::memory::Shared;
use crate::{Close, Error, Grants, Outcome, texts};
use foldback_core::{
    Block, BlockId, Budget, Content, ContextError, ContextManager, HandOver, ItemState, Message,
    PayloadRef, Prompt, Recorded, Reference, SeqNo, Site, Source, SubTasks, TodoId, TodoList,
    ToolAnswer, ToolCall, ToolCallId, ToolDefinition,
};
use foldback_disclosure::{Answer, Fragment, Hints, LiveView, RecallSource, ViewConfig, run_tool};
use foldback_kv::Todo;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// One todo's conversation in progress: it takes messages, shows the live view, and answers the
/// calls of the memory tools.
///
/// A session holds a constant number of messages, however long the conversation is. It may be
/// dropped at any time; opened again, it is in the same state.
pub struct Session {
    pub(crate) memory: Arc<Shared>,
    pub(crate) todo: Todo,
    pub(crate) live: Live,
    /// Answers that were given to the model and are not recorded yet, the newest first.
    pub(crate) answers: VecDeque<(ToolCallId, Answer)>,
    /// The blocks that the last write closed, and why.
    pub(crate) closed: Vec<(Block, String)>,
    /// Branches that are not shown, each with its view; the one left last is at the end.
    pub(crate) aside: Vec<(Vec<Range<u64>>, LiveView)>,
    /// What the next prompt says about earlier blocks, once that was requested.
    pub(crate) hints: OnceLock<Hints>,
}

/// Few answers wait to be recorded; a loop that never records them does not make the session grow.
const MAX_ANSWERS: usize = 64;

impl Session {
    pub(crate) fn resume(memory: Arc<Shared>, todo: Todo) -> Result<Self, Error> {
        let live = Live::load(&memory, &todo)?;
        Ok(Self::with(memory, todo, live))
    }

    pub(crate) fn with(memory: Arc<Shared>, todo: Todo, live: Live) -> Self {
        let (answers, closed, aside) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { memory, todo, live, answers, closed, aside, hints: OnceLock::new() }
    }

    /// Returns the todo.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        self.todo.id()
    }

    /// Returns how many messages are recorded: the next one gets this number.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.live.head.messages
    }

    /// Returns whether no message is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many blocks are closed.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.live.blocks
    }

    /// Returns the blocks that the last write closed, each with a sentence that says why.
    #[must_use]
    pub fn last_closed(&self) -> &[(Block, String)] {
        &self.closed
    }

    /// Returns how the todo is shown. This is stored with the session's state.
    #[must_use]
    pub fn view_config(&self) -> &ViewConfig {
        self.live.view.config()
    }

    /// Returns how many messages are open after the last closed block.
    #[must_use]
    pub fn open(&self) -> usize {
        self.live.open.len()
    }

    /// Returns how often the prompt's stable part has moved so far.
    #[must_use]
    pub fn prefix_moves(&self) -> u64 {
        self.live.view.prefix_moves()
    }

    /// Returns the request to send to the model now.
    #[must_use]
    pub fn prompt(&self, budget: &Budget) -> Prompt {
        let tokens = self.memory.tokens.as_ref();
        let hints = self.hints.get_or_init(|| {
            // What cannot be searched now is not mentioned.
            Hints::find(&self.recall_source()).unwrap_or_default()
        });
        if hints.is_empty() {
            self.live.view.prompt(budget, tokens)
        } else {
            self.live.view.hinting(hints.clone()).prompt(budget, tokens)
        }
    }

    /// Answers a call of `search_block`, `list_blocks` or `load`. A mistake of the model is answered, too. The answer
    /// is recorded as references when the loop records it as the call's result.
    ///
    /// # Errors
    /// When the store fails.
    pub fn call(&mut self, call: &ToolCall) -> Result<Answer, Error> {
        let answer = run_tool(&self.recall_source(), call)?;
        self.memory.note_tool(self.todo(), call, &answer)?;
        self.expect_answer(call.id.clone(), answer.clone());
        Ok(answer)
    }

    /// Notes a call of a memory tool that was answered elsewhere, by [`Memory::call_tool`](crate::Memory::call_tool):
    /// its result is recorded like the answers of [`call`](Self::call) if it is this answer word for word.
    pub fn expect_answer(&mut self, call: ToolCallId, answer: Answer) {
        self.answers.retain(|(id, _)| *id != call);
        self.answers.truncate(MAX_ANSWERS - 1);
        self.answers.push_front((call, answer));
    }

    /// Returns the answer of a memory tool that is recorded among these messages as the result of a call, word for
    /// word.
    ///
    /// # Errors
    /// When the store fails.
    pub fn recorded_answer(
        &self,
        range: Range<u64>,
        call: &ToolCallId,
        text: &str,
    ) -> Result<Option<Answer>, Error> {
        let stored = self.memory.blocks.messages(&self.todo, range.clone())?;
        for (seq, stored) in range.map(SeqNo).zip(stored).filter(|(_, stored)| stored.recall) {
            let message = texts::fill(&self.memory, &self.todo, seq, &stored, 0)?;
            if message.tool_call_id() == Some(call) && message.text() == text {
                let site = match message.content() {
                    Content::Parts(_) => Site::Part(0),
                    Content::Text(_) | Content::Empty => Site::Content,
                };
                let source = Source::Message(seq, site);
                let quote = Fragment::Quote { source, range: 0..text.len() as u64 };
                return Ok(Some(Answer { fragments: vec![quote], ..Answer::said(text) }));
            }
        }
        Ok(None)
    }

    /// Keeps the message in every prompt from now on.
    ///
    /// # Errors
    /// When there is no such message, or the store fails.
    pub fn pin(&mut self, seq: SeqNo) -> Result<(), Error> {
        if seq.0 >= self.len() {
            let todo = self.todo().clone();
            return Err(Failure::NoMessage { todo, seq, len: self.len() }.into());
        }
        let (whose, message) = texts::attributed(&self.memory, &self.todo, seq)?;
        self.write(|_, live, _| {
            live.view.pin(whose.clone(), message.clone());
            Ok(())
        })
    }

    /// Reads the state again if another process has written to this todo.
    ///
    /// # Errors
    /// When the todo was forgotten meanwhile, or the store fails.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if self.is_forgotten()? {
            return Err(Failure::NoTodo(self.todo().clone()).into());
        }
        self.live = Live::load(&self.memory, &self.todo)?;
        self.hints.take();
        self.aside.clear();
        Ok(())
    }

    /// Returns whether the todo was forgotten meanwhile, even if another one has its name now.
    ///
    /// # Errors
    /// When the store fails.
    pub fn is_forgotten(&self) -> Result<bool, Error> {
        Ok(self.memory.registry.find(self.todo.id())?.as_ref() != Some(&self.todo))
    }

    /// Returns the verified bytes of a payload of this todo.
    ///
    /// # Errors
    /// When there is no such payload here, or it is damaged.
    pub fn payload(&self, reference: &PayloadRef) -> Result<Vec<u8>, Error> {
        let meta = self.memory.payloads.resolve(&self.todo, reference)?;
        Ok(self.memory.payloads.get(&self.todo, meta.n)?)
    }

    pub(crate) fn recall_source(&self) -> RecallSource<'_> {
        RecallSource {
            todo: &self.todo,
            marks: self.memory.marks(&self.todo),
            blocks: &self.memory.blocks,
            payloads: &self.memory.payloads,
            embedder: self.memory.embedder.as_ref(),
            tokens: self.memory.tokens.as_ref(),
            grants: Some(self.memory.as_ref()),
            complex: self.live.chunker.complexity().is_complex(),
            // The open messages are in view.
            open: None,
            view: Some(&self.live.view),
        }
    }
}

impl ContextManager for Session {
    fn todo(&self) -> &TodoId {
        Self::todo(self)
    }

    fn recorded(&self) -> u64 {
        self.len()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        Ok(Self::record(self, message)?)
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        Self::prompt(self, budget)
    }

    fn set_front_tokens(&mut self, tokens: u64) {
        self.live.view.set_front_tokens(tokens);
    }

    fn note_recall(&mut self, tokens: u64) {
        self.live.view.note_recall(tokens);
    }

    fn tools(&self) -> &[ToolDefinition] {
        self.live.view.tools()
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        let answer = Self::call(self, call)?;
        Ok(ToolAnswer { text: answer.text, is_error: answer.is_error })
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        Ok(Self::pin(self, seq)?)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        let child = self.child_session(&todo)?;
        // A todo with its own conversation is opened for its host, and for nobody's sub-task.
        if child.parent()?.as_ref() != Some(Self::todo(self)) {
            let parent = Self::todo(self).clone();
            return Err(Error::from(Failure::NotChild { parent, todo }).into());
        }
        Ok(Box::new(child))
    }

    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        Some(self)
    }

    fn hand_over(&self) -> Option<Arc<dyn HandOver>> {
        let (memory, todo) = (Arc::clone(&self.memory), self.todo.clone());
        Some(Arc::new(TodoHandOver { memory, todo }))
    }
}

impl SubTasks for Session {
    fn todo_list(&mut self) -> TodoList {
        Self::todo_list(self).clone()
    }

    fn set_todo_list(&mut self, list: &TodoList) -> Result<(), ContextError> {
        Ok(Self::set_todo_list(self, list)?)
    }

    fn finish_item(
        &mut self,
        item: &TodoId,
        state: ItemState,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<bool, ContextError> {
        let (result, references) = (result.map(str::to_owned), references.to_vec());
        Self::finish_item(self, item, &Outcome { state, result, references })?;
        Ok(true)
    }

    fn grant(&mut self, to: &TodoId, references: &[Reference]) -> Result<bool, ContextError> {
        let mut own = references.to_vec();
        // Only what an item has returned is handed on, nothing else.
        for item in self.live.list.items() {
            let returned: Vec<Reference> =
                own.extract_if(.., |one| item.references.contains(one)).collect();
            if !returned.is_empty() {
                Grants::of(&self.memory).grant(&item.id, to, &returned)?;
            }
        }
        if !own.is_empty() {
            Self::grant(self, to, &own)?;
        }
        Ok(true)
    }

    fn granted(&mut self) -> Result<Vec<Reference>, ContextError> {
        let grants = Grants::of(&self.memory).list(Self::todo(self))?;
        let received = grants.into_iter().filter(|grant| grant.to == *Self::todo(self));
        Ok(received.map(|grant| grant.reference).collect())
    }

    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError> {
        self.close(Close::End)?;
        let last =
            (self.blocks() > 0).then(|| BlockId::new(Self::todo(self).clone(), self.blocks()));
        Ok(last)
    }
}
