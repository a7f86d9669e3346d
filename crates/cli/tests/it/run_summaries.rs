//! `foldback run --summary-model`: a model writes the summaries of other policies.

use crate::provider::Provider;
use crate::run::run;
use crate::shell::Shell;
use serde_json::{Value, json};

fn is_summary(request: &Value) -> bool {
    request["messages"][0]["content"].as_str().is_some_and(|text| text.starts_with("You sum up"))
}

/// A model that reads files until there are many, and that sums up what it is given.
fn reading() -> Provider {
    Provider::answering(|request| {
        if is_summary(request) {
            return Provider::text("The gauge at Holm reads 37 mm too low. 潮位偏低。");
        }
        let calls = request.to_string().matches("\"tool_call_id\"").count();
        let shown = request["messages"].to_string();
        let round = (0..8).find(|round| !shown.contains(&format!("round-{round}"))).unwrap_or(8);
        match calls {
            _ if shown.contains("The gauge at Holm") => Provider::text("37 mm, by the summary."),
            _ if round == 8 => Provider::text("No summary came."),
            _ => {
                let read = json!({"path": format!("round-{round}.txt")});
                let reads: Vec<(&str, Value)> =
                    (0..30).map(|_| ("file_read", read.clone())).collect();
                Provider::calls(&reads)
            }
        }
    })
}

/// CX4: summaries are written by the model that was named, are in view, and are counted and shown separately.
#[test]
fn cx4_a_model_writes_the_summaries() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    for round in 0..8 {
        let text = format!("round-{round} reads the levels of each hour at Holm. ").repeat(40);
        shell.write(&format!("work/round-{round}.txt"), text);
    }
    let provider = reading();
    let args = [
        "--json",
        "--strategy",
        "react",
        "--context",
        "stm-ltm",
        "--summary-model",
        "small",
        "--summary-fields",
        "station,潮位",
        "--id",
        "sum",
        "How low does it read?",
    ];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json_lines().pop().unwrap();
    assert_eq!(report["answer"], "37 mm, by the summary.", "{report}");
    let (sums, others): (Vec<Value>, Vec<Value>) =
        provider.requests().into_iter().partition(is_summary);
    assert!(!sums.is_empty() && sums.iter().all(|request| request["model"] == "small"));
    assert_eq!(report["summaries"]["calls"], json!(sums.len()));
    assert_eq!(report["calls"], json!(sums.len() + others.len()), "they are calls of the run");
    let last = others.last().unwrap().to_string();
    assert!(last.contains("written by small") && last.contains("station: (not found)"), "{last}");
    let told = shell.ok(&["run", "--resume", "sum"]);
    assert!(told.text().contains("summaries"), "{}", told.text());
}

#[test]
fn only_policies_with_summaries_have_them_written() {
    let shell = Shell::new();
    let provider = Provider::new(Vec::new());
    for context in ["foldback", "full"] {
        let args = ["--context", context, "--summary-model", "small", "Why?"];
        let ran = run(&shell, &provider, &args);
        assert!(ran.code == 2 && ran.stderr.contains("stm-ltm"), "{ran:?}");
    }
}
