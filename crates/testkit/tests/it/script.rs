//! The language of transcripts.

use foldback_testkit::script::{self, Step};
use foldback_testkit::transcript;

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let messages = transcript(text);
    assert_eq!(messages.iter().map(|m| m.json()).collect::<Vec<_>>(), expected);
}

#[test]
fn each_entry_becomes_a_message() {
    check(
        "
        // a comment
        system: be brief
        developer: d
        user: 你好
        user Bob \"B\": hi
        assistant: text
        assistant> read({\"p\": 1})
        assistant> ls() #x
        tool: first
        tool #x !: failed

        assistant: alone
        assistant: again
        json: {\"role\":\"critic\",\"n\":1.50}
        ",
        &[
            r#"{"role":"system","content":"be brief"}"#,
            r#"{"role":"developer","content":"d"}"#,
            r#"{"role":"user","content":"你好"}"#,
            r#"{"role":"user","content":"hi","name":"Bob \"B\""}"#,
            r#"{"role":"assistant","content":"text","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\": 1}"}},{"id":"x","type":"function","function":{"name":"ls","arguments":""}}]}"#,
            r#"{"role":"tool","content":"first","tool_call_id":"c1"}"#,
            r#"{"role":"tool","content":"failed","tool_call_id":"x","is_error":true}"#,
            r#"{"role":"assistant","content":"alone"}"#,
            r#"{"role":"assistant","content":"again"}"#,
            r#"{"role":"critic","n":1.50}"#,
        ],
    );
}

#[test]
fn indented_lines_and_blank_lines_inside_continue_an_entry() {
    let messages = transcript("  user: a\n    b\n\n      c\n\n  assistant> f({\n    })\n");
    assert_eq!(messages[0].text(), "a\nb\n\n  c");
    assert_eq!(messages[1].tool_calls()[0].arguments, "{\n}");
}

#[test]
fn the_clock_goes_where_it_is_told() {
    let messages = transcript(
        "
        user: none
        @2025-01-01T10:00:00Z
        user: a
        user: b
        @+6m
        user: c
        @-1h
        user: d
        @off
        user: e
        ",
    );
    let times: Vec<_> =
        messages.iter().map(|m| m.timestamp().map(|t| t.to_string()[11..].to_owned())).collect();
    let expected =
        [None, Some("10:00:00"), Some("10:00:01"), Some("10:06:02"), Some("09:06:03"), None];
    assert_eq!(times, expected.map(|t| t.map(str::to_owned)));
}

#[test]
fn large_texts_are_made_and_always_the_same() {
    let messages = transcript("user: <[big 5000]>\nuser: [big 5000 x]\nuser: [nothing]");
    assert_eq!(messages[0].text().len(), 5_002);
    assert_eq!(messages[0].text()[1..5_001], script::big(5_000, ""));
    assert_ne!(messages[1].text(), script::big(5_000, ""));
    assert!(messages[1].text().lines().count() > 50);
    assert_eq!(messages[2].text(), "");
}

#[test]
fn what_happens_between_messages_is_told_in_its_place() {
    let steps = script::steps("user: a\nassistant> f({})\n!items 3\ntool: b");
    let told = steps.iter().map(|step| match step {
        Step::Message(message) => message.text().into_owned(),
        Step::Event(event) => event.clone(),
    });
    assert_eq!(told.collect::<Vec<_>>(), ["a", "", "items 3", "b"]);
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, expected) in [
        ("user: a\nnonsense", "line 2 of the script: there is no colon"),
        ("robot: a", "does not begin with a known word"),
        ("tool: r", "no call is open"),
        ("assistant> f", "a call is name(args)"),
        ("@+5m", "no time was set before"),
        ("@soon", "this is not a time"),
        ("user: [big x]", "[big needs a number"),
        ("json: {}", "has the key \"role\""),
        ("user: a\n!later", "!later is not a message"),
    ] {
        let panic = std::panic::catch_unwind(|| transcript(text)).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains(expected), "{said}");
    }
}
