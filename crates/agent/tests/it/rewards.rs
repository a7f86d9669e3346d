//! Judging a strategy by records, without a model.

use crate::script::{agent, answering, fails, full, model, says, task, texts, walk};
use crate::toolkit::{spec, tool};
use foldback_agent::rewards::{Judge, could_have_planned_once, guessed_rashly, judge, own_judges};
use foldback_agent::{OnePlan, React, Trajectory};
use foldback_core::ToolCall;
use foldback_llm::Answer;
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, Language, Tool, ToolOutput, ToolSpec};
use std::sync::Arc;

/// Goes through single calls, one per turn, and answers.
async fn single_calls(
    request: &str,
    tools: Vec<Arc<dyn Tool>>,
    calls: &[(&str, &str)],
) -> Trajectory {
    let answers = calls.iter().zip(1..).map(|((name, arguments), n)| {
        Answer::from(ToolCall::new(&format!("c{n}"), name, arguments))
    });
    let model = model(answers.chain(["done".into()]));
    let agent = agent(&model, tools);
    let mut record =
        agent.run(&React::default(), full().as_mut(), &task(request)).await.unwrap().trajectory;
    judge(&mut record, own_judges());
    record
}

#[track_caller]
fn plannable(record: &Trajectory) -> Vec<Vec<u32>> {
    could_have_planned_once(record).into_iter().map(|run| run.turns).collect()
}

fn with_output(name: &str, schema: &str) -> ToolSpec {
    spec(name, Effect::ReadOnly).with_output(schema)
}

/// ET11: turns whose arguments were known from the request, or are a whole earlier result, could have been one
/// plan.
#[tokio::test(start_paused = true)]
async fn et11_what_was_known_could_have_been_planned() {
    let tools = || vec![says("search_city", 1, "沈阳"), says("book_flight", 1, "CZ6325")];
    let record = single_calls(
        "春晚分会场在哪里？订机票，再查 Hangzhou。",
        tools(),
        &[
            ("search_city", r#"{"query": "春晚分会场"}"#),
            ("book_flight", r#"{"to": "沈阳"}"#),
            ("search_city", r#"{"query": "hangzhou"}"#),
        ],
    )
    .await;
    assert_eq!(plannable(&record), [[0, 1, 2]]);
    assert_eq!(record.rewards["could_have_planned_once"], -2.0 / 3.0);
}

/// ET11: an argument that was taken from an unforeseeable result needed the look: another spelling, a part of
/// a text, a number derived from it.
#[tokio::test(start_paused = true)]
async fn et11_what_had_to_be_seen_is_not_blamed() {
    let page = "The show's branch is in 沈阳 this year; tickets are 42.";
    for arguments in [r#"{"to": "沈阳"}"#, r#"{"to": "Shenyang"}"#, r#"{"n": 84}"#, r#"{"n": 42}"#]
    {
        let tools = vec![says("search", 1, page), says("book", 1, "ok")];
        let record = single_calls(
            "Where is the branch of the show? Book a ticket.",
            tools,
            &[("search", r#"{"q": "branch of the show"}"#), ("book", arguments)],
        )
        .await;
        assert_eq!(plannable(&record), Vec::<Vec<u32>>::new(), "{arguments}");
        assert_eq!(record.rewards["could_have_planned_once"], 0.0);
    }
}

/// ET11: a part of a result is foreseeable if the tool's output schema declares it.
#[tokio::test(start_paused = true)]
async fn et11_declared_parts_can_be_foreseen() {
    let schema = r#"{"type":"object","properties":{"rates":{"type":"array","items":{"type":"object","properties":{"code":{"type":"string"},"rate":{"type":"number"}}}}}}"#;
    let data = r#"{"rates": [{"code": "欧元", "rate": 7.83}], "secret": "x9"}"#;
    for (spec, arguments, expected) in [
        (with_output("rates", schema), r#"{"of": "欧元", "rate": 7.83}"#, true),
        (with_output("rates", schema), r#"{"of": "x9"}"#, false),
        (spec("rates", Effect::ReadOnly), r#"{"of": "欧元"}"#, false),
    ] {
        let tools = vec![answering(spec, 1, data), says("convert", 1, "ok")];
        let record = single_calls(
            "What is the rate, converted?",
            tools,
            &[("rates", "{}"), ("convert", arguments)],
        )
        .await;
        assert_eq!(!plannable(&record).is_empty(), expected, "{arguments}");
    }
}

/// ET11: code may have words of its own around a result that is taken as a whole.
#[tokio::test(start_paused = true)]
async fn et11_code_around_a_whole_result_can_be_foreseen() {
    let python = spec("python", Effect::ReadOnly).with_language("code", Language::Python);
    let code = |age: &str| format!(r#"{{"code": "age = {age}\nprint(age + 10)"}}"#);
    for (result, expected) in [("54", true), ("He is 54 years old.", false)] {
        let tools = vec![says("search", 1, result), answering(python.clone(), 1, "64")];
        let calls = [("search", r#"{"q": "How old is he"}"#), ("python", &code("54"))];
        let record = single_calls("How old is he in a decade?", tools, &calls).await;
        assert_eq!(!plannable(&record).is_empty(), expected, "{result}");
    }
}

/// ET11: a choice between values of an `enum`, or between true and false, may rest on what was seen, unless
/// the request makes it.
#[tokio::test(start_paused = true)]
async fn et11_choices_may_need_a_look() {
    let book = || {
        let mut book = spec("book", Effect::ReadOnly);
        book.definition.parameters = r#"{"type":"object","properties":{
            "place":{"enum":["indoor","outdoor"]},"umbrella":{"type":"boolean"},
            "currency":{"enum":["元"]},"quiet":{"type":"boolean","default":true}}}"#
            .to_owned();
        vec![says("look", 1, "It rains heavily"), answering(book, 1, "ok")]
    };
    for (request, arguments, expected) in [
        ("Look, and book a fitting place.", r#"{"place": "indoor"}"#, false),
        ("Look, and book a fitting place.", r#"{"umbrella": true}"#, false),
        ("看看天气，订个合适的地方", r#"{"place": "outdoor", "umbrella": false}"#, false),
        ("Look, and book a place, indoor.", r#"{"place": "indoor"}"#, true),
        ("Look, and book a fitting place.", r#"{"currency": "元"}"#, true),
        ("Look, and book with umbrella false.", r#"{"umbrella": false}"#, true),
    ] {
        let record = single_calls(request, book(), &[("look", "{}"), ("book", arguments)]).await;
        assert_eq!(!plannable(&record).is_empty(), expected, "{request} {arguments}");
    }
}

/// ET11: after a failure, and if the request has a condition, looking is not blamed; nor are turns with several
/// calls.
#[tokio::test(start_paused = true)]
async fn et11_failures_and_conditions_need_a_look() {
    let calls = [("look", r#"{"city": "杭州"}"#), ("book", r#"{"at": "西湖"}"#)];
    let record = |request: &'static str, first: Arc<dyn Tool>| async move {
        single_calls(request, vec![first, says("book", 1, "ok")], &calls).await
    };
    let sunny = || says("look", 1, "晴");
    assert_eq!(plannable(&record("查杭州的天气，订西湖的餐厅", sunny()).await), [[0, 1]]);
    assert!(plannable(&record("查杭州的天气，如果晴就订西湖的餐厅", sunny()).await).is_empty());
    assert!(plannable(&record("查杭州的天气，晴就订西湖的餐厅", sunny()).await).is_empty());
    assert!(plannable(&record("查杭州的天气，订西湖的餐厅", fails("look", 1)).await).is_empty());

    let both = vec![ToolCall::new("a", "look", "{}"), ToolCall::new("b", "look", "{}")];
    let model = model([both.clone().into(), both.into(), "done".into()]);
    let (report, _) = walk(&agent(&model, vec![says("look", 1, "晴")])).await;
    assert!(plannable(&report.trajectory).is_empty());
}

/// ET11: a reference to a part that the actual result does not have was a guess; one that was there, or
/// whose step failed, was not.
#[tokio::test(start_paused = true)]
async fn et11_missing_parts_were_guessed_rashly() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "rates", "args": {}},
        "step2": {"function": "echo", "args": {"x": "$$step1.result.rates[0]$$"}, "dependence": [1]},
        "step3": {"function": "echo", "args": {"x": "um $$step1.result[\"汇率\"]$$"}, "dependence": [1]},
        "step4": {"function": "down", "args": {}},
        "step5": {"function": "echo", "args": {"x": "$$step4.result.any$$"}, "dependence": [4]}}}"#;
    let model = texts(&[plan, r#"{"action_plan": {}}"#, "done"]);
    let echo = tool(spec("echo", Effect::ReadOnly), |arguments, _| async move {
        Ok(ToolOutput::text(arguments))
    });
    let tools = vec![says("rates", 1, r#"{"rates": [7.83]}"#), echo, fails("down", 1)];
    let agent = agent(&model, tools);
    let mut record =
        agent.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap().trajectory;
    let guesses: Vec<StepId> = guessed_rashly(&record).iter().map(|guess| guess.step).collect();
    assert_eq!(guesses, [StepId(3)]);
    judge(&mut record, own_judges());
    assert_eq!(record.rewards["guessed_rashly"], -0.5);
    assert_eq!(record.rewards["could_have_planned_once"], 0.0);
}

/// ET11: a part that the tool's output schema declares was promised, whether or not it is in the result.
#[tokio::test(start_paused = true)]
async fn et11_a_promised_part_was_no_guess() {
    let schema = r#"{"type":"object","properties":{"汇率":{"type":"array","items":{"type":"object","properties":{"rate":{"type":"number"}}}}}}"#;
    let guesses = async |path: &str, output: Option<&str>| {
        let plan = format!(
            r#"{{"action_plan": {{"step1": {{"function": "rates", "args": {{}}}},
                "step2": {{"function": "echo", "args": {{"x": "$$step1.result{path}$$"}}, "dependence": [1]}}}}}}"#
        );
        let model = texts(&[&plan, r#"{"action_plan": {}}"#, "done"]);
        let mut rates = spec("rates", Effect::ReadOnly);
        rates.output = output.map(str::to_owned);
        let tools = vec![answering(rates, 1, r#"{"other": 1}"#), says("echo", 1, "ok")];
        let agent = agent(&model, tools);
        let record =
            agent.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap().trajectory;
        assert_eq!(
            record.result(0, StepId(1)).map(|r| matches!(r, StepResult::Success { .. })),
            Some(true)
        );
        guessed_rashly(&record).len()
    };
    assert_eq!(guesses(r#"[\"汇率\"][0].rate"#, Some(schema)).await, 0);
    assert_eq!(guesses(r#"[\"汇率\"][0].rate"#, None).await, 1);
}

/// ET11: other rewards can be added with a judge.
#[tokio::test(start_paused = true)]
async fn et11_own_judges_have_their_say() {
    struct Swift;
    impl Judge for Swift {
        fn name(&self) -> &str {
            "swift"
        }
        fn judge(&self, record: &Trajectory) -> Option<f64> {
            (record.timing.total_us > 0).then_some(1.0)
        }
    }
    let mut record = single_calls("go", vec![says("a", 5, "ok")], &[("a", "{}")]).await;
    judge(&mut record, [&Swift as &dyn Judge]);
    assert_eq!(record.rewards["swift"], 1.0);
    assert!(!record.rewards.contains_key("guessed_rashly"), "there was no reference");
}
