//! An own `ContextManager`: exchange foldback for another policy in one line.
//!
//! ```text
//! cargo run -p foldback --example own_context_manager
//! ```
//!
//! An agent's loop needs little of its context: `record` what happens, ask for a `prompt`, hand
//! over the `call`s of the policy's tools. Whatever implements `ContextManager` can stand there.
//! Here a small policy that keeps the last turns is run beside foldback on the same conversation.

use foldback::core::{
    Budget, ContextError, ContextManager, Estimate, Message, Prompt, Recorded, Role, SeqNo, TodoId,
    ToolAnswer, ToolCall, ToolDefinition, message_tokens,
};
use foldback::{Memory, Options};
use std::error::Error;
use std::sync::Arc;

/// Shows the instructions and the last turns of the user, and forgets everything else. It keeps no todo
/// list, has no work beside the loop and asks no model, so it leaves out the methods for these.
struct LastTurns {
    todo: TodoId,
    turns: usize,
    messages: Vec<Arc<Message>>,
    pinned: Vec<usize>,
}

impl LastTurns {
    fn new(todo: TodoId, turns: usize) -> Self {
        Self { todo, turns, messages: Vec::new(), pinned: Vec::new() }
    }

    /// Where the last turns begin: at a message of the user, so that no call is parted from its
    /// results.
    fn begin(&self) -> usize {
        let asked = |(_, message): &(usize, &Arc<Message>)| *message.role() == Role::User;
        let turns = self.messages.iter().enumerate().rev().filter(asked);
        turns.map(|(at, _)| at).take(self.turns).last().unwrap_or(0)
    }
}

impl ContextManager for LastTurns {
    fn todo(&self) -> &TodoId {
        &self.todo
    }

    fn recorded(&self) -> u64 {
        self.messages.len() as u64
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let seq = SeqNo(self.messages.len() as u64);
        self.messages.push(Arc::new(message));
        Ok(Recorded { seq, closed: Vec::new() })
    }

    fn prompt(&self, _budget: &Budget) -> Prompt {
        let begin = self.begin();
        let stands = |at: usize, message: &Message| {
            at >= begin || message.role().is_instruction() || self.pinned.contains(&at)
        };
        let kept = self.messages.iter().enumerate().filter(|(at, message)| stands(*at, message));
        let messages: Vec<Arc<Message>> = kept.map(|(_, message)| message.clone()).collect();
        let tokens = messages.iter().map(|message| message_tokens(&Estimate, message)).sum();
        Prompt { window: messages.len(), messages, tokens, ..Prompt::default() }
    }

    fn tools(&self) -> &[ToolDefinition] {
        &[]
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        let text = format!("there is no tool {:?}; nothing can be looked up here", call.name);
        Ok(ToolAnswer { text, is_error: true })
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        self.pinned.push(seq.0 as usize);
        Ok(())
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        Ok(Box::new(Self::new(todo, self.turns)))
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let todo = TodoId::new("interview")?;
    let memory = Memory::in_memory(Options::default())?;
    // The line in which policies are exchanged.
    let policies: [(&str, Box<dyn ContextManager>); 2] = [
        ("last 4 turns", Box::new(LastTurns::new(todo.clone(), 4))),
        ("foldback", Box::new(memory.session(&todo)?)),
    ];
    for (name, mut context) in policies {
        let (peak, answer) = run(context.as_mut())?;
        println!("{name}: at most {peak} tokens a prompt; asked for the password hint: {answer}");
    }
    Ok(())
}

/// A loop as an agent has it, with a scripted model: forty turns, then a question about the first.
fn run(context: &mut dyn ContextManager) -> Result<(usize, String), Box<dyn Error>> {
    let mut peak = 0;
    context.record(Message::system("You interview a person about their work."))?;
    context.record(Message::user("I am to be interviewed about my clocks."))?;
    context.record(Message::assistant("Welcome."))?;
    context.record(Message::user("Note this for later: my password hint is 'blue heron'."))?;
    context.record(Message::assistant("Noted."))?;
    for n in 0..40 {
        context.record(Message::user(&format!("In year {n} I repaired clocks in town {n}.")))?;
        peak = peak.max(context.prompt(&Budget::default()).tokens);
        context.record(Message::assistant(&format!("What was hard about the clocks of {n}?")))?;
    }
    context.record(Message::user("What was my password hint?"))?;
    // A model that has a tool for it looks up what its view lacks.
    let arguments = r#"{"query": "password hint"}"#;
    let found = context.call(&ToolCall::new("c1", "search_block", arguments))?;
    let line = found.text.lines().find(|line| line.contains("hint is"));
    Ok((peak, line.map_or_else(|| format!("({})", found.text), |line| line.trim().to_owned())))
}
