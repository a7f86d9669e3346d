//! Messages as read and written.

use super::*;

#[test]
fn keeps_the_exact_text_and_what_it_says() {
    let json = r#"{"x":1.50,"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\": \"\u00e9\"}"}}],"timestamp":"2025-01-01T10:00:00Z"}"#;
    let message = Message::from_json(json).unwrap();
    assert_eq!(message.json(), json);
    assert_eq!(message.tool_calls(), [ToolCall::new("c1", "read", "{\"p\": \"é\"}")]);
    assert_eq!(message.timestamp().unwrap().to_string(), "2025-01-01 10:00:00");
    let api = message.api_json();
    assert!(!api.contains("timestamp") && !api.contains("\"x\""), "{api}");
    assert!(api.contains(r#""arguments":"{\"p\": \"\u00e9\"}""#), "{api}");
}

#[test]
fn unknown_parts_and_roles_pass_through() {
    let json = r#"{"role":"critic","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}"#;
    let message = Message::from_json(json).unwrap();
    assert_eq!(message.role().as_str(), "critic");
    assert_eq!(message.text(), "a\nb");
    let Content::Parts(parts) = message.content() else { panic!("{message:?}") };
    assert_eq!(parts.len(), 3);
    let same = message.with_body(message.content().clone(), Vec::new());
    assert_eq!(same.json(), json, "content that does not change keeps its text");
    let other = message.with_body(Content::Text("c".to_owned()), Vec::new());
    assert_eq!(other.json(), r#"{"role":"critic","content":"c"}"#);
}

#[test]
fn composed_messages_read_back_as_themselves() {
    let call = ToolCall::new("c", "t", "{}");
    let at = Timestamp::parse("2025-01-01T10:00:00Z").unwrap();
    for message in [
        Message::user("问题 \"q\"\n"),
        Message::assistant("").at(at),
        Message::calls("", vec![call.clone()]),
        Message::calls("so", vec![call.clone()]).at(at),
        Message::tool_result(&call.id, ""),
        Message::tool_result(&call.id, "r").at(at),
    ] {
        let read = Message::from_json(message.json()).unwrap();
        assert_eq!(read.role(), message.role());
        assert_eq!(read.content(), message.content(), "{message:?}");
        assert_eq!(read.tool_calls(), message.tool_calls());
        assert_eq!(read.tool_call_id(), message.tool_call_id());
        assert_eq!(read.timestamp(), message.timestamp());
    }
}

#[test]
fn bad_messages_are_named() {
    for (json, expected) in [
        ("[]", "a message is a JSON object"),
        ("{}", "a message has the key \"role\""),
        (r#"{"role":7}"#, "the key \"role\" of a message must be a string, not 7"),
        (r#"{"role":"user","content":{}}"#, "a string, null or a list of parts"),
        (r#"{"role":"user","content":[1]}"#, "parts that are objects or strings"),
        (r#"{"role":"assistant","tool_calls":[{"id":"a"}]}"#, "a list of calls"),
        (r#"{"role":"user","content":"#, "a message is a JSON object"),
    ] {
        let error = Message::from_json(json).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn lv3_calls_are_sent_as_chat_apis_write_them() {
    for (arguments, expected) in
        [(r#","arguments":{"a": 1}"#, r#""arguments":"{\"a\": 1}""#), ("", r#""arguments":"{}""#)]
    {
        let json = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"t"{arguments}}}}}]}}"#
        );
        let message = Message::from_json(&json).unwrap();
        assert!(!message.has_usual_calls());
        assert_eq!(message.json(), json, "what came is kept");
        assert!(message.api_json().contains(expected), "{}", message.api_json());
    }
}

#[test]
fn half_a_surrogate_pair_keeps_its_text() {
    let json = r#"{"role":"tool","tool_call_id":"c","content":"cut \ud83d"}"#;
    let message = Message::from_json(json).unwrap();
    assert_eq!(message.text(), "cut \u{fffd}");
    assert_eq!(message.json(), json);
}

#[test]
fn objects_of_many_keys_keep_order_and_last_values() {
    let keys: Vec<String> = (0..100).map(|n| format!(r#""k{n}":{n}"#)).collect();
    let json = format!(r#"{{"role":"user",{},"k7":"again","k99":"again"}}"#, keys.join(","));
    let message = Message::from_json(&json).unwrap();
    let fields = message.fields();
    assert_eq!(fields.len(), 101);
    for (n, (key, value)) in fields.iter().skip(1).enumerate() {
        assert_eq!(key.as_ref(), format!("k{n}"));
        let expected = if matches!(n, 7 | 99) { "\"again\"".to_owned() } else { n.to_string() };
        assert_eq!(value.get(), expected);
    }
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts() {
    let message = Message::from_json(r#"{"role":"user","content":"a","content":"b"}"#).unwrap();
    assert_eq!(message.text(), "b");
}
