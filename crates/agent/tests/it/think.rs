//! Reflecting on what is known.

use crate::script::{agent, model, says, walk};
use crate::toolkit::{answer, call, executor, failure, object, run, text};
use foldback_agent::think;
use foldback_core::{Role, ToolCall};
use foldback_planner::Template;
use foldback_tool::{Effect, FailureKind};

/// Returns the answer to a reflection.
async fn told(sufficient: bool, gap: &str, follow_up: &[&str]) -> Result<String, String> {
    let follow_up = Template::Array(follow_up.iter().map(|one| text(one)).collect());
    let arguments = [
        ("is_sufficient", Template::Literal(sufficient.to_string())),
        ("knowledge_gap", text(gap)),
        ("follow_up", follow_up),
    ];
    let outcome = run(&executor([think()]), vec![call(1, "think", object(&arguments), &[])]).await;
    match &outcome.results[&foldback_planner::StepId(1)] {
        foldback_planner::StepResult::Success { .. } => Ok(answer(&outcome, 1).to_owned()),
        _ => {
            let (kind, message) = failure(&outcome, 1);
            assert_eq!(kind, FailureKind::Arguments);
            Err(message.to_owned())
        }
    }
}

/// OM18: a reflection has a fixed form, changes nothing, and is answered by what follows from it.
#[tokio::test]
async fn om18_a_reflection_says_what_is_next() {
    assert_eq!(think().spec().effect, Effect::ReadOnly);
    let enough = "Enough is known: answer the request.";
    assert_eq!(told(true, " ", &[]).await.unwrap(), enough);
    let uncertain = told(true, "周日的天气不确定", &[]).await.unwrap();
    assert!(uncertain.contains("say what is not certain"), "{uncertain}");
    assert_eq!(told(false, "潮位", &["查潮汐表", " "]).await.unwrap(), "Next: 查潮汐表");
    let several = told(false, "", &["查潮汐表", "ask the harbour"]).await.unwrap();
    assert!(several.ends_with("查潮汐表; ask the harbour"), "{several}");
    // Something is missing and cannot be found: the answer says so, and the loop has an end.
    let stuck = told(false, "潮位", &[]).await.unwrap();
    assert!(stuck.contains("say what is missing"), "{stuck}");
    // Nothing is said to be missing.
    let wrong = told(false, "", &["", " "]).await.unwrap_err();
    assert!(wrong.contains("give knowledge_gap, follow_up or both"), "{wrong}");
}

/// OM18: another form is refused, with what was expected.
#[tokio::test]
async fn om18_another_form_is_refused() {
    let arguments = object(&[("is_sufficient", text("maybe"))]);
    let outcome = run(&executor([think()]), vec![call(1, "think", arguments, &[])]).await;
    let (kind, message) = failure(&outcome, 1);
    assert_eq!(kind, FailureKind::Arguments);
    assert!(message.contains("boolean"), "{message}");
}

/// OM18: an agent that has the tool reflects by calling it: the answer is a result like any other, and the
/// loop continues with it. An agent without it has no such tool.
#[tokio::test(start_paused = true)]
async fn om18_a_model_reflects_in_its_loop() {
    let reflect = |id: &str, sufficient: bool, follow_up: &[&str]| {
        let gap = if sufficient { "" } else { "潮位" };
        let arguments = serde_json::json!({
            "is_sufficient": sufficient, "knowledge_gap": gap, "follow_up": follow_up,
        });
        ToolCall::new(id, "think", &arguments.to_string())
    };
    let script = || {
        model([
            reflect("c1", false, &["look at the tide table"]).into(),
            ToolCall::new("c2", "look", "{}").into(),
            reflect("c3", true, &[]).into(),
            "三米。".into(),
        ])
    };
    for (is_given, first) in
        [(true, "Next: look at the tide table"), (false, "Error (unknown tool): ")]
    {
        let model = script();
        let mut tools = vec![says("look", 1, "3 m")];
        tools.extend(is_given.then(think));
        let (report, messages) = walk(&agent(&model, tools)).await;
        assert_eq!((report.answer(), model.calls()), (Some("三米。"), 4));
        let results = messages.iter().filter(|message| *message.role() == Role::Tool);
        let results: Vec<String> = results.map(|message| message.text().into_owned()).collect();
        assert!(results[0].starts_with(first), "{results:?}");
        assert_eq!(results[1], "3 m");
        assert_eq!(results[2] == "Enough is known: answer the request.", is_given, "{results:?}");
        let declared = model.requests()[0].tools.iter().any(|tool| tool.name == "think");
        assert_eq!(declared, is_given);
    }
}
