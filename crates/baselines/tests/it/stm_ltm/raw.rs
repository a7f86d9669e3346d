//! The raw words: kept separately, searched and read if the mode allows it.

use super::drive::{Back, Loop, prompt, texts};
use foldback_baselines::stm_ltm::{Mode, Scene, StmLtmConfig};
use foldback_core::{ContextManager, Message, ToolAnswer, ToolCall, ToolCallId};
use foldback_testkit::generate::text;
use foldback_testkit::transcript;
use proptest::prelude::*;

fn small(scene: Scene) -> StmLtmConfig {
    StmLtmConfig { scene, memory_tokens: 600, summary_tokens: 300, ..StmLtmConfig::default() }
}

fn compress() -> Scene {
    Scene { mode: Mode::Compress, ..Scene::default() }
}

fn call(agent: &mut Loop, name: &str, arguments: &str) -> ToolAnswer {
    agent.context.call(&ToolCall::new("c", name, arguments)).unwrap()
}

/// A hundred steps of noise.
fn wander(agent: &mut Loop) {
    for n in 0..100 {
        let noise = format!("nothing of note at lock {n}. 一切正常。").repeat(12);
        agent.step("I look on.", &[("look", &format!("{{\"lock\": {n}}}"), &noise)]);
    }
}

/// CX8: an exact code that was seen a hundred steps ago is found and read in offload mode.
#[test]
fn cx8_offload_answers_an_exact_probe_after_a_hundred_steps() {
    let mut agent = Loop::new(small(Scene::default()), Back::OneRecordLater);
    agent.record(Message::user("Repair the gates."));
    let log =
        format!("{}\nfault 0x7F3A-91 at 52.1406N 闸门 7\n{}", "ok ".repeat(900), "ok ".repeat(900));
    agent.step("", &[("log", "{}", &log)]);
    wander(&mut agent);
    assert!(texts(&agent.prompt()).iter().all(|text| !text.contains("0x7F3A-91")));
    let found = call(&mut agent, "search_raw", r#"{"pattern":"fault 0x[0-9A-F]+"}"#);
    assert_eq!(found.text, "r2:2: fault 0x7F3A-91 at 52.1406N 闸门 7\n");
    let read = call(&mut agent, "read_raw", r#"{"id":"r2","lines":"2"}"#);
    assert_eq!(read.text, "[r2, lines 2-2 of 3]\nfault 0x7F3A-91 at 52.1406N 闸门 7\n");
    assert!(!read.is_error);
}

/// CX8: in compress mode the same probe has no answer: it is in no prompt, and no tool finds it.
#[test]
fn cx8_compress_has_lost_the_same_probe() {
    let mut agent = Loop::new(small(compress()), Back::OneRecordLater);
    agent.record(Message::user("Repair the gates."));
    let log = format!("{}\nfault 0x7F3A-91\n{}", "ok ".repeat(900), "ok ".repeat(900));
    agent.step("", &[("log", "{}", &log)]);
    wander(&mut agent);
    let shown = agent.prompt();
    assert!(texts(&shown).iter().all(|text| !text.contains("0x7F3A-91")));
    assert!(shown.tools.is_empty() && agent.context.tools().is_empty());
    for name in ["search_raw", "read_raw"] {
        let answer = call(&mut agent, name, r#"{"pattern":"fault","id":"r2"}"#);
        assert!(answer.is_error && answer.text.contains("no tool"), "{}", answer.text);
    }
    assert!(!texts(&shown).join("").contains("[r"), "no id stands where none can be used");
}

proptest! {
    /// CX5: raw content is read back byte for byte after any number of compressions, in both modes.
    #[test]
    fn cx5_raw_content_outlives_every_compression(
        results in proptest::collection::vec((text(), 1..200_usize), 1..30),
        offload in any::<bool>(),
    ) {
        let scene = if offload { Scene::default() } else { compress() };
        let config = StmLtmConfig { memory_tokens: 100, summary_tokens: 50, ..small(scene) };
        let mut agent = Loop::new(config, Back::AtOnce);
        agent.record(Message::user("Read on."));
        let results: Vec<String> =
            results.iter().map(|(text, times)| text.repeat(*times)).collect();
        for result in &results {
            agent.step("", &[("read", "{}", result)]);
        }
        for (n, result) in results.iter().enumerate() {
            let raw = agent.context.raw(&format!("r{}", 2 * n + 2));
            prop_assert_eq!(raw.as_ref(), Some(result));
        }
    }
}

/// What was read back is neither searched again nor taken into the memory: it is already there.
#[test]
fn what_was_read_back_is_not_kept_twice() {
    let mut agent = Loop::new(small(Scene::default()), Back::AtOnce);
    for message in transcript(
        r#"
        user: Which fault?
        assistant> log({}) #a
        tool #a: fault 0x7F3A-91
        assistant> read_raw({"id":"r2"}) #b
        tool #b: [r2, lines 1-1 of 1]
          fault 0x7F3A-91
        assistant: It is 0x7F.
        user: Go on.
        assistant: Gone.
        "#,
    ) {
        agent.record(message);
    }
    let found = call(&mut agent, "search_raw", r#"{"pattern":"0x7F3A"}"#);
    assert_eq!(found.text, "r2:1: fault 0x7F3A-91\n");
    let shown = texts(&prompt(&agent.context)).join("\n");
    assert_eq!(shown.matches("0x7F3A-91").count(), 1, "{shown}");
    let id = ToolCallId::new("b");
    agent.record(Message::tool_result(&id, "0x7F3A again, unasked"));
    let found = call(&mut agent, "search_raw", r#"{"pattern":"0x7F3A"}"#);
    assert!(found.text.starts_with("r8:1: 0x7F3A again"), "{}", found.text);
}

/// An instruction after the conversation's beginning leaves the prompts like everything else, and is
/// found like everything else; those at the beginning are in every prompt, and are not found.
#[test]
fn a_late_instruction_can_be_found() {
    let mut agent = Loop::new(small(Scene::default()), Back::AtOnce);
    agent.record(Message::system("Be brief. Code 闸-1."));
    agent.record(Message::user("Repair the gates."));
    agent.record(Message::system(&format!("{} Code 闸-2.", "Mind the lock. ".repeat(60))));
    wander(&mut agent);
    let found = call(&mut agent, "search_raw", r#"{"pattern":"code 闸"}"#);
    assert!(found.text.starts_with("r2:1: …") && !found.text.contains("r0:"), "{}", found.text);
}

/// An abandoned call does not take the result of another with the same id.
#[test]
fn the_id_of_a_call_that_was_given_up_may_come_again() {
    let mut agent = Loop::new(small(Scene::default()), Back::AtOnce);
    agent.record(Message::user("Which fault?"));
    let calls = |name: &str| Message::calls("", vec![ToolCall::new("c", name, "{}")]);
    agent.record(calls("read_raw"));
    agent.record(Message::user("Look again."));
    agent.record(calls("log"));
    agent.record(Message::tool_result(&ToolCallId::new("c"), "fault 0x7F3A-91"));
    let found = call(&mut agent, "search_raw", r#"{"pattern":"0x7F3A"}"#);
    assert_eq!(found.text, "r4:1: fault 0x7F3A-91\n");
}

/// However little an answer may contain, reading on terminates.
#[test]
fn a_page_holds_a_character_at_least() {
    let config = StmLtmConfig { answer_tokens: 0, ..small(Scene::default()) };
    let mut agent = Loop::new(config, Back::AtOnce);
    agent.record(Message::user("闸门 7"));
    let read = |agent: &mut Loop, lines: &str| {
        call(agent, "read_raw", &format!(r#"{{"id":"r0","lines":"{lines}"}}"#)).text
    };
    let first = "[r0, lines 1-1 of 1]\n闸\n[For the rest: \"lines\": \"1+3-\"]";
    assert_eq!(read(&mut agent, "1-"), first);
    assert_eq!(read(&mut agent, "1+7-"), "[r0, lines 1-1 of 1]\n7");
}
