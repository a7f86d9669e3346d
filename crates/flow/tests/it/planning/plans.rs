//! Commands, and how they change the plans.

use super::{Exchange, PERCENTAGES, command, create, refused, session};
use foldback_flow::{PlanningTool, Plans, StepStatus, TextPlan};
use foldback_tool::Tool;
use serde_json::{Value, json};

/// OM1: the schema: seven commands, the arguments and their types, one that is required, no others.
#[test]
fn om1_the_schema_is_that_of_the_reference() {
    let tool = PlanningTool::new();
    let definition = &tool.spec().definition;
    assert_eq!(definition.name, "planning");
    let mut schema: Value = serde_json::from_str(&definition.parameters).unwrap();
    for property in schema["properties"].as_object_mut().unwrap().values_mut() {
        let description = property.as_object_mut().unwrap().remove("description").unwrap();
        assert!(!description.as_str().unwrap().is_empty());
    }
    let expected = json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["create", "update", "list", "get", "set_active", "mark_step", "delete"],
            },
            "plan_id": {"type": "string"},
            "title": {"type": "string"},
            "steps": {"type": "array", "items": {"type": "string"}},
            "step_index": {"type": "integer"},
            "step_status": {
                "type": "string",
                "enum": ["not_started", "in_progress", "completed", "blocked"],
            },
            "step_notes": {"type": "string"},
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    assert_eq!(schema, expected);
}

/// OM2, OM3, OM4, OM5, OM6, OM7: the same commands are answered with the same text, good and bad ones.
#[test]
fn om7_every_answer_equals_the_references() {
    let mut plans = Plans::default();
    let mut commands = std::collections::BTreeSet::new();
    for Exchange { arguments, output, error } in session() {
        let command = command(arguments);
        commands.insert(command.command.clone());
        match plans.apply(&command) {
            Ok(told) => assert_eq!((Some(told), None), (output, error), "{command:?}"),
            Err(told) => {
                assert_eq!((None, Some(told.to_string())), (output, error), "{command:?}");
            }
        }
    }
    assert_eq!(commands.len(), 8, "all commands, and one that is none: {commands:?}");
}

/// OM7: percentages are rounded as the reference rounds them, halves included.
#[test]
fn om7_percentages_equal_the_references() {
    for line in PERCENTAGES.lines() {
        let expected: Vec<&str> = line.split(' ').collect();
        let mut plan = TextPlan::new("p", "T", (1..expected.len()).map(|n| n.to_string()));
        for (done, percent) in expected.iter().enumerate() {
            if done > 0 {
                plan.steps[done - 1].status = StepStatus::Completed;
            }
            let shown = format!("steps completed ({percent}%)\n");
            assert!(plan.to_string().contains(&shown), "{shown} in {plan}");
        }
    }
    let empty = TextPlan::new("p", "T", [""; 0]);
    assert!(empty.to_string().contains("Progress: 0/0 steps completed (0%)\n"), "{empty}");
}

/// OM7: the rule is as long as the title line in characters, whatever they are.
#[test]
fn om7_the_rule_counts_characters() {
    for title in ["T", "杭州两日游", "e\u{301}té", "👩‍👩‍👧", "カタカナ"] {
        let text = TextPlan::new("计划", title, ["x"]).to_string();
        let mut lines = text.lines();
        let (head, rule) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(rule.chars().count(), head.chars().count() + 1);
        assert!(rule.chars().all(|c| c == '='));
    }
}

/// OM2: what a new plan needs; for a second one with the same id the error says what to do instead; it becomes active.
#[test]
fn om2_a_plan_is_made_once() {
    let mut plans = Plans::default();
    plans.apply(&create("a", &["一"])).unwrap();
    plans.apply(&create("b", &["二"])).unwrap();
    assert_eq!(plans.active().unwrap().id, "b");
    let told = refused(
        &mut plans,
        json!({"command": "create", "plan_id": "a", "title": "U", "steps": ["x"]}),
    );
    assert!(told.contains("Use 'update'"), "{told}");
    for (missing, arguments) in [
        ("plan_id", json!({"title": "T", "steps": ["x"]})),
        ("title", json!({"plan_id": "c", "steps": ["x"]})),
        ("steps", json!({"plan_id": "c", "title": "T"})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": []})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": "x"})),
        ("steps", json!({"plan_id": "c", "title": "T", "steps": ["x", 1]})),
    ] {
        let mut arguments = arguments;
        arguments["command"] = json!("create");
        let told = refused(&mut plans, arguments);
        assert!(told.contains(&format!("`{missing}`")), "{missing}: {told}");
    }
}

/// OM3: status and notes stay if the text at a place is the same, and only then.
#[test]
fn om3_only_a_step_that_stays_in_its_place_keeps_its_status() {
    let mut plans = Plans::default();
    plans.apply(&create("p", &["查", "写", "发"])).unwrap();
    for (at, status) in [(0, "completed"), (1, "blocked"), (2, "in_progress")] {
        let mark = json!({"command": "mark_step", "step_index": at, "step_status": status, "step_notes": status});
        plans.apply(&command(mark)).unwrap();
    }
    let update = json!({"command": "update", "plan_id": "p", "steps": ["查", "发", "写", "改"]});
    plans.apply(&command(update)).unwrap();
    let plan = plans.get("p").unwrap();
    let kept: Vec<(&str, StepStatus, &str)> =
        plan.steps.iter().map(|step| (&*step.text, step.status, &*step.notes)).collect();
    let open = StepStatus::NotStarted;
    assert_eq!(
        kept,
        [
            ("查", StepStatus::Completed, "completed"),
            ("发", open, ""),
            ("写", open, ""),
            ("改", open, "")
        ]
    );
    // Without steps only the title changes.
    let update = json!({"command": "update", "plan_id": "p", "title": "新"});
    plans.apply(&command(update)).unwrap();
    let plan = plans.get("p").unwrap();
    assert_eq!((&*plan.title, plan.count(StepStatus::Completed)), ("新", 1));
    assert!(refused(&mut plans, json!({"command": "update"})).contains("`plan_id`"));
}

/// OM4: the list shows the active plan and the progress of each; without any plan it says how to make one.
#[test]
fn om4_the_list_tells_how_far_plans_are() {
    let mut plans = Plans::default();
    let list = command(json!({"command": "list"}));
    assert_eq!(
        plans.apply(&list).unwrap(),
        "No plans available. Create a plan with the 'create' command."
    );
    plans.apply(&create("a", &["x", "y"])).unwrap();
    plans
        .apply(&command(
            json!({"command": "mark_step", "step_index": 1, "step_status": "completed"}),
        ))
        .unwrap();
    plans.apply(&create("计划", &["z"])).unwrap();
    let told = plans.apply(&list).unwrap();
    assert_eq!(
        told,
        "Available plans:\n• a: T - 1/2 steps completed\n• 计划 (active): T - 0/1 steps completed\n"
    );
}

/// OM5: without an id the active plan is meant; empty values do not overwrite; numbers and names are
/// checked.
#[test]
fn om5_steps_are_marked_in_the_active_plan() {
    let mut plans = Plans::default();
    for missing in [json!({"command": "get"}), json!({"command": "mark_step", "step_index": 0})] {
        assert!(refused(&mut plans, missing).starts_with("No active plan."));
    }
    plans.apply(&create("p", &["一", "二"])).unwrap();
    let mark = json!({"command": "mark_step", "step_index": 0, "step_status": "blocked", "step_notes": "断网"});
    plans.apply(&command(mark)).unwrap();
    let empty =
        json!({"command": "mark_step", "step_index": 0, "step_status": "", "step_notes": ""});
    plans.apply(&command(empty)).unwrap();
    let step = &plans.active().unwrap().steps[0];
    assert_eq!((step.status, &*step.notes), (StepStatus::Blocked, "断网"));
    for (index, part) in [
        (json!(2), "range from 0 to 1"),
        (json!(-1), "range from 0 to 1"),
        (Value::Null, "`step_index`"),
    ] {
        let told = refused(&mut plans, json!({"command": "mark_step", "step_index": index}));
        assert!(told.contains(part), "{told}");
    }
    let told = refused(
        &mut plans,
        json!({"command": "mark_step", "step_index": 0, "step_status": "done"}),
    );
    assert!(
        told.contains("Valid statuses are: not_started, in_progress, completed, blocked"),
        "{told}"
    );
    assert!(
        refused(&mut plans, json!({"command": "get", "plan_id": "q"}))
            .contains("No plan found with ID: q")
    );
}

/// OM6: a plan is made active and deleted by its id; with the active plan deleted none is active.
#[test]
fn om6_the_active_plan_can_be_changed_and_deleted() {
    let mut plans = Plans::default();
    plans.apply(&create("a", &["x"])).unwrap();
    plans.apply(&create("b", &["y"])).unwrap();
    for name in ["set_active", "delete"] {
        assert!(refused(&mut plans, json!({"command": name})).contains("`plan_id`"));
        assert!(
            refused(&mut plans, json!({"command": name, "plan_id": "c"})).contains("No plan found")
        );
    }
    plans.apply(&command(json!({"command": "set_active", "plan_id": "a"}))).unwrap();
    assert_eq!(plans.active().unwrap().id, "a");
    plans.apply(&command(json!({"command": "delete", "plan_id": "b"}))).unwrap();
    assert_eq!(plans.active().unwrap().id, "a", "another plan was deleted");
    plans.apply(&command(json!({"command": "delete", "plan_id": "a"}))).unwrap();
    assert_eq!((plans.active(), plans.get("a")), (None, None));
}
