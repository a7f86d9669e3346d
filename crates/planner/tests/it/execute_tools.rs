//! `<execute_tools>`, read.

use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, Catalog, ExecuteTools, ExecuteToolsEvent, ExecuteToolsReader, FindingKind, ParseError,
    Step, StepId, Template, ToolSpec, Validator, parse_execute_tools,
};
use proptest::prelude::*;

/// A tool with these parameters; those behind `!` are numbers, the first is required.
fn tool(server: &str, name: &str, parameters: &[&str]) -> ToolSpec {
    let properties: Vec<String> = parameters
        .iter()
        .map(|parameter| match parameter.strip_prefix('!') {
            Some(name) => format!("\"{name}\": {{\"type\": \"number\"}}"),
            None => format!("\"{parameter}\": {{\"type\": \"string\"}}"),
        })
        .collect();
    let parameters = format!(
        "{{\"type\": \"object\", \"properties\": {{{}}}, \"required\": [\"{}\"]}}",
        properties.join(", "),
        parameters[0].trim_start_matches('!')
    );
    let definition =
        ToolDefinition { name: name.to_owned(), description: String::new(), parameters };
    ToolSpec { server: Some(server.to_owned()), ..ToolSpec::new(definition) }
}

fn catalog() -> Catalog {
    [
        tool("deepsearch_server", "search", &["query", "!limit"]),
        tool("microsandbox_server", "execute_python", &["code"]),
        tool("database_server", "execute_sql", &["sql"]),
        tool("files", "files_write", &["path", "text"]),
        ToolSpec { primary: Some("body".to_owned()), ..tool("http", "post", &["url", "body"]) },
        tool("浏览器", "查询订单", &["单号"]),
        tool("math", "range", &["!from", "!to"]),
    ]
    .into_iter()
    .map(|mut tool| {
        if tool.definition.name == "range" {
            tool.definition.parameters =
                tool.definition.parameters.replace("[\"from\"]", "[\"from\", \"to\"]");
        }
        tool
    })
    .collect()
}

#[track_caller]
fn read(text: &str) -> ExecuteTools {
    parse_execute_tools(text, &catalog()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A block without errors, as its calls.
#[track_caller]
fn steps(text: &str) -> Vec<Step> {
    let read = read(text);
    assert!(!read.findings.has_errors(), "{}", read.findings);
    read.plan.steps
}

/// What the only call's only argument reads as.
#[track_caller]
fn body(body: &str) -> (String, Template) {
    let text = format!(
        "<execute_tools><microsandbox_server><execute_python>{body}</execute_python>\
         </microsandbox_server></execute_tools>"
    );
    let mut steps = steps(&text);
    assert_eq!(steps.len(), 1, "{body}");
    let Action::Call { arguments: Template::Object(mut members), .. } = steps.remove(0).action
    else {
        panic!("a call")
    };
    assert_eq!(members.len(), 1, "{body}");
    members.remove(0)
}

fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

/// What each call waits for, counted from 0 as a model does.
#[track_caller]
fn order(text: &str) -> Vec<Vec<u32>> {
    let after = |step: Step| step.after.iter().map(|on| on.0 - 1).collect();
    steps(text).into_iter().map(after).collect()
}

const PARALLEL: &str = "```xml
<execute_tools>
    <parallel>
        <deepsearch_server>
            <search>Apple Inc. stock price</search>
        </deepsearch_server>
        <microsandbox_server>
            <execute_python>import math; print(math.sqrt(16))</execute_python>
        </microsandbox_server>
    </parallel>
</execute_tools>
```";

const SEQUENTIAL: &str = "<execute_tools>
    <sequential>
        <deepsearch_server><search>How old is Elon Musk</search></deepsearch_server>
        <microsandbox_server><execute_python>age = {results[0].data}; print(f\"In 10 years, he will be {int(age) + 10}\")</execute_python></microsandbox_server>
    </sequential>
</execute_tools>";

const SINGLE: &str = "<!-- 第一轮 -->
<execute_tools>
    <database_server><execute_sql>SELECT * FROM users WHERE id = 123</execute_sql></database_server>
</execute_tools>";

/// ET1, ET2: the design document's parallel block, fence and all.
#[test]
fn et1_the_parallel_example_reads_unchanged() {
    let read = read(PARALLEL);
    assert!(read.findings.is_empty(), "{}", read.findings);
    let calls: Vec<String> = read.plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        calls,
        [
            r#"step1 = search {"query": "Apple Inc. stock price"}"#,
            r#"step2 = execute_python {"code": "import math; print(math.sqrt(16))"}"#,
        ]
    );
}

/// ET1, ET4: its sequence; the f-string comes through byte for byte.
#[test]
fn et4_the_sequential_example_keeps_its_f_string() {
    let read = read(SEQUENTIAL);
    assert!(read.findings.is_empty(), "{}", read.findings);
    assert_eq!(
        read.plan.steps[1].to_string(),
        r#"step2 = execute_python {"code": "age = $$step1.result$$; print(f\"In 10 years, he will be {int(age) + 10}\")"} after step1"#
    );
    assert_eq!(&SEQUENTIAL[read.range], SEQUENTIAL);
}

/// ET1, ET9: its single call, without a group.
#[test]
fn et9_a_bare_call_is_a_plan_of_one() {
    let read = read(SINGLE);
    assert!(read.findings.is_empty(), "{}", read.findings);
    assert_eq!(read.plan.steps.len(), 1);
    assert!(SINGLE[read.places[&StepId(1)].offset..].starts_with("<database_server>"));
    assert_eq!(read.places[&StepId(1)].to_string(), "line 3, column 5");
}

/// A call of a search.
fn call(query: &str) -> String {
    format!("<deepsearch_server><search>{query}</search></deepsearch_server>")
}

/// ET2: groups in groups; a group begins when all of the one before has ended.
#[test]
fn et2_groups_nest_with_indexes_in_the_order_of_the_text() {
    let c = call("x");
    let par = |items: &str| format!("<parallel>{items}</parallel>");
    let seq = |items: &str| format!("<sequential>{items}</sequential>");
    for (block, expected) in [
        (seq(&format!("{c}{c}{c}")), "[[], [0], [1]]"),
        (par(&format!("{c}{c}{c}")), "[[], [], []]"),
        (
            seq(&format!("{}{c}{}", par(&c.repeat(2)), par(&c.repeat(2)))),
            "[[], [], [0, 1], [2], [2]]",
        ),
        (par(&format!("{}{c}{}", seq(&c.repeat(2)), seq(&c.repeat(2)))), "[[], [0], [], [], [3]]"),
        (
            seq(&format!("{c}{}{c}", par(&format!("{}{c}", seq(&c.repeat(2)))))),
            "[[], [0], [1], [0], [2, 3]]",
        ),
        (seq(&format!("{c}{}{c}", par(""))), "[[], [0]]"),
        (c.repeat(2), "[[], [0]]"),
    ] {
        let block = format!("<execute_tools>{block}</execute_tools>");
        assert_eq!(format!("{:?}", order(&block)), expected, "{block}");
    }
}

/// ET4: references in and around text; other braces stay.
#[test]
fn et4_other_braces_are_untouched() {
    for plain in [
        "{int(age) + 10}",
        "{results[0]}",
        "{results[i].data}",
        "{results[0].database}",
        "{results[0].status}",
        "{result[0].data}",
        "results[0].data",
        "{{}} {}",
        "d = {'results': [0]}",
        "$$step1.result$$",
        "for r in results: print(f'{r.data}')",
    ] {
        assert_eq!(body(plain), ("code".to_owned(), text(plain)), "{plain}");
    }
}

/// ET4, ET12: what begins like a placeholder and is none is an error, with the place of its call.
#[test]
fn et4_malformed_placeholders_are_errors() {
    for placeholder in [
        "{results[0].data + 1}",
        "{ results[0].data }",
        "{results[-1].data}",
        "{results[0].data.}",
        "{results[0].data[x]}",
        "{results[0].data:>10}",
        "{results[0].data",
        "{results[99999999999].data}",
    ] {
        let text = format!(
            "<execute_tools><sequential>{}\n{}</sequential></execute_tools>",
            call("x"),
            call(placeholder)
        );
        let read = read(&text);
        let errors: Vec<_> = read.findings.errors().collect();
        assert_eq!(errors.len(), 1, "{placeholder}: {}", read.findings);
        assert_eq!(errors[0].kind, FindingKind::MalformedReference);
        assert_eq!(errors[0].step, Some(StepId(2)));
        assert_eq!(errors[0].at.map(|at| at.line), Some(2));
    }
}

/// ET5: a placeholder to itself, a later call, a neighbour in a `<parallel>` or none at all is an error
/// before anything runs.
#[test]
fn et5_a_placeholder_to_what_has_not_ended_is_an_error() {
    let catalog = catalog();
    let placed = |block: &str, expected: Option<FindingKind>| {
        let text = format!("<execute_tools>{block}</execute_tools>");
        let read = read(&text);
        assert!(!read.findings.has_errors(), "{}", read.findings);
        let mut plan = read.plan;
        let findings = Validator::new(&catalog).plan(&mut plan);
        let kinds: Vec<FindingKind> = findings.errors().map(|finding| finding.kind).collect();
        assert_eq!(kinds, expected.into_iter().collect::<Vec<_>>(), "{block}: {findings}");
    };
    let at = |index: u32| call(&format!("{{results[{index}].data}}"));
    let c = call("x");
    placed(&format!("<sequential>{c}{}</sequential>", at(0)), None);
    placed(&format!("<sequential>{c}{}</sequential>", at(1)), Some(FindingKind::SelfDependence));
    placed(&format!("<sequential>{}{c}</sequential>", at(1)), Some(FindingKind::ForwardDependence));
    placed(&format!("<sequential>{c}{}</sequential>", at(7)), Some(FindingKind::UnknownStep));
    placed(&format!("<parallel>{c}{}</parallel>", at(0)), Some(FindingKind::Unordered));
    let nested =
        |inner: &str| format!("<parallel><sequential>{c}{c}</sequential>{inner}</parallel>");
    placed(&nested(&at(1)), Some(FindingKind::Unordered));
    placed(&format!("<sequential><parallel>{c}{c}</parallel>{}</sequential>", at(0)), None);
    let inner = format!("<sequential>{c}<parallel>{c}{}</parallel></sequential>", at(0));
    placed(&inner, None);
}

/// ET7, B12, N6: bodies that no XML parser takes.
#[test]
fn et7_bodies_hold_what_tools_read() {
    for (written, means) in [
        ("if a < b && c > d: pass", "if a < b && c > d: pass"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ("&amp;lt;", "&lt;"),
        (
            "<![CDATA[if a < b & c: '&lt;' </execute_python></microsandbox_server>]]>",
            "if a < b & c: '&lt;' </execute_python></microsandbox_server>",
        ),
        ("print(\"</execute_python>\")", "print(\"</execute_python>\")"),
        (
            "s = '''</execute_python>\n</microsandbox_server'''",
            "s = '''</execute_python>\n</microsandbox_server'''",
        ),
        (
            "html = \"<b>x</b><br/><!-- </parallel> -->\"",
            "html = \"<b>x</b><br/><!-- </parallel> -->\"",
        ),
        ("'</execute_tools>' + '</sequential>'", "'</execute_tools>' + '</sequential>'"),
        ("it's 杭州's \"<", "it's 杭州's \"<"),
        ("x = '<execute_python>'", "x = '<execute_python>'"),
        ("a <b and c> d", "a <b and c> d"),
        ("\n    for x in y:\n        print(x)\n", "    for x in y:\n        print(x)"),
        (
            "d = \"<microsandbox_server><execute_python>1</execute_python></microsandbox_server>\"",
            "d = \"<microsandbox_server><execute_python>1</execute_python></microsandbox_server>\"",
        ),
        ("</execute_python3></execute_python_x>", "</execute_python3></execute_python_x>"),
    ] {
        assert_eq!(body(written), ("code".to_owned(), text(means)), "{written}");
    }
}

/// ET7, B12: a body that quotes a whole block is not cut by it, whatever stands around.
#[test]
fn et7_a_quoted_block_is_body() {
    for inner in [PARALLEL, SEQUENTIAL, SINGLE] {
        let python = format!("doc = \"\"\"{inner}\"\"\"");
        let block = format!(
            "<execute_tools><parallel>{}<microsandbox_server><execute_python>{python}</execute_python>\
             </microsandbox_server></parallel></execute_tools>",
            call("a")
        );
        let steps = steps(&block);
        assert_eq!(steps.len(), 2, "{block}");
        let Action::Call { arguments, .. } = &steps[1].action else { panic!("a call") };
        let placeholders = arguments.references().len();
        assert_eq!(placeholders, usize::from(inner == SEQUENTIAL));
    }
}

/// ET7: where a call ends is never guessed.
#[test]
fn et7_an_uncertain_end_is_an_error() {
    let one = "<execute_tools><microsandbox_server><execute_python>";
    let two = "</execute_python></microsandbox_server></execute_tools>";
    let check = |text: &str, expected: &str| {
        let error = parse_execute_tools(text, &catalog()).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check(
        &format!("{one}s = \"</execute_python></microsandbox_server>\"{two}"),
        "line 1, column 97: found text behind `</execute_python></microsandbox_server>`: \
         `\"</execute_python></microsandbox_server></execute_tools>`; it is not certain that the call \
         ends there, expected the next tag; a body that holds its own closing tags is written in \
         `<![CDATA[..]]>`",
    );
    check(
        "<execute_tools><parallel><deepsearch_server><search>x</search></parallel></execute_tools>",
        "the text ends at line 1, column 90, inside `<deepsearch_server>` (line 1, column 26) in \
         `<parallel>` (line 1, column 16); expected it to go on",
    );
    check(
        "<execute_tools><parallel></sequential></execute_tools>",
        "line 1, column 26: found `</sequential>`, expected a call or `</parallel>`",
    );
    check(
        "<execute_tools><search>杭州</search></execute_tools>",
        "line 1, column 24: found `杭州</search></execute_tools>`, expected the tag of a tool inside \
         `<search>`",
    );
    check(
        "<execute_tools><a><parallel></parallel></a></execute_tools>",
        "line 1, column 19: found `<parallel></parallel></a></execute_tools>`, expected the tag of a \
         tool inside `<a>`",
    );
    let deep = format!("<execute_tools>{}", "<parallel>".repeat(100_000));
    assert!(matches!(parse_execute_tools(&deep, &catalog()), Err(ParseError::TooDeep { .. })));
}

/// ET7: a body that quotes the opening tags of its own call alone is told so; it is not taken for a text
/// that breaks off.
#[test]
fn et7_an_unbalanced_quotation_is_named() {
    let check = |text: &str, at: usize| {
        let whole = events(&[text]);
        assert_eq!(whole.0, [], "{text}");
        let error = whole.1.clone().expect_err(text);
        let ParseError::Syntax { at: found, .. } = &error else { panic!("{error}: {text}") };
        assert_eq!(found.offset, at, "{text}");
        let message = error.to_string();
        assert!(message.contains("`<s><t>` inside the body"), "{message}");
        assert!(message.contains("CDATA"), "{message}");
        let characters: Vec<&str> = text.split("").collect();
        assert_eq!(events(&characters), whole, "{text}");
    };
    let one = "<execute_tools><s><t>print('杭 ";
    let two = "')</t></s>";
    check(&format!("{one}<s><t>{two}</execute_tools>"), one.len());
    check(&format!("{one}<s><t>{two}<u><v>1</v></u></execute_tools>\n好"), one.len());
    check(&format!("```\n{one}<s> <t>{two}</execute_tools>\n```"), one.len() + 4);
    check(
        &format!("{one}<s><t>1</t></s> <s><t>{two}</execute_tools>"),
        one.len() + "<s><t>1</t></s> ".len(),
    );
    // What really breaks off, in or behind a quotation, is said to break off.
    for cut in ["<s><t>", "<s><t>1</t></s>", "<s><t>1</t></s></execute_tools>\" + "] {
        let result = parse_execute_tools(&format!("{one}{cut}"), &Catalog::default());
        assert!(matches!(result, Err(ParseError::Truncated { .. })), "{cut}: {result:?}");
    }
}

/// ET7: a block in a code fence is read beyond lines like the fence's end, but not into the next block.
#[test]
fn et7_a_fenced_block_may_hold_the_marks_of_a_fence() {
    let python = "<microsandbox_server><execute_python>md = '\n```\n{}\n```\n'</execute_python>\
                  </microsandbox_server>";
    let holding = format!("```xml\n<execute_tools>{python}</execute_tools>\n```");
    assert_eq!(steps(&holding).len(), 1);
    let broken = "```\n<execute_tools><files><write>\n```\n";
    let block = format!("<execute_tools>{}</execute_tools>", call("杭州"));
    assert_eq!(steps(&format!("{broken}{broken}{block}")), steps(&block));
    let two = format!("```\n{block}\n{block}\n```");
    assert!(read(&two).findings.has_errors());
    // Both are in the fence, so both are examples.
    let examples = read(&format!("{two}\n{block}"));
    assert!(!examples.findings.has_errors(), "{}", examples.findings);
    let lines: Vec<_> = examples.findings.iter().map(|note| note.at.map(|at| at.line)).collect();
    assert_eq!(lines, [Some(2), Some(3)]);
}

/// S10, ET2: groups of which each call waits for each call of the one before are bounded before they take
/// memory.
#[test]
fn s10_pairs_of_calls_that_wait_are_bounded() {
    let group = |count: usize| format!("<parallel>{}</parallel>", "<a><b/></a>".repeat(count));
    let block = |inner: String| {
        let text = format!("<execute_tools><sequential>{inner}</sequential></execute_tools>");
        parse_execute_tools(&text, &Catalog::default()).expect("a block")
    };
    let read = block(group(1_000).repeat(2));
    assert!(read.findings.is_empty(), "{}", read.findings);
    assert!(read.plan.steps.iter().skip(1_000).all(|step| step.after.len() == 1_000));
    // In all 4 * 10^8 pairs, and 10^7.
    for many in [group(20_000).repeat(2), group(100).repeat(1_000)] {
        let read = block(many);
        let kinds: Vec<_> = read.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::OverLimit], "{}", read.findings);
        assert_eq!(read.plan.steps, []);
    }
    // Empty groups are as if they were not there.
    let empty = "<sequential></sequential>".repeat(20_000);
    let read = block(format!("{}<parallel>{empty}</parallel>{}", group(1_000), call("x")));
    assert!(read.findings.is_empty(), "{}", read.findings);
    assert_eq!(read.plan.steps[1_000].after.len(), 1_000);
}

/// ET7: a text that ends in the middle of a block runs nothing, wherever it ends.
#[test]
fn et7_a_truncated_block_gives_no_call() {
    for text in [SEQUENTIAL, &PARALLEL[7..PARALLEL.len() - 4], &SINGLE[SINGLE.len() - 138..]] {
        let begin = text.find("<execute_tools>").expect("a block") + "<execute_tools>".len();
        for (at, _) in text.char_indices() {
            let mut reader_events = Vec::new();
            let catalog = catalog();
            let mut reader = ExecuteToolsReader::new(&catalog);
            reader_events.extend(reader.push(&text[..at]));
            assert_eq!(reader_events, [], "at {at}");
            match reader.finish() {
                Err(ParseError::Truncated { at: end, .. }) => assert_eq!(end.offset, at),
                Err(ParseError::NoPlan { .. }) => assert!(at < begin, "at {at}: {}", &text[..at]),
                other => panic!("{other:?} at {at}"),
            }
        }
    }
}

/// ET7: text, mentions, fences and comments around a block.
#[test]
fn et7_what_stands_around_a_block_is_passed_over() {
    let block = format!("<execute_tools>{}</execute_tools>", call("杭州"));
    let expected = steps(&block);
    for text in [
        format!("好的，我来查。\n{block}\n稍等。"),
        format!("```\n{block}\n```"),
        format!("~~~xml\n{block}\n~~~ "),
        format!("I use `<execute_tools>` for it: {block}"),
        format!("The <execute_tools> tag is next.\n{block}"),
        format!("Between <execute_tools> and </execute_tools>: {block}"),
        block.replace("<execute_tools>", "<execute_tools mode=\"x\" >"),
        block.replace("</execute_tools>", "</execute_tools\n>"),
        block
            .replace("<deepsearch_server>", "<!-- a < b </execute_tools> --> <deepsearch_server >"),
        format!("An example:\n```xml\n{SEQUENTIAL}\n```\nAnd now:\n{block}"),
        format!("{block}\nThat was like\n```\n{SEQUENTIAL}\n```"),
        format!("```\n<execute_tools><oops\n```\n{block}"),
    ] {
        assert_eq!(steps(&text), expected, "{text}");
    }
    for text in
        ["", "Hello.", "`<execute_tools>`", "Use <execute_tools> for calls.", "<execute_toolsx>"]
    {
        let result = parse_execute_tools(text, &catalog());
        assert!(matches!(result, Err(ParseError::NoPlan { .. })), "{text}: {result:?}");
    }
}

/// ET7, N6: nothing is dropped silently: stray text is noted, a second or an empty block is an error.
#[test]
fn et7_nothing_is_dropped_silently() {
    let one = call("a");
    let stray =
        format!("<execute_tools>First 杭州 < <parallel>then {one}</parallel></execute_tools>");
    let notes: Vec<String> =
        read(&stray).findings.notes().map(|note| note.message.clone()).collect();
    assert_eq!(
        notes,
        [
            "the text `First 杭州 < ` between tags was ignored",
            "the text `then ` between tags was ignored",
        ]
    );
    let block = format!("<execute_tools>{one}</execute_tools>");
    assert!(read(&format!("{block} {block}")).findings.has_errors());
    assert!(read(&format!("```\n{block}\n```\n```\n{block}\n```")).findings.has_errors());
    assert!(read("<execute_tools></execute_tools>").findings.has_errors());
    assert!(read("<execute_tools><parallel/></execute_tools>").findings.has_errors());
}

/// The arguments of the only call of a tool.
#[track_caller]
fn arguments(server: &str, tool: &str, body: &str) -> Result<String, FindingKind> {
    let text =
        format!("<execute_tools><{server}><{tool}>{body}</{tool}></{server}></execute_tools>");
    let read = read(&text);
    if let Some(error) = read.findings.errors().next() {
        return Err(error.kind);
    }
    let Action::Call { arguments, .. } = &read.plan.steps[0].action else { panic!("a call") };
    Ok(arguments.to_string())
}

/// ET14: a JSON object binds by name, any other text is the primary argument.
#[test]
fn et14_a_body_binds_by_name_or_to_the_primary_argument() {
    for (server, tool, body, expected) in [
        ("deepsearch_server", "search", "杭州 天气", r#"{"query": "杭州 天气"}"#),
        (
            "deepsearch_server",
            "search",
            r#"{"query": "a < b", "limit": 3}"#,
            r#"{"query": "a < b", "limit": 3}"#,
        ),
        ("deepsearch_server", "search", "{\"limit\": 1.50, /* all */}", r#"{"limit": 1.50}"#),
        ("deepsearch_server", "search", "{\"q\": 1}", r#"{"query": "{\"q\": 1}"}"#),
        ("deepsearch_server", "search", "{not json}", r#"{"query": "{not json}"}"#),
        ("deepsearch_server", "search", "", "{}"),
        ("deepsearch_server", "search", "{}", "{}"),
        (
            "deepsearch_server",
            "search",
            "<query>a &lt; b</query> <limit>5</limit>",
            r#"{"query": "a < b", "limit": 5}"#,
        ),
        ("deepsearch_server", "search", "<query>a</query> b", r#"{"query": "<query>a</query> b"}"#),
        ("deepsearch_server", "search", "<q>a</q>", r#"{"query": "<q>a</q>"}"#),
        ("http", "post", "plain", r#"{"body": "plain"}"#),
        ("http", "post", r#"{"url": "u", "body": "b"}"#, r#"{"url": "u", "body": "b"}"#),
        ("http", "post", r#"{"name": "x"}"#, r#"{"body": "{\"name\": \"x\"}"}"#),
        ("files", "write", r#"{"path": "a", "text": "b"}"#, r#"{"path": "a", "text": "b"}"#),
        ("files", "files_write", r#"{"path": "a", "text": "b"}"#, r#"{"path": "a", "text": "b"}"#),
        ("浏览器", "查询订单", "A-1", r#"{"单号": "A-1"}"#),
        ("elsewhere", "unheard_of", "text", r#"{"input": "text"}"#),
    ] {
        assert_eq!(arguments(server, tool, body).as_deref(), Ok(expected), "{body}");
    }
    assert_eq!(arguments("math", "range", "1 to 3"), Err(FindingKind::Arguments));
    assert_eq!(
        arguments("deepsearch_server", "search", r#"{"query": "a", "query": "b"}"#),
        Err(FindingKind::DuplicateKey)
    );
    assert_eq!(arguments("http", "search", "x"), Err(FindingKind::UnknownFunction));
}

/// ET14: where a tool's schema names no parameters, or it has no use for text, an object binds by name.
#[test]
fn et14_an_object_binds_by_name_where_it_cannot_be_text() {
    let bound = |schema: &str, primary: Option<&str>, body: &str| {
        let definition = ToolDefinition {
            name: "t".to_owned(),
            description: String::new(),
            parameters: schema.to_owned(),
        };
        let tool = ToolSpec { primary: primary.map(str::to_owned), ..ToolSpec::new(definition) };
        let catalog: Catalog = [tool].into_iter().collect();
        let text = format!("<execute_tools><s><t>{body}</t></s></execute_tools>");
        let read = parse_execute_tools(&text, &catalog).expect("a block");
        assert!(!read.findings.has_errors(), "{schema}: {}", read.findings);
        let Action::Call { arguments, .. } = &read.plan.steps[0].action else { panic!("a call") };
        arguments.to_string()
    };
    let body = r#"{"q": "杭州"}"#;
    for schema in [
        "",
        "{}",
        r#"{"type": "object"}"#,
        r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
        r##"{"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"q": {"type": "string"}}}}}"##,
        r#"{"allOf": [{"properties": {"q": {"type": "string"}}}]}"#,
        r#"{"properties": {"a": {}, "b": {}}}"#,
        r#"{"properties": {"a": {}}, "required": ["q"]}"#,
    ] {
        assert_eq!(bound(schema, None, body), body, "{schema}");
    }
    assert_eq!(bound("{}", Some("code"), body), body);
    assert_eq!(bound("{}", Some("code"), "print(1)"), r#"{"code": "print(1)"}"#);
    // A known parameter of another name, and a use for text: it is text.
    let named = r#"{"properties": {"code": {}}}"#;
    assert_eq!(bound(named, None, body), r#"{"code": "{\"q\": \"杭州\"}"}"#);
}

/// ET4, ET14: in a JSON body a placeholder may stand as a value, in quotes or bare.
#[test]
fn et14_placeholders_stand_in_json_bodies() {
    let block = |body: &str| {
        format!(
            "<execute_tools><sequential>{}<http><post>{body}</post></http></sequential></execute_tools>",
            call("x")
        )
    };
    for body in [
        r#"{"url": "{results[0].data.url}", "body": "no. {results[0].data[\"a b\"][0]}!"}"#,
        r#"{"url": {results[0].data.url}, "body": "no. {results[0].data[\"a b\"][0]}!"}"#,
        r#"{"url": {results[0].data.url},, "body": 1}"#,
    ] {
        let steps = steps(&block(body));
        let Action::Call { arguments, .. } = &steps[1].action else { panic!("a call") };
        let expected = if body.contains(",,") {
            r#"{"body": "{\"url\": $$step1.result.url$$,, \"body\": 1}"}"#
        } else {
            r#"{"url": "$$step1.result.url$$", "body": "no. $$step1.result[\"a b\"][0]$$!"}"#
        };
        assert_eq!(arguments.to_string(), expected);
        assert_eq!(steps[1].after, [StepId(1)]);
    }
}

type Read = (Vec<ExecuteToolsEvent>, Result<ExecuteTools, ParseError>);

fn events(parts: &[&str]) -> Read {
    let catalog = catalog();
    let mut reader = ExecuteToolsReader::new(&catalog);
    let events = parts.iter().flat_map(|part| reader.push(part)).collect();
    (events, reader.finish())
}

/// ET7, OP8: what comes out does not depend on how the text was cut.
#[test]
fn et7_every_cut_gives_the_same() {
    let quoting = format!(
        "看 `<execute_tools>` <execute_tools><microsandbox_server><execute_python>doc = '''{SINGLE}'''\
         </execute_python></microsandbox_server></execute_tools> tail"
    );
    let twice = format!("{SINGLE}\n{SEQUENTIAL}");
    let broken = "<execute_tools><a><b>x</b></a> stray </execute_tools>";
    for text in [PARALLEL, SEQUENTIAL, SINGLE, &quoting, &twice, broken] {
        let whole = events(&[text]);
        for (at, _) in text.char_indices() {
            assert_eq!(events(&[&text[..at], &text[at..]]), whole, "cut at {at}: {text}");
        }
        let characters: Vec<&str> = text.split("").collect();
        assert_eq!(events(&characters), whole, "{text}");
    }
    // The block outside of fences comes out at once, with its last character.
    let (came_out, result) = events(&[SEQUENTIAL]);
    assert_eq!(came_out, [ExecuteToolsEvent::Block(result.expect("a block"))]);
}

proptest! {
    /// ET7: no text makes the scanner panic, and cutting changes nothing.
    #[test]
    fn et7_any_text_ends_in_a_block_or_an_error(
        parts in proptest::collection::vec(prop_oneof![
            Just("<execute_tools>"), Just("</execute_tools>"), Just("<parallel>"), Just("</parallel>"),
            Just("<sequential>"), Just("</sequential>"), Just("<deepsearch_server>"),
            Just("</deepsearch_server>"), Just("<search>"), Just("</search>"), Just("<"), Just("杭"),
            Just("<![CDATA["), Just("]]>"), Just("<!--"), Just("-->"), Just("\n```\n"), Just("`"),
            Just("{results[0].data}"), Just("{\"query\": "), Just("}"), Just("&lt;"), Just("/>"),
        ], 0..24),
    ) {
        let text: String = parts.concat();
        let borrowed: Vec<&str> = parts.clone();
        prop_assert_eq!(events(&borrowed), events(&[&text]));
    }

    /// ET7: any body in CDATA, or escaped, comes through as it is.
    #[test]
    fn et7_any_body_comes_through(written in "[\\PC\\n<>&\"']{0,30}") {
        let inner = format!("x{written}x");
        let escaped = inner.replace('&', "&amp;").replace('<', "&lt;");
        let data = format!("<![CDATA[{}]]>", inner.replace("]]>", "]]]]><![CDATA[>"));
        for form in [escaped, data] {
            prop_assert_eq!(body(&form), ("code".to_owned(), text(&inner)));
        }
    }
}

/// ET7: hostile texts take time in proportion to their length.
#[test]
fn et7_hostile_texts_are_read_in_linear_time() {
    for part in [
        "<execute_tools>",
        "<execute_tools> x ",
        "</execute_tools>",
        "<execute_tools><a><b>",
        "```\n<execute_tools>\n",
        "<",
        "&",
        "{results[0",
        "<!--",
        "<execute_tools x",
        "</b></a>",
        "`",
        "<a><!--",
        "<a> <b>",
        "<a><!---->",
        "```\n<execute_tools><a><b>x\n```\n",
        "```\n<execute_tools><a><b/></a></execute_tools>\n",
        "<execute_tools><a><b/></a></execute_tools>",
        "<execute_tools> <!-- ",
        "<execute_tools",
    ] {
        // Quadratic would be 10^11 steps and more.
        let many = part.repeat(60_000);
        for text in [
            many.clone(),
            format!("<execute_tools><a><b>{many}"),
            format!("{many}-->x</execute_tools>"),
        ] {
            let _ = parse_execute_tools(&text, &catalog());
        }
    }
}

/// ET7: a text that comes in small parts is looked at once, not anew with each part.
#[test]
fn et7_small_parts_are_read_in_linear_time() {
    let catalog = catalog();
    // Looking anew would be 10^12 steps.
    for part in ["abc ", "<exe", "</execute_tools ", " "] {
        let mut reader = ExecuteToolsReader::new(&catalog);
        reader.push("</execute_tools");
        for _ in 0..1_000_000 {
            assert_eq!(reader.push(part), []);
        }
    }
}
