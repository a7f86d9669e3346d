//! `foldback bench segmentation`.

use crate::shell::{Shell, line, quay};
use serde_json::{Value, json};

/// A file of two talks with a pause between them, and one of an agent's session.
fn files(shell: &Shell) -> [String; 2] {
    let message = |i: usize| {
        let text = if i < 12 { "渡轮什么时候开？" } else { "When is the oven cleaned?" };
        let minute = if i < 12 { 0 } else { 40 };
        json!({ "role": "user", "content": text, "timestamp": format!("2025-03-01T09:{minute:02}:{i:02}Z") })
    };
    let messages: Vec<Value> = (0..24).map(message).collect();
    let talks = json!({ "id": "talks", "messages": messages, "boundaries": [12] });
    [
        shell.write("talks.jsonl", format!("{talks}\n")),
        shell.write("quay.jsonl", line("quay", quay())),
    ]
}

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let shell = Shell::new();
    let [talks, quay] = files(&shell);
    let args = ["bench", "segmentation", "--json", &talks, &quay];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = ran.json();
    assert_eq!(found["conversations"], 1);
    for key in ["pk", "wd"] {
        assert_eq!(found[key], 0.0, "{key}");
        assert!(found["blocks"][key].is_number(), "{key}");
        for beside in ["no_cut", "even_cuts", "text_tiling", "text_tiling_by_message"] {
            assert!(found[beside][key].is_number(), "{beside} {key}");
        }
    }
    assert_eq!((&found["f1"], &found["boundary_ratio"]), (&json!(1.0), &json!(1.0)));
    // Talks of twelve messages are more than one block each.
    assert!(found["blocks"]["f1"].as_f64().unwrap() < 1.0);
    // The quay's session has three pauses, which end its topics.
    assert_eq!(found["single_task"]["sessions"], 1);
    assert!(found["single_task"]["topic_cuts"].as_u64().unwrap() >= 2);
    let files = found["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!((&files[1]["conversations"], &files[1]["pk"]), (&json!(0), &Value::Null));
    assert_eq!(shell.run_bare(&args).stdout, ran.stdout, "the same again");
}

#[test]
fn its_tables_name_every_way_of_cutting() {
    let shell = Shell::new();
    let [talks, quay] = files(&shell);
    let csv = shell.path("out.csv");
    let args = ["bench", "segmentation", &talks, &quay, "--csv", csv.to_str().unwrap()];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    for word in ["talks", "quay", "no cut", "even", "TextTiling", "by message", "cuts each"] {
        assert!(ran.text().contains(word), "{word}: {}", ran.text());
    }
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("file,id,kind,messages,window,given,topic_cuts"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn what_says_nothing_of_topics_is_not_measured() {
    let shell = Shell::new();
    let messages = [json!({ "role": "user", "content": "hello" })];
    let talk = json!({ "id": "talk", "messages": messages });
    let file = shell.write("talk.jsonl", format!("{talk}\n"));
    let ran = shell.run_bare(&["bench", "segmentation", &file]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("`boundaries`"), "{ran:?}");
}
