//! Results that are longer than the model is shown.

use crate::script::{Remembering, agent, conversation, full, model, running, says, task, walk_by};
use foldback_agent::{CallForm, Executor, Journal, MemoryJournal, React, ReactSettings};
use foldback_core::{ContextManager, ToolCall};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_planner::{StepId, StepResult};
use foldback_tool::Toolbox;
use std::sync::Arc;

fn bounded(max_observe: usize) -> ReactSettings {
    ReactSettings::default().with_max_observe(max_observe)
}

fn read(id: &str) -> ToolCall {
    ToolCall::new(id, "read", "{}")
}

fn on(id: &str, name: &str, from: usize) -> ToolCall {
    let arguments = format!(r#"{{"name":"{name}","from":{from}}}"#);
    ToolCall::new(id, "observation_read", &arguments)
}

fn names(script: &ScriptedModel) -> Vec<String> {
    script.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect()
}

/// OM14: a long result is cut between characters, and says how to read the rest, which is complete.
#[tokio::test(start_paused = true)]
async fn om14_a_long_result_is_cut_with_a_way_to_all_of_it() {
    // Characters of one to four bytes, joined ones among them.
    let piece = "a雨e\u{301}👩‍👩‍👧\n";
    let text: String = piece.repeat(40);
    let characters = text.chars().count();
    let script = model([
        read("c1").into(),
        on("c2", "0.1", 200).into(),
        on("c3", "0.1", 290).into(),
        on("c4", "0.1", characters).into(),
        on("c5", "9.9", 0).into(),
        "done".into(),
    ]);
    let agent = agent(&script, vec![says("read", 1, &text)]);
    let (report, messages) = walk_by(&agent, bounded(300)).await;
    assert_eq!(names(&script), ["read", "observation_read"]);
    let told = |at: usize| messages[at].text().into_owned();
    let head: String = text.chars().take(200).collect();
    let tail: String = text.chars().skip(characters - 100).collect();
    let mark = format!(
        "\n[… {} of {characters} characters left out; all of it: observation_read \
         {{\"name\":\"0.1\",\"from\":200}} …]\n",
        characters - 300
    );
    assert_eq!(told(2), format!("{head}{mark}{tail}"));
    let rest = |from: usize| -> String { text.chars().skip(from).take(300).collect() };
    assert_eq!(characters, 400);
    assert_eq!(told(4), rest(200), "to its end");
    assert_eq!(told(6), rest(290));
    assert_eq!(
        told(8),
        format!("0.1 has only {characters} characters; nothing begins at {characters}")
    );
    assert_eq!(
        told(10),
        "there is no long result named \"9.9\" in this run; the long results are: 0.1"
    );
    // Nothing is lost in the record.
    let Some(StepResult::Success { data }) = report.trajectory.result(0, StepId(1)) else {
        panic!()
    };
    assert_eq!(data.text, text);
}

/// OM14: a part in the middle says where it is from.
#[tokio::test(start_paused = true)]
async fn om14_reading_on_says_where_it_is() {
    let text = "天地玄黄宇宙洪荒".repeat(5);
    let script = model([read("c1").into(), on("c2", "0.1", 5).into(), "done".into()]);
    let agent = agent(&script, vec![says("read", 1, &text)]);
    let (_, messages) = walk_by(&agent, bounded(8)).await;
    assert_eq!(messages[4].text(), "宙洪荒天地玄黄宇\n[… characters 5 to 13 of 40 …]");
}

/// OM14: a result that just fits is whole, in every script.
#[tokio::test(start_paused = true)]
async fn om14_what_fits_is_whole() {
    for text in ["雨".repeat(10), "0123456789".to_owned(), "👩‍👩‍👧".repeat(2)] {
        assert_eq!(text.chars().count(), 10);
        let script = model([read("c1").into(), "done".into()]);
        let agent = agent(&script, vec![says("read", 1, &text)]);
        assert_eq!(walk_by(&agent, bounded(10)).await.1[2].text(), text);
    }
}

/// OM14: a policy with tools to look back is given the whole result: it offloads by itself, and nothing is cut
/// twice. Without the setting no result is cut.
#[tokio::test(start_paused = true)]
async fn om14_a_policy_that_looks_back_itself_is_given_all() {
    let text = "长".repeat(20_000);
    let shown = async |context: &mut dyn ContextManager, settings: ReactSettings| {
        let script = model([read("c1").into(), "done".into()]);
        let agent = agent(&script, vec![says("read", 1, &text)]);
        agent.run(&React::new(settings), context, &task("go")).await.unwrap();
        assert!(!names(&script).contains(&"observation_read".to_owned()));
        conversation(context)[2].text().into_owned()
    };
    let usual = bounded(ReactSettings::MAX_OBSERVE);
    assert_eq!(shown(&mut Remembering::new(""), usual).await, text);
    assert_eq!(shown(full().as_mut(), ReactSettings::default()).await, text);
}

/// OM14, R12: a run that resumes after a kill still has the results of which it was shown a part.
#[tokio::test(start_paused = true)]
async fn om14_a_run_that_goes_on_reads_on() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let text = "风雨如晦，鸡鸣不已。".repeat(10);
    let run = async |answers: Vec<Answer>| {
        let toolbox = Toolbox::new([says("read", 1, &text)]).unwrap();
        let executor = Executor::new(toolbox).with_journal(journal.clone());
        let agent = running(&model(answers), executor);
        walk_by(&agent, bounded(30)).await
    };
    let down = ModelError::new(ModelErrorKind::Unavailable, "down");
    run(vec![read("c1").into(), down.into()]).await;
    let (report, messages) = run(vec![on("c2", "0.1", 90).into(), "done".into()]).await;
    assert_eq!(report.answer(), Some("done"));
    assert_eq!(messages[4].text(), "风雨如晦，鸡鸣不已。");
}

/// OM14: the same for results of a block.
#[tokio::test(start_paused = true)]
async fn om14_results_of_a_block_are_cut_as_well() {
    let text = "晴".repeat(100);
    let block = "<execute_tools><tools><read>{}</read></tools></execute_tools>";
    let script = model([block.into(), on("c", "0.1", 20).into(), "done".into()]);
    let settings = bounded(30).with_calls(CallForm::ExecuteTools);
    let agent = agent(&script, vec![says("read", 1, &text)]);
    let (_, messages) = walk_by(&agent, settings).await;
    assert!(messages[3].text().contains("70 of 100 characters left out"), "{}", messages[3].text());
    assert!(messages[5].text().starts_with(&"晴".repeat(30)));
}
