//! The runs of sub-agents in the record of the run that they worked for.

use super::resumed::{far_along, work};
use super::{delegate, delegating, journaled, says, walk};
use crate::keeping::Keeping;
use crate::resume::Full;
use crate::script::task;
use crate::toolkit::{Counter, ms};
use foldback_agent::rewards::{judge, own_judges};
use foldback_agent::trajectory::{ParentCall, read_trajectories, write_trajectory};
use foldback_agent::{Executor, MemoryJournal, React, Trajectory};
use foldback_tool::Toolbox;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn line(record: &Trajectory) -> String {
    let mut out = Vec::new();
    write_trajectory(record, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn todos(records: &[Trajectory]) -> Vec<String> {
    records.iter().map(|record| record.situation.todo.as_ref().unwrap().to_string()).collect()
}

/// A record without what a later process cannot know: the times, and the marks of the journal.
fn timeless(record: &Trajectory) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                ["timing", "from_journal"].iter().for_each(|key| drop(members.remove(*key)));
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(&line(record)).unwrap();
    strip(&mut value);
    value
}

/// ET10, ET16: each sub-agent's run is within the call that it worked for, or a separate record that names
/// that call; each has rewards of its own.
#[tokio::test(start_paused = true)]
async fn et10_sub_agents_are_within_the_call_they_worked_for() {
    let done = Counter::default();
    let agent = delegating(&far_along(), vec![work(&done)], |sub| sub);
    let mut record = walk(&agent, &mut Keeping::new()).await.trajectory;
    judge(&mut record, own_judges());
    let read = read_trajectories(line(&record).as_bytes()).next().unwrap().unwrap();
    assert_eq!(line(&read), line(&record));
    let below: Vec<Trajectory> = record.sub_agents().cloned().collect();
    assert_eq!(todos(&below), ["task.a", "task.b", "task.c"]);
    assert!(below.iter().all(|run| run.rewards.contains_key("could_have_planned_once")));
    assert_eq!(below[1].model_calls().count(), 4);
    assert_eq!(record.model_calls().count(), 2, "those of sub-agents are their own");
    let flat = record.clone().flattened();
    assert_eq!(todos(&flat), ["task", "task.a", "task.b", "task.c"]);
    let call = record.tool_calls().next().unwrap();
    let todo = record.situation.todo.clone();
    let parent = ParentCall { todo, turn: call.turn, step: call.step };
    assert_eq!(flat[3].situation.parent.as_ref(), Some(&parent));
    assert!(flat.iter().all(|run| run.sub_agents().next().is_none()));
}

/// ET10: sub-agents of sub-agents are in the records of those.
#[tokio::test(start_paused = true)]
async fn et10_sub_agents_may_have_sub_agents() {
    let model = Arc::new(foldback_llm::ScriptedModel::answering(|request| {
        let results = request.messages.iter().filter(|m| m.tool_call_id().is_some()).count();
        match (request.session.as_deref().unwrap_or_default(), results) {
            ("task", 0) => delegate(json!([{"id": "甲", "task": "一"}])),
            ("task", _) => "完成".into(),
            (todo, 0) if !todo.ends_with(".low") => delegate(json!([{"id": "low", "task": "二"}])),
            (_, _) => says("好了", 1),
        }
    }));
    let agent = delegating(&model, Vec::new(), |sub| sub.with_levels(2));
    let record = walk(&agent, &mut Keeping::new()).await.trajectory;
    let middle: Vec<&Trajectory> = record.sub_agents().collect();
    assert_eq!((middle.len(), middle[0].sub_agents().count()), (1, 1));
    let flat = todos(&record.clone().flattened());
    assert_eq!(flat.len(), 3);
    assert!(flat[2].ends_with(".low") && flat[2].starts_with(&flat[1]), "{flat:?}");
}

/// ET10, TD3: a run that was stopped anywhere and resumed has the record of one that was not stopped.
#[tokio::test(start_paused = true)]
async fn et10_a_resumed_run_has_the_same_record() {
    let done = Counter::default();
    let agent = delegating(&far_along(), vec![work(&done)], |sub| sub);
    let expected = timeless(&walk(&agent, &mut Keeping::new()).await.trajectory);
    let mut stops = 0;
    for room in 0.. {
        let journal = Arc::new(Full(MemoryJournal::default(), Mutex::new(room)));
        let mut context = Keeping::new();
        let executor = Executor::new(Toolbox::default()).with_journal(journal.clone());
        let agent = || journaled(&far_along(), vec![work(&done)], executor.clone(), |sub| sub);
        let is_over = agent().run(&React::default(), &mut context, &task("写报告")).await.is_ok();
        *journal.1.lock().unwrap() = usize::MAX;
        tokio::time::sleep(ms(10)).await;
        let record = walk(&agent(), &mut context.reopened()).await.trajectory;
        assert_eq!(timeless(&record), expected, "stopped after {room} records");
        if is_over {
            break;
        }
        stops += 1;
    }
    assert!(stops > 60, "the run was stopped {stops} times");
}
