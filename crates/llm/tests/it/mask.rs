//! Which tools may be called now.

use foldback_core::{Message, ToolCall, ToolCallId, ToolDefinition, check_request};
use foldback_llm::{
    AllowedTools, Availability, CallGrammar, CallMode, ChatRequest, GrammarState, Mask, Preference,
    ToolAvailability, ToolChoice, Vocabulary, hermes_prefill, hermes_prompt, parse_hermes,
    preference_hint,
};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

const SHOP: [&str; 5] = [
    "browser_查询订单",
    "browser_查询物流",
    "shell_修改地址",
    "shell_发起退款",
    "form_收集售后信息",
];

fn tools(names: &[&str]) -> Vec<ToolDefinition> {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    };
    names.iter().map(tool).collect()
}

/// MC9: of case 4, two single tools of two families.
fn case_four() -> ToolChoice {
    let mask =
        Mask::required().name("browser_查询订单").name("shell_发起退款").prefer("shell_发起退款");
    mask.choice(&tools(&SHOP)).unwrap()
}

/// MC7, MC8, MC21: what a mask states to providers.
#[test]
fn mc21_a_mask_names_families_and_single_tools() {
    let own = tools(&["file_read", "file_write", "shell_run", "web_search", "memory_search"]);
    let some = |names: &[&str], required| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
    };
    for (mask, expected) in [
        (Mask::auto(), ToolChoice::Auto),
        (Mask::required(), ToolChoice::Required),
        (Mask::reply_only(), ToolChoice::ReplyOnly),
        (Mask::auto().family("file_"), some(&["file_read", "file_write"], false)),
        (
            Mask::required().family("web_").family("memory_").name("shell_run"),
            some(&["memory_search", "shell_run", "web_search"], true),
        ),
    ] {
        assert_eq!(mask.choice(&own), Ok(expected));
        for tool in &own {
            let told = match mask.choice(&own).unwrap() {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::ReplyOnly => false,
                ToolChoice::Allowed(some) => some.names.contains(&tool.name),
            };
            assert_eq!(mask.allows(&tool.name), told);
        }
    }
}

/// MC6: what does not fit the tools is told at once, all of it.
#[test]
fn mc6_a_mask_that_does_not_fit_is_named() {
    let mask = Mask::required().family("mail_").name("shell_删除").prefer("form_收集售后信息");
    let problems: Vec<_> =
        mask.choice(&tools(&SHOP)).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "no tool's name begins with \"mail_\"",
            "there is no tool \"shell_删除\"",
            "the tool \"form_收集售后信息\" is preferred, but it is not among the allowed ones",
        ]
    );
    assert!(Mask::required().choice(&[]).is_err());
    assert!(Mask::reply_only().family("shell_").choice(&tools(&SHOP)).is_err());
    let unknown = serde_json::from_str::<Mask>(r#"{"familys": ["shell_"]}"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown field `familys`"), "{unknown}");
}

/// The design document's shop: greet, look up, then only what a refund needs.
const TABLE: &str = r#"{
    "start": "greeting",
    "states": {
        "greeting": {"mask": {"mode": "reply_only"}, "on": {"order_known": "lookup", "asked": "open"}},
        "open": {"on": {"order_known": "lookup"}},
        "lookup": {
            "mask": {"mode": "required", "families": ["browser_"]},
            "on": {"refund_asked": "refund", "asked": "open"}
        },
        "refund": {"mask": {
            "mode": "required",
            "names": ["browser_查询订单", "shell_发起退款"],
            "preferred": "shell_发起退款"
        }, "on": {"done": "greeting"}}
    }
}"#;

/// MC6: availability is a state machine over (state, event), and the list of tools never changes.
#[test]
fn mc6_events_move_the_mask_and_never_the_tools() {
    let table: Availability = serde_json::from_str(TABLE).unwrap();
    let again: Availability =
        serde_json::from_str(&serde_json::to_string(&table).unwrap()).unwrap();
    assert_eq!(again, table);
    let mut session = ToolAvailability::new(table.clone(), tools(&SHOP)).unwrap();
    assert_eq!((session.state(), session.choice()), ("greeting", ToolChoice::ReplyOnly));
    assert_eq!(session.fire("refund_asked"), Ok(false), "greeting does not know it, and stays");
    assert_eq!(session.fire("order_known"), Ok(true));
    assert!(session.allows("browser_查询物流") && !session.allows("shell_发起退款"));
    assert_eq!(session.fire("refund_asked"), Ok(true));
    assert_eq!(session.choice(), case_four());
    assert!(!session.allows("browser_查询物流") && session.allows("shell_发起退款"));
    assert_eq!(session.tools(), tools(&SHOP));
    let error = session.fire("refunded").unwrap_err();
    assert_eq!(error.to_string(), "no state knows the event \"refunded\"");
    let resumed = ToolAvailability::new(table, tools(&SHOP)).unwrap().at(session.state()).unwrap();
    assert_eq!(resumed.choice(), session.choice());
    assert!(resumed.at("gone").is_err());
}

/// MC6: a table is checked before a session, and everything wrong with it is named.
#[test]
fn mc6_a_bad_table_is_named_whole() {
    let table: Availability = serde_json::from_str(
        r#"{"start": "a", "states": {
            "a": {"on": {"go": "nowhere"}},
            "island": {"mask": {"names": ["rm"]}}
        }}"#,
    )
    .unwrap();
    let error = ToolAvailability::new(table, tools(&SHOP)).unwrap_err();
    assert_eq!(
        error.problems,
        [
            "in the state \"a\", the event \"go\" leads to \"nowhere\", which is no state",
            "the state \"island\" is never reached",
            "in the state \"island\", there is no tool \"rm\"",
        ]
    );
    let error = ToolAvailability::new(Availability::default(), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the start \"\" is no state");
}

proptest! {
    /// MC6: whatever happens in a session, its prompts declare the same tools in the same bytes, and
    /// a history that calls a tool which is masked by now stays a valid request.
    #[test]
    fn mc6_history_may_name_a_masked_tool(
        events in prop::collection::vec(prop::sample::select(vec!["asked", "order_known", "refund_asked", "done"]), 1..12),
    ) {
        let table: Availability = serde_json::from_str(TABLE).unwrap();
        let mut session = ToolAvailability::new(table, tools(&SHOP)).unwrap();
        let mut messages = vec![Arc::new(Message::system("shop")), Message::user("在吗?").into()];
        let mut before = String::new();
        for (turn, event) in events.into_iter().enumerate() {
            session.fire(event).unwrap();
            let request = ChatRequest {
                messages: messages.clone(),
                tools: session.tools().to_vec(),
                tool_choice: session.choice(),
                ..ChatRequest::default()
            };
            prop_assert_eq!(check_request(messages.iter().map(Arc::as_ref)), []);
            let prompt = hermes_prompt(&request);
            prop_assert!(prompt.text.starts_with(&before));
            before = prompt.text[..prompt.stable].to_owned();
            if let Some(name) = SHOP.iter().find(|name| session.allows(name)) {
                let id = ToolCallId::new(&format!("c{turn}"));
                let call = ToolCall::new(id.as_str(), name, "{}");
                messages.push(Message::calls("", vec![call]).into());
                messages.push(Message::tool_result(&id, "ok").into());
            } else {
                messages.push(Message::assistant("您好").into());
                messages.push(Message::user("嗯").into());
            }
        }
    }
}

/// A small vocabulary: names in pieces, characters cut in the middle, tokens that stand across the
/// end of a name, whole names that are masked, and what a call needs around them.
fn vocabulary() -> (Vec<Vec<u8>>, Vocabulary) {
    let mut tokens: Vec<Vec<u8>> = [
        "<tool_call>",
        "</tool_call>",
        "{\"name\": \"",
        "\"name\"",
        ": ",
        "\n",
        " ",
        "browser_",
        "shell_",
        "form_",
        "bro",
        "wser",
        "_",
        "查询",
        "订单",
        "物流",
        "订单\"",
        "物流\", \"arguments\": {}}",
        "发起",
        "退款",
        "退款\", \"arg",
        "uments\": ",
        "修改地址",
        "修改地址\", \"arguments\": {}}</tool_call>",
        "收集售后信息\"",
        "shell_修改地址",
        "\"",
        "\", ",
        "\"arguments\"",
        "{}",
        "}",
        "{}}",
        "}</tool_call>",
        "}}</tool_call><tool_call>{\"name\": \"shell_修改",
        "{\"a\": 1}",
        "\\u67e5",
        "\\",
        "好",
        "<",
        "tool_call>",
        ", ",
        "\", \"name\": \"form_",
        "'",
        "{'name': 'shell_修改地址', 'arguments': {}}",
        "退款\", \"arguments\": {}}</tool_call>",
        "<|im_end|>",
    ]
    .iter()
    .map(|token| token.as_bytes().to_vec())
    .collect();
    // 查 and 发 in two tokens each, the second of 发 together with what follows.
    tokens.extend(["查", "发", "修"].map(|c| c.as_bytes()[..1].to_vec()));
    tokens.extend(["查", "修"].map(|c| c.as_bytes()[1..].to_vec()));
    tokens.push([&"发".as_bytes()[1..], "起退".as_bytes()].concat());
    let ids = tokens.iter().enumerate().map(|(id, token)| (id as u32 + 1, token.as_slice()));
    let vocabulary = Vocabulary::new(ids, 0);
    (tokens, vocabulary)
}

/// Every state that an answer can come to behind a beginning, the shortest ways first, and the tools
/// that the parser finds called behind every token that may come there. What may come next depends on
/// the state of the grammar alone; what the parser makes of it is told apart as well, so that a way on
/// which the two disagree is gone to its end.
fn walk(choice: &ToolChoice, beginning: &str) -> (BTreeSet<String>, usize) {
    let all = tools(&SHOP);
    let (tokens, vocabulary) = vocabulary();
    let grammar = CallGrammar::new(choice, &all);
    let mut open = VecDeque::from([(
        beginning.as_bytes().to_vec(),
        grammar.after(beginning.as_bytes()).unwrap(),
    )]);
    let mut seen: HashSet<(GrammarState, [BTreeSet<String>; 3])> = HashSet::new();
    let mut called = BTreeSet::new();
    while let Some((bytes, state)) = open.pop_front() {
        let allowed = vocabulary.allowed(&grammar, &state);
        assert_eq!(allowed.contains(&0), grammar.may_end(&state), "{bytes:?}");
        for (id, token) in (1..).zip(&tokens) {
            // The set by tokens is the rule by bytes.
            let next = grammar.advance(&state, token);
            assert_eq!(allowed.contains(&id), next.is_some(), "{bytes:?} + {token:?}");
            let Some(next) = next else { continue };
            let bytes = [bytes.as_slice(), token].concat();
            let text = String::from_utf8_lossy(&bytes);
            let read = ["", PROBE, &format!("<tool_call>{PROBE}")].map(|more| names(&text, more));
            called.extend(read[0].iter().cloned());
            if seen.insert((next.clone(), read)) && bytes.len() < LONGEST {
                open.push_back((bytes, next));
            }
        }
    }
    (called, seen.len())
}

/// The tools that an answer calls if it goes on so.
fn names(answer: &str, more: &str) -> BTreeSet<String> {
    parse_hermes(&format!("{answer}{more}")).calls().map(|call| call.name.clone()).collect()
}

/// A call that a string may hold, to tell whether the parser takes itself to be in one.
const PROBE: &str = "{'name': 'shell_修改地址', 'arguments': {}}";

/// Ways that are longer only nest deeper.
const LONGEST: usize = 400;

/// MC9: case 4, walked exhaustively: of all answers of the toy vocabulary, across all cuts of names
/// and characters, those that call a tool call one of the two, and both can be called. The prefill
/// alone would let all five through.
#[test]
fn mc9_a_masked_name_cannot_be_generated() {
    let prefill = hermes_prefill(&case_four(), &tools(&SHOP));
    assert!(!prefill.is_exact);
    let beginning = prefill.text.strip_prefix("<|im_start|>assistant\n").unwrap();
    let (called, states) = walk(&case_four(), beginning);
    assert_eq!(called, some_names());
    assert!(states > 500, "{states}");
    let (open, _) = walk(&ToolChoice::Required, beginning);
    assert_eq!(open, SHOP.map(str::to_owned).into());
}

/// MC8, MC9: from the very beginning, where words and calls may be mixed: no masked call comes of it,
/// and under reply-only none at all.
#[test]
fn mc9_no_way_around_by_words() {
    let ToolChoice::Allowed(some) = case_four() else { panic!() };
    let auto = ToolChoice::Allowed(AllowedTools { required: false, ..some });
    assert_eq!(walk(&auto, "").0, some_names());
    let (none, states) = walk(&ToolChoice::ReplyOnly, "");
    assert!(none.is_empty() && states > 1, "{none:?}, {states}");
}

/// MC9: the token that ends an answer stands at an end alone, though a string may hold any text; and
/// control tokens that are no text stand nowhere.
#[test]
fn mc9_control_tokens_are_no_text() {
    let all = tools(&SHOP);
    let tokens = ["好", "<|im_end|>", "<|im_start|>", "\"", "<tool_call>"].map(str::as_bytes);
    let vocabulary = Vocabulary::new((1..).zip(tokens), 2).without([3]);
    let call = "<tool_call>{\"name\": \"shell_发起退款\", \"arguments\": {\"a\": \"";
    for (choice, beginning, expected) in [
        (ToolChoice::Auto, call, vec![1, 4, 5]),
        (ToolChoice::Auto, "好", vec![1, 2, 4, 5]),
        (ToolChoice::ReplyOnly, "", vec![1, 2, 4]),
        (ToolChoice::Required, "", vec![5]),
    ] {
        let grammar = CallGrammar::new(&choice, &all);
        let allowed = vocabulary.allowed_after(&grammar, beginning.as_bytes()).unwrap();
        assert_eq!(allowed.into_iter().collect::<Vec<_>>(), expected, "{beginning}");
    }
}

proptest! {
    /// MC9: any answer that is written token by token out of what is allowed calls allowed tools only.
    #[test]
    fn mc9_random_answers_call_allowed_tools_only(
        required: bool,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let ToolChoice::Allowed(some) = case_four() else { panic!() };
        let choice = ToolChoice::Allowed(AllowedTools { required, ..some });
        let grammar = CallGrammar::new(&choice, &tools(&SHOP));
        let (tokens, vocabulary) = vocabulary();
        let mut answer = Vec::new();
        for choice in choices {
            let allowed = vocabulary.allowed_after(&grammar, &answer).unwrap();
            let allowed: Vec<u32> = allowed.into_iter().filter(|token| *token > 0).collect();
            // The toy vocabulary cannot finish everything that it can begin.
            let Some(at) = (!allowed.is_empty()).then(|| choice.index(allowed.len())) else { break };
            let token = allowed[at];
            answer.extend(&tokens[token as usize - 1]);
        }
        let text = String::from_utf8_lossy(&answer);
        for call in parse_hermes(&text).calls() {
            prop_assert!(some_names().contains(&call.name), "{}", text);
        }
    }
}

fn some_names() -> BTreeSet<String> {
    BTreeSet::from(["browser_查询订单", "shell_发起退款"].map(str::to_owned))
}

/// MC8: reply-only masks the token, and its pieces; auto does not; required lets nothing else begin.
#[test]
fn mc8_modes_decide_about_the_beginning_of_a_call() {
    let (tokens, vocabulary) = vocabulary();
    let all = tools(&SHOP);
    let id =
        |text: &str| 1 + tokens.iter().position(|token| token == text.as_bytes()).unwrap() as u32;
    let allowed = |choice: &ToolChoice, beginning: &str| {
        vocabulary.allowed_after(&CallGrammar::new(choice, &all), beginning.as_bytes()).unwrap()
    };
    for (choice, call, words, end) in [
        (ToolChoice::Auto, true, true, true),
        (ToolChoice::ReplyOnly, false, true, true),
        (ToolChoice::Required, true, false, false),
    ] {
        let begin = allowed(&choice, "");
        let told =
            (begin.contains(&id("<tool_call>")), begin.contains(&id("好")), begin.contains(&0));
        assert_eq!(told, (call, words, end), "{choice:?}");
    }
    assert!(!allowed(&ToolChoice::ReplyOnly, "a <").contains(&id("tool_call>")));
    assert!(allowed(&ToolChoice::Auto, "a <").contains(&id("tool_call>")));
    let grammar = CallGrammar::new(&ToolChoice::ReplyOnly, &all);
    assert_eq!(vocabulary.allowed_after(&grammar, b"<tool_call>"), None);
    let done = "<tool_call>{\"name\": \"shell_发起退款\", \"arguments\": {}}</tool_call>";
    assert!(allowed(&ToolChoice::Required, done).contains(&0), "one call is enough");
}

proptest! {
    /// MC9: whatever object of arguments is written as JSON, the grammar lets it through, byte by byte,
    /// and the parser reads it; cut anywhere it is a beginning.
    #[test]
    fn mc9_any_arguments_may_be_written(value in value(), name in prop::sample::select(SHOP.to_vec()), pretty: bool) {
        let arguments = serde_json::json!({ "v": value });
        let arguments = if pretty { format!("{arguments:#}") } else { arguments.to_string() };
        let answer = format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {arguments}}}</tool_call>");
        let grammar = CallGrammar::new(&ToolChoice::Required, &tools(&SHOP));
        let end = grammar.after(answer.as_bytes());
        prop_assert!(end.is_some_and(|end| grammar.may_end(&end)), "{}", answer);
        let read = parse_hermes(&answer);
        prop_assert_eq!(&read.calls().next().unwrap().arguments, &arguments);
        let before = answer.len() - "}</tool_call>".len();
        let inside = grammar.after(&answer.as_bytes()[..before]).unwrap();
        prop_assert_eq!(grammar.name(&inside), Some(name));
    }

    /// MC9: what the grammar lets through to its end, the parser reads without a problem.
    #[test]
    fn mc9_what_is_let_through_is_read(pieces in prop::collection::vec(piece(), 0..10)) {
        let grammar = CallGrammar::new(&case_four(), &tools(&SHOP));
        let mut answer = "<tool_call>{\"name\": \"shell_发起退款\", \"arguments\": ".to_owned();
        let mut state = grammar.after(answer.as_bytes()).unwrap();
        for piece in pieces {
            if let Some(next) = grammar.advance(&state, piece.as_bytes()) {
                state = next;
                answer.push_str(piece);
            }
        }
        let read = parse_hermes(&answer);
        prop_assert!(read.calls().all(|call| some_names().contains(&call.name)), "{}", answer);
        if grammar.may_end(&state) {
            prop_assert_eq!(read.problems().count(), 0, "{}", answer);
            prop_assert!(read.calls().count() > 0);
        }
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "1",
        "-",
        ".",
        "e",
        "true",
        "null",
        "\\",
        "u",
        "0",
        "字",
        " ",
        "{\"k\": ",
        "</tool_call>",
        "<tool_call>",
        "{\"name\": \"browser_查询订单\"",
        ", \"arguments\": ",
        "{'name': 'shell_修改地址', 'arguments': {}}",
        "'",
        "x",
    ])
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}|[\"\\\\\u{0}-\u{1f}</tool_call>]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a字\"]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// MC19: the preferred tool is made likelier and the others are as allowed as before; in words it is
/// preferred and the others are named.
#[test]
fn mc19_a_preference_excludes_nothing() {
    let (tokens, vocabulary) = vocabulary();
    let ToolChoice::Allowed(allowed) = case_four() else { panic!() };
    let grammar = CallGrammar::new(&case_four(), &tools(&SHOP));
    let preference = Preference::new(&allowed, &grammar, 2.5).unwrap();
    let id =
        |text: &str| 1 + tokens.iter().position(|token| token == text.as_bytes()).unwrap() as u32;
    let at = |beginning: &str| {
        let state = grammar.after(beginning.as_bytes()).unwrap();
        let biases = preference.biases(&vocabulary, &grammar, &state);
        let ids: BTreeSet<u32> = biases.keys().copied().collect();
        assert_eq!(ids, vocabulary.allowed(&grammar, &state), "the same tokens");
        assert!(biases.values().all(|bias| [0.0, 2.5].contains(bias)));
        biases
    };
    let begin = "<tool_call>{\"name\": \"";
    let first = at(begin);
    assert_eq!((first[&id("shell_")], first[&id("browser_")], first[&id("bro")]), (2.5, 0.0, 0.0));
    let across = at(&format!("{begin}shell_发起"));
    assert_eq!(across[&id("退款\", \"arg")], 2.5);
    assert_eq!(across[&id("退款\", \"arguments\": {}}</tool_call>")], 2.5, "the whole call");
    let chosen = at(&format!("{begin}shell_发起退款\""));
    assert!(chosen.values().all(|bias| *bias == 0.0), "nothing is left to be chosen");
    let other = at(&format!("{begin}browser_"));
    assert!(!other.is_empty() && other.values().all(|bias| *bias == 0.0));
    assert_eq!(
        preference_hint(&allowed).unwrap(),
        "Prefer `shell_发起退款` where it serves; these may be called as well: `browser_查询订单`."
    );
    let none = AllowedTools { preferred: None, ..allowed };
    assert!(Preference::new(&none, &grammar, 1.0).is_none() && preference_hint(&none).is_none());
    assert_eq!(Mask::auto().mode, CallMode::Auto);
}
