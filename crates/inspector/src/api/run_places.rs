//! The places of an agent's runs in its session: a run's record has no numbers of messages.

use super::readable::readable;
use crate::runs::{Run, RunStep};
use foldback::core::{Message, Role, TodoId, ToolCall, ToolCallId};
use foldback::{Error, Memory};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many of the last messages are searched for the calls of the runs, and how many are read at once.
const PLACED_MOST: u64 = 10_000;
const AT_ONCE: u64 = 200;

/// What is needed of a message to place runs: what the user said, or the calls of the model, or which call it answers.
pub(super) struct Said {
    seq: u64,
    task: Option<String>,
    calls: Vec<ToolCall>,
    answers: Option<ToolCallId>,
}

impl Said {
    /// Reads the last messages of a session, from the task of the first of these runs on if that is found. Damaged
    /// messages are left out.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn of_runs(
        memory: &Memory,
        todo: &TodoId,
        len: u64,
        runs: &[Run],
    ) -> Result<Vec<Self>, Error> {
        let least = len.saturating_sub(PLACED_MOST);
        let (mut from, mut open, mut found) = (len, runs, Vec::new());
        while from > least && !open.is_empty() {
            let end = from;
            from = least.max(from.saturating_sub(AT_ONCE));
            for (seq, message) in readable(memory, todo, from..end)?.iter().rev() {
                let said = Self::read(*seq, message);
                if let Some((run, before)) = open.split_last()
                    && said.as_ref().is_some_and(|said| said.is_task_of(run))
                {
                    open = before;
                }
                found.extend(said);
            }
        }
        found.reverse();
        Ok(found)
    }

    fn read(seq: u64, message: &Message) -> Option<Self> {
        let task = (*message.role() == Role::User).then(|| message.text().into_owned());
        let calls = message.tool_calls().to_vec();
        let answers = message.tool_call_id().cloned();
        let is_needed = task.is_some() || !calls.is_empty() || answers.is_some();
        is_needed.then_some(Self { seq, task, calls, answers })
    }

    fn is_task_of(&self, run: &Run) -> bool {
        self.task.as_ref().is_some_and(|task| is_beginning(&run.task, task))
    }
}

/// Sets the message of each run's task, and of each step those of its call and its result, as far as they are among
/// these messages. A run's messages are those from its task to that of the next one.
pub(super) fn place(runs: &mut [Run], said: &[Said]) {
    let mut rest = said;
    for run in runs.iter_mut().rev() {
        let begin = rest.iter().rposition(|said| said.is_task_of(run));
        let Some((before, own)) = begin.and_then(|begin| rest.split_at_checked(begin)) else {
            continue;
        };
        rest = before;
        run.task_seq = own.first().map(|task| task.seq);
        let mut calls = calls(own);
        let mut steps: Vec<_> = run.turns.iter_mut().flat_map(|turn| &mut turn.steps).collect();
        for step in &mut steps {
            let meant = read(&step.arguments);
            if let Some(at) = calls.iter().position(|call| call.is_of(step, meant.as_ref())) {
                calls.remove(at).give(step);
            }
        }
        // Of others, the arguments were filled in after the model had written them: their order decides where none is
        // missing.
        steps.retain(|step| step.call_seq.is_none());
        let names: BTreeSet<_> = steps.iter().filter_map(|step| step.tool.clone()).collect();
        for name in names {
            let own: Vec<_> = calls.iter().filter(|call| call.call.name == name).collect();
            let open = || steps.iter().filter(|step| step.tool.as_ref() == Some(&name));
            if own.len() == open().count() {
                let open = steps.iter_mut().filter(|step| step.tool.as_ref() == Some(&name));
                open.zip(own).for_each(|(step, call)| call.give(step));
            }
        }
    }
}

/// A call, what its arguments say, and the messages in which it was made and answered.
struct Call<'s> {
    asked: u64,
    answered: Option<u64>,
    call: &'s ToolCall,
    arguments: Option<Value>,
}

/// The calls of these messages, in order.
fn calls(said: &[Said]) -> Vec<Call<'_>> {
    let calls = said
        .iter()
        .enumerate()
        .flat_map(|(at, one)| one.calls.iter().map(move |call| (at, one, call)));
    let answered = |asked: usize, id| {
        let mut after = said.iter().skip(asked + 1);
        after.find(|one| one.answers.as_ref() == Some(id)).map(|one| one.seq)
    };
    let call = calls.map(|(at, one, call)| Call {
        asked: one.seq,
        answered: answered(at, &call.id),
        call,
        arguments: read(&call.arguments),
    });
    call.collect()
}

impl Call<'_> {
    fn is_of(&self, step: &RunStep, arguments: Option<&Value>) -> bool {
        step.tool.as_deref() == Some(&*self.call.name)
            && (is_beginning(&step.arguments, &self.call.arguments)
                || (arguments.is_some() && self.arguments.as_ref() == arguments))
    }

    fn give(&self, step: &mut RunStep) {
        step.call_seq = Some(self.asked);
        step.result_seq = self.answered;
    }
}

fn read(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}

/// Whether a text that a run shows, which may have lost its end, is this one.
fn is_beginning(shown: &str, text: &str) -> bool {
    shown == text || shown.strip_suffix('…').is_some_and(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{RunSpent, RunTurn};
    use foldback_testkit::transcript;

    fn step(step: u32, tool: &str, arguments: &str) -> RunStep {
        RunStep {
            step,
            tool: Some(tool.to_owned()),
            arguments: arguments.to_owned(),
            after: Vec::new(),
            state: "done",
            call_seq: None,
            result_seq: None,
            result: None,
            start_us: None,
            end_us: None,
            sub_agents: Vec::new(),
        }
    }

    fn run(task: &str, steps: Vec<RunStep>) -> Run {
        let none = String::new;
        Run {
            id: none(),
            state: none(),
            task: task.to_owned(),
            task_seq: None,
            tools: None,
            strategy: none(),
            chosen: None,
            degraded: None,
            context: none(),
            model: none(),
            began: none(),
            changed: none(),
            answer: None,
            why: None,
            spent: RunSpent::default(),
            total_us: None,
            turns: vec![RunTurn { turn: 0, purposes: Vec::new(), findings: Vec::new(), steps }],
            unrecorded: None,
        }
    }

    #[test]
    fn in9_each_step_has_the_messages_of_its_call_and_its_result() {
        let messages = transcript(
            "
            user: 修理闸门
            assistant> read({\"path\": \"a\"}) #1
            tool #1: the gate
            user: 修理闸门
            assistant> read({\"path\": \"a\"}) #2
            assistant> read({\"path\": \"b\"}) #3
            tool #2: the gate
            tool #3: error: no b
            assistant> write({\"text\": \"$1\"}) #4
            tool #4: written
            assistant: done
            ",
        );
        let mut runs = [
            run("修理闸门", vec![step(1, "read", "{\"path\":\"a\"}")]),
            run(
                "修理…",
                vec![
                    step(1, "read", "{\"path\": \"b\"}"),
                    step(2, "read", "{\"path\":\"a\"}"),
                    // Its reference was filled in.
                    step(3, "write", "{\"text\":\"the gate\"}"),
                    step(4, "delete", "{}"),
                ],
            ),
        ];
        let numbered = (100..).zip(&messages);
        let said: Vec<_> = numbered.filter_map(|(seq, message)| Said::read(seq, message)).collect();
        place(&mut runs, &said);
        let places = |run: &Run| -> Vec<_> {
            run.turns[0].steps.iter().map(|step| (step.call_seq, step.result_seq)).collect()
        };
        assert_eq!(runs[0].task_seq.zip(runs[1].task_seq), Some((100, 103)));
        assert_eq!(places(&runs[0]), [(Some(101), Some(102))]);
        let expected = [(Some(104), Some(106)), (Some(104), Some(105)), (Some(107), Some(108))];
        assert_eq!(places(&runs[1])[..3], expected);
        assert_eq!(places(&runs[1])[3], (None, None));
        // A task that is nowhere among the messages has no places.
        let mut other = [run("another", vec![step(1, "read", "{\"path\": \"b\"}")])];
        place(&mut other, &said);
        assert_eq!((other[0].task_seq, places(&other[0])), (None, vec![(None, None)]));
    }
}
