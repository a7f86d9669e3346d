//! A loop that runs the policy's jobs, sooner or later, and steps to record.

use foldback_baselines::stm_ltm::{StmLtm, StmLtmConfig};
use foldback_core::{
    BackgroundJobDone, BackgroundWork, Budget, ContextManager, Estimate, Message, Prompt, TodoId,
    ToolCall, ToolCallId,
};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) fn start(config: StmLtmConfig) -> StmLtm {
    StmLtm::new(TodoId::new("t").unwrap(), Arc::new(Estimate), config)
}

pub(super) fn prompt(context: &StmLtm) -> Prompt {
    context.prompt(&Budget::default())
}

/// The texts of a prompt, with the calls of a message as `name arguments`.
pub(super) fn texts(prompt: &Prompt) -> Vec<String> {
    let text = |message: &Arc<Message>| {
        let calls = message.tool_calls().iter();
        let calls = calls.map(|call| format!("{} {}", call.name, call.arguments));
        let said = (!message.text().is_empty()).then(|| message.text().into_owned());
        said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
    };
    prompt.messages.iter().map(text).collect()
}

/// When a job's result comes back. Jobs run as soon as there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    AtOnce,
    OneRecordLater,
    BeforeTheNextPromptButOne,
    Never,
}

impl Back {
    pub(super) const IN_TIME: [Self; 3] =
        [Self::AtOnce, Self::OneRecordLater, Self::BeforeTheNextPromptButOne];
}

/// The policy in a synchronous loop.
pub(super) struct Loop {
    pub(super) context: StmLtm,
    back: Back,
    recorded: usize,
    /// The results of jobs, with how often each is skipped before it is absorbed.
    written: VecDeque<(usize, BackgroundJobDone)>,
}

impl Loop {
    pub(super) fn new(config: StmLtmConfig, back: Back) -> Self {
        Self { context: start(config), back, recorded: 0, written: VecDeque::new() }
    }

    pub(super) fn record(&mut self, message: Message) {
        self.context.record(message).unwrap();
        self.recorded += 1;
        if self.back == Back::OneRecordLater {
            self.pass();
        }
        while let Some(job) = self.context.next_job() {
            let wait = usize::from(self.back != Back::AtOnce);
            self.written.push_back((wait, (job.0)()));
            if self.back == Back::AtOnce {
                self.pass();
            }
        }
    }

    pub(super) fn prompt(&mut self) -> Prompt {
        if self.back == Back::BeforeTheNextPromptButOne {
            self.pass();
        }
        prompt(&self.context)
    }

    /// Absorbs what has waited long enough.
    fn pass(&mut self) {
        for (wait, done) in std::mem::take(&mut self.written) {
            match wait.checked_sub(1) {
                Some(wait) => self.written.push_back((wait, done)),
                None => self.context.absorb(done).unwrap(),
            }
        }
    }

    /// Records a step of the tool loop: calls in one message, then their results.
    pub(super) fn step(&mut self, said: &str, calls: &[(&str, &str, &str)]) {
        for message in step(&format!("s{}", self.recorded), said, calls) {
            self.record(message);
        }
    }
}

/// A message that calls tools, given as name, arguments and result, and the results.
pub(super) fn step(id: &str, said: &str, calls: &[(&str, &str, &str)]) -> Vec<Message> {
    let ids: Vec<String> = (0..calls.len()).map(|n| format!("{id}-{n}")).collect();
    let made = ids.iter().zip(calls).map(|(id, (name, args, _))| ToolCall::new(id, name, args));
    let mut messages = vec![Message::calls(said, made.collect())];
    for (id, (_, _, result)) in ids.iter().zip(calls) {
        messages.push(Message::tool_result(&ToolCallId::new(id), result));
    }
    messages
}
