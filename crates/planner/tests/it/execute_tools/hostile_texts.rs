//! Texts that are truncated, deceptive, or in parts.

use super::{PARALLEL, SEQUENTIAL, SINGLE, body, call, catalog, text};
use foldback_planner::{Catalog, FindingKind, ParseError, parse_execute_tools};
use proptest::prelude::*;

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
        "line 1, column 97: found text after `</execute_python></microsandbox_server>`: \
         `\"</execute_python></microsandbox_server></execute_tools>`; it is not certain that the call \
         ends there, expected the next tag; a body that contains its own closing tags is written in \
         `<![CDATA[..]]>`",
    );
    check(
        "<execute_tools><parallel><deepsearch_server><search>x</search></parallel></execute_tools>",
        "the text is incomplete: it ends at line 1, column 90, inside `<deepsearch_server>` (line 1, \
         column 26) in `<parallel>` (line 1, column 16)",
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

/// ET7: a body that quotes only the opening tags of its own call is reported as such; it is not taken
/// for a truncated text.
#[test]
fn et7_an_unbalanced_quotation_is_named() {
    let check = |text: &str, at: usize| {
        let error = parse_execute_tools(text, &catalog()).expect_err(text);
        let ParseError::Syntax { at: found, .. } = &error else { panic!("{error}: {text}") };
        assert_eq!(found.offset, at, "{text}");
        let message = error.to_string();
        assert!(message.contains("`<s><t>` inside the body"), "{message}");
        assert!(message.contains("CDATA"), "{message}");
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
    // A text that is really truncated, in or after a quotation, is reported as truncated.
    for cut in ["<s><t>", "<s><t>1</t></s>", "<s><t>1</t></s></execute_tools>\" + "] {
        let result = parse_execute_tools(&format!("{one}{cut}"), &Catalog::default());
        assert!(matches!(result, Err(ParseError::Truncated { .. })), "{cut}: {result:?}");
    }
}

/// S10, ET2: groups in which each call waits for each call of the previous group are bounded before
/// they take memory.
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
    // In total 4 * 10^8 pairs, and 10^7.
    for many in [group(20_000).repeat(2), group(100).repeat(1_000)] {
        let read = block(many);
        let kinds: Vec<_> = read.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::OverLimit], "{}", read.findings);
        assert_eq!(read.plan.steps, []);
    }
    // Empty groups have no effect.
    let empty = "<sequential></sequential>".repeat(20_000);
    let read = block(format!("{}<parallel>{empty}</parallel>{}", group(1_000), call("x")));
    assert!(read.findings.is_empty(), "{}", read.findings);
    assert_eq!(read.plan.steps[1_000].after.len(), 1_000);
}

/// ET7: a text truncated in a block runs nothing, wherever it ends.
#[test]
fn et7_a_truncated_block_gives_no_call() {
    for text in [SEQUENTIAL, &PARALLEL[7..PARALLEL.len() - 4], &SINGLE[SINGLE.len() - 138..]] {
        let begin = text.find("<execute_tools>").expect("a block") + "<execute_tools>".len();
        for (at, _) in text.char_indices() {
            match parse_execute_tools(&text[..at], &catalog()) {
                Err(ParseError::Truncated { at: end, .. }) => assert_eq!(end.offset, at),
                Err(ParseError::NoPlan { .. }) => assert!(at < begin, "at {at}: {}", &text[..at]),
                other => panic!("{other:?} at {at}"),
            }
        }
    }
}

/// Fails unless what is said of a text lies in it: the block with its calls, or the place of the error. Returns whether
/// there is a block.
#[track_caller]
fn check_places(text: &str) -> bool {
    match parse_execute_tools(text, &catalog()) {
        Ok(read) => {
            let block = &text[read.range.clone()];
            assert!(block.starts_with("<execute_tools") && block.ends_with('>'), "{block:.200}");
            for step in &read.plan.steps {
                assert!(read.range.contains(&read.places[&step.id].offset), "{step:?}");
            }
            return true;
        }
        // A text may mention blocks in its prose.
        Err(ParseError::NoPlan { .. }) => {}
        Err(
            ParseError::Truncated { at, .. }
            | ParseError::Syntax { at, .. }
            | ParseError::TooDeep { at, .. },
        ) => assert!(text.is_char_boundary(at.offset), "{at}: {text:.200}"),
        Err(error) => panic!("{error}: {text:.200}"),
    }
    false
}

proptest! {
    /// ET7: any text is a block or an error, and both have their place in it.
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
        check_places(&parts.concat());
    }

    /// ET7: any body in CDATA, or escaped, comes through unchanged.
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
    let mut blocks = 0;
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
            blocks += u32::from(check_places(&text));
        }
    }
    assert!(blocks > 0, "some of the texts hold whole blocks");
}
