//! Whether the model may, must or must not call a tool.

use crate::script::{Remembering, agent, fails, full, model, says, task, walk, walk_by};
use foldback_agent::{AgentError, React, ReactSettings, Stop};
use foldback_core::ToolCall;
use foldback_llm::{
    AllowedTools, Answer, Availability, AvailabilityState, Mask, ScriptedModel, ToolChoice,
};
use foldback_planner::{StepId, StepResult};
use foldback_tool::FailureKind;

fn choosing(tool_choice: ToolChoice) -> ReactSettings {
    ReactSettings::default().with_tool_choice(tool_choice).with_terminate(true)
}

fn read(id: &str) -> ToolCall {
    ToolCall::new(id, "read", "{}")
}

fn asked_with(script: &ScriptedModel) -> Vec<ToolChoice> {
    script.requests().into_iter().map(|request| request.tool_choice).collect()
}

/// OM13: auto with words and no call ends the turn at once: the reference continues to its last step.
#[tokio::test(start_paused = true)]
async fn om13_auto_with_words_and_no_call_ends_the_turn() {
    let script = model(["你好".into(), "never".into()]);
    let (report, _) = walk(&agent(&script, vec![says("read", 1, "ok")])).await;
    assert_eq!((report.answer(), script.calls()), (Some("你好"), 1));
    assert_eq!(asked_with(&script), [ToolChoice::Auto]);
}

/// OM13: if a call is required, words alone do not end the run; `terminate` does.
#[tokio::test(start_paused = true)]
async fn om13_required_wants_a_call() {
    let end = ToolCall::new("c", "terminate", r#"{"status":"success"}"#);
    let script = model(["我想想".into(), read("c").into(), end.into()]);
    let agent = agent(&script, vec![says("read", 1, "ok")]);
    let (report, messages) = walk_by(&agent, choosing(ToolChoice::Required)).await;
    assert!(matches!(report.trajectory.outcome.stop, Stop::Terminated { .. }));
    assert_eq!(asked_with(&script), vec![ToolChoice::Required; 3]);
    assert_eq!(
        messages[2].text(),
        "[Your last message called no tool. You have to call one in each message.]"
    );
}

/// OM13: a model that never makes a required call ends the run in bounded time.
#[tokio::test(start_paused = true)]
async fn om13_words_again_and_again_end_the_run() {
    let script = model((0..9).map(|n| Answer::text(&format!("nothing but words {n}"))));
    let agent = agent(&script, vec![]);
    let (report, _) = walk_by(&agent, choosing(ToolChoice::Required)).await;
    assert!(matches!(report.trajectory.outcome.stop, Stop::ModelFailed { .. }));
    assert_eq!(script.calls(), 3);
}

/// OM13: if no tool may be called, a call is not made, and has a result that says so.
#[tokio::test(start_paused = true)]
async fn om13_none_makes_no_call() {
    let script = model([read("c").into(), "in words".into()]);
    let agent_ = agent(&script, vec![says("read", 1, "ok")]);
    let (report, _) = walk_by(&agent_, choosing(ToolChoice::ReplyOnly)).await;
    assert_eq!(report.answer(), Some("in words"));
    let Some(StepResult::Error { failure }) = report.trajectory.result(0, StepId(1)) else {
        panic!("it was called")
    };
    assert_eq!(failure.kind, FailureKind::Denied);
    assert_eq!(report.trajectory.tool_calls().count(), 0);
    assert_eq!(report.trajectory.spent().calls, 2);
}

/// OM13, MC6: only some of the declared tools may be called; the others are refused one by one, including
/// those of the policy.
#[tokio::test(start_paused = true)]
async fn om13_a_part_of_the_tools_may_be_called() {
    let calls =
        vec![read("c1"), ToolCall::new("c2", "load", "{}"), ToolCall::new("c3", "写", "{}")];
    let script = model([calls.into(), "done".into()]);
    let names = vec!["写".to_owned()];
    let allowed = AllowedTools { names, required: false, preferred: None };
    let agent_ = agent(&script, vec![says("read", 1, "ok"), says("写", 1, "写好了")]);
    let react = React::new(choosing(ToolChoice::Allowed(allowed)));
    let mut context = Remembering::new("recalled");
    let report = agent_.run(&react, &mut context, &task("go")).await.unwrap();
    let kinds: Vec<bool> = (1..=3)
        .map(|step| {
            matches!(report.trajectory.result(0, StepId(step)), Some(StepResult::Success { .. }))
        })
        .collect();
    assert_eq!(kinds, [false, false, true]);
    assert_eq!(report.answer(), Some("done"));
}

/// The order is looked up first; then it may be refunded.
fn refund_after_lookup() -> Availability {
    let lookup = AvailabilityState::new(Mask::required().family("order_"))
        .with_event("order_find", "refund");
    Availability::new("lookup", [("lookup", lookup), ("refund", AvailabilityState::default())])
}

/// MC6: the callable tools follow from the calls that succeeded, and the declared tools stay the same; a masked
/// call is refused, and a failed call changes nothing.
#[tokio::test(start_paused = true)]
async fn mc6_what_succeeds_moves_the_mask_and_never_the_tools() {
    let call = |id: &str, name: &str| ToolCall::new(id, name, "{}");
    let script = model([
        call("c1", "refund").into(),
        call("c2", "order_list").into(),
        call("c3", "order_find").into(),
        call("c4", "refund").into(),
        "refunded".into(),
    ]);
    let tools =
        vec![says("order_find", 1, "7"), fails("order_list", 1), says("refund", 1, "refunded")];
    let settings = ReactSettings::default().with_availability(refund_after_lookup());
    let (report, _) = walk_by(&agent(&script, tools), settings).await;
    assert_eq!(report.answer(), Some("refunded"));
    let masked = ToolChoice::Allowed(AllowedTools {
        names: vec!["order_find".to_owned(), "order_list".to_owned()],
        required: true,
        preferred: None,
    });
    let choices = [masked.clone(), masked.clone(), masked, ToolChoice::Auto, ToolChoice::Auto];
    assert_eq!(asked_with(&script), choices);
    let requests = script.requests();
    assert!(requests.iter().all(|request| request.tools == requests[0].tools));
    let refused = report.trajectory.result(0, StepId(1));
    assert!(
        matches!(refused, Some(StepResult::Error { failure }) if failure.kind == FailureKind::Denied)
    );
    assert_eq!(report.trajectory.tool_calls().count(), 3);
}

/// MC6: a tool that does not exist is reported as unknown, whatever may be called now.
#[tokio::test(start_paused = true)]
async fn mc6_what_does_not_exist_is_unknown_and_not_masked() {
    let call = |id: &str, name: &str| ToolCall::new(id, name, "{}");
    let calls = vec![call("c1", "order_fimd"), call("c2", "refund")];
    let script = model([calls.into(), call("c3", "order_find").into(), "found".into()]);
    let tools = vec![says("order_find", 1, "7"), says("refund", 1, "refunded")];
    let settings = ReactSettings::default().with_availability(refund_after_lookup());
    let (report, _) = walk_by(&agent(&script, tools), settings).await;
    let kinds = [1, 2].map(|step| match report.trajectory.result(0, StepId(step)) {
        Some(StepResult::Error { failure }) => failure.kind,
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds, [FailureKind::UnknownTool, FailureKind::Denied]);
    assert_eq!(report.answer(), Some("found"));
}

/// MC6: a table that does not fit the declared tools is refused before anybody is asked.
#[tokio::test(start_paused = true)]
async fn mc6_a_table_of_other_tools_is_refused() {
    let script = model(["never".into()]);
    let agent = agent(&script, vec![says("order_list", 1, "ok")]);
    let nowhere = AvailabilityState::new(Mask::auto().name("rm")).with_event("order_list", "gone");
    for (table, expected) in [
        (refund_after_lookup(), "the event \"order_find\" does not name a declared tool"),
        (
            Availability::new("a", [("a", nowhere)]),
            "in the state \"a\", the event \"order_list\" leads to \"gone\", which is not a state; in the \
             state \"a\", there is no tool \"rm\"",
        ),
    ] {
        let react = React::new(ReactSettings::default().with_availability(table));
        let error = agent.run(&react, &mut *full(), &task("go")).await.unwrap_err();
        assert!(matches!(&error, AgentError::Availability(_)), "{error}");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(script.calls(), 0);
}
