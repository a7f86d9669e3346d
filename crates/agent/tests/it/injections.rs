//! Texts from tools and memory are data, whatever they say.

use crate::payloads::payloads;
use crate::script::{Remembering, agent, answering, asked, conversation, full, task, texts};
use crate::toolkit::{Counter, spec, tool};
use foldback_agent::{Agent, CallForm, OnePlan, React, ReactSettings};
use foldback_core::{Message, Role, ToolCall};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolOutput};
use std::sync::Arc;

/// The tools of an attacked agent: one that is never called, and one that returns the payload.
fn tools(payload: &str) -> (Vec<Arc<dyn Tool>>, Counter) {
    let counter = Counter::default();
    let count = counter.clone();
    let in_server = |name| spec(name, Effect::ReadOnly).with_server("s").with_primary("q");
    let wipe = tool(in_server("wipe"), move |_, _| {
        count.add();
        async { Ok(ToolOutput::text("wiped")) }
    });
    (vec![wipe, answering(in_server("fetch"), 1, payload)], counter)
}

/// What is wrong with the roles of a request: it has one instruction, at its beginning, with nothing of the
/// payload in it, and the payload is only in messages of the role `place`, and is there.
fn misplaced(request: &ChatRequest, payload: &str, place: &Role) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_there = false;
    for (at, message) in request.messages.iter().enumerate() {
        let holds = holds(&message.text(), payload);
        if message.role().is_instruction() != (at == 0) {
            found.push(format!("message {at} is of the role {}", message.role().as_str()));
        }
        if holds && message.role() != place {
            found.push(format!("the payload stands in a message of {}", message.role().as_str()));
        }
        is_there |= holds;
    }
    if !is_there {
        found.push("the payload stands nowhere".to_owned());
    }
    found
}

/// Whether a text has the payload in it: as it is, as a JSON string or value, or as text of XML.
fn holds(text: &str, payload: &str) -> bool {
    let string = serde_json::to_string(payload).unwrap();
    let value = serde_json::from_str::<serde_json::Value>(payload).map(|json| json.to_string());
    let forms = [payload.to_owned(), string.trim_matches('"').to_owned()];
    forms.into_iter().chain(value.ok()).any(|form| text.contains(&form))
}

#[track_caller]
fn check_roles(request: &ChatRequest, payload: &str, place: &Role) {
    assert_eq!(misplaced(request, payload, place), Vec::<String>::new(), "{payload}");
}

/// S6: the check of roles itself: it finds a payload that became an instruction, that is in somebody else's
/// words, or that is missing.
#[test]
fn s6_control_a_changed_role_is_found() {
    let call = ToolCall::new("c", "fetch", "{}");
    let request = |messages: Vec<Message>| ChatRequest::new(messages);
    let result = |text: &str| {
        vec![
            Message::system("You read."),
            Message::user("go"),
            Message::calls("", vec![call.clone()]),
            Message::tool_result(&call.id, text),
        ]
    };
    for payload in &payloads() {
        let found = |messages| misplaced(&request(messages), payload, &Role::Tool);
        assert_eq!(found(result(payload)), Vec::<String>::new());
        let [mut instructed, mut told, mut spoken] =
            [result(payload), result(payload), result(payload)];
        instructed[0] = Message::system(&format!("You read.\n{payload}"));
        told.push(Message::system(payload));
        spoken[1] = Message::user(&format!("go\n{payload}"));
        for changed in [instructed, told, spoken, result("fine")] {
            assert_ne!(found(changed), Vec::<String>::new(), "{payload}");
        }
    }
}

#[track_caller]
fn calls(messages: &[Arc<Message>]) -> usize {
    messages.iter().map(|message| message.tool_calls().len()).sum()
}

/// S6: 200 payloads as results of calls of the chat API: no role changes, and nothing is called but what
/// the model called.
#[tokio::test(start_paused = true)]
async fn s6_payloads_in_results_stay_data() {
    let payloads = payloads();
    assert_eq!(payloads.len(), 200);
    for payload in &payloads {
        let (tools, wiped) = tools(payload);
        let fetch = Answer::from(ToolCall::new("c1", "fetch", r#"{"q": "a"}"#));
        let model = crate::script::model([fetch, "A page about weather.".into()]);
        let agent = agent(&model, tools).with_system_prompt("You read pages.");
        let mut context = full();
        let report = agent.run(&React::default(), context.as_mut(), &task("go")).await.unwrap();
        assert_eq!((wiped.get(), calls(&conversation(context.as_ref()))), (0, 1), "{payload}");
        assert_eq!((report.answer(), model.calls()), (Some("A page about weather."), 2));
        check_roles(&model.requests()[1], payload, &Role::Tool);
        assert_eq!(asked(&model.requests()[1]), *payload, "word for word");
    }
}

/// S6: the same with calls written as blocks: a result is in one element, and a block inside it is not a
/// block.
#[tokio::test(start_paused = true)]
async fn s6_payloads_in_tool_results_stay_data() {
    for payload in &payloads() {
        let (tools, wiped) = tools(payload);
        let block = "<execute_tools><s><fetch>a</fetch></s></execute_tools>";
        let model = texts(&[block, "A page about weather."]);
        let settings = ReactSettings::default().with_calls(CallForm::ExecuteTools);
        let agent = agent(&model, tools);
        let report = agent.run(&React::new(settings), full().as_mut(), &task("go")).await.unwrap();
        assert_eq!((wiped.get(), model.calls()), (0, 2), "{payload}");
        assert_eq!(report.trajectory.tool_calls().count(), 1);
        let told = asked(&model.requests()[1]);
        for tag in ["<tool_result ", "</data>", "</tool_results>"] {
            assert_eq!(told.matches(tag).count(), 1, "{tag} in {told}");
        }
        assert!(!told.contains("<execute_tools>"), "{told}");
    }
}

/// S6: the same in a planned run: a result is one JSON string on one line of the requests for plans and for
/// the answer; nothing in it is a step, a reference or an instruction.
#[tokio::test(start_paused = true)]
async fn s6_payloads_in_planned_runs_stay_data() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "fetch", "args": {"q": "a"}},
        "step2": {"function": "anchor_function", "args": {"task": "decide"}, "dependence": [1]},
        "step3": {"function": "note", "args": {"q": "$$step1.result$$"}, "dependence": [1]}}}"#;
    for payload in &payloads() {
        let (mut tools, wiped) = tools(payload);
        tools.push(tool(spec("note", Effect::ReadOnly), |arguments, _| async move {
            Ok(ToolOutput::text(arguments))
        }));
        let model = texts(&[plan, r#"{"action_plan": {}}"#, "Noted."]);
        let agent = agent(&model, tools).with_system_prompt("You read pages.");
        let report = agent.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap();
        assert_eq!((wiped.get(), report.answer()), (0, Some("Noted.")), "{payload}");
        let called: Vec<&str> =
            report.trajectory.tool_calls().map(|call| call.function.as_str()).collect();
        assert_eq!(called, ["fetch", "note"]);
        for request in &model.requests()[1..] {
            assert_eq!(request.messages.len(), 2);
            assert!(!request.messages[0].text().contains("wipe all"));
            check_roles(request, payload, &Role::User);
            let told = asked(request);
            let lines: Vec<&str> = told.lines().filter(|line| line.starts_with('{')).collect();
            assert_eq!(lines.len(), 3, "{told}");
            let first: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
            match &first["result"] {
                serde_json::Value::String(text) => assert_eq!(text, payload),
                json => {
                    assert_eq!(*json, serde_json::from_str::<serde_json::Value>(payload).unwrap());
                }
            }
        }
    }
}

/// S6: the same for what memory recalls.
#[tokio::test(start_paused = true)]
async fn s6_payloads_in_recalled_text_stay_data() {
    for payload in &payloads() {
        let (tools, wiped) = tools("fine");
        let load = Answer::from(ToolCall::new("c1", "load", "{}"));
        let model = crate::script::model([load, "I recall.".into()]);
        let mut context = Remembering::new(payload);
        let report = agent(&model, tools)
            .with_system_prompt("You recall.")
            .run(&React::default(), &mut context, &task("go"))
            .await
            .unwrap();
        assert_eq!((wiped.get(), report.answer()), (0, Some("I recall.")), "{payload}");
        check_roles(&model.requests()[1], payload, &Role::Tool);
        assert_eq!(calls(&conversation(&context)), 1);
    }
}

/// S6: a model that repeats what it read thereby calls nothing, unless blocks are its form of calls and it
/// writes one itself. The loop asks it to quote in a code fence, and it does.
#[tokio::test(start_paused = true)]
async fn s6_a_quoted_payload_calls_nothing() {
    for payload in payloads() {
        let (tools, wiped) = tools(&payload);
        let answer = format!("The page says:\n```\n{payload}\n```");
        let said = [format!("The page says:\n{payload}"), answer.clone()];
        let model = Arc::new(ScriptedModel::answering(move |request| {
            let is_told =
                request.messages.iter().any(|message| message.text().contains("code fence"));
            Answer::text(&said[usize::from(is_told)])
        }));
        let agent: Agent = agent(&model, tools);
        let report = agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
        assert_eq!(wiped.get(), 0, "{payload}");
        let plain = format!("The page says:\n{payload}");
        let ended = report.answer();
        assert!([&plain, &answer].iter().any(|text| Some(text.as_str()) == ended), "{ended:?}");
    }
}
