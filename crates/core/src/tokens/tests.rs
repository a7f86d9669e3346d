//! What a message takes in a request.

use super::*;

fn tokens(json: &str) -> usize {
    message_tokens(&Estimate, &Message::from_json(json).unwrap())
}

/// LV11: an image counts as an image wherever its keys say that it is one.
#[test]
fn lv11_an_image_counts_as_one_in_any_order_of_its_keys() {
    let data = "iVBORw0KGgo".repeat(20_000);
    let written = format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
    );
    let sorted = format!(
        r#"{{"source":{{"data":"{data}","media_type":"image/png","type":"base64"}}, "type": "image"}}"#
    );
    // A result with an image at its end is not an image.
    let text = "结果".repeat(20_000);
    let result = format!(
        r#"{{"type":"tool_result","content":[{{"type":"text","text":"{text}"}},{{"source":{{"type":"url","url":"u"}},"type":"image"}}]}}"#
    );
    let json = format!(r#"{{"role":"user","content":[{result}]}}"#);
    assert_eq!(tokens(&json), MESSAGE_OVERHEAD + result.len() / 4);
    for part in [written, sorted] {
        let json = format!(r#"{{"role":"user","content":[{part}]}}"#);
        assert_eq!(tokens(&json), MESSAGE_OVERHEAD + IMAGE, "{}", &part[..40]);
    }
}

/// LV11: the ends of a part are cut between characters, and a part without an image counts by its
/// length.
#[test]
fn lv11_a_part_of_an_unknown_kind_counts_by_its_length() {
    for n in [1, 66, 67, 198, 199, 200, 201, 5_000] {
        let part = format!(r#"{{"type":"document","text":"{}"}}"#, "图".repeat(n));
        let json = format!(r#"{{"role":"user","content":[{part}]}}"#);
        assert_eq!(tokens(&json), MESSAGE_OVERHEAD + part.len() / 4, "{n}");
    }
}

/// LV11: reasoning and what else is sent beside content and calls counts by its length; the same
/// reasoning in two forms counts once.
#[test]
fn lv11_what_is_sent_beside_the_content_counts() {
    let thought = "想".repeat(4_000);
    let said = tokens(r#"{"role":"assistant","content":"好"}"#);
    let with = |fields: &str| tokens(&format!(r#"{{"role":"assistant",{fields},"content":"好"}}"#));
    let blocks = format!(
        r#""thinking_blocks":[{{"type":"thinking","thinking":"{thought}","signature":"s"}}]"#
    );
    let plain = format!(r#""reasoning_content":"{thought}""#);
    assert!((3_000..3_050).contains(&(with(&blocks) - said)), "{}", with(&blocks));
    assert_eq!(with(&plain) - said, 3_000);
    assert_eq!(with(&format!("{plain},{blocks}")), with(&blocks));
    assert_eq!(with(&format!(r#""refusal":"{thought}",{plain}"#)) - said, 6_001);
    let old = r#""function_call":{"name":"read","arguments":"{}"}"#;
    assert_eq!(with(old) - said, 8);
    // Nothing is sent in an empty field, and no API is sent a field that it does not know.
    let none = r#""refusal":null,"function_call":null,"reasoning":"","thinking_blocks":[]"#;
    assert_eq!(with(none), said);
    assert_eq!(with(&format!(r#""source":{{"reasoning":"{thought}"}}"#)), said);
    // A stand-in keeps what is beside its content.
    let json = format!(r#"{{"role":"assistant",{plain},"content":"好"}}"#);
    let stand_in = Message::from_json(&json).unwrap().with_body(Content::Empty, Vec::new());
    assert!(stand_in.api_json().contains(&thought));
    assert_eq!(message_tokens(&Estimate, &stand_in), MESSAGE_OVERHEAD + 3_000);
}
