//! The places of an agent's runs in its session: a run's record has no numbers of messages.

use crate::runs::{Run, RunStep};
use foldback::core::{Message, Role};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// Sets the message of each run's task, and of each step those of its call and its result, as far as they are among
/// these messages; `first` is the number of the first of them. A run's messages are those from its task to that of the
/// next one.
pub(super) fn place(runs: &mut [Run], first: u64, messages: &[Message]) {
    let mut end = messages.len();
    for run in runs.iter_mut().rev() {
        let before = messages.get(..end).unwrap_or_default();
        let is_task = |message: &Message| {
            *message.role() == Role::User && is_beginning(&run.task, &message.text())
        };
        let Some(begin) = before.iter().rposition(is_task) else { continue };
        run.task_seq = Some(first + begin as u64);
        let mut calls = calls(messages, begin..end);
        let mut steps: Vec<_> = run.turns.iter_mut().flat_map(|turn| &mut turn.steps).collect();
        for step in &mut steps {
            let own = calls.iter().position(|call| call.is_of(step));
            if let Some(at) = own {
                calls.remove(at).give(step, first);
            }
        }
        // Of others, the arguments were filled in after the model had written them: their order decides where none is
        // missing.
        steps.retain(|step| step.call_seq.is_none());
        let names: BTreeSet<_> = steps.iter().filter_map(|step| step.tool.clone()).collect();
        for name in names {
            let own: Vec<_> = calls.iter().filter(|call| call.name == name).collect();
            let open = || steps.iter().filter(|step| step.tool.as_ref() == Some(&name));
            if own.len() == open().count() {
                let open = steps.iter_mut().filter(|step| step.tool.as_ref() == Some(&name));
                open.zip(own).for_each(|(step, call)| call.give(step, first));
            }
        }
        end = begin;
    }
}

/// A call among the messages, by their places.
struct Call<'m> {
    asked: usize,
    answered: Option<usize>,
    name: &'m str,
    arguments: &'m str,
}

/// The calls of these messages, in order.
fn calls(messages: &[Message], range: Range<usize>) -> Vec<Call<'_>> {
    let own = range.clone().filter_map(|at| Some((at, messages.get(at)?)));
    let calls =
        own.flat_map(|(at, message)| message.tool_calls().iter().map(move |call| (at, call)));
    let answered = |asked: usize, id| {
        let mut after = (asked + 1..range.end).filter(|at| messages.get(*at).is_some());
        after.find(|at| messages.get(*at).and_then(Message::tool_call_id) == Some(id))
    };
    let call = calls.map(|(asked, call)| Call {
        asked,
        answered: answered(asked, &call.id),
        name: &call.name,
        arguments: &call.arguments,
    });
    call.collect()
}

impl Call<'_> {
    fn is_of(&self, step: &RunStep) -> bool {
        let read = |json: &str| serde_json::from_str::<Value>(json).ok();
        step.tool.as_deref() == Some(self.name)
            && (is_beginning(&step.arguments, self.arguments)
                || read(self.arguments).is_some_and(|own| read(&step.arguments) == Some(own)))
    }

    fn give(&self, step: &mut RunStep, first: u64) {
        step.call_seq = Some(first + self.asked as u64);
        step.result_seq = self.answered.map(|at| first + at as u64);
    }
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
        place(&mut runs, 100, &messages);
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
        place(&mut other, 0, &messages);
        assert_eq!((other[0].task_seq, places(&other[0])), (None, vec![(None, None)]));
    }
}
