//! The events that observers receive.

use crate::keeping::Watching;
use crate::script::{Remembering, agent, fails, full, model, running, says, task, texts};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{
    Agent, AgentEvent, AgentState, Executor, Journal, MemoryJournal, Observer, OnePlan, Piece,
    React, Stop, Task, Written,
};
use foldback_core::{
    BlockId, ContextError, ContextLayer, ContextManager, Message, Recorded, TodoId, ToolCall,
};
use foldback_llm::{Answer, ModelError, ModelErrorKind, RetryPolicy, Retrying, ScriptedModel};
use foldback_planner::StepId;
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use parking_lot::Mutex;
use std::sync::Arc;

fn watched(watching: &Arc<Watching>) -> Task {
    task("go").with_observer(watching.clone())
}

/// The kinds of the events, as their JSON names them.
fn kinds(watching: &Watching) -> Vec<String> {
    let kind = |event: &AgentEvent| {
        let json = serde_json::to_value(event).unwrap();
        json["event"].as_str().unwrap().to_owned()
    };
    watching.0.lock().iter().map(|(_, event)| kind(event)).collect()
}

fn read(id: &str) -> ToolCall {
    ToolCall::new(id, "read", "{}")
}

/// ET10: a step-by-step run is reported from its beginning to its end, in order, with its todo.
#[tokio::test(start_paused = true)]
async fn et10_a_run_is_told_as_it_happens() {
    let watching = Arc::new(Watching::default());
    let calls = vec![read("c1"), ToolCall::new("c2", "break", "{}")];
    let model = model([calls.into(), "雨".into()]);
    let agent = agent(&model, vec![says("read", 20, "小雨"), fails("break", 5)]);
    agent.run(&React::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    assert_eq!(
        kinds(&watching),
        [
            "began",
            "asked",
            "answered",
            "planned",
            "call_began",
            "call_began",
            "call_ended",
            "call_ended",
            "asked",
            "answered",
            "ended"
        ]
    );
    let events = watching.0.lock();
    assert!(events.iter().all(|(todo, _)| todo == "task"));
    let ended: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match event {
            AgentEvent::CallEnded { turn, step, tool, success, excerpt, took_us, .. } => {
                Some((*turn, step.0, tool.as_str(), *success, excerpt.as_str(), *took_us))
            }
            _ => None,
        })
        .collect();
    let error = "Error (tool): 断网: the network is down";
    assert_eq!(ended, [(0, 2, "break", false, error, 5_000), (0, 1, "read", true, "小雨", 20_000)]);
    let AgentEvent::Planned { turn: 0, steps } = &events[3].1 else { panic!("{:?}", events[3]) };
    let steps: Vec<_> = steps.iter().map(|step| (step.step.0, step.tool.as_deref())).collect();
    assert_eq!(steps, [(1, Some("read")), (2, Some("break"))]);
    let (_, AgentEvent::Ended { stop, answer, spent, state }) = events.last().unwrap() else {
        panic!()
    };
    assert_eq!((stop, answer.as_deref()), (&Stop::Answered, Some("雨")));
    assert_eq!(*state, AgentState::Finished);
    assert_eq!((spent.model_calls, spent.tool_calls), (2, 2));
    assert_eq!(spent.usage, model.usage());
}

/// OP8: a step that starts while its plan is being written is reported before the plan is. A plan that arrives
/// at once has no such steps.
#[tokio::test(start_paused = true)]
async fn op8_a_step_that_starts_early_is_told() {
    let written = [
        r#"{"action_plan": {"step1": {"function": "read", "args": {"path": "一.md"}}, "#,
        r#""step2": {"function": "read", "args": {"path": "二.md"}}}}"#,
    ];
    let told = async |plan: Answer| {
        let model = model([plan, "done".into()]);
        let watching = Arc::new(Watching::default());
        let agent = agent(&model, vec![says("read", 1, "ok")]);
        agent.run(&OnePlan::default(), full().as_mut(), &watched(&watching)).await.unwrap();
        watching
    };
    let at_once = told(Answer::text(&written.concat()).after(ms(200))).await;
    let kinds_at_once = kinds(&at_once);
    assert!(!kinds_at_once.contains(&"started_early".to_owned()), "{kinds_at_once:?}");
    let watching = told(Answer::pieces(written.map(|piece| (ms(100), piece)))).await;
    let events = watching.0.lock();
    let kinds: Vec<&str> = events.iter().map(|(_, event)| event.kind()).collect();
    let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(
        at("started_early") < at("call_ended") && at("call_ended") < at("planned"),
        "{kinds:?}"
    );
    let early = events.iter().find_map(|(_, event)| match event {
        AgentEvent::StartedEarly { turn: 0, planned } => {
            Some((planned.step.0, planned.tool.clone()))
        }
        _ => None,
    });
    assert_eq!(early, Some((1, Some("read".to_owned()))));
}

/// ET10: each turn's calls have its number.
#[tokio::test(start_paused = true)]
async fn et10_calls_are_told_with_their_turn() {
    let watching = Arc::new(Watching::default());
    let model = model([read("c1").into(), read("c2").into(), "done".into()]);
    let agent = agent(&model, vec![says("read", 1, "ok")]);
    agent.run(&React::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    let turns = |(_, event): &(String, AgentEvent)| match event {
        AgentEvent::CallBegan { turn, step, .. } => Some(("began", *turn, step.0)),
        AgentEvent::CallEnded { turn, step, .. } => Some(("ended", *turn, step.0)),
        _ => None,
    };
    let told: Vec<_> = watching.0.lock().iter().filter_map(turns).collect();
    assert_eq!(told, [("began", 0, 1), ("ended", 0, 1), ("began", 1, 1), ("ended", 1, 1)]);
}

/// OP16: a step that does not run because of another says so.
#[tokio::test(start_paused = true)]
async fn op16_what_is_skipped_is_told() {
    let watching = Arc::new(Watching::default());
    let plan = r#"{"action_plan": {
        "step1": {"function": "break", "args": {}},
        "step2": {"function": "read", "args": {}, "dependence": [1]}
    }}"#;
    let nothing = r#"{"action_plan": {}}"#;
    let agent =
        agent(&texts(&[plan, nothing, "no"]), vec![says("read", 1, "ok"), fails("break", 1)]);
    agent.run(&OnePlan::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    let events = watching.0.lock();
    let skipped = AgentEvent::CallSkipped { turn: 0, step: StepId(2), because: StepId(1) };
    assert!(events.iter().any(|(_, event)| *event == skipped), "{events:?}");
}

/// Calls of the policy's own tools are reported as recalls.
#[tokio::test(start_paused = true)]
async fn et10_recalls_are_told() {
    let watching = Arc::new(Watching::default());
    let long = "昨".repeat(600);
    let mut context = Remembering::new(&long);
    let model = model([ToolCall::new("c1", "load", r#"{"id":1}"#).into(), "done".into()]);
    agent(&model, vec![]).run(&React::default(), &mut context, &watched(&watching)).await.unwrap();
    let events = watching.0.lock();
    let recalled = events.iter().find_map(|(_, event)| match event {
        AgentEvent::Recalled { tool, arguments, is_error: false, excerpt } => {
            Some((tool.as_str(), arguments.as_str(), excerpt.as_str()))
        }
        _ => None,
    });
    let beginning = format!("{}…", "昨".repeat(500));
    assert_eq!(recalled, Some(("load", r#"{"id":1}"#, beginning.as_str())));
}

/// A context that closes a block with every message.
struct Closing(Box<dyn ContextManager>);

impl ContextLayer for Closing {
    fn inner(&self) -> &dyn ContextManager {
        self.0.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.0.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let Recorded { seq, .. } = self.0.record(message)?;
        let block = BlockId::new(self.0.todo().clone(), u32::try_from(seq.0).unwrap() + 1);
        Ok(Recorded { seq, closed: vec![block] })
    }
}

/// Blocks that close are reported, with how much was recorded by then.
#[tokio::test(start_paused = true)]
async fn et10_folds_are_told() {
    let watching = Arc::new(Watching::default());
    let model = model([read("c1").into(), "done".into()]);
    let agent = agent(&model, vec![says("read", 1, "ok")]);
    agent.run(&React::default(), &mut Closing(full()), &watched(&watching)).await.unwrap();
    let folded: Vec<(u32, u64)> = watching
        .0
        .lock()
        .iter()
        .filter_map(|(_, event)| match event {
            AgentEvent::Folded { blocks, recorded_tokens } => {
                Some((blocks[0].n(), *recorded_tokens))
            }
            _ => None,
        })
        .collect();
    let blocks: Vec<u32> = folded.iter().map(|(block, _)| *block).collect();
    assert_eq!(blocks, [1, 2, 3, 4], "the request, the call, its result and the answer");
    assert!(folded.windows(2).all(|pair| pair[0].1 < pair[1].1), "{folded:?}");
}

/// An observer that panics breaks nothing, and receives further events.
#[tokio::test(start_paused = true)]
async fn et10_an_observer_that_panics_breaks_nothing() {
    struct Panicking(Counter);
    impl Observer for Panicking {
        fn observe(&self, _: &TodoId, event: &AgentEvent) {
            self.0.add();
            panic!("cannot stand {event:?}");
        }
    }
    let counter = Counter::default();
    let model = model([read("c1").into(), "done".into()]);
    let agent = agent(&model, vec![says("read", 1, "ok")]);
    let observer: Arc<dyn Observer> = Arc::new(Panicking(counter.clone()));
    let task = task("go").with_observer(observer);
    let report = agent.run(&React::default(), full().as_mut(), &task).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    assert_eq!(counter.get(), 9);
}

/// N3: a resumed run says so, and marks what it found in the journal; its spending counts.
#[tokio::test(start_paused = true)]
async fn n3_what_the_journal_held_is_told_as_that() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let with = |answers: &[&str], calls: Vec<foldback_llm::Answer>| {
        let answers = calls.into_iter().chain(answers.iter().map(|text| (*text).into()));
        let tools: Vec<Arc<dyn Tool>> = vec![says("read", 10, "ok")];
        let executor = Executor::new(Toolbox::new(tools).unwrap()).with_journal(journal.clone());
        running(&model(answers), executor)
    };
    let down = ModelError::new(ModelErrorKind::Unavailable, "down");
    let first = with(&[], vec![read("c1").into(), down.into()]);
    let report = first.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    assert!(matches!(report.trajectory.outcome.stop, Stop::ModelFailed { .. }));

    let watching = Arc::new(Watching::default());
    let second = with(&["done"], vec![]);
    second.run(&React::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    let events = watching.0.lock();
    let AgentEvent::Began { resumed: true, .. } = &events[0].1 else { panic!("{:?}", events[0]) };
    let from_journal = |(_, event): &(String, AgentEvent)| match event {
        AgentEvent::Answered { from_journal, .. } => Some(("answered", *from_journal)),
        AgentEvent::CallBegan { .. } => Some(("began", false)),
        AgentEvent::CallEnded { from_journal, .. } => Some(("ended", *from_journal)),
        _ => None,
    };
    let told: Vec<_> = events.iter().filter_map(from_journal).collect();
    assert_eq!(told, [("answered", true), ("ended", true), ("answered", false)]);
    let (_, AgentEvent::Ended { spent, .. }) = events.last().unwrap() else { panic!() };
    assert_eq!((spent.model_calls, spent.tool_calls), (2, 1));
}

/// Runs inside a tool's call are not reported: observers see only the call.
#[tokio::test(start_paused = true)]
async fn et10_runs_inside_a_call_are_not_steps_of_the_turn() {
    let watching = Arc::new(Watching::default());
    let outer = tool(spec("outer", Effect::ReadOnly), |_, call| async move {
        let executor = crate::toolkit::executor([says("inner", 5, "in")]);
        let plan = crate::toolkit::plan(vec![crate::toolkit::step(1, "inner", &[])]);
        let options = foldback_agent::RunOptions::inside(&call);
        let outcome = executor.run(&plan, options).await.unwrap();
        Ok(ToolOutput::text(crate::toolkit::answer(&outcome, 1)))
    });
    let model = model([ToolCall::new("c", "outer", "{}").into(), "done".into()]);
    let agent: Agent = agent(&model, vec![outer]);
    let report = agent.run(&React::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    let began = kinds(&watching).iter().filter(|kind| *kind == "call_began").count();
    assert_eq!(began, 1);
}

/// An observer sees a call while it runs, not when it is over.
#[tokio::test(start_paused = true)]
async fn et10_events_come_when_things_happen() {
    struct Clocked(tokio::time::Instant, Mutex<Vec<(u64, String)>>);
    impl Observer for Clocked {
        fn observe(&self, _: &TodoId, event: &AgentEvent) {
            let at = u64::try_from(self.0.elapsed().as_millis()).unwrap();
            match event {
                AgentEvent::CallBegan { tool, .. } => self.1.lock().push((at, tool.clone())),
                AgentEvent::CallEnded { tool, .. } => self.1.lock().push((at, format!("/{tool}"))),
                _ => {}
            }
        }
    }
    let clocked = Arc::new(Clocked(tokio::time::Instant::now(), Mutex::default()));
    let observer: Arc<dyn Observer> = clocked.clone();
    let calls = vec![ToolCall::new("c1", "slow", "{}"), ToolCall::new("c2", "quick", "{}")];
    let model = model([foldback_llm::Answer::from(calls).after(ms(100)), "done".into()]);
    let agent = agent(&model, vec![says("slow", 300, "ok"), says("quick", 20, "ok")]);
    let task = task("go").with_observer(observer);
    agent.run(&React::default(), full().as_mut(), &task).await.unwrap();
    let told: Vec<(u64, String)> = clocked.1.lock().clone();
    let told: Vec<(u64, &str)> = told.iter().map(|(at, what)| (*at, what.as_str())).collect();
    assert_eq!(told, [(100, "slow"), (100, "quick"), (120, "/quick"), (400, "/slow")]);
}

/// ET10: a call that cannot be made is reported as failed, beside those that were made.
#[tokio::test]
async fn et10_a_call_that_cannot_be_made_is_told() {
    let watching = Arc::new(Watching::default());
    let calls = vec![
        ToolCall::new("c1", "nobody_knows_it", "{}"),
        ToolCall::new("c2", "read", "no JSON"),
        read("c3"),
    ];
    let model = model([calls.into(), "雨".into()]);
    let agent = agent(&model, vec![says("read", 0, "小雨")]);
    agent.run(&React::default(), full().as_mut(), &watched(&watching)).await.unwrap();
    let events = watching.0.lock();
    let began: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match event {
            AgentEvent::CallBegan { step, tool, arguments, .. } => {
                Some((step.0, tool.as_str(), arguments.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(began, [(1, "nobody_knows_it", "{}"), (2, "read", "no JSON"), (3, "read", "{}")]);
    let ended: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match event {
            AgentEvent::CallEnded { step, tool, success, excerpt, .. } => {
                Some((step.0, tool.as_str(), *success, excerpt.split(':').next().unwrap()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        ended,
        [
            (1, "nobody_knows_it", false, "Error (unknown tool)"),
            (2, "read", false, "Error (arguments)"),
            (3, "read", true, "小雨"),
        ]
    );
}

/// ET10: an observer receives what the model writes as it arrives, and the fact that an answer begins again; the
/// record has the complete answer.
#[tokio::test(start_paused = true)]
async fn et10_words_are_told_as_they_are_written() {
    struct Listening(tokio::time::Instant, Mutex<Vec<String>>);
    impl Observer for Listening {
        fn observe(&self, _: &TodoId, event: &AgentEvent) {
            if let AgentEvent::Answered { text, .. } = event {
                self.1.lock().push(format!("answered: {text}"));
            }
        }
        fn wrote(&self, todo: &TodoId, piece: &Piece<'_>) {
            let at = self.0.elapsed().as_millis();
            let written = match piece.written {
                Written::Text(text) => text,
                Written::Again => "again",
            };
            let (purpose, key) = (piece.purpose.name(), piece.key);
            self.1.lock().push(format!("{at} {todo} {purpose}/{key}: {written}"));
        }
    }
    let look = Answer::calls("先看。", vec![read("c1")]);
    let lost = ModelError::new(ModelErrorKind::Unavailable, "断了");
    let half = Answer::pieces([(ms(100), "It ra")]).failing(lost);
    let whole = Answer::pieces([(ms(100), "It rains"), (ms(50), ".")]);
    let model = Arc::new(ScriptedModel::new([look, half, whole]));
    let policy = RetryPolicy::default().with_first_wait(ms(1)).with_longest_wait(ms(1));
    let executor = Executor::new(Toolbox::new(vec![says("read", 100, "小雨")]).unwrap());
    let agent = Agent::new(Arc::new(Retrying::new(model, policy)), executor);
    let listening = Arc::new(Listening(tokio::time::Instant::now(), Mutex::default()));
    let task = task("go").with_observer(listening.clone());
    let report = agent.run(&React::default(), full().as_mut(), &task).await.unwrap();
    assert_eq!(report.answer(), Some("It rains."));
    assert_eq!(
        *listening.1.lock(),
        [
            "0 task react/1: 先看。",
            "answered: 先看。",
            "200 task react/2: It ra",
            "200 task react/2: again",
            "301 task react/2: It rains",
            "351 task react/2: .",
            "answered: It rains.",
        ]
    );
}
