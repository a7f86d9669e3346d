//! `foldback bench retrieval`.

use crate::shell::Shell;
use serde_json::{Value, json};

/// A file of a talk with two questions that can be judged, and two that cannot.
fn file(shell: &Shell) -> String {
    let things = ["ferry", "oven", "渡轮", "烤箱"];
    let message = |i: usize| {
        let text = format!("The {} has the code K-{}.", things[i / 4], 100 + i);
        json!({ "role": "user", "id": format!("m{i}"), "content": text })
    };
    let messages: Vec<Value> = (0..16).map(message).collect();
    let qa = json!([
        { "question": "What has the code K-101?", "category": 4, "evidence": ["m1"] },
        { "question": "烤箱的编号 K-113 是谁的？", "category": 4, "evidence": ["m13"] },
        { "question": "Who sings?", "category": 5, "evidence": ["m2"] },
        { "question": "Who dances?", "category": 4, "evidence": ["m99"] },
    ]);
    let talk = json!({ "id": "talk", "messages": messages, "qa": qa });
    shell.write("talk.jsonl", format!("{talk}\n"))
}

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let shell = Shell::new();
    let found = shell.run_bare(&["bench", "retrieval", "--json", &file(&shell)]).json();
    assert_eq!(found["questions"], 2);
    assert_eq!(found["hit_at_1"], 1.0);
    for k in ["1", "5", "10"] {
        assert_eq!(found["recall_at"][k], 1.0, "{k}");
    }
    for tokens in ["500", "1000", "2000", "4000"] {
        assert_eq!(found["recall_at_tokens"][tokens], 1.0, "{tokens}");
    }
    assert!(found["took_us_p50"].is_u64());
    assert_eq!(found["left_out"], json!({ "adversarial": 1, "without_evidence": 1 }));
    assert_eq!(found["categories"][0]["category"], "4");
    let settings = found["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 9);
    let names = ["embedder", "cuts", "vectors", "ranking", "block_tokens", "files"];
    assert!(settings.iter().all(|way| names.iter().all(|name| !way[name].is_null())));
}

#[test]
fn its_tables_say_what_is_left_out() {
    let shell = Shell::new();
    let csv = shell.path("out.csv");
    let args = ["bench", "retrieval", &file(&shell), "--csv", csv.to_str().unwrap()];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    for word in ["talk: 2 questions", "windows 4, words", "means, meaning", "1 of category 5"] {
        assert!(ran.text().contains(word), "{word}: {}", ran.text());
    }
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("embedder,cuts,vectors,ranking,file,category,questions"), "{csv}");
}

#[test]
fn without_questions_nothing_is_measured() {
    let shell = Shell::new();
    let talk = json!({ "id": "talk", "messages": [{ "role": "user", "content": "hello" }] });
    let file = shell.write("talk.jsonl", format!("{talk}\n"));
    let ran = shell.run_bare(&["bench", "retrieval", &file]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("`qa`"), "{ran:?}");
}
