//! What is read of requests that begin alike.

use super::Reader;
use crate::Api;
use crate::conversation::Conversation;
use crate::exchange::Asked;
use axum::http::HeaderMap;
use bytes::Bytes;
use foldback_core::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const SECRET: [u8; 32] = [7; 32];

fn read(reader: &mut Reader, api: Api, body: &str) -> Result<Conversation, String> {
    let body = Bytes::from(body.to_owned());
    reader.read(&Asked::new(Timestamp(0), api, "/", &HeaderMap::new(), &body, &SECRET))
}

/// Everything that is read of a request.
fn facts(read: Result<Conversation, String>) -> Result<Vec<String>, String> {
    let read = read?;
    let terms = &read.terms;
    let mut facts = vec![
        format!("{:?} {} {:?}", read.class, read.asked, read.agent),
        format!("{:?} {:?} {:?}", terms.model, terms.thinking, terms.load),
        format!("{} {} {}", terms.is_marked, terms.is_long, terms.can_declare),
        read.body.get(terms.place.clone()).unwrap().to_owned(),
    ];
    for message in &read.messages {
        let at = read.body.get(message.place.clone()).unwrap();
        facts.push(format!("{} {at} {:?}", &*message.json, message.facts));
    }
    Ok(facts)
}

/// A message or an item: the user's, the model's, thinking, a call or its result.
fn said(api: Api, kind: u8, n: u8, is_marked: bool) -> Value {
    let text = format!("港 {n} \"\\u0041").repeat(usize::from(n) * 40 + 1);
    let role = if kind == 0 { "user" } else { "assistant" };
    match (api, kind) {
        (Api::Responses, 2) => {
            json!({ "type": "reasoning", "summary": [], "encrypted_content": text })
        }
        (Api::Responses, 3) => {
            json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" })
        }
        (Api::Responses, 4) => {
            json!({ "type": "function_call_output", "call_id": "c", "output": text })
        }
        (Api::Messages, _) if is_marked => {
            let mark = json!({ "type": "ephemeral", "ttl": "1h" });
            json!({ "role": role, "content": [{ "type": "text", "text": text, "cache_control": mark }] })
        }
        _ => json!({ "role": role, "content": text }),
    }
}

fn body(api: Api, system: u8, list: &[Value], is_last: bool) -> String {
    let key = if api == Api::Responses { "input" } else { "messages" };
    let list: Vec<_> = list.iter().map(ToString::to_string).collect();
    let list = format!("\"{key}\": [ {} ]", list.join(" ,\n"));
    let head = format!(
        "\"model\":\"m\",\"system\":\"{system}\",\"store\":false,\"tools\":[{{\"name\":\"read\"}}]"
    );
    match is_last {
        true => format!("{{{head}, {list}}}"),
        false => format!("{{{list}, {head}}}"),
    }
}

proptest! {
    /// GW14: a request that begins as others did is read as if it were the first.
    #[test]
    fn gw14_what_was_read_before_changes_nothing(
        api in prop_oneof![Just(Api::Messages), Just(Api::ChatCompletions), Just(Api::Responses)],
        steps in prop::collection::vec(
            (0..12_usize, prop::collection::vec((0..5_u8, any::<u8>(), any::<bool>()), 0..4), 0..20_u8, any::<bool>(), 0..600_usize),
            1..12,
        ),
    ) {
        let mut reader = Reader::new(SECRET);
        let mut list: Vec<Value> = Vec::new();
        for (back, more, system, is_last, cut) in steps {
            list.truncate(list.len().saturating_sub(back.saturating_sub(8)));
            list.extend(more.into_iter().map(|(kind, n, mark)| said(api, kind, n % 20, mark)));
            let mut body = body(api, system / 19, &list, is_last);
            if cut < 30 {
                // One that broke off.
                body.truncate(body.floor_char_boundary(body.len().saturating_sub(cut)));
            }
            let fresh = facts(read(&mut Reader::new(SECRET), api, &body));
            prop_assert_eq!(facts(read(&mut reader, api, &body)), fresh);
        }
    }
}

/// GW14: in a conversation that continues, only what is new is read; its other messages are kept.
#[test]
fn gw14_a_conversation_that_goes_on_is_read_at_its_end() {
    let mut reader = Reader::new(SECRET);
    let mut list: Vec<_> = (0..40).map(|n| said(Api::Messages, n % 2, 20, false)).collect();
    read(&mut reader, Api::Messages, &body(Api::Messages, 0, &list, true)).unwrap();
    // What is recognised by its bytes is not read, either, so nothing of the first messages may be requested.
    reader.digests = Default::default();
    list.extend([said(Api::Messages, 1, 1, false), said(Api::Messages, 0, 1, false)]);
    let more = read(&mut reader, Api::Messages, &body(Api::Messages, 0, &list, true)).unwrap();
    assert_eq!(more.asked, 42);
    assert_eq!(reader.digests.len(), 3, "the last of before and the two that are new");
    assert_eq!(reader.lately.len(), 1, "the body of before is let go");
}
