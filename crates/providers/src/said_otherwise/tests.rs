//! Conversations as templates can say them.

use super::*;
use crate::config::Family;
use proptest::prelude::*;

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "look", "{}")
}

fn result(id: &str, text: &str) -> Message {
    Message::tool_result(&ToolCallId::new(id), text)
}

/// Roles, words and ids, a line each.
fn told(messages: Vec<Message>, template: ChatTemplate) -> Vec<String> {
    let request = ChatRequest::new(messages).with_cache_marks(vec![0]);
    let request = said_otherwise(Cow::Owned(request), template);
    let line = |message: &Arc<Message>| {
        let ids: Vec<&str> = message.tool_calls().iter().map(|call| call.id.as_str()).collect();
        let of = message.tool_call_id().map_or(String::new(), |id| format!("<{id}>"));
        format!("{}{of} {}{}", message.role().as_str(), message.text(), ids.join("+"))
            .replace('\n', "/")
    };
    request.messages.iter().map(line).collect()
}

const ALTERNATING: ChatTemplate = ChatTemplate {
    call_ids: CallIds::Given,
    parallel_calls: true,
    turns: Turns::Alternating,
    system: SystemRole::Anywhere,
};

#[test]
fn what_stands_behind_a_result_stands_inside_it() {
    let messages = vec![
        Message::system("简短"),
        Message::user("找"),
        Message::calls("", vec![call("a")]),
        result("a", "found"),
        Message::user("[state of the work]"),
    ];
    let expected = ["system 简短", "user 找", "assistant a", "tool<a> found//[state of the work]"];
    assert_eq!(told(messages, ALTERNATING), expected);
}

#[test]
fn nobody_speaks_twice() {
    let messages = vec![
        Message::assistant("I begin"),
        Message::user("one"),
        Message::observation("two"),
        Message::assistant("ah"),
        Message::assistant("so"),
        Message::system("late"),
        Message::calls("", vec![call("a")]),
        Message::user("and?"),
    ];
    let expected = [
        "user (Go on.)",
        "assistant I begin",
        "user one//two",
        "assistant ah//so",
        "user late",
        "assistant a",
        "assistant (No result.)",
        "user and?",
    ];
    assert_eq!(told(messages, ALTERNATING), expected);
}

#[test]
fn instructions_stand_in_the_users_words_where_the_system_may_not_speak() {
    let messages = || {
        vec![
            Message::system("简短"),
            Message::user("hi"),
            Message::system("now"),
            Message::user("?"),
        ]
    };
    let of = |system| told(messages(), ChatTemplate { system, ..ChatTemplate::default() });
    let late = "user <system>/now/</system>";
    assert_eq!(of(SystemRole::First), ["system 简短", "user hi", late, "user ?"]);
    assert_eq!(of(SystemRole::Never), ["user 简短//hi", late, "user ?"]);
    let calls = vec![Message::system("简短"), Message::calls("", vec![call("a")])];
    let never = ChatTemplate { system: SystemRole::Never, ..ChatTemplate::default() };
    assert_eq!(told(calls, never), ["user 简短", "assistant a"]);
}

#[test]
fn calls_stand_one_after_the_other() {
    let single = ChatTemplate { parallel_calls: false, ..ChatTemplate::default() };
    let messages = vec![
        Message::user("两个"),
        Message::calls("both", vec![call("a"), call("b")]),
        result("b", "B"),
        result("a", "A"),
        Message::assistant("done"),
    ];
    let expected =
        ["user 两个", "assistant botha", "tool<a> A", "assistant b", "tool<b> B", "assistant done"];
    assert_eq!(told(messages, single), expected);
}

#[test]
fn ids_are_nine_letters_and_digits_and_stay_the_same() {
    let nine = ChatTemplate { call_ids: CallIds::Nine, ..ChatTemplate::default() };
    let messages = || {
        vec![
            Message::calls("", vec![call("functions.查:3"), call("abcDEF123")]),
            result("functions.查:3", "x"),
            result("abcDEF123", "y"),
        ]
    };
    let told_ids = told(messages(), nine);
    assert_eq!(told_ids, told(messages(), nine));
    let id = told_ids[1].split(['<', '>']).nth(1).unwrap();
    assert!(is_short(id), "{id}");
    assert_eq!(told_ids[0], format!("assistant {id}+abcDEF123"));
    assert_eq!(told_ids[2], "tool<abcDEF123> y");
}

fn any_message() -> impl Strategy<Value = Vec<Message>> {
    let text = "[a-z上海 ]{1,6}";
    prop_oneof![
        text.prop_map(|text| vec![Message::user(&text)]),
        text.prop_map(|text| vec![Message::observation(&text)]),
        text.prop_map(|text| vec![Message::assistant(&text)]),
        text.prop_map(|text| vec![Message::system(&text)]),
        (1..4_usize, any::<bool>(), text).prop_map(|(count, answered, text)| {
            let id = |n: usize| format!("{text}{n}");
            let calls = (0..count).map(|n| call(&id(n))).collect();
            let results = (0..count).map(|n| result(&id(n), &format!("{text}!")));
            let mut all = vec![Message::calls("", calls)];
            all.extend(results.filter(|_| answered));
            all
        }),
    ]
}

proptest! {
    /// Whatever was said: users and answers take turns, results follow their calls, each message has
    /// one call, and no word is lost.
    #[test]
    fn every_conversation_can_be_said(turns in prop::collection::vec(any_message(), 0..9)) {
        let messages: Vec<Message> = turns.concat();
        let template = Family::Mistral.template();
        let template =
            ChatTemplate { parallel_calls: false, system: SystemRole::Never, ..template };
        let request = ChatRequest::new(messages.clone());
        let said = said_otherwise(Cow::Owned(request), template);
        let all: String = said.messages.iter().map(|message| message.text()).collect();
        for message in &messages {
            prop_assert!(all.contains(message.text().as_ref()));
        }
        let mut expected = Role::User;
        for message in &said.messages {
            prop_assert!(message.tool_calls().len() < 2);
            let is_turn = *message.role() == Role::User
                || *message.role() == Role::Assistant && message.tool_calls().is_empty();
            if is_turn {
                prop_assert_eq!(message.role(), &expected);
                expected = if expected == Role::User { Role::Assistant } else { Role::User };
            }
        }
    }
}
