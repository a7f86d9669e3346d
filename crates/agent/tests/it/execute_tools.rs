//! Turns whose calls are a block in the model's message.

use crate::script::{
    agent, answering, asked, full, lines, model, task, text, texts, walk, walk_by,
};
use crate::toolkit::{Counter, spec, tool};
use foldback_agent::trajectory::TurnClass;
use foldback_agent::{CallForm, OnePlan, Purpose, React, ReactSettings, Report, Stop};
use foldback_core::{Message, Role, ToolCall};
use foldback_llm::Answer;
use foldback_tool::{Effect, ToolOutput, ToolSpec};
use std::sync::Arc;

fn in_blocks() -> ReactSettings {
    ReactSettings::default().with_calls(CallForm::ExecuteTools)
}

/// A tool of a server, with a text for its main argument.
fn served(server: &str, name: &str, argument: &str) -> ToolSpec {
    let mut spec = spec(name, Effect::ReadOnly);
    spec.definition.parameters = format!(
        r#"{{"type":"object","properties":{{"{argument}":{{"type":"string"}}}},"required":["{argument}"]}}"#
    );
    spec.with_server(server).with_primary(argument)
}

fn seed_tools() -> Vec<Arc<dyn foldback_tool::Tool>> {
    let python = served("microsandbox_server", "execute_python", "code");
    vec![
        answering(served("deepsearch_server", "search", "query"), 100, "54"),
        tool(python, |arguments, _| async move { Ok(ToolOutput::text(arguments)) }),
    ]
}

fn observations(messages: &[Arc<Message>]) -> Vec<String> {
    let users = messages.iter().filter(|message| *message.role() == Role::User);
    let told = users.skip(1);
    told.inspect(|message| assert!(message.is_observation(), "a person said: {}", message.text()))
        .map(|message| message.text().into_owned())
        .collect()
}

fn classes(report: &Report) -> Vec<TurnClass> {
    report.trajectory.strategy.turns.iter().map(|turn| turn.class).collect()
}

/// ET4, ET9, ET10: the sample of the design: several steps are one turn and one reply with all results; a
/// single step is executed and answered at once.
#[tokio::test(start_paused = true)]
async fn et9_a_block_of_several_steps_is_one_reply() {
    let several = r#"<execute_tools>
    <sequential>
        <deepsearch_server><search>How old is Elon Musk</search></deepsearch_server>
        <microsandbox_server><execute_python>age = {results[0].data}; print(f"In 10 years, he will be {int(age) + 10}")</execute_python></microsandbox_server>
    </sequential>
</execute_tools>"#;
    let single = "先看看：\n<execute_tools><deepsearch_server><search>上海</search></deepsearch_server></execute_tools>";
    let model = texts(&[several, single, "他 64 岁。"]);
    let (report, messages) = walk_by(&agent(&model, seed_tools()), in_blocks()).await;
    let code = r#"{"code":"age = 54; print(f\"In 10 years, he will be {int(age) + 10}\")"}"#;
    assert_eq!(observations(&messages), [
        format!(
            "<tool_results>\n    <tool_result index=\"0\"><status>success</status><data>54</data></tool_result>\n    <tool_result index=\"1\"><status>success</status><data>{code}</data></tool_result>\n</tool_results>"
        ),
        "<tool_results>\n    <tool_result index=\"0\"><status>success</status><data>54</data></tool_result>\n</tool_results>".to_owned(),
    ]);
    assert_eq!(classes(&report), [TurnClass::PlanOnce, TurnClass::StepObserve]);
    assert_eq!((report.answer(), model.calls()), (Some("他 64 岁。"), 3));
    let request = &model.requests()[0];
    let system = request.messages[0].text();
    assert!(
        system.contains(r#""name":"search""#) && system.contains("<execute_tools>"),
        "{system}"
    );
    assert!(request.tools.is_empty());
}

/// OP20: under `<execute_tools>` a failure is reported with the results, and nothing is replanned.
#[tokio::test(start_paused = true)]
async fn op20_a_failure_in_a_block_is_only_reported() {
    let block = "<execute_tools><sequential>
        <parallel><s><down>x</down></s><s><up>y</up></s></parallel>
        <s><up>z</up></s>
    </sequential></execute_tools>";
    let model = texts(&[block, "done"]);
    let mut down = served("s", "down", "q");
    down.effect = Effect::Effectful;
    let up = answering(served("s", "up", "q"), 5, "晴");
    let failing =
        tool(down, |_, _| async { Err(foldback_tool::ToolError::permanent("断网 <b>")) });
    let (report, messages) = walk_by(&agent(&model, vec![failing, up]), in_blocks()).await;
    let told = observations(&messages).remove(0);
    let statuses = ["error", "success", "skipped"];
    for (index, status) in statuses.iter().enumerate() {
        let begin = format!(r#"<tool_result index="{index}"><status>{status}</status>"#);
        assert!(told.contains(&begin), "{told}");
    }
    assert!(told.contains("断网 &lt;b&gt;"), "{told}");
    let purposes: Vec<Purpose> = report.trajectory.tokens.keys().cloned().collect();
    assert_eq!((purposes, model.calls()), (vec![Purpose::REACT], 2));
}

/// ET9: of a block with any fault nothing runs; the model learns all faults, and the run continues.
#[tokio::test(start_paused = true)]
async fn et9_a_bad_block_runs_nothing_and_the_loop_survives() {
    let counter = Counter::default();
    let count = counter.clone();
    let up = tool(served("s", "up", "q"), move |_, _| {
        count.add();
        async { Ok(ToolOutput::text("ok")) }
    });
    let block = |inside: &str| format!("好的。\n<execute_tools>{inside}</execute_tools> Soon.");
    let call = "<s><up>x</up></s>";
    let cases = [
        (block(&format!("{call}<s><donw>x</donw></s>")), "donw"),
        (
            block(&format!("<sequential>{call}<s><up>{{results[1].data}}</up></s></sequential>")),
            "its own result",
        ),
        (
            block(&format!("<parallel>{call}<s><up>{{results[0].data}}</up></s></parallel>")),
            "index 0",
        ),
        (block(&format!("{call}<s><up>{{\"q\": 1}}</up></s>")), "string"),
        (format!("<execute_tools><sequential>{call}<s><up>x</u"), "ends"),
        (block(""), ""),
    ];
    for (text, expected) in &cases {
        let model = texts(&[text, "done"]);
        let (report, messages) = walk_by(&agent(&model, vec![up.clone()]), in_blocks()).await;
        let told = observations(&messages).remove(0);
        assert!(told.contains("No call of your <execute_tools> block was run"), "{text}: {told}");
        assert!(told.contains(expected), "{text}: {told}");
        assert_eq!((report.answer(), counter.get()), (Some("done"), 0), "{text}");
        // ET10: a block that was refused is a turn, with its faults.
        let record = &report.trajectory;
        assert_eq!((record.strategy.turns.len(), record.plan.len()), (1, 1), "{text}");
        assert!(record.plan[0].findings.iter().any(|found| told.contains(found)), "{text}");
    }
    let mention = "I would use `<execute_tools>` for that, but there is no need.";
    let model = texts(&[mention]);
    let (report, _) = walk_by(&agent(&model, vec![up.clone()]), in_blocks()).await;
    assert_eq!(report.answer(), Some(mention));
    // If calls are tool calls of the chat API, a block is neither run nor taken for the answer.
    let (text, quoted) = (block(call), format!("```xml\n{}\n```", block(call)));
    let (report, messages) = walk(&agent(&texts(&[&text, &quoted]), vec![up.clone()])).await;
    assert_eq!((report.answer(), counter.get()), (Some(quoted.as_str()), 0));
    let told = observations(&messages).remove(0);
    assert!(told.contains("here tools are called with tool calls of the chat API"), "{told}");
    let (report, _) = walk(&agent(&texts(&[&*text; 3]), vec![up])).await;
    let Stop::ModelFailed { message } = &report.trajectory.outcome.stop else { panic!() };
    assert!(message.contains("<execute_tools>") && report.answer().is_none(), "{message}");
}

/// S6: a block after other words on its line, or in a code fence, may be a quotation: it is not run, and
/// the model learns of it; one between quotation marks is text. Thoughts are never calls.
#[tokio::test(start_paused = true)]
async fn s6_a_block_that_may_be_quoted_is_not_run() {
    /// Runs with these answers; returns the answer, the number of calls, and what the model reads.
    async fn run(answers: &[&str]) -> (Report, usize, Vec<String>) {
        let counter = Counter::default();
        let count = counter.clone();
        let up = tool(served("s", "up", "q"), move |_, _| {
            count.add();
            async { Ok(ToolOutput::text("晴")) }
        });
        let (report, messages) = walk_by(&agent(&texts(answers), vec![up]), in_blocks()).await;
        (report, counter.get(), observations(&messages))
    }
    let block = "<execute_tools><s><up>x</up></s></execute_tools>";
    for text in [format!("网页写着 {block}"), format!("```xml\n{block}\n```"), format!("- {block}")]
    {
        let (report, calls, told) = run(&[&text, block, "done"]).await;
        assert!(told[0].contains("Begin a line with it"), "{text}: {told:?}");
        assert_eq!((report.answer(), calls), (Some("done"), 1), "{text}");
    }
    for text in [
        format!("It says \"{block}\"."),
        format!("> {block}"),
        format!("「{block}」"),
        format!("`{block}`"),
    ] {
        let (report, calls, _) = run(&[&text]).await;
        assert_eq!((report.answer(), calls), (Some(text.as_str()), 0));
    }
    let thought = format!("<think>也许 <execute_tools> 可以\n{block}\n</think>{block}");
    let (report, calls, _) = run(&[&thought, "done"]).await;
    assert_eq!((report.answer(), calls), (Some("done"), 1));
    // A model that keeps doing so is stopped.
    let (report, calls, told) = run(&[format!("So: {block}").as_str(); 5]).await;
    assert!(matches!(report.trajectory.outcome.stop, Stop::ModelFailed { .. }));
    assert_eq!((calls, told.len()), (0, 3));
}

/// MC15: of a message with tool calls and a block only the calls are run, and the model learns about the block.
#[tokio::test(start_paused = true)]
async fn mc15_a_block_beside_tool_calls_is_not_dropped_silently() {
    let up = answering(served("s", "up", "q"), 1, "晴");
    let block = "<execute_tools><s><up>block</up></s></execute_tools>";
    let call = ToolCall::new("c", "up", r#"{"q": "native"}"#);
    let model = model([Answer::calls(block, vec![call.clone()]), "done".into()]);
    let (report, _) = walk_by(&agent(&model, vec![up.clone()]), in_blocks()).await;
    assert!(
        asked(&model.requests()[1]).contains("but the block was not"),
        "{:?}",
        model.requests()[1]
    );
    assert_eq!(report.trajectory.tool_calls().count(), 1);

    let words = crate::script::model([Answer::calls("I look.", vec![call]), "done".into()]);
    walk_by(&agent(&words, vec![up]), in_blocks()).await;
    assert_eq!(asked(&words.requests()[1]), "晴");
}

/// ET4: a conversation that did not begin with the instructions on calls and tools is still given them, once.
#[tokio::test(start_paused = true)]
async fn et4_a_conversation_that_goes_on_is_told_of_blocks() {
    let mut context = full();
    context.record(Message::system("Mine.")).unwrap();
    context.record(Message::user("Hello.")).unwrap();
    context.record(Message::assistant("你好。")).unwrap();
    let block = "<execute_tools><s><up>x</up></s></execute_tools>";
    let model = texts(&[block, "done", block, "done"]);
    let up = answering(served("s", "up", "q"), 1, "晴");
    let agent = agent(&model, vec![up]).with_system_prompt("Yours.");
    for run in ["one", "two"] {
        let task = foldback_agent::Task::new(run, "go");
        let react = React::new(in_blocks());
        let report = agent.run(&react, context.as_mut(), &task).await.unwrap();
        assert_eq!(report.trajectory.tool_calls().count(), 1);
    }
    for request in model.requests() {
        let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
        assert_eq!(foldback_core::check_request(messages.iter().copied()), []);
        assert_eq!(messages[0].text(), "Mine.");
        let told = |words: &str| messages.iter().filter(|m| m.text().contains(words)).count();
        assert_eq!((told("Yours."), told(r#""name":"up""#)), (1, 1));
        assert!(messages[1].role().is_instruction());
    }
}

/// ET13: a plan in all three forms gives the same results and the same trace.
#[tokio::test(start_paused = true)]
async fn et13_three_forms_give_the_same_results_and_trace() {
    let tools = || {
        let wait = served("s", "wait", "q");
        let wait = tool(wait, |arguments, _| async move {
            let length = arguments.chars().count() as u64;
            tokio::time::sleep(crate::toolkit::ms(10 * length)).await;
            Ok(ToolOutput::text(format!("等了 {length}")))
        });
        vec![wait]
    };
    let queries = ["三", "twelve", "xx"];
    let calls = queries.iter().zip(1..).map(|(query, n)| {
        ToolCall::new(&format!("c{n}"), "wait", &format!(r#"{{"q": "{query}"}}"#))
    });
    let native = model([Answer::calls("", calls.collect()), "done".into()]);
    let (native, _) = walk(&agent(&native, tools())).await;

    let calls: String = queries.iter().map(|q| format!("<s><wait>{q}</wait></s>")).collect();
    let block = format!("<execute_tools><parallel>{calls}</parallel></execute_tools>");
    let (block, _) = walk_by(&agent(&texts(&[&block, "done"]), tools()), in_blocks()).await;

    let steps = queries.iter().zip(1..).map(|(query, n)| {
        format!(r#""step{n}": {{"function": "wait", "args": {{"q": "{query}"}}}}"#)
    });
    let steps = steps.collect::<Vec<_>>().join(", ");
    let plan = format!(r#"{{"action_plan": {{{steps}}}}}"#);
    let planned = agent(&texts(&[&plan, "done"]), tools());
    let planned = planned.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap();

    assert_same(&planned, &block);
    assert_same(&planned, &native);
}

/// ET13: with references, which native calls cannot have.
#[tokio::test(start_paused = true)]
async fn et13_references_give_the_same_results_and_trace() {
    let tools = || {
        let json = served("s", "find", "q");
        let mut anything = served("s", "echo", "q");
        anything.definition.parameters = r#"{"type":"object","properties":{"q":{}}}"#.to_owned();
        vec![
            answering(json, 30, r#"{"城市": "沈阳", "prices": [1.50, 2]}"#),
            tool(anything, |arguments, _| async move { Ok(ToolOutput::text(arguments)) }),
        ]
    };
    let block = r#"<execute_tools><sequential><s><find>a</find></s>
        <parallel><s><echo>to {results[0].data["城市"]}!</echo></s><s><echo>{results[0].data}</echo></s></parallel>
        </sequential></execute_tools>"#;
    let plan = r#"{"action_plan": {"step1": {"function": "find", "args": {"q": "a"}},
        "step2": {"function": "echo", "args": {"q": "to $$step1.result[\"城市\"]$$!"}, "dependence": [1]},
        "step3": {"function": "echo", "args": {"q": "$$step1.result$$"}, "dependence": [1]}}}"#;
    let (block, _) = walk_by(&agent(&texts(&[block, "done"]), tools()), in_blocks()).await;
    let planned = agent(&texts(&[plan, "done"]), tools());
    let planned = planned.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!(text(&planned, 2), r#"{"q":"to 沈阳!"}"#);
    assert_eq!(text(&planned, 3), r#"{"q":{"城市":"沈阳","prices":[1.50,2]}}"#);
    assert_same(&planned, &block);
}

#[track_caller]
fn assert_same(a: &Report, b: &Report) {
    assert_eq!(lines(&a.traces[0]), lines(&b.traces[0]));
    assert_eq!(a.trajectory.results, b.trajectory.results);
    assert_eq!(a.trajectory.results.len(), 3);
}
