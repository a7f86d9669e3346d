//! What a grammar admits, by the rules of llama.cpp.

use super::gbnf::{Gbnf, State};
use super::grammar;
use crate::hermes::parser::tests::parse_hermes;
use foldback_core::ToolDefinition;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet, VecDeque};

const SHOP: [&str; 5] = [
    "browser_查询订单",
    "browser_查询物流",
    "shell_修改地址",
    "shell_发起退款",
    "form_收集售后信息",
];

/// Case 4 of the design document: two single tools of two families.
const SOME: [&str; 2] = ["browser_查询订单", "shell_发起退款"];

fn grammar_of(names: &[&str], parameters: &str, required: bool) -> Gbnf {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: parameters.to_owned(),
    };
    let tools: Vec<_> = names.iter().map(tool).collect();
    Gbnf::read(&grammar(&tools.iter().collect::<Vec<_>>(), required))
}

fn free(names: &[&str], required: bool) -> Gbnf {
    grammar_of(names, "{}", required)
}

/// A small vocabulary: names in pieces, tokens that reach across the end of a name, whole names that are
/// masked, and what a call needs around them.
const TOKENS: [&str; 46] = [
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
    "{\"t\": \"",
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
];

/// Arguments that admit any text, so that paths into a string are among those walked.
const TEXT: &str = r#"{"type":"object","properties":{"t":{"type":"string"}}}"#;

/// A call that a string may hold, to find out whether the parser believes that it is inside one.
const PROBE: &str = "{'name': 'shell_修改地址', 'arguments': {}}";

/// Longer paths only repeat themselves.
const LONGEST: usize = 400;

/// The tools that the parser finds called after every answer that the vocabulary can write, the shortest
/// paths first. What may come next depends only on the state of the grammar; the parser's state is
/// distinguished as well, so that a path on which the two disagree is walked to its end.
fn walk(grammar: &Gbnf) -> (BTreeSet<String>, usize) {
    let names = |answer: &str, more: &str| -> BTreeSet<String> {
        parse_hermes(&format!("{answer}{more}")).calls().map(|call| call.name.clone()).collect()
    };
    let mut open = VecDeque::from([(String::new(), grammar.start())]);
    let mut seen: HashSet<(State, [BTreeSet<String>; 3])> = HashSet::new();
    let mut called = BTreeSet::new();
    while let Some((text, state)) = open.pop_front() {
        for token in TOKENS {
            let Some(next) = grammar.advance(&state, token) else { continue };
            let text = format!("{text}{token}");
            let read = ["", PROBE, &format!("<tool_call>{PROBE}")].map(|more| names(&text, more));
            called.extend(read[0].iter().cloned());
            if seen.insert((next.clone(), read)) && text.len() < LONGEST {
                open.push_back((text, next));
            }
        }
    }
    (called, seen.len())
}

/// MC9: case 4, walked exhaustively: of all answers of the toy vocabulary, across all cuts of names,
/// those that call a tool call one of the two, and both can be called.
#[test]
fn mc9_a_masked_name_cannot_be_generated() {
    let (called, states) = walk(&grammar_of(&SOME, TEXT, true));
    assert_eq!(called, SOME.map(str::to_owned).into());
    assert!(states > 100, "{states}");
    let (open, _) = walk(&grammar_of(&SHOP, TEXT, true));
    assert_eq!(open, SHOP.map(str::to_owned).into());
}

/// MC8, MC9: if text and calls may be mixed, no masked call results, and under reply-only none at all.
#[test]
fn mc9_no_way_around_by_words() {
    assert_eq!(walk(&grammar_of(&SOME, TEXT, false)).0, SOME.map(str::to_owned).into());
    let (none, states) = walk(&free(&[], false));
    assert!(none.is_empty() && states > 1, "{none:?}, {states}");
}

proptest! {
    /// MC9: any answer that is written token by token from what is allowed calls only allowed tools.
    #[test]
    fn mc9_random_answers_call_allowed_tools_only(
        required: bool,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let grammar = free(&SOME, required);
        let (mut state, mut answer) = (grammar.start(), String::new());
        for choice in choices {
            let next = TOKENS.iter().filter_map(|token| Some((token, grammar.advance(&state, token)?)));
            let next: Vec<_> = next.collect();
            // The toy vocabulary cannot finish everything that it can begin.
            if next.is_empty() {
                break;
            }
            let (token, behind) = next[choice.index(next.len())].clone();
            answer.push_str(token);
            state = behind;
        }
        for call in parse_hermes(&answer).calls() {
            prop_assert!(SOME.contains(&call.name.as_str()), "{}", answer);
        }
    }
}

/// MC8: reply-only lets no call begin, in whatever pieces; auto does; required lets nothing else begin.
#[test]
fn mc8_modes_decide_about_the_beginning_of_a_call() {
    let (auto, reply, required) = (free(&SHOP, false), free(&[], false), free(&SHOP, true));
    for (grammar, call, words) in
        [(&auto, true, true), (&reply, false, true), (&required, true, false)]
    {
        let begins = |text: &str| grammar.after(text).is_some();
        assert_eq!((begins("<tool_call>"), begins("好")), (call, words));
        assert_eq!(Gbnf::may_end(&grammar.start()), words);
    }
    for before in ["a <", "<<", "<tool_<", "<tool_call<"] {
        assert!(reply.after(&format!("{before}tool_call>")).is_none(), "{before}");
        assert!(auto.after(&format!("{before}tool_call>")).is_some(), "{before}");
        assert!(reply.admits(&format!("{before}好")), "words are free");
    }
    let done = "<tool_call>{\"name\": \"shell_发起退款\", \"arguments\": {}}</tool_call>";
    assert!(required.admits(done), "one call is enough");
    assert!(required.admits(&format!("\n{done}\n{done}")), "and several are allowed");
    assert!(auto.admits(&format!("好{done}, {done}!")));
}

proptest! {
    /// MC9: whatever object of arguments is written as JSON, the grammar admits it if a tool does not
    /// describe them, and the parser reads it; cut anywhere it is a beginning.
    #[test]
    fn mc9_any_arguments_may_be_written(value in value(), name in prop::sample::select(SHOP.to_vec()), pretty: bool) {
        let arguments = serde_json::json!({ "v": value });
        let arguments = if pretty { format!("{arguments:#}") } else { arguments.to_string() };
        let answer = format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {arguments}}}</tool_call>");
        let grammar = free(&SHOP, true);
        prop_assert!(grammar.admits(&answer), "{}", answer);
        let read = parse_hermes(&answer);
        prop_assert_eq!(&read.calls().next().unwrap().arguments, &arguments);
        let other = answer.replace("shell_", "shell-").replace("browser_", "browser-").replace("form_", "form-");
        prop_assert!(!grammar.admits(&other));
    }

    /// MC9: what the grammar admits to its end, the parser reads without a problem.
    #[test]
    fn mc9_what_is_let_through_is_read(pieces in prop::collection::vec(piece(), 0..10)) {
        let grammar = free(&SOME, true);
        let mut answer = "<tool_call>{\"name\": \"shell_发起退款\", \"arguments\": ".to_owned();
        let mut state = grammar.after(&answer).unwrap();
        for piece in pieces {
            if let Some(next) = grammar.advance(&state, piece) {
                state = next;
                answer.push_str(piece);
            }
        }
        let read = parse_hermes(&answer);
        prop_assert!(read.calls().all(|call| SOME.contains(&call.name.as_str())), "{}", answer);
        if Gbnf::may_end(&state) {
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
        "{}",
        "}</tool_call>",
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

/// The arguments that a tool's schema admits, and those that it does not.
#[track_caller]
fn check(schema: &str, admitted: &[&str], refused: &[&str]) {
    let grammar = grammar_of(&["t"], schema, true);
    let call = |arguments: &str| {
        format!("<tool_call>{{\"name\": \"t\", \"arguments\": {arguments}}}</tool_call>")
    };
    for arguments in admitted {
        assert!(grammar.admits(&call(arguments)), "{schema} should admit {arguments}");
    }
    for arguments in refused {
        assert!(!grammar.admits(&call(arguments)), "{schema} should refuse {arguments}");
    }
}

/// MC9: arguments are those of the tool's schema: required ones come, others may, in the order of the
/// schema, with values of their type.
#[test]
fn mc9_arguments_are_those_of_the_schema() {
    check(
        r#"{"type":"object","required":["path","n"],"properties":{
            "path":{"type":"string"},"deep":{"type":"boolean"},"n":{"type":"integer"},"x":{"type":"number"}}}"#,
        &[
            r#"{"path": "a/<tool_call>b.rs", "n": 3}"#,
            r#"{"path":"查","deep":true,"n":-10,"x":1.5e-7}"#,
            "{\n  \"path\": \"\\n\\u67e5\",\n  \"n\": 0\n}",
        ],
        &[
            r#"{"path": "a"}"#,
            r#"{"n": 3, "path": "a"}"#,
            r#"{"path": "a", "n": 1.5}"#,
            r#"{"path": "a", "n": 01}"#,
            r#"{"path": 7, "n": 1}"#,
            r#"{"path": "a", "n": 1, "other": 1}"#,
            r#"{"path": "a", "path": "b", "n": 1}"#,
            r#"{"path": "a", "n": 1,}"#,
            "{'path': 'a', 'n': 1}",
            "{}",
            "[]",
        ],
    );
    check(
        r#"{"type":"object","properties":{"a":{"type":"null"},"b":{"enum":["x","y\"",3]}}}"#,
        &["{}", r#"{"a": null}"#, r#"{"b": "y\""}"#, r#"{"a": null, "b": 3}"#],
        &[r#"{"b": "z"}"#, r#"{,"b": 3}"#, r#"{"a": null "b": 3}"#],
    );
    check(
        r#"{"properties":{"k":{"const":"go"},"o":{"type":["integer","null"]},"l":{"type":"array","items":{"type":"integer"},"minItems":1}},"required":["k"]}"#,
        &[r#"{"k": "go"}"#, r#"{"k": "go", "o": null, "l": [1, 2]}"#, r#"{"k": "go", "l": [1]}"#],
        &[r#"{"k": "no"}"#, r#"{"k": "go", "l": []}"#, r#"{"k": "go", "o": "1"}"#],
    );
}

/// MC9: references, choices and other properties of a schema hold too; what is not understood allows any value.
#[test]
fn mc9_schemas_of_every_kind_are_read() {
    check(
        r##"{"type":"object","required":["tree"],"properties":{"tree":{"$ref":"#/$defs/node"}},
            "$defs":{"node":{"type":"object","required":["v"],"properties":{
                "v":{"anyOf":[{"type":"integer"},{"type":"string"}]},
                "next":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}"##,
        &[
            r#"{"tree": {"v": 1}}"#,
            r#"{"tree": {"v": "a", "next": [{"v": 2}, {"v": 3, "next": []}]}}"#,
        ],
        &[r#"{"tree": {}}"#, r#"{"tree": {"v": 1, "next": [{"v": null}]}}"#],
    );
    // References that only name each other have no value of their own.
    check(
        r##"{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"https://elsewhere"}},
            "$defs":{"x":{"$ref":"#/$defs/y"},"y":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}]}}}"##,
        &[r#"{"a": null}"#, r#"{"a": [1], "b": {"c": true}}"#],
        &[r#"{"c": 1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}}"#,
        &["{}", r#"{"a": 1}"#, r#"{"x": "1"}"#, r#"{"a": 1, "x": "1", "y": "2"}"#],
        &[r#"{"x": 1}"#, r#"{"a": "1" "x": "1"}"#],
    );
    check(
        r#"{"type":"object","properties":{},"additionalProperties":false}"#,
        &["{}", "{ }"],
        &[r#"{"a": 1}"#],
    );
    for open in ["{}", "no JSON", "true", r#"{"type":"object"}"#, r#"{"$ref":"elsewhere"}"#] {
        check(open, &["{}", r#"{"a": [1, {"b": null}]}"#], &["[]", "1", r#"{"a"}"#]);
    }
    check(
        r#"{"properties":{"a":{"not":{}},"b":{"allOf":[{"type":"integer"}]},"c":true,"d":{"type":"odd"},"e":{"enum":[]}}}"#,
        &[r#"{"a": 1, "b": 2, "c": "x", "d": null, "e": [0]}"#],
        &[r#"{"b": "2"}"#],
    );
}
