//! What the generators promise.

use foldback_core::{Message, check_request};
use foldback_testkit::generate::{Shape, conversation, conversation_json, message};
use proptest::prelude::*;

proptest! {
    #[test]
    fn conversations_are_valid_requests_unless_they_are_odd(
        messages in conversation(Shape { times: true, long: 3, ..Shape::default() })
    ) {
        prop_assert_eq!(check_request(&messages), []);
        prop_assert!(messages.iter().map(|m| m.timestamp().unwrap()).is_sorted());
    }

    #[test]
    fn messages_read_back_as_themselves(message in message()) {
        let read = Message::from_json(message.json()).unwrap();
        prop_assert_eq!(read.content(), message.content());
        prop_assert_eq!(read.tool_calls(), message.tool_calls());
        prop_assert_eq!(read.tool_call_id(), message.tool_call_id());
        prop_assert_eq!(read.timestamp(), message.timestamp());
    }

    #[test]
    fn conversations_as_text_are_json(text in conversation_json(false), line in conversation_json(true)) {
        serde_json::from_str::<&serde_json::value::RawValue>(&text).unwrap();
        prop_assert!(!line.contains(['\n', '\r']));
    }
}

#[test]
fn odd_conversations_are_odd() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = conversation(Shape { odd: true, ..Shape::default() });
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let messages = strategy.new_tree(&mut runner).unwrap().current();
        kinds.extend(check_request(&messages).iter().map(|violation| {
            format!("{violation:?}").split('(').next().unwrap_or_default().to_owned()
        }));
    }
    let all = [
        "DuplicateCall",
        "Empty",
        "FirstNotUser",
        "LateInstruction",
        "NoMessage",
        "Orphan",
        "Unanswered",
    ];
    assert!(kinds.iter().map(String::as_str).eq(all), "{kinds:?}");
}
