//! A model that repeats itself.

use crate::keeping::Watching;
use crate::script::{agent, conversation, full, model, says, task};
use foldback_agent::{
    Agent, AgentEvent, AgentState, Executor, Journal, MemoryJournal, React, ReactSettings, Stop,
};
use foldback_core::{Role, ToolCall};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Tool, Toolbox};
use std::sync::Arc;

/// Works through a script of calls of `read`, and returns where in the conversation the model was asked to
/// change its strategy, and how often that was reported to observers.
async fn told(script: &Arc<ScriptedModel>, settings: ReactSettings) -> (Vec<usize>, usize) {
    let watching = Arc::new(Watching::default());
    let agent = agent(script, vec![says("read", 1, "同样")]);
    let task = task("go").with_observer(watching.clone());
    let mut context = full();
    agent.run(&React::new(settings), context.as_mut(), &task).await.unwrap();
    let messages = conversation(context.as_ref());
    let is_told = |at: &usize| {
        *messages[*at].role() == Role::User && messages[*at].text().contains("Change your strategy")
    };
    let told = (0..messages.len()).filter(is_told).collect();
    let stuck = watching.0.lock().iter().filter(|(_, event)| *event == AgentEvent::Stuck).count();
    (told, stuck)
}

fn script(arguments: &[&str]) -> Arc<ScriptedModel> {
    let call = |(at, arguments): (usize, &&str)| -> Answer {
        Answer::calls("再试", vec![ToolCall::new(&format!("c{at}"), "read", arguments)])
    };
    model(arguments.iter().enumerate().map(call).chain(["done".into()]))
}

/// OM15, B9: a model that repeats the same text and calls for the third time is asked once, after the results,
/// and not again as long as it continues: the reference tells it again and again, at the top of
/// everything.
#[tokio::test(start_paused = true)]
async fn om15_a_model_that_repeats_itself_is_told_once() {
    let same = "{}";
    // Request, then a call and its result each; the notice is after the third result.
    assert_eq!(told(&script(&[same; 8]), ReactSettings::default()).await, (vec![7], 1));
    assert_eq!(told(&script(&[same; 2]), ReactSettings::default()).await, (vec![], 0));
}

/// OM15: something else ends the episode; a new one is noticed again.
#[tokio::test(start_paused = true)]
async fn om15_a_new_episode_is_told_again() {
    let (a, b) = ("{}", r#"{"n": 1}"#);
    let (told, stuck) = told(&script(&[a, a, a, a, b, a]), ReactSettings::default()).await;
    // 1-6 three calls, 7 the notice, 8-9 the fourth, 10-11 another, 12-13 the first again.
    assert_eq!((told, stuck), (vec![7, 14], 2));
}

/// OM15: a model that does not stop after the warning ends the run, which may resume for as long again.
#[tokio::test(start_paused = true)]
async fn om15_a_model_that_does_not_stop_ends_the_run() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let same = || ScriptedModel::answering(|_| ToolCall::new("c", "read", "{}").into());
    let react = React::new(ReactSettings::default().with_max_repetitions(5));
    for asked in [2 + 5, 4] {
        let script = Arc::new(same());
        let toolbox = Toolbox::new([says("read", 1, "同样") as Arc<dyn Tool>]).unwrap();
        let executor = Executor::new(toolbox).with_journal(journal.clone());
        let agent = Agent::new(script.clone(), executor);
        let report = agent.run(&react, full().as_mut(), &task("go")).await.unwrap();
        assert_eq!((&report.trajectory.outcome.stop, script.calls()), (&Stop::Stuck, asked));
        assert_eq!(agent.state("run").unwrap(), AgentState::Idle, "it can go on");
    }
}

/// OM15: other arguments are another call; and the check can be switched off.
#[tokio::test(start_paused = true)]
async fn om15_other_arguments_are_no_repetition() {
    let different = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#];
    assert_eq!(told(&script(&different), ReactSettings::default()).await.0, Vec::<usize>::new());
    let off = ReactSettings::default().with_stuck_after(None);
    assert_eq!(told(&script(&["{}"; 6]), off).await.0, Vec::<usize>::new());
}
