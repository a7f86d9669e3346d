//! The states of a run: idle, running, finished, error; and how the model ends it.

use crate::script::{
    Remembering, agent, conversation, full, model, running, says, task, walk, walk_by,
};
use crate::toolkit::{spec, tool};
use foldback_agent::{
    Agent, AgentError, AgentState, Executor, Journal, MemoryJournal, React, ReactSettings, Record,
    RunError, Stop, TerminateStatus,
};
use foldback_core::{ToolCall, ToolDefinition};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, Tool, ToolOutput, Toolbox};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

fn terminating() -> ReactSettings {
    ReactSettings::default().with_terminate(true)
}

fn terminate(id: &str, status: &str) -> ToolCall {
    ToolCall::new(id, "terminate", &format!(r#"{{"status":"{status}"}}"#))
}

fn with_journal(
    model: &Arc<ScriptedModel>,
    tools: Vec<Arc<dyn Tool>>,
    journal: &Arc<dyn Journal>,
) -> Agent {
    running(model, Executor::new(Toolbox::new(tools).unwrap()).with_journal(journal.clone()))
}

/// OM12: a run is idle before it begins, running until it ends, and finished afterwards; it begins only from
/// idle.
#[tokio::test(start_paused = true)]
async fn om12_a_run_begins_from_idle_only() {
    for journal in [None, Some(Arc::new(MemoryJournal::default()) as Arc<dyn Journal>)] {
        let itself: Arc<OnceLock<Agent>> = Arc::default();
        let seen = Arc::new(Mutex::new(None));
        let look = {
            let (itself, seen) = (itself.clone(), seen.clone());
            tool(spec("look", Effect::ReadOnly), move |_, _| {
                let (itself, seen) = (itself.clone(), seen.clone());
                async move {
                    let agent = itself.get().unwrap();
                    let again = agent
                        .run(&React::default(), full().as_mut(), &task("go"))
                        .await
                        .unwrap_err();
                    *seen.lock() = Some((agent.state("run").unwrap(), again));
                    Ok(ToolOutput::text("looked"))
                }
            })
        };
        let model = model([ToolCall::new("c", "look", "{}").into(), "done".into()]);
        let mut executor = Executor::new(Toolbox::new([look]).unwrap());
        if let Some(journal) = &journal {
            executor = executor.with_journal(journal.clone());
        }
        let agent = itself.get_or_init(|| running(&model, executor));
        assert_eq!(agent.state("run").unwrap(), AgentState::Idle);
        let report = agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
        assert_eq!(report.answer(), Some("done"));
        let (state, again) = seen.lock().take().unwrap();
        assert_eq!(state, AgentState::Running);
        let AgentError::Run(RunError::InUse { run }) = again else { panic!("{again:?}") };
        assert_eq!(run, "run");
        // Without a journal, the state ends with the run.
        let behind = if journal.is_some() { AgentState::Finished } else { AgentState::Idle };
        assert_eq!(agent.state("run").unwrap(), behind);
        assert_eq!(agent.state("another").unwrap(), AgentState::Idle);
    }
}

/// OM12: a finished run is not run again: it gives the same answer without a request.
#[tokio::test(start_paused = true)]
async fn om12_a_finished_run_is_not_run_again() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let script = model([ToolCall::new("c", "read", "{}").into(), "done".into()]);
    let agent_ = with_journal(&script, vec![says("read", 1, "ok")], &journal);
    for _ in 0..2 {
        let report = agent_.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
        assert_eq!((report.answer(), script.calls()), (Some("done"), 2));
        assert_eq!(agent_.state("run").unwrap(), AgentState::Finished);
    }
}

/// OM12: asking a finished run for its answer records nothing.
#[tokio::test(start_paused = true)]
async fn om12_a_finished_run_stays_as_it_was_noted() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let agent_ = with_journal(&model(["done".into()]), vec![], &journal);
    let mut records = Vec::new();
    for _ in 0..3 {
        agent_.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
        let noted = journal.records("run").unwrap().into_iter();
        records.push(
            noted.filter(|r| matches!(r, Record::Note { kind, .. } if kind == "state")).count(),
        );
    }
    assert_eq!(records, [1, 1, 1]);
}

/// OM12: of runs that begin under one name at the same moment one proceeds; the others leave nothing in its
/// journal.
#[test]
fn om12_a_name_is_taken_once() {
    for _ in 0..50 {
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
        let slow = model([Answer::text("done").after(std::time::Duration::from_millis(5))]);
        let agent_ = with_journal(&slow, vec![], &journal);
        let barrier = std::sync::Barrier::new(2);
        let answered = std::thread::scope(|scope| {
            let run = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                barrier.wait();
                runtime
                    .unwrap()
                    .block_on(agent_.run(&React::default(), full().as_mut(), &task("go")))
                    .is_ok()
            };
            let threads = [scope.spawn(run), scope.spawn(run)];
            threads.map(|thread| thread.join().unwrap()).into_iter().filter(|ok| *ok).count()
        });
        let states =
            journal.records("run").unwrap().into_iter().filter_map(|record| match record {
                Record::Note { kind, body } if kind == "state" => Some(body),
                _ => None,
            });
        let states: Vec<String> = states.collect();
        assert!(answered > 0);
        assert_eq!(states, [r#""finished""#]);
    }
}

/// OM12: a failed run says so, and can be tried again.
#[tokio::test(start_paused = true)]
async fn om12_a_failed_run_can_be_tried_again() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let down = ModelError::new(ModelErrorKind::Unavailable, "down");
    let agent_ = with_journal(&model([down.into(), "done".into()]), vec![], &journal);
    agent_.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!(agent_.state("run").unwrap(), AgentState::Error);
    let report = agent_.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!(
        (report.answer(), agent_.state("run").unwrap()),
        (Some("done"), AgentState::Finished)
    );
}

/// OM12: out of steps, a run ends with these words, and is idle: with more steps it resumes.
#[tokio::test(start_paused = true)]
async fn om12_a_run_out_of_steps_says_so() {
    assert_eq!(ReactSettings::default().max_steps, None);
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let script = model([ToolCall::new("c", "read", "{}").into(), "done".into()]);
    let agent_ = with_journal(&script, vec![says("read", 1, "ok")], &journal);
    let short = ReactSettings::default().with_max_steps(1);
    let report = agent_.run(&React::new(short), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::MaxSteps);
    assert_eq!(report.trajectory.outcome.told(), "Terminated: Reached max steps");
    assert_eq!(agent_.state("run").unwrap(), AgentState::Idle);
    let report = agent_.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!((report.trajectory.outcome.told().as_str(), script.calls()), ("done", 2));
}

/// OM12: `terminate` ends the run with the model's status; other calls in the message run first, and every
/// call has its result.
#[tokio::test(start_paused = true)]
async fn om12_terminate_ends_the_run() {
    for (status, expected) in
        [("success", TerminateStatus::Success), ("failure", TerminateStatus::Failure)]
    {
        let calls = vec![terminate("c1", status), ToolCall::new("c2", "read", "{}")];
        let script = model([Answer::calls("做完了", calls), "never".into()]);
        let agent = agent(&script, vec![says("read", 5, "ok")]);
        let (report, messages) = walk_by(&agent, terminating()).await;
        let outcome = &report.trajectory.outcome;
        assert_eq!(outcome.stop, Stop::Terminated { status: expected });
        assert_eq!((outcome.answer.as_deref(), script.calls()), (Some("做完了"), 1));
        let results: Vec<String> =
            messages.iter().rev().take(2).map(|message| message.text().into_owned()).collect();
        assert_eq!(results, ["ok".to_owned(), format!("The work ends with status: {status}")]);
        assert_eq!(AgentState::after(&outcome.stop), AgentState::Finished);
    }
}

/// OM12: without words, the ending says how it went; an unknown status ends nothing.
#[tokio::test(start_paused = true)]
async fn om12_a_status_that_there_is_not_is_told() {
    let script = model([terminate("c1", "完成").into(), terminate("c2", "failure").into()]);
    let (report, messages) = walk_by(&agent(&script, vec![]), terminating()).await;
    let told = "Terminated by the model with status: failure";
    assert_eq!(report.trajectory.outcome.told(), told);
    assert_eq!(script.calls(), 2);
    let error = messages[2].text();
    assert!(error.contains("expected `success` or `failure`"), "{error}");
    assert!(matches!(report.trajectory.result(0, StepId(1)), Some(StepResult::Error { .. })));
}

/// OM12: it is offered only by a setting; without that, it is an unknown tool.
#[tokio::test(start_paused = true)]
async fn om12_terminate_is_offered_by_a_setting() {
    let names = |script: &ScriptedModel| -> Vec<String> {
        script.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let script = model([terminate("c", "success").into(), "so be it".into()]);
    let (report, _) = walk(&agent(&script, vec![says("read", 1, "ok")])).await;
    assert_eq!((names(&script), report.answer()), (vec!["read".to_owned()], Some("so be it")));

    let script = model([terminate("c", "success").into()]);
    walk_by(&agent(&script, vec![says("read", 1, "ok")]), terminating()).await;
    assert_eq!(names(&script), ["read", "terminate"]);
}

/// OM12: two tools of that name are refused, no matter who owns them.
#[tokio::test(start_paused = true)]
async fn om12_nobody_else_has_a_tool_of_that_name() {
    let agent_ = agent(&model([]), vec![says("terminate", 1, "")]);
    let error =
        agent_.run(&React::new(terminating()), full().as_mut(), &task("go")).await.unwrap_err();
    assert!(matches!(error, AgentError::SameName { name } if name == "terminate"));

    let mut context = Remembering::new("");
    context.tools.push(ToolDefinition {
        name: "terminate".to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    });
    let agent_ = agent(&model([]), vec![]);
    let error =
        agent_.run(&React::new(terminating()), &mut context, &task("go")).await.unwrap_err();
    assert!(matches!(error, AgentError::SameName { .. }), "{error:?}");
    assert_eq!(conversation(&context).len(), 1, "the request alone");
}
