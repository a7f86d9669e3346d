//! Who does what in a run, according to the settings: executors of a flow, calculators, readers of the whole context,
//! and the models of a deep search.

use crate::provider::{Provider, Turn};
use crate::run::{only_run, run};
use crate::settings::user;
use crate::shell::Shell;
use serde_json::{Value, json};

fn plan(steps: &[&str]) -> Turn {
    Provider::call(
        "planning",
        &json!({"command": "create", "plan_id": "p", "title": "Notes", "steps": steps}),
    )
}

fn text(request: &Value, at: usize) -> &str {
    request["messages"][at]["content"].as_str().unwrap()
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// The results that a request holds, in order.
fn results(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap()).collect()
}

/// OM9: steps call executors by name, and each has its instructions, its tools and its model.
#[test]
fn om9_executors_are_named_in_the_settings() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        plan(&["[读者] Look around", "[WRITER] 写下笔记"]),
        Provider::text("Nothing is here."),
        Provider::call("file_write", &json!({"path": "n.md", "content": "没有文件"})),
        Provider::text("Written."),
        Provider::text("It is noted."),
    ]);
    user(
        &shell,
        "[models.small]\nname = \"scripted-small\"\n\n\
         [[flow.executors]]\nname = \"WRITER\"\ndescription = \"writes notes\"\ntools = [\"file_*\"]\n\n\
         [[flow.executors]]\nname = \"读者\"\ninstructions = \"Only read.\"\n\
         tools = [\"file_read\", \"file_list\"]\nmodel = \"small\"\n",
    );
    let ran = run(&shell, &provider, &["--strategy", "flow", "--yes", "Note what is here"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read_to_string(shell.path("work/n.md")).unwrap(), "没有文件");
    let asked = provider.requests();
    assert!(text(&asked[0], 0).contains("[WRITER]: writes notes (tools: file_"), "{}", asked[0]);
    let models: Vec<&str> =
        asked.iter().map(|request| request["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["scripted", "scripted-small", "scripted", "scripted", "scripted"]);
    let (reader, writer) = (&asked[1], &asked[2]);
    assert!(text(reader, 0).contains("\n\nOnly read.") && !text(writer, 0).contains("Only read."));
    assert!(tools(reader).contains(&"file_read") && !tools(reader).contains(&"file_write"));
    assert!(tools(writer).contains(&"file_write") && !tools(writer).contains(&"think"));
}

#[test]
fn what_settings_name_and_nobody_has_is_refused() {
    let shell = Shell::new();
    let provider = Provider::new(Vec::new());
    for (settings, told) in [
        (
            "[[flow.executors]]\nname = \"A\"\nmodel = \"small\"\n",
            "a role names the model \"small\"; [models] has: none",
        ),
        (
            "[[flow.executors]]\nname = \"A\"\ntools = [\"web_*\"]\n",
            "there is no tool \"web_*\"; the tools are file_edit, ",
        ),
        ("[[tools.calculators]]\ntool = \"tides\"\n", "there is no tool \"tides\"; the tools are "),
        (
            "[tools.context_readers]\nfile_read = \"text\"\n",
            "the tool \"file_read\" has no argument \"text\"",
        ),
        (
            "[[flow.executors]]\nnmae = \"A\"\n",
            "foldback.toml:1: there is no setting flow.executors.0.nmae; did you mean name?",
        ),
    ] {
        user(&shell, settings);
        let ran = run(&shell, &provider, &["--strategy", "flow", "Look"]);
        assert!(ran.code == 2 && ran.stderr.contains(told), "{settings}: {}", ran.stderr);
    }
    assert!(provider.requests().is_empty());
}

/// OM10: in a shared flow, steps are worked on in one conversation; and after each the plan may change.
#[test]
fn om10_a_flow_is_shared_and_planned_anew_after_each_step() {
    let shell = Shell::new();
    let update = json!({"command": "update", "plan_id": "p", "steps": ["Look", "写下潮汐"]});
    let provider = Provider::new(vec![
        plan(&["Look", "写下笔记"]),
        Provider::text("The tides are in tides.md."),
        Provider::call("planning", &update),
        Provider::text("Written down."),
        Provider::text("The tides are noted."),
    ]);
    user(&shell, "[flow]\ncontext = \"shared\"\nreplan_after_each = true\n");
    let ran = run(&shell, &provider, &["--strategy", "flow", "--id", "note", "Note what is here"]);
    assert!(ran.code == 0 && ran.text().contains("The tides are noted."), "{ran:?}");
    assert_eq!(shell.todos(), ["note"], "one conversation for all");
    let asked = provider.requests();
    assert!(text(&asked[2], 1).contains("Step 0 is done. If the steps"), "{}", asked[2]);
    let second = asked[3].to_string();
    assert!(second.contains("写下潮汐") && !second.contains("写下笔记\\\""), "{second}");
    assert!(second.contains("The tides are in tides.md."), "what the step before did stands there");
}

/// OM1: the executor of a step has all seven commands of the planning tool, and sees the flow's plan.
#[test]
fn om1_a_step_keeps_plans_of_its_own_beside_the_flows() {
    let shell = Shell::new();
    let planning = |arguments: Value| Provider::call("planning", &arguments);
    let provider = Provider::new(vec![
        plan(&["Look", "写下笔记"]),
        planning(json!({"command": "get"})),
        planning(
            json!({"command": "create", "plan_id": "own", "title": "细看", "steps": ["一", "二"]}),
        ),
        planning(json!({"command": "mark_step", "step_index": 0, "step_status": "completed"})),
        planning(json!({"command": "update", "plan_id": "own", "steps": ["一", "三"]})),
        planning(json!({"command": "list"})),
        planning(json!({"command": "set_active", "plan_id": "own"})),
        planning(
            json!({"command": "mark_step", "plan_id": "note", "step_index": 1, "step_status": "completed"}),
        ),
        planning(json!({"command": "delete", "plan_id": "own"})),
        Provider::text("Looked."),
        Provider::text("Written."),
        Provider::text("Noted."),
    ]);
    let args = ["--strategy", "flow", "--context", "full", "--id", "note", "Note what is here"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = provider.requests();
    let told = results(&asked[9]);
    for (told, expected) in told.iter().zip([
        "Plan: Notes (ID: note)",
        "Plan created successfully with ID: own",
        "0. [✓] 一",
        "1. [ ] 三",
        "• own (active): 细看 - 1/2 steps completed",
        "Plan 'own' is now the active plan.",
        "the plan note is the flow's own",
        "Plan 'own' has been deleted.",
    ]) {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert_eq!(told.len(), 8);
    assert!(told[0].contains("0. [→] Look") && told[4].contains("• note: Notes - 0/2"), "{told:?}");
    assert!(!tools(&asked[0]).contains(&"file_list"), "the planner has the planning tool alone");
}

/// CX7: any tool can be a calculator: its arguments go in, a conclusion comes out.
#[test]
fn cx7_a_tool_is_worked_with_by_a_sub_agent() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/tides.md", "Holm: 6.4 m\n".repeat(50));
    let provider = Provider::new(vec![
        Provider::call("file_read", &json!({"path": "tides.md"})),
        Provider::call("file_read", &json!({"path": "tides.md"})),
        Provider::text("Holm 的高潮为 6.4 m。"),
        Provider::text("6.4 m."),
    ]);
    user(
        &shell,
        "[models.small]\nname = \"scripted-small\"\n\n\
         [[tools.calculators]]\ntool = \"file_read\"\ntask = \"查 {path}\"\nmodel = \"small\"\n",
    );
    let task = "机密: how high is high water?";
    let args = ["--strategy", "react", "--context", "full", "--id", "tide", task];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = provider.requests();
    assert_eq!(
        (&asked[0]["model"], &asked[1]["model"]),
        (&json!("scripted"), &json!("scripted-small"))
    );
    assert_eq!(text(&asked[1], 1), "查 tides.md");
    assert!(!asked[1].to_string().contains("机密"), "nothing but its arguments");
    assert_eq!(tools(&asked[1]), ["file_read"]);
    let told: Value = serde_json::from_str(results(&asked[3])[0]).unwrap();
    assert_eq!(
        told,
        json!({"step": "file_read", "args": {"path": "tides.md"}, "result": "Holm 的高潮为 6.4 m。"})
    );
    assert_eq!(only_run(&shell)["calls"], 4);
}

/// Any tool can be handed the whole context: the model neither sees nor writes that argument.
#[test]
fn a_tool_is_handed_the_whole_context() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_write", &json!({"path": "minutes.md"})),
        Provider::text("Kept."),
    ]);
    user(&shell, "[tools.context_readers]\nfile_write = \"content\"\n");
    let args = ["--strategy", "react", "--yes", "把我们说的都记下来"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    let kept = std::fs::read_to_string(shell.path("work/minutes.md")).unwrap();
    assert!(kept.contains("把我们说的都记下来"), "{kept}");
    let asked = provider.requests();
    let declared = asked[0]["tools"].as_array().unwrap().iter();
    let mut declared = declared.filter(|tool| tool["function"]["name"] == "file_write");
    let schema = &declared.next().unwrap()["function"]["parameters"];
    assert!(schema["properties"].get("content").is_none(), "{schema}");
    assert_eq!(schema["required"], json!(["path"]));
}

/// The beginning of the instructions for setting links into a draft.
const SECOND_PASS: &str = "You add citations to a draft";

/// DS3: queries, reflection and answer have models of their own; DS12: links are set afterwards.
#[test]
fn ds3_a_deep_search_asks_the_models_of_its_roles() {
    let shell = Shell::new();
    shell.folders(&["docs"]);
    shell.write("docs/tides.md", "# Tides\n\nAt spring tides the water falls 4.7 metres.\n");
    let provider = Provider::answering(|asked| {
        let system = text(asked, 0);
        let reply = if system.contains("rationale") {
            json!({"query": ["water at spring tides"], "rationale": "it asks"}).to_string()
        } else if system.contains("is_sufficient") {
            json!({"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []}).to_string()
        } else if system.starts_with(SECOND_PASS) {
            json!({"citations": []}).to_string()
        } else {
            "It falls 4.7 metres.".to_owned()
        };
        Provider::text(&reply)
    });
    let named = ["query", "reflection", "answer"]
        .map(|role| format!("[models.{role}]\nname = \"scripted-{role}\"\n"));
    let roles = "[search]\nquery_model = \"query\"\nreflection_model = \"reflection\"\nanswer_model = \"answer\"\n\
                 citing = \"afterwards\"\nmax_research_loops = 1\n\n[tools]\ndocuments = \"docs\"\n";
    let settings = shell.write("roles.toml", format!("{}\n{roles}", named.join("\n")));
    let args = ["--config", &settings, "--strategy", "deep-search", "How far does it fall?"];
    let ran = run(&shell, &provider, &args);
    assert!(ran.code == 0 && ran.text().contains("4.7 metres"), "{ran:?}");
    let asked = provider.requests();
    let model_of = |words: &str| {
        let found = asked.iter().find(|request| text(request, 0).contains(words));
        found.unwrap_or_else(|| panic!("{words}"))["model"].as_str().unwrap()
    };
    assert_eq!(model_of("rationale"), "scripted-query");
    assert_eq!(model_of("is_sufficient"), "scripted-reflection");
    assert_eq!(asked.last().unwrap()["model"], "scripted-answer");
    assert!(asked.iter().any(|request| text(request, 0).starts_with(SECOND_PASS)));
    assert!(asked.iter().all(|request| request["model"] != "scripted"));
}

/// Which tools may be called depends on the phase of the run; those that are declared stay the same.
#[test]
fn tools_may_be_called_by_the_phase_of_the_run() {
    let shell = Shell::new();
    let write = || Provider::call("file_write", &json!({"path": "n.md", "content": "小雨"}));
    let provider = Provider::new(vec![
        write(),
        Provider::call("file_list", &json!({"path": "."})),
        write(),
        Provider::text("Noted."),
    ]);
    user(
        &shell,
        "[agent.tool_states]\nstart = \"look\"\n\n\
         [agent.tool_states.states.look]\nmask = { mode = \"required\", names = [\"file_list\"] }\n\
         on = { file_list = \"note\" }\n\n[agent.tool_states.states.note]\nmask = { mode = \"auto\" }\n",
    );
    let args = ["--strategy", "react", "--context", "full", "--yes", "Note what is here"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = provider.requests();
    let told = results(&asked[3]);
    assert!(told[0].starts_with("Error") && told[0].contains("may not be called now"), "{told:?}");
    assert!(told[2].starts_with("made n.md"), "{told:?}");
    assert!(asked.iter().all(|request| request["tools"] == asked[0]["tools"]));
    assert_ne!(asked[0].get("tool_choice"), asked[2].get("tool_choice"));
}
