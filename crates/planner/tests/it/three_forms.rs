//! One plan in all three forms.

use foldback_core::{ToolCall, ToolDefinition};
use foldback_planner::{
    Action, Catalog, FindingKind, Form, Intent, ParseError, Plan, Step, StepId, Template,
    WriteError, lower_calls, parse_execute_tools, parse_one_plan, write_execute_tools,
    write_one_plan,
};
use foldback_tool::ToolSpec;
use proptest::prelude::*;

fn catalog() -> Catalog {
    let tool = |name: &str, server: Option<&str>, parameters: &str| {
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: format!("{{\"type\": \"object\", \"properties\": {{{parameters}}}}}"),
        };
        let mut spec = ToolSpec::new(definition);
        spec.server = server.map(str::to_owned);
        spec
    };
    [
        tool("search", Some("web"), r#""query": {"type": "string"}"#),
        tool("web_fetch", Some("web"), r#""url": {"type": "string"}, "n": {"type": "integer"}"#),
        tool("查询", None, r#""词": {"type": "string"}"#),
    ]
    .into_iter()
    .collect()
}

fn of_one_plan(text: &str) -> Plan {
    let one_plan = parse_one_plan(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(!one_plan.findings.has_errors(), "{}", one_plan.findings);
    let Intent::Plan(plan) = one_plan.intent else { panic!("a plan") };
    plan
}

fn of_execute_tools(text: &str) -> Plan {
    let block =
        parse_execute_tools(text, &catalog()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(!block.findings.has_errors(), "{}", block.findings);
    block.plan
}

/// ET13: with references and an order, in the two forms that have them.
#[test]
fn et13_a_plan_with_references_is_one_plan_in_two_forms() {
    let one_plan = of_one_plan(
        r#"{"action_plan": {
            "step1": {"function": "search", "args": {"query": "春晚分会场"}},
            "step2": {"function": "查询", "args": {"词": "a < b && c"}},
            "step3": {"function": "web_fetch", "args": {"url": "https://x/$$step1.result.city$$?q=1", "n": 1.50},
                "dependence": [1, 2]},
            "step4": {"function": "search", "args": {"query": "$$step1.result[\"a b\"][0]$$"}, "dependence": [1, 3]}
        }}"#,
    );
    let execute_tools = of_execute_tools(
        r#"<execute_tools><sequential>
            <parallel>
                <web><search>春晚分会场</search></web>
                <tools><查询>a < b && c</查询></tools>
            </parallel>
            <web><fetch>{"url": "https://x/{results[0].data.city}?q=1", "n": 1.50}</fetch></web>
            <web><search>{results[0].data["a b"][0]}</search></web>
        </sequential></execute_tools>"#,
    );
    assert_eq!(one_plan.steps, execute_tools.steps);
    let written = write_execute_tools(&one_plan, &catalog()).expect("a nesting of groups");
    assert_eq!(of_execute_tools(&written.text).steps, one_plan.steps);
    assert_eq!(written.order, [1, 2, 3, 4].map(StepId));
}

/// ET13: without references, in all three.
#[test]
fn et13_independent_calls_are_one_plan_in_three_forms() {
    let native = lower_calls(&[
        ToolCall::new("c1", "search", r#"{"query": "Apple Inc. stock price"}"#),
        ToolCall::new("c2", "web_fetch", r#"{"url": "a & b", "n": 2}"#),
    ]);
    let one_plan = of_one_plan(
        r#"{"action_plan": {"step2": {"function": "web_fetch", "args": {"url": "a & b", "n": 2}},
            "step1": {"function": "search", "args": {"query": "Apple Inc. stock price"}}}}"#,
    );
    let execute_tools = of_execute_tools(
        "<execute_tools><parallel><web><search>Apple Inc. stock price</search></web>
         <web><fetch><url>a &amp; b</url><n>2</n></fetch></web></parallel></execute_tools>",
    );
    assert_eq!(native.plan.steps, one_plan.steps);
    assert_eq!(native.plan.steps, execute_tools.steps);
}

/// ET13: a shape that no nesting of groups has is refused, not bent.
#[test]
fn et13_a_shape_that_groups_cannot_say_is_refused() {
    let plan = |text: &str| {
        let steps: Vec<String> = text
            .split_whitespace()
            .zip(1..)
            .map(|(after, number)| {
                let after = after.trim_matches('-');
                format!("\"step{number}\": {{\"function\": \"search\", \"args\": {{\"query\": \"q\"}}, \"dependence\": [{after}]}}")
            })
            .collect();
        of_one_plan(&format!("{{\"action_plan\": {{{}}}}}", steps.join(", ")))
    };
    // An N: 3 waits for 1; 4 waits for 1 and 2.
    let refused = write_execute_tools(&plan("- - 1 1,2"), &catalog());
    assert!(matches!(refused, Err(WriteError::Inexpressible { .. })), "{refused:?}");
    // Interleaved chains change only their order in the text.
    let written = write_execute_tools(&plan("- - 1 2"), &catalog()).expect("two chains");
    assert_eq!(written.order, [1, 3, 2, 4].map(StepId));
    let anchor = of_one_plan(
        r#"{"action_plan": {"step1": {"function": "anchor_function", "args": {"task": "再定"}}}}"#,
    );
    assert!(write_execute_tools(&anchor, &catalog()).is_err());
    assert_eq!(of_one_plan(&write_one_plan(&anchor).expect("text")), anchor);
    let literal = Plan {
        form: Form::Native,
        steps: lower_calls(&[ToolCall::new("c", "search", r#"{"query": "{results[0].data}"}"#)])
            .plan
            .steps,
    };
    let refused = write_execute_tools(&literal, &catalog());
    assert!(matches!(refused, Err(WriteError::LooksLikeReference { .. })), "{refused:?}");
    assert!(write_one_plan(&literal).is_ok());
}

/// ET13: long plans are taken apart level by level. Pair by pair it would be 10^13 steps.
#[test]
fn et13_long_plans_are_written_in_linear_time() {
    const COUNT: u32 = 30_000;
    let plan = |after: &dyn Fn(u32) -> Vec<u32>| {
        let step = |id| Step {
            id: StepId(id),
            action: Action::Call {
                function: "search".to_owned(),
                arguments: Template::Object(Vec::new()),
            },
            after: after(id).into_iter().map(StepId).collect(),
            on_failure: Default::default(),
        };
        Plan { form: Form::OnePlan, steps: (1..=COUNT).map(step).collect() }
    };
    for plan in [
        plan(&|id| if id > 1 { vec![id - 1] } else { vec![] }),
        plan(&|_| vec![]),
        // Pairs of which each waits for the pair before.
        plan(&|id| match id {
            1 | 2 => vec![],
            _ if id % 2 == 1 => vec![id - 2, id - 1],
            _ => vec![id - 3, id - 2],
        }),
        // Two chains side by side.
        plan(&|id| if id > 2 { vec![id - 2] } else { vec![] }),
    ] {
        let written = write_execute_tools(&plan, &catalog()).expect("a nesting of groups");
        let again = of_execute_tools(&written.text);
        let edges = |plan: &Plan| plan.steps.iter().map(|step| step.after.len()).sum::<usize>();
        assert_eq!(edges(&again), edges(&plan));
        assert_eq!(again.steps.len(), plan.steps.len());
    }
}

/// S10: nesting that is too deep is an error of its own kind in all three forms, wherever it occurs.
#[test]
fn s10_deep_nesting_is_a_typed_error_in_all_three_forms() {
    let deep = format!("{{\"n\": {}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
    let one_plan = parse_one_plan(&format!(
        "{{\"action_plan\": {{\"step1\": {{\"function\": \"web_fetch\", \"args\": {deep}}}}}}}"
    ));
    assert!(matches!(one_plan, Err(ParseError::TooDeep { most: 128, .. })), "{one_plan:?}");
    let native = lower_calls(&[ToolCall::new("c", "web_fetch", &deep)]);
    let kinds: Vec<_> = native.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::OverLimit]);
    let groups = format!("<execute_tools>{}", "<sequential>".repeat(1_000));
    let groups = parse_execute_tools(&groups, &catalog());
    assert!(matches!(groups, Err(ParseError::TooDeep { most: 128, .. })), "{groups:?}");
    for tool in ["fetch", "search", "unknown"] {
        let block = format!("<execute_tools><web><{tool}>{deep}</{tool}></web></execute_tools>");
        let block = parse_execute_tools(&block, &catalog()).expect("a block");
        let kinds: Vec<_> = block.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::OverLimit], "{tool}");
    }
}

/// A nesting of groups, as the text of a block with queries that are numbered in their order.
#[derive(Clone, Debug)]
enum Tree {
    Call(String),
    Parallel(Vec<Tree>),
    Sequential(Vec<Tree>),
}

impl Tree {
    fn write(&self, out: &mut String) {
        let (tag, items) = match self {
            Self::Call(query) => {
                let query = query.replace('&', "&amp;").replace('<', "&lt;");
                out.push_str(&format!("<web><search>q{query}q</search></web>"));
                return;
            }
            Self::Parallel(items) => ("parallel", items),
            Self::Sequential(items) => ("sequential", items),
        };
        out.push_str(&format!("<{tag}>"));
        items.iter().for_each(|item| item.write(out));
        out.push_str(&format!("</{tag}>"));
    }
}

/// All pairs of which one has to end before the other starts.
fn order(steps: &[Step]) -> Vec<(u32, u32)> {
    let mut pairs = std::collections::BTreeSet::new();
    for step in steps {
        for on in &step.after {
            let before: Vec<u32> =
                pairs.iter().filter(|(_, to)| *to == on.0).map(|(from, _)| *from).collect();
            pairs.extend(before.into_iter().chain([on.0]).map(|from| (from, step.id.0)));
        }
    }
    pairs.into_iter().collect()
}

proptest! {
    /// ET2, ET13: any nesting, written as a plan and as a block again, is the same calls in the same
    /// order.
    #[test]
    fn et13_any_nesting_survives_both_forms(tree in "[\\PC\\n<&{}$]{0,8}".prop_map(Tree::Call).prop_recursive(4, 24, 4, |inner| prop_oneof![
        proptest::collection::vec(inner.clone(), 1..4).prop_map(Tree::Parallel),
        proptest::collection::vec(inner, 1..4).prop_map(Tree::Sequential),
    ])) {
        let mut text = String::from("<execute_tools>");
        tree.write(&mut text);
        text.push_str("</execute_tools>");
        let plan = of_execute_tools(&text);
        let one_plan = of_one_plan(&write_one_plan(&plan).expect("no text reads like a reference"));
        prop_assert_eq!(&one_plan.steps, &plan.steps);
        let written = write_execute_tools(&plan, &catalog()).expect("a nesting of groups");
        let again = of_execute_tools(&written.text);
        let calls = |plan: &Plan| -> Vec<Action> { plan.steps.iter().map(|step| step.action.clone()).collect() };
        prop_assert_eq!(calls(&again), calls(&plan));
        prop_assert_eq!(order(&again.steps), order(&plan.steps));
    }
}

/// ET13: arguments that no plain body can express are written as JSON.
#[test]
fn et13_bodies_are_chosen_so_that_they_read_back() {
    for query in
        ["  spaces  ", "{\"query\": 1}", "", "{}", "a\n  b\n", "<url>", "]]> &amp; <", "\"", "{"]
    {
        let arguments =
            Template::Object(vec![("query".to_owned(), Template::Text(query.to_owned()))]);
        let action = Action::Call { function: "search".to_owned(), arguments };
        let step = Step { id: StepId(1), action, after: vec![], on_failure: Default::default() };
        let plan = Plan { form: Form::OnePlan, steps: vec![step] };
        let written = write_execute_tools(&plan, &catalog()).expect(query);
        assert_eq!(of_execute_tools(&written.text).steps, plan.steps, "{}", written.text);
    }
}
