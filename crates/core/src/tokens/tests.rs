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
