//! What is odd about a conversation is reported.

use foldback_testkit::{generate, transcript};
use foldback_transcript::{Conversation, Envelope};
use proptest::prelude::*;

fn findings(messages: Vec<foldback_core::Message>) -> Vec<String> {
    let conversation = Conversation::from_parts(None, messages, Envelope::default());
    conversation.check().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let found = findings(transcript(script));
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn a_sound_conversation_has_no_finding() {
    check(
        "
        system: be brief
        user: 你好
        @2025-01-01T10:00:00Z
        assistant> a({}) #1
        assistant> b({}) #2
        tool #2: x
        tool #1: [nothing]
        assistant: done
        ",
        &[],
    );
}

#[test]
fn each_oddity_is_named_with_its_message() {
    check("", &["the conversation has no message; nothing is recorded"]);
    check(
        "user: u\nassistant> a({}) #1\ntool: r\nassistant> b({}) #1\ntool: r",
        &["message 3: the call \"1\" has the id of an earlier call"],
    );
    check(
        "assistant> a({}) #1\nassistant> a({}) #1\ntool: r\ntool: r",
        &["message 0: the call \"1\" has"],
    );
    check(
        "user: u\nassistant> a({}) #1\nassistant> b({}) #2\ntool #2: r\nuser: go on",
        &["message 1: the call \"1\" is never answered; views answer it"],
    );
    check("assistant> a({}) #1", &["message 0: the call \"1\" is never answered"]);
    check("user: u\ntool #9: r", &["message 1: this is the result of the call \"9\""]);
    check(
        "json: {\"role\":\"tool\",\"content\":\"r\"}",
        &["message 0: this tool message names no call"],
    );
    check("user:  \nassistant: [nothing]", &["message 0: the message is empty", "message 1: the"]);
    check(
        "@2025-01-01T10:00:00Z\nuser: a\n@-2m\nuser: b\n@+1m\nuser: c\n@+2m\nuser: d",
        &[
            "message 1: its time 2025-01-01 09:58:01 is earlier than 2025-01-01 10:00:00",
            "message 2: its time 2025-01-01 09:59:02 is earlier than 2025-01-01 10:00:00",
        ],
    );
}

#[test]
fn what_is_accepted_but_not_as_written_is_stated() {
    check(
        r#"json: {"role":"user","content":"one","content":"二","x":1,"x":2,"role":"user"}"#,
        &[
            "message 0: the key \"content\" appears more than once; the last value counts",
            "message 0: the key \"role\" appears more than once",
            "message 0: the key \"x\" appears more than once",
        ],
    );
    check(
        "json: {\"role\":\"user\",\"content\":\"a\",\"timestamp\":\"昨天\"}\n\
         json: {\"role\":\"user\",\"content\":\"b\",\"timestamp\":1735725600}\n\
         json: {\"role\":\"user\",\"content\":\"c\",\"timestamp\":null}",
        &[
            "message 0: its timestamp \"昨天\" is not a readable time",
            "message 1: its timestamp 1735725600 is not a readable time",
        ],
    );
    check(
        r#"json: {"role":"assistant","content":"","tool_calls":[
            {"id":"1","type":"function","function":{"name":"a","arguments":{"x":1}}},
            {"id":"2","type":"function","function":{"name":"b"}},
            {"id":"3","type":"function","function":{"name":"c","arguments":"{}"}}]}"#
            .replace('\n', " ")
            .as_str(),
        &[
            "message 0: the arguments of the call \"1\" are not a string; views send them as the text",
            "message 0: the call \"2\" has no arguments; views send an empty object",
            "message 0: the call \"1\" is never answered",
            "message 0: the call \"2\" is never answered",
            "message 0: the call \"3\" is never answered",
        ],
    );
}

#[test]
fn half_a_surrogate_pair_is_told_from_a_whole_one() {
    let half =
        ["message 0: one of its texts holds half a surrogate pair, which is read as U+FFFD; views"];
    for (text, is_half) in [
        (r"\ud83d\udc4d", false),
        (r"\\ud83d", false),
        (r"\\\\ud83d\n", false),
        (r"中\u4e2d\u0041", false),
        (r"\ud83d", true),
        (r"\udc4d", true),
        (r"\ud83d 中 \udc4d", true),
        (r"\ud83d\ud83d\udc4d", true),
        (r"\ud83d\udc4d\udc4d", true),
        (r"\ud83d\\udc4d", true),
        (r"\\\ud83d中", true),
    ] {
        let script = format!(r#"json: {{"role":"user","content":"{text}"}}"#);
        check(&script, if is_half { &half } else { &[] });
    }
}

#[test]
fn a_repeated_key_of_the_conversation_is_stated() {
    let line = r#"{"id":"a","x":1,"id":"乙","messages":[{"role":"user","content":"u"}]}"#;
    let conversation = foldback_transcript::read_bytes(line.as_bytes()).unwrap().next().unwrap();
    let conversation = conversation.unwrap();
    assert_eq!(conversation.id.as_deref(), Some("乙"));
    let found: Vec<_> = conversation.check().iter().map(ToString::to_string).collect();
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert!(only.starts_with("the key \"id\" appears more than once"), "{only}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn valid_conversations_have_no_finding(
        messages in generate::conversation(generate::Shape::default())
    ) {
        prop_assert_eq!(findings(messages), Vec::<String>::new());
    }

    #[test]
    fn findings_stand_in_the_order_of_messages(
        messages in generate::conversation(generate::Shape { odd: true, ..Default::default() })
    ) {
        let count = messages.len();
        let conversation = Conversation::from_parts(None, messages, Envelope::default());
        let places: Vec<_> = conversation.check().iter().map(|finding| finding.at).collect();
        prop_assert!(places.is_sorted());
        prop_assert!(places.iter().flatten().all(|at| *at < count));
    }
}
