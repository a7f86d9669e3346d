//! Conversations as templates can express them.

use super::*;
use proptest::prelude::*;

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "look", "{}")
}

fn result(id: &str, text: &str) -> Message {
    Message::tool_result(&ToolCallId::new(id), text)
}

/// Roles, text and ids, a line each.
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
        "user <system>/late/</system>",
        "assistant a",
        "assistant (No result.)",
        "user and?",
    ];
    assert_eq!(told(messages, ALTERNATING), expected);
}

/// Templates that accept one system message take the first, and refuse the second.
#[test]
fn instructions_at_the_beginning_are_one_message() {
    let messages = || {
        vec![
            Message::system("简短"),
            Message::system("no jokes"),
            Message::user("找"),
            Message::calls("", vec![call("a")]),
            result("a", "found"),
            Message::system("late"),
        ]
    };
    let first = ["system 简短//no jokes", "user 找", "assistant a"];
    let late = "<system>/late/</system>";
    let expected = |rest: &[String]| [&first.map(str::to_owned)[..], rest].concat();
    let inside = [format!("tool<a> found//{late}")];
    assert_eq!(
        told(messages(), ALTERNATING),
        expected(&inside),
        "words of the system stay told apart"
    );
    let only_first = ChatTemplate { system: SystemRole::First, ..ChatTemplate::default() };
    let behind = ["tool<a> found".to_owned(), format!("user {late}")];
    assert_eq!(told(messages(), only_first), expected(&behind));
    let any = told(messages(), ChatTemplate { parallel_calls: false, ..ChatTemplate::default() });
    assert_eq!(any.len(), 6, "others take them as they are");
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
    /// Whatever was said: the system speaks first or never, users and answers take turns, each message
    /// has one call, and no word is lost.
    #[test]
    fn every_conversation_can_be_said(
        turns in prop::collection::vec(any_message(), 0..9),
        system in prop::sample::select(vec![SystemRole::Anywhere, SystemRole::First, SystemRole::Never]),
        order in prop::sample::select(vec![Turns::Any, Turns::Alternating]),
    ) {
        let messages: Vec<Message> = turns.concat();
        let template =
            ChatTemplate { parallel_calls: false, system, turns: order, call_ids: CallIds::Nine };
        let request = ChatRequest::new(messages.clone());
        let said = said_otherwise(Cow::Owned(request), template).into_owned().messages;
        let all: String = said.iter().map(|message| message.text()).collect();
        for message in &messages {
            prop_assert!(all.contains(message.text().as_ref()));
        }
        let is_alternating = order == Turns::Alternating;
        let mut expected = Role::User;
        for (at, message) in said.iter().enumerate() {
            prop_assert!(message.tool_calls().len() < 2);
            if message.role().is_instruction() {
                let may_speak = system == SystemRole::Anywhere && !is_alternating;
                prop_assert!(may_speak || at == 0 && system != SystemRole::Never);
            }
            let is_turn = *message.role() == Role::User
                || *message.role() == Role::Assistant && message.tool_calls().is_empty();
            if is_turn && is_alternating {
                prop_assert_eq!(message.role(), &expected);
                expected = if expected == Role::User { Role::Assistant } else { Role::User };
            }
        }
    }
}
