//! Plans: reading, running, and the fate of mistakes.

use foldback_lab::plans::{
    ClosedForm, Config, GoldPlan, Mutation, MutationFigures, PlanSet, Plans, Recorded, generated,
    measure,
};
use foldback_testkit::{data, skip_without_data};
use serde_json::{Value, json};

/// Three plans of NESTFUL's kind: two parallel searches and a call that needs both, a chain with a
/// reference inside a text, and a single call.
fn nestful() -> Vec<Value> {
    let call = |label: &str, name: &str, arguments: Value, after: Value| json!({ "label": label, "name": name, "arguments": arguments, "depends_on": after });
    vec![
        json!({ "id": "flights", "task": "从纽约飞往伦敦", "gold_calls": [
            call("var1", "find_airport", json!({ "query": "New York" }), json!([])),
            call("var2", "find_airport", json!({ "query": "伦敦" }), json!([])),
            call("var3", "find_flight", json!({
                "from": "$var1.sky id$", "to": "$var2.sky id$", "seats": 2, "budget": "$100-$200",
            }), json!(["var1", "var2"])),
            call("var_result", "var_result", json!({ "flights": "$var3$" }), json!(["var3"])),
        ] }),
        json!({ "id": "exchange", "task": "How much is that in euros?", "gold_calls": [
            call("var1", "rate", json!({ "pair": "USD/EUR" }), json!([])),
            call("var2", "calculate", json!({ "text": "100 * $var1.rates[0].Ask Price$" }), json!(["var1"])),
            call("var3", "send", json!({ "body": "$var2$", "tags": ["a", "$var1.day$"] }), json!(["var1", "var2"])),
            call("var_result", "var_result", json!({}), json!([])),
        ] }),
        json!({ "id": "joke", "task": "Tell me a joke", "gold_calls": [
            call("var1", "joke", json!({}), json!([])),
            call("var_result", "var_result", json!({ "joke": "$var1$" }), json!(["var1"])),
        ] }),
    ]
}

fn others() -> Vec<Value> {
    vec![
        json!({ "id": "files", "turns": [
            { "user": "把报告移到文档里", "gold_calls": ["cd(folder='文档')", "mv(source='it\\'s.txt', destination=\"b\")"] },
            { "user": "Thanks!", "gold_calls": [] },
        ] }),
        json!({ "id": "largest", "task": "Which ocean is larger?", "answer": "the Pacific", "parallel_branches": 3 }),
        json!({ "id": "older", "task": "Who is older?", "answer": "Liezel Huber" }),
    ]
}

fn recorded(lines: &[Value]) -> Recorded {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut recorded = Recorded::default();
    recorded.add("plans.jsonl", text.as_bytes()).unwrap();
    recorded
}

fn measured(lines: &[Value], most: usize) -> Plans {
    let recorded = if lines.is_empty() { Recorded::default() } else { recorded(lines) };
    measure(&recorded, &Config { most, ..Config::default() }).unwrap()
}

#[test]
fn every_kind_of_file_is_told_by_its_content() {
    let all = recorded(&[nestful(), others()].concat());
    let ids: Vec<(&str, PlanSet)> =
        all.plans.iter().map(|plan| (plan.id.as_str(), plan.set)).collect();
    assert_eq!(
        ids,
        [
            ("flights", PlanSet::Nestful),
            ("exchange", PlanSet::Nestful),
            ("joke", PlanSet::Nestful),
            ("files:1", PlanSet::BfclMultiTurn),
            ("largest", PlanSet::ParallelQa),
        ]
    );
    assert_eq!((all.left_out.without_plan, all.left_out.without_calls), (1, 1));
    // The same as one array, and packed.
    let array = Value::Array(nestful()).to_string();
    let mut again = Recorded::default();
    again.add("plans.json", array.as_bytes()).unwrap();
    let packed = zstd::encode_all(array.as_bytes(), 1).unwrap();
    again.add("plans.json.zst", packed.as_slice()).unwrap();
    assert_eq!(again.plans[..3], all.plans[..3]);
    assert_eq!(again.plans[3..], all.plans[..3]);
}

#[test]
fn what_holds_no_plan_is_told_with_its_place() {
    let refused =
        |text: &str| Recorded::default().add("a.jsonl", text.as_bytes()).unwrap_err().to_string();
    let plan = nestful()[2].to_string();
    for (text, told) in [
        (
            format!("{plan}\n\n{{\"messages\": []}}"),
            "a.jsonl, line 3: this is an object with the keys \"messages\"; expected a plan of NESTFUL",
        ),
        (format!("{plan}\n{{\"id\": "), "a.jsonl, line 2: not JSON"),
        (format!("[{plan}, 7]"), "a.jsonl, line 1: item 2: this is not an object"),
        ("{\"id\": \"x\", \"task\": \"\", \"gold_calls\": 7}".to_owned(), "line 1: invalid type"),
        (String::new(), "a.jsonl is empty"),
        (
            "{\"id\":\"b\",\"turns\":[{\"user\":\"\",\"gold_calls\":[\"rm -rf /\"]}]}".to_owned(),
            "b:1, call 1: at byte 3: expected (",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(told), "{text}: {error}");
    }
}

/// OP7, OP3, OP4, ET13: every plan runs in every form that can express it, in the time of its critical
/// path, and each tool is given the right arguments.
#[test]
fn op7_no_plan_takes_longer_than_its_critical_path() {
    let found = measured(&[nestful(), others()].concat(), 50);
    assert_eq!((found.all.plans, found.all.steps), (5, 3 + 3 + 1 + 2 + 4));
    for one in &found.each {
        assert!(one.makespan() >= 1.0 && one.makespan() < 1.000_001, "{one:?}");
        assert_eq!((one.forms.wrong_arguments, one.forms.failed_steps), (0, 0), "{one:?}");
        assert_eq!(one.forms.one_plan, 1, "{one:?}");
    }
    assert!(found.sets.iter().all(|set| set.forms.execute_tools > 0), "{:?}", found.sets);
    let flights = &found.each[0];
    assert!(flights.serial() > 1.0 && flights.levels == 2, "{flights:?}");
}

/// The closed form and the runs are computed independently, and agree.
#[test]
fn op11_one_plan_asks_twice_and_takes_the_closed_form() {
    let found = measured(&[nestful(), others()].concat(), 20);
    assert_eq!(found.sets.len(), 4);
    for set in &found.sets {
        let form = set.closed_form;
        assert_eq!(set.totals.llm_calls_react, form.react_calls());
        assert_eq!(set.totals.llm_calls_one_plan, form.one_plan_calls());
        assert!(set.totals.tokens_react > 0 && set.totals.tokens_one_plan > 0);
        assert_eq!(set.times.len(), 4);
        for at in &set.times {
            let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
            assert!(near(at.react, form.react(at.model_time)), "{at:?}");
            assert!(near(at.one_plan, form.one_plan(at.model_time)), "{at:?}");
            assert!(near(at.speedup, at.closed_form), "{at:?}");
        }
    }
    assert!(found.all.speedup > 1.0);
}

/// OP6, B3: a mistake that shows in a plan is refused for exactly that reason, before anything runs,
/// and nothing hangs.
#[test]
fn op6_every_mistake_that_can_be_seen_is_named() {
    let found = measured(&nestful(), 50);
    assert_eq!(found.mutations.len(), Mutation::ALL.len());
    for row in &found.mutations {
        assert!(row.tried > 0, "{row:?}");
        assert_eq!(row.hangs, 0, "{row:?}");
        assert_eq!(row.refused + row.failed + row.other_plans, row.tried, "{row:?}");
        if row.mutation == Mutation::SwappedToEarlier {
            assert!(row.other_plans > 0, "steps of one tool answer with the same parts: {row:?}");
        } else {
            assert_eq!((row.refused, row.named), (row.tried, row.tried), "{row:?}");
        }
    }
}

/// ET12: a reference that names another step is refused if that step's tool is known to answer
/// differently.
#[test]
fn et12_a_reference_to_a_step_that_answers_otherwise_is_refused() {
    let call = |label: &str, name: &str, arguments: Value| json!({ "label": label, "name": name, "arguments": arguments });
    let plan = json!({ "id": "apart", "task": "", "gold_calls": [
        call("var1", "weather", json!({ "city": "杭州" })),
        call("var2", "rate", json!({ "pair": "USD/EUR" })),
        call("var3", "tell", json!({ "sky": "$var1.天空$", "price": "now $var2.Ask Price$" })),
    ] });
    let found = measured(&[plan], 1);
    let swapped = |row: &&MutationFigures| row.mutation == Mutation::SwappedToEarlier;
    let row = found.mutations.iter().find(swapped).unwrap();
    assert_eq!((row.tried, row.refused, row.named, row.other_plans), (1, 1, 1, 0));
}

/// B4, ET6: a tool's answer is data, whatever it looks like.
#[test]
fn b4_answers_that_look_like_references_change_nothing() {
    let found = measured(&[nestful(), others()].concat(), 20);
    assert!(found.placeholders.tried > found.each.len(), "both forms: {:?}", found.placeholders);
    assert_eq!(found.placeholders.inert, found.placeholders.tried);
}

/// B2, OP8: on a paused clock, a step starts the moment it can, even while its plan is still being
/// written.
#[test]
fn b2_a_step_begins_as_soon_as_it_can() {
    let found = measured(&[], 10);
    assert_eq!(found.streaming.steps, 300);
    assert_eq!(found.streaming.paused_worst_ms, 0.0);
}

#[test]
fn without_files_the_made_plans_are_the_plans() {
    let found = measured(&[], 10);
    assert_eq!(found.all.plans, generated(10, 7).len());
    assert_eq!(found.sets.len(), 1);
    assert_eq!(found.sets[0].set, PlanSet::Generated);
    let again = measured(&[], 10);
    assert_eq!((found.all, found.each), (again.all, again.each));
}

/// OP7, OP11: every recorded plan takes its critical path, gives each tool the right arguments, and
/// matches the closed form.
#[test]
fn op7_the_recorded_plans_take_their_critical_paths() {
    skip_without_data!();
    let mut recorded = Recorded::default();
    recorded.add_path(&data::folder().unwrap().join("plans")).unwrap();
    let of = |set| ClosedForm::of(recorded.of(set).collect::<Vec<&GoldPlan>>());
    let nestful = of(PlanSet::Nestful);
    // All of NESTFUL has 300 plans, 800 calls and 618 on critical paths; about 60 % are here.
    assert!((nestful.width() - 1.29).abs() < 0.02, "{nestful:?}");
    assert!((nestful.speedup(1.0) - 1.56).abs() < 0.03, "{nestful:?}");
    let turns = of(PlanSet::BfclMultiTurn);
    assert_eq!(turns.calls, turns.critical_path, "calls that change a state wait for each other");
    assert!(of(PlanSet::ParallelQa).width() > 2.0);
    let found = measure(&recorded, &Config { most: 1, ..Config::default() }).unwrap();
    assert_eq!(found.all.plans, recorded.plans.len());
    assert!(found.all.makespan_over_critical_path <= 1.01, "{:?}", found.all);
    assert_eq!(found.placeholders.inert, found.placeholders.tried);
    for set in &found.sets {
        assert_eq!((set.forms.wrong_arguments, set.forms.failed_steps), (0, 0), "{set:?}");
        for at in &set.times {
            assert!((at.speedup / at.closed_form - 1.0).abs() < 0.01, "{set:?}");
        }
    }
    for row in &found.mutations {
        assert_eq!(row.hangs, 0, "{row:?}");
        let is_seen = row.mutation == Mutation::SwappedToEarlier || row.named == row.tried;
        assert!(is_seen, "{row:?}");
    }
}
