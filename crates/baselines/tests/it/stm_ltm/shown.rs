//! The contents of a prompt, and their order.

use super::drive::{Back, Loop, prompt, start, step, texts};
use foldback_baselines::stm_ltm::StmLtmConfig;
use foldback_core::{
    Budget, ContextManager, Estimate, Message, SeqNo, TodoId, ToolCall, ToolCallId, Violation,
    check_request, message_tokens,
};
use foldback_testkit::generate::{Shape, conversation};
use proptest::prelude::*;
use std::sync::Arc;

const HEAD: &str = "Memory of the steps before the last one (extracted by rule, not written by a \
                    model). Whole messages are kept under their ids, such as r7: search_raw finds \
                    their words, read_raw reads them.";

/// A limit that no test reaches.
fn roomy() -> StmLtmConfig {
    StmLtmConfig { memory_tokens: 1_000_000, ..StmLtmConfig::default() }
}

proptest! {
    /// CX1: for s = 0..N the prompt is exactly the instructions, the request, L of every step up to
    /// s-2, and step s-1 unchanged, whenever the jobs come back in time. CX9: a wave of parallel calls
    /// is one step, in the order of the calls, whatever the order of the results.
    #[test]
    fn cx1_cx9_the_prompt_is_the_memory_and_the_last_step(
        waves in proptest::collection::vec(
            proptest::collection::vec("[a-z]{1,6} [数据船闸]{1,6}", 1..4), 0..24),
        order in any::<u64>(),
    ) {
        for back in Back::IN_TIME {
            let mut agent = Loop::new(roomy(), back);
            agent.record(Message::system("Be brief."));
            agent.record(Message::user("修理闸门 7。"));
            let mut memory = String::from(HEAD);
            let mut last: Vec<String> = Vec::new();
            let mut lines = String::new();
            let mut seq = 2;
            for (s, results) in waves.iter().enumerate() {
                let mut expected = vec!["Be brief.".to_owned(), "修理闸门 7。".to_owned()];
                if s > 1 {
                    expected.push(memory.clone());
                }
                expected.extend(last.clone());
                prop_assert_eq!(texts(&agent.prompt()), expected, "{:?} at step {}", back, s);

                let arguments: Vec<String> =
                    (0..results.len()).map(|n| format!("{{\"step\": {s}, \"n\": {n}}}")).collect();
                let calls: Vec<(&str, &str, &str)> =
                    arguments.iter().zip(results).map(|(a, r)| ("read", a.as_str(), r.as_str())).collect();
                let mut messages = step(&format!("s{s}"), "I read.", &calls);
                // The results arrive in any order.
                let turn = usize::try_from(order >> (s % 32)).unwrap_or(0) % results.len();
                messages[1..].rotate_left(turn);
                let came = |n: usize| seq + 1 + (n + results.len() - turn) % results.len();

                memory.push_str(&lines);
                let called: Vec<String> = arguments.iter().map(|a| format!("read {a}")).collect();
                lines = format!("\n[r{seq}] assistant: I read.");
                called.iter().for_each(|call| lines.push_str(&format!("\n[r{seq}] {call}")));
                for (n, result) in results.iter().enumerate() {
                    lines.push_str(&format!("\n[r{}] -> {result}", came(n)));
                }
                last = vec![format!("I read.\n{}", called.join("\n"))];
                last.extend(results.clone());
                seq += messages.len();
                messages.into_iter().for_each(|message| agent.record(message));
            }
        }
    }

    /// Whatever is recorded, and whenever the jobs come back, every prompt is a valid request, its
    /// tokens are those of its messages and tools, and the same history gives the same bytes.
    #[test]
    fn every_prompt_is_valid_and_the_same_again(
        messages in conversation(Shape { units: 1..16, odd: true, long: 40, ..Shape::default() }),
        pins in proptest::collection::vec(0..20_u64, 0..3),
    ) {
        for back in [Back::AtOnce, Back::OneRecordLater, Back::BeforeTheNextPromptButOne, Back::Never] {
            let run = || {
                let config = StmLtmConfig { memory_tokens: 300, summary_tokens: 150, ..roomy() };
                let mut agent = Loop::new(config, back);
                let mut prompts = Vec::new();
                for message in &messages {
                    agent.record(message.clone());
                    for pin in &pins {
                        // It fails for a message that does not exist yet.
                        let _ = agent.context.pin(SeqNo(*pin));
                    }
                    let shown = agent.prompt();
                    let wrong = check_request(shown.messages.iter().map(Arc::as_ref));
                    assert!(wrong.iter().all(|v| *v == Violation::NoMessage), "{wrong:?} in {shown:?}");
                    let texts = |t: &foldback_core::ToolDefinition| {
                        [&t.name, &t.description, &t.parameters]
                            .map(|text| foldback_core::TokenCounter::count(&Estimate, text))
                    };
                    let tools: usize = shown.tools.iter().flat_map(texts).sum();
                    let sum: usize =
                        shown.messages.iter().map(|m| message_tokens(&Estimate, m)).sum();
                    assert_eq!(shown.tokens, sum + tools);
                    let json = |m: &Arc<Message>| m.json().to_owned();
                    prompts.push(shown.messages.iter().map(json).collect::<Vec<_>>());
                }
                prompts
            };
            prop_assert_eq!(run(), run());
        }
    }
}

#[test]
fn a_conversation_without_tools_has_steps_too() {
    let mut agent = Loop::new(roomy(), Back::OneRecordLater);
    for n in 0..4 {
        agent.record(Message::user(&format!("问题 {n}？")));
        agent.record(Message::assistant(&format!("Answer {n}.")));
    }
    agent.record(Message::user("And now?"));
    let memory = "\n[r1] assistant: Answer 0.\n[r2] user: 问题 1？\n[r3] assistant: Answer 1.\n\
                  [r4] user: 问题 2？\n[r5] assistant: Answer 2.";
    let expected = ["问题 0？", &format!("{HEAD}{memory}"), "问题 3？", "Answer 3.", "And now?"];
    assert_eq!(texts(&agent.prompt()), expected);
}

/// A conversation among people, in which the model never speaks.
#[test]
fn what_is_never_answered_is_bounded_too() {
    let config = StmLtmConfig { memory_tokens: 400, summary_tokens: 200, ..roomy() };
    let mut agent = Loop::new(config, Back::OneRecordLater);
    for n in 0..300 {
        agent.record(Message::user(&format!("第 {n} 号闸门 has been stuck since Monday.")));
        let shown = agent.prompt();
        assert!(shown.tokens < 1_900, "{n}: {}", shown.tokens);
        let texts = texts(&shown);
        assert!(texts[0].starts_with("第 0 号"));
        assert!(texts.last().unwrap().starts_with(&format!("第 {n} 号")));
        let raw = texts.iter().filter(|text| text.starts_with('第')).count();
        assert!(raw > n.min(20), "{n}: as many as there is room for stand as they were: {raw}");
    }
    assert!(agent.context.memory_tokens() > 100);
}

#[test]
fn the_first_ask_and_the_latest_stand_before_the_memory() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::user("Repair gate 7."));
    agent.step("", &[("look", "{}", "it sticks")]);
    agent.record(Message::user("Oil it first."));
    agent.step("", &[("oil", "{}", "oiled")]);
    agent.step("", &[("open", "{}", "open")]);
    let memory = "\n[r1] look {}\n[r2] -> it sticks\n[r3] user: Oil it first.\n[r4] oil {}\n\
                  [r5] -> oiled";
    let memory = format!("{HEAD}{memory}");
    let expected = ["Repair gate 7.", "Oil it first.", &memory, "open {}", "open"];
    let shown = agent.prompt();
    assert_eq!(texts(&shown), expected);
    assert_eq!((shown.window, shown.loose, shown.cache_marks), (2, 0, vec![1]));
}

#[test]
fn an_open_wave_waits_until_its_last_result() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::user("Repair gate 7."));
    agent.step("", &[("look", "{}", "it sticks")]);
    let before = texts(&agent.prompt());
    let wave = step("w", "", &[("oil", "{}", "oiled"), ("open", "{}", "open")]);
    for message in &wave[..2] {
        agent.record(message.clone());
        assert_eq!(texts(&agent.prompt()), before);
    }
    agent.record(wave[2].clone());
    assert_eq!(texts(&agent.prompt())[2..], ["oil {}\nopen {}", "oiled", "open"]);
}

#[test]
fn a_result_that_says_nothing_says_so_and_a_silent_call_stays() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::user("Repair gate 7."));
    let call = r#"{"role":"assistant","content":" ","tool_calls":[{"id":"c","type":"function","function":{"name":"oil","arguments":"{}"}}]}"#;
    agent.record(Message::from_json(call).unwrap());
    agent.record(Message::tool_result(&ToolCallId::new("c"), "\n"));
    let shown = agent.prompt();
    assert_eq!(check_request(shown.messages.iter().map(Arc::as_ref)), []);
    assert_eq!(texts(&shown), ["Repair gate 7.", "oil {}", "(no output)"]);
}

#[test]
fn a_pinned_message_stands_before_the_memory() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::user("Repair gate 7."));
    for n in 0..6 {
        agent.step("", &[("look", "{}", &format!("坐标 {n}"))]);
    }
    agent.context.pin(SeqNo(2)).unwrap();
    agent.context.pin(SeqNo(0)).unwrap();
    let shown = agent.prompt();
    assert_eq!(texts(&shown)[..2], ["Repair gate 7.", "[tool] 坐标 0"]);
    assert_eq!(shown.pinned, 2);
    let error = agent.context.pin(SeqNo(99)).unwrap_err().to_string();
    assert_eq!(error, "t has no message 99: it holds 13, counted from 0");
}

/// A pinned message is counted wherever it is, but not while it waits for the rest of its wave.
#[test]
fn all_that_is_pinned_and_shown_is_counted() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::system("Be brief."));
    agent.record(Message::user("Repair gate 7."));
    agent.step("", &[("look", "{}", "坐标")]);
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "look", "{}")).to_vec();
    agent.record(Message::calls("", calls));
    let pinned = |agent: &mut Loop, seq: u64| {
        agent.context.pin(SeqNo(seq)).unwrap();
        agent.prompt().pinned
    };
    let counted = [0, 1, 3, 4].map(|seq| pinned(&mut agent, seq));
    assert_eq!(counted, [1, 2, 3, 3]);
    agent.record(Message::tool_result(&ToolCallId::new("a"), "one"));
    agent.record(Message::tool_result(&ToolCallId::new("b"), "two"));
    assert_eq!(agent.prompt().pinned, 4);
}

#[test]
fn a_child_begins_anew_with_the_same_settings() {
    let mut agent = Loop::new(roomy(), Back::AtOnce);
    agent.record(Message::user("Repair gate 7."));
    let child = agent.context.child(TodoId::new("child").unwrap()).unwrap();
    assert_eq!(child.todo().as_str(), "child");
    assert!(child.prompt(&Budget::default()).messages.is_empty());
    assert_eq!(child.tools(), agent.context.tools());
}

#[test]
fn a_budget_that_is_too_small_is_told() {
    let mut context = start(roomy());
    context.record(Message::user("Repair gate 7.")).unwrap();
    let tokens = prompt(&context).tokens;
    assert!(context.prompt(&Budget { tokens: Some(tokens) }).unfit.is_empty());
    assert_eq!(context.prompt(&Budget { tokens: Some(tokens - 1) }).unfit.len(), 1);
    let answer = context.call(&ToolCall::new("c", "no_such_tool", "{}")).unwrap();
    assert!(answer.is_error && answer.text.contains("no_such_tool"), "{}", answer.text);
}
