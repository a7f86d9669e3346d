//! The plan of a flow: how it is made, and how it changes.

use super::{agent, by_name, calls, few_turns, names, notes, page, planning, request, run, update};
use crate::keeping::{Watching, calling};
use crate::script::{full, task};
use foldback_agent::Stop;
use foldback_flow::{Flow, PlanShown};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ToolChoice};
use serde_json::json;
use std::sync::Arc;

/// OM8: the model is asked for a plan with the planning tool, which it has to call; whatever id it
/// gives, the plan has the flow's. Steps without words are none.
#[tokio::test]
async fn om8_the_plan_is_made_with_the_planning_tool() {
    let made = vec![
        foldback_core::ToolCall::new("a", "planning", "no JSON"),
        foldback_core::ToolCall::new("b", "planning", &json!({"command": "list"}).to_string()),
        foldback_core::ToolCall::new("c", "planning", &json!({"command": "create", "plan_id": "x", "title": "西湖", "steps": ["查天气", " ", "订票"]}).to_string()),
        foldback_core::ToolCall::new("d", "planning", &json!({"command": "create", "plan_id": "y", "title": "Other", "steps": ["z"]}).to_string()),
    ];
    let model = by_name([("flow/plan", Answer::from(made))]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    let asked = request(&model, "flow/plan");
    let tools: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((tools, &asked.tool_choice), (vec!["planning"], &ToolChoice::Required));
    assert!(page(&asked).contains("杭州两日游"), "{}", page(&asked));
    let step = page(&request(&model, "step-1.1/react/1"));
    for part in ["Plan: 西湖 (ID: run)\n", "0. [→] 查天气\n1. [ ] 订票\n", "0/2 steps completed"]
    {
        assert!(step.contains(part), "{part} in {step}");
    }
    assert_eq!((calls(&report, Flow::PLAN), calls(&report, Flow::SUMMARY)), (1, 1));
}

/// OM8: if the model makes no plan, a general one is used; the request in its title is cut at 50
/// characters, whatever they are.
#[tokio::test]
async fn om8_a_general_plan_takes_the_place_of_none() {
    let unreadable = ModelError::new(ModelErrorKind::Response, "no JSON");
    let fifty = "杭".repeat(50);
    let longer = format!("{}e\u{301}👩‍👩‍👧!", "杭".repeat(48));
    let cut = format!("{}e\u{301}...", "杭".repeat(48));
    for (request_text, answer, title) in [
        ("go", Answer::text("I would rather talk."), "go"),
        ("go", calling("planning", json!({"command": "create", "title": "T", "steps": []})), "go"),
        ("go", calling("other", json!({"steps": ["x"]})), "go"),
        ("go", unreadable.into(), "go"),
        (&fifty, Answer::text("no"), &fifty),
        (&longer, Answer::text("no"), &cut),
    ] {
        let model = by_name([("flow/plan", answer)]);
        let agent = agent(&model, vec![]);
        let report =
            agent.run(&Flow::new(few_turns()), full().as_mut(), &task(request_text)).await.unwrap();
        assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
        let step = page(&request(&model, "step-1.1/react/1"));
        assert!(step.contains(&format!("Plan: Plan for: {title} (ID: run)\n")), "{step}");
        let steps = "0. [→] Analyze request\n1. [ ] Execute task\n2. [ ] Verify results\n";
        assert!(step.contains(steps), "{step}");
    }
    // A plan without a title is a plan.
    let model = by_name([("flow/plan", calling("planning", json!({"steps": ["看"]})))]);
    run(&agent(&model, vec![]), few_turns()).await;
    assert!(
        page(&request(&model, "step-1.1/react/1")).contains("Plan: Plan for: 杭州两日游 (ID: run)")
    );
}

/// OM8: a model that cannot be reached is no reason for a general plan: the run can be resumed.
#[tokio::test]
async fn om8_without_a_model_there_is_no_plan() {
    let gone = ModelError::new(ModelErrorKind::Unavailable, "gone");
    let model = by_name([("flow/plan", gone.into())]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::ModelFailed { message: "gone".to_owned() });
    assert_eq!((names(&model), report.answer()), (vec!["flow/plan".to_owned()], None));
}

/// N11: on demand the model looks at the rest of the plan after each step, and may change it; what is done
/// stays, and without a change it stays as it was.
#[tokio::test]
async fn n11_the_plan_may_change_after_each_step() {
    let model = by_name([
        ("flow/plan", planning(&["查天气", "去公园", "写"])),
        ("step-1.1/react/1", Answer::text("大雨")),
        ("flow/review-0", update(&["去博物馆", "写"])),
        ("flow/review-1", Answer::text("OK")),
    ]);
    let flow = few_turns().with_replan_after_each(true);
    let report = run(&agent(&model, vec![]), flow).await;
    let asked = [
        "flow/plan",
        "step-1.1/react/1",
        "flow/review-0",
        "step-2.1/react/1",
        "flow/review-1",
        "step-3.1/react/1",
        "summary/summary",
    ];
    assert_eq!(names(&model), asked, "behind the last step there is nothing to change");
    assert!(page(&request(&model, "flow/review-0")).contains("Step 0: 大雨"));
    let told = page(&request(&model, "summary/summary"));
    assert!(told.contains("0. [✓] 查天气\n1. [✓] 去博物馆\n2. [✓] 写\n"), "{told}");
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
}

/// N11: a step that does not see what comes next cannot run ahead.
#[tokio::test]
async fn n11_later_steps_can_be_kept_from_a_step() {
    let model = by_name([("flow/plan", planning(&["一", "二", "三"]))]);
    let flow = few_turns().with_shown(PlanShown::UpToStep);
    run(&agent(&model, vec![]), flow).await;
    let seen = page(&request(&model, "step-2.1/react/1"));
    assert!(seen.contains("0. [✓] 一\n1. [→] 二\n(later steps are not shown)\n"), "{seen}");
    assert!(!seen.contains("三"), "{seen}");
    let seen = page(&request(&model, "step-3.1/react/1"));
    assert!(seen.contains("2. [→] 三\n") && !seen.contains("not shown"), "{seen}");
}

/// OM8: a plan with too many steps is not used, and that is noted.
#[tokio::test]
async fn om8_a_plan_may_be_too_long() {
    for (many, note) in [
        (50, None),
        (
            51,
            Some(
                "the plan has 51 steps, and at most 50 are allowed; a general plan is used instead",
            ),
        ),
    ] {
        let steps: Vec<String> = (0..many).map(|n| format!("step {n}")).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let model = by_name([("flow/plan", planning(&steps))]);
        let watching = Arc::new(Watching::default());
        let mut task = task("go");
        task.observer = Some(watching.clone());
        let agent = agent(&model, vec![]);
        agent.run(&Flow::new(few_turns()), full().as_mut(), &task).await.unwrap();
        assert_eq!(notes(&watching), Vec::from_iter(note));
    }
}
