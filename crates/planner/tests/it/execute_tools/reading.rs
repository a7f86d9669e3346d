//! Blocks, groups and the bodies of calls, as they are read.

use super::{PARALLEL, SEQUENTIAL, SINGLE, body, call, catalog, read, steps, text};
use foldback_planner::{Action, ParseError, Step, StepId, parse_execute_tools};

/// What each call waits for, counted from 0 as a model does.
#[track_caller]
fn order(text: &str) -> Vec<Vec<u32>> {
    let after = |step: Step| step.after.iter().map(|on| on.0 - 1).collect();
    steps(text).into_iter().map(after).collect()
}

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

/// ET2: groups in groups; a group begins when all of the previous one has ended.
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

/// ET7, B12, N6: bodies that no XML parser accepts.
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

/// ET7, B12: a body that quotes a whole block is not cut by it, whatever surrounds it.
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
