//! `foldback bench plans`.

use crate::shell::Shell;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A file of a plan with two parallel calls and one after them, and of a turn of two calls.
fn plans(shell: &Shell) -> String {
    let call = |label: &str, arguments: Value, after: Value| json!({ "label": label, "name": "查找", "arguments": arguments, "depends_on": after });
    let plan = json!({ "id": "two and one", "task": "比较两地天气", "gold_calls": [
        call("var1", json!({ "of": "杭州" }), json!([])),
        call("var2", json!({ "of": "北京" }), json!([])),
        call("var3", json!({ "of": "$var1.天气$ or $var2.天气$" }), json!(["var1", "var2"])),
    ] });
    let turns =
        json!({ "id": "t", "turns": [{ "user": "move it", "gold_calls": ["cd('a')", "ls()"] }] });
    shell.write("plans.jsonl", format!("{plan}\n{turns}\n"))
}

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let shell = Shell::new();
    let plans = plans(&shell);
    let ran = shell.run_bare(&["bench", "plans", "--json", "--max", "10", &plans]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = ran.json();
    assert_eq!((&found["plans"], &found["steps"]), (&json!(2), &json!(5)));
    assert_eq!(found["makespan_over_critical_path"], 1.0, "{found}");
    assert_eq!((&found["llm_calls_react"], &found["llm_calls_one_plan"]), (&json!(7), &json!(4)));
    for key in ["tokens_react", "tokens_one_plan"] {
        assert!(found[key].as_u64().unwrap() > 0, "{key}: {found}");
    }
    // 5 calls, 2 plans, 4 on longest ways, and a model call as long as a tool's: (10 + 2) / (4 +
    // 4).
    assert_eq!(found["speedup"], 1.5, "{found}");
    let sets: Vec<&Value> =
        found["sets"].as_array().unwrap().iter().map(|set| &set["set"]).collect();
    assert_eq!(sets, ["nestful", "bfcl_multi_turn", "generated"]);
    for row in found["mutations"].as_array().unwrap() {
        assert_eq!(row["hangs"], 0, "{row}");
    }
    assert_eq!(found["placeholders"]["tried"], found["placeholders"]["inert"]);
}

#[test]
fn its_tables_and_files_hold_every_measure() {
    let shell = Shell::new();
    let plans = plans(&shell);
    let (csv, html) = (shell.path("out.csv"), shell.path("out.html"));
    let [csv, html] = [&csv, &html].map(|path| path.to_str().unwrap());
    let ran =
        shell.run_bare(&["bench", "plans", "--max", "20", "--csv", csv, "--report", html, &plans]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for word in ["nestful", "l = 0.5", "chain 20", "unknown tool", "placeholders"] {
        assert!(ran.text().contains(word), "{word}: {}", ran.text());
    }
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("set,id,steps,levels,critical_path_ms"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("nestful,two and one,3,2,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 2 + 25);
    let page = std::fs::read_to_string(html).unwrap();
    for word in [
        "Speed-up of one plan",
        "\nnestful\n",
        "call after call",
        "</i>one plan<",
        "<dt>cycle</dt>",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"), "it loads nothing");
}

#[test]
fn what_holds_no_plan_is_refused() {
    let shell = Shell::new();
    let talk = shell.write("talk.jsonl", "{\"id\": \"a\", \"messages\": []}\n");
    let ran = shell.run_bare(&["bench", "plans", &talk]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("talk.jsonl, line 1: this is an object"), "{ran:?}");
    let peer = shell.write("peer.json", "{\"peer\": \"x\", \"rows\": []}");
    let ran = shell.run_bare(&["bench", "plans", "--max", "1", "--peer", &peer]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("the figures of x have no plan \"chain 20\""), "{ran:?}");
    let peer = shell.write("peer.json", "[]");
    let ran = shell.run_bare(&["bench", "plans", "--max", "1", "--peer", &peer]);
    assert!(ran.code == 2 && ran.stderr.contains("llmcompiler.py"), "{ran:?}");
    let ran = shell.run_bare(&["bench", "plans", "--store", "kept"]);
    assert!(ran.code == 2 && ran.stderr.contains("leave out --store"), "{ran:?}");
}

/// A scheduler with LLMCompiler's interface, which runs one step after the other, waits for what a
/// cycle never brings, and lets a failed tool fail all of it.
const SCHEDULER: &str = r#"
import asyncio
from dataclasses import dataclass
from typing import Any


@dataclass
class Task:
    idx: int
    name: str
    tool: Any
    args: Any
    dependencies: Any


class TaskFetchingUnit:
    def __init__(self):
        self.tasks = {}

    def set_tasks(self, tasks):
        self.tasks.update(tasks)

    async def schedule(self):
        done = set()
        while len(done) < len(self.tasks):
            for task in self.tasks.values():
                if task.idx not in done and all(other in done for other in task.dependencies):
                    await task.tool(*task.args)
                    done.add(task.idx)
            await asyncio.sleep(0)

    async def aschedule(self, task_queue, func):
        while (task := await task_queue.get()) is not None:
            await task.tool(*task.args)
"#;

/// Plans go out to another scheduler, and its figures are shown for comparison.
#[test]
fn another_scheduler_can_be_set_beside() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED {}: there is no python3", module_path!());
        return;
    }
    let shell = Shell::new();
    let plans = plans(&shell);
    let ran = shell.run_bare(&["bench", "plans", "--dags", "dags.json", &plans]);
    assert_eq!(ran.code, 0, "{ran:?}");
    shell.folders(&["checkout/src/llm_compiler", "checkout/src/utils"]);
    shell.write("checkout/src/llm_compiler/task_fetching_unit.py", SCHEDULER);
    shell.write("checkout/src/utils/logger_utils.py", "def enable_logging(enable): pass\n");
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/peers/llmcompiler.py");
    let mut python = Command::new("python3");
    python.env("PYTHONDONTWRITEBYTECODE", "1").arg(harness);
    python.args([shell.path("checkout"), shell.path("dags.json"), shell.path("peer.json")]);
    let out = python.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let args = ["bench", "plans", "--json", "--max", "5", "--peer", "peer.json", &plans];
    let found = shell.run_bare(&args).json();
    assert_eq!(found["peer"]["name"], "LLMCompiler");
    let rows = found["peer"]["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert!(
        row("two and one")["peer_ms"].as_f64() > row("two and one")["critical_path_ms"].as_f64()
    );
    // B3: a cycle is refused before any step begins.
    let cycle = row("two steps wait for each other");
    assert_eq!(
        (&cycle["peer_ms"], &cycle["own_says"]),
        (&Value::Null, &json!("0 of 3 steps begun"))
    );
    // B3: of four steps, only the failed one and the one after it are lost.
    let failed = row("one of four tools fails");
    assert_eq!(failed["own_says"], "3 of 4 steps begun");
    let raised = failed["peer_says"].as_str().unwrap();
    assert!(raised.contains("then RuntimeError: the tool failed"), "{failed}");
    // B4: inserted text is not scanned again.
    let given = &row("an answer looks like a reference")["own_says"];
    assert_eq!(given, "given \"quote: price is $1 only\"");
}
