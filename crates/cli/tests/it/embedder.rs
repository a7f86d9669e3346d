//! Choosing what makes vectors, and measuring what they mean.

use crate::shell::{Shell, line, quay};

#[test]
fn a_store_begins_with_the_built_in_embedder() {
    let shell = Shell::with_quay();
    let shown = shell.json(&["embedder", "show"]);
    assert_eq!(shown["embedder"], "builtin");
    assert!(shown["model_id"].as_str().unwrap().starts_with("static-minilm-256-"));
    assert_eq!((&shown["dim"], &shown["calibrated"]), (&256.into(), &false.into()));
    assert_eq!(shown["done"], shown["messages"]);
    assert_eq!(shown["messages"], quay().len());
    assert!(shown["trouble"].is_null());
}

#[test]
fn a_store_can_do_without_vectors_and_get_them_back() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    // A new store takes the embedder that is named.
    shell.ok(&["--embedder", "none", "import", &file]);
    let shown = shell.json(&["embedder", "show"]);
    assert_eq!((&shown["embedder"], &shown["done"]), (&"none".into(), &0.into()));
    let found = shell.json(&["search", "--todo", "quay", "nt-2226"]);
    assert!(!found["hits"].as_array().unwrap().is_empty());
    assert!(found["hits"].as_array().unwrap().iter().all(|hit| hit["cosine"] == 0.0));

    let used = shell.json(&["embedder", "use", "builtin"]);
    assert_eq!((&used["embedder"], &used["done"]), (&"builtin".into(), &used["messages"]));
    let found =
        shell.json(&["search", "--todo", "quay", "which settings did the assistant read first?"]);
    assert!(found["hits"].as_array().unwrap().iter().any(|hit| hit["cosine"] != 0.0));
    shell.ok(&["doctor"]);
}

#[test]
fn an_embedder_that_is_not_there_is_named() {
    let shell = Shell::with_quay();
    for args in [
        vec!["embedder", "use", "no/such/model"],
        vec!["embedder", "calibrate", "--model", "no/such/model"],
        vec!["--embedder", "no/such/model", "search", "--todo", "quay", "x"],
    ] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("no/such/model"), "{}", ran.stderr);
    }
    assert_eq!(shell.run(&["--embedder", "", "todos"]).code, 2);
    assert_eq!(shell.json(&["embedder", "show"])["embedder"], "builtin");
}

#[test]
fn a_store_is_not_mixed_by_a_flag() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["--embedder", "none", "import", &file]);
    let other = shell.write("other.jsonl", line("other", quay()));
    let ran = shell.run(&["--embedder", "builtin", "import", &other]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("foldback embedder use builtin"), "{}", ran.stderr);
    assert_eq!(shell.run(&["view", "--todo", "other"]).code, 1, "nothing was written");
    // Words alone are always available.
    let shell = Shell::with_quay();
    let found = shell.json(&["--embedder", "none", "search", "--todo", "quay", "nt-2226"]);
    let hits = found["hits"].as_array().unwrap();
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["cosine"] == 0.0), "{found}");
}

/// Anything that is not a model here gets an answer that says what would be one, or which build it needs.
#[test]
fn what_is_no_model_in_this_build_is_told_apart() {
    let shell = Shell::with_quay();
    let ran = shell.run(&["embedder", "use", "buildin"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("builtin, none"), "{}", ran.stderr);
    let ran = shell.run(&["embedder", "calibrate", "--model", "none"]);
    assert!(ran.code == 2 && ran.stderr.contains("makes no vectors"), "{ran:?}");
    let text = r#"{"id":"t","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},
        {"role":"user","content":"c"}],"boundaries":[2,1]}"#;
    let file = shell.write("down.jsonl", text.replace('\n', " ") + "\n");
    let ran = shell.run(&["embedder", "calibrate", &file]);
    assert!(ran.code == 2 && ran.stderr.contains("[2, 1]"), "{ran:?}");
}

/// A damaged record of the choice costs the vectors, and no search.
#[test]
fn a_store_whose_choice_is_damaged_is_searched_by_words() {
    let shell = Shell::with_quay();
    let dir = shell.store();
    let kv = foldback_kv::open(&dir, foldback_kv::Engine::Sqlite, foldback_kv::Mode::ReadWrite);
    let key = foldback_kv::Key { space: foldback_kv::Space::Meta, todo: 0, n: 1 };
    let put = vec![(key, b"no record".to_vec())];
    kv.unwrap().commit(foldback_kv::Batch { put, ..Default::default() }).unwrap();
    for args in [
        vec!["search", "--todo", "quay", "nt-2226"],
        vec!["--embedder", "builtin", "search", "--todo", "quay", "nt-2226"],
        vec!["embedder", "show"],
    ] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("cannot be read"), "{}", ran.stderr);
    }
    shell.ok(&["embedder", "use", "builtin"]);
    let ran = shell.run(&["search", "--todo", "quay", "nt-2226"]);
    assert!(ran.code == 0 && ran.stderr.is_empty(), "{ran:?}");
}

/// Without waiting, the output names who embeds the rest.
#[test]
fn no_wait_says_who_embeds_the_rest() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["--embedder", "none", "import", &file]);
    let ran = shell.run(&["embedder", "use", "builtin", "--no-wait"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let is_left = !ran.text().contains(&format!("{0} of {0}", quay().len()));
    assert_eq!(is_left, ran.stderr.contains("has the store open for writing"), "{ran:?}");
}

/// BL5: the scale is measured, kept with the store, and used.
#[test]
fn bl5_a_scale_is_measured_and_kept() {
    let shell = Shell::new();
    let measured = shell.json(&["embedder", "calibrate"]);
    assert_eq!(measured["stored"], false);
    assert!(measured["within"]["p50"].as_f64() > measured["across"]["p50"].as_f64());
    assert!(measured["answers"]["pairs"].as_u64() >= Some(20));

    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["import", &file]);
    assert_eq!(shell.json(&["embedder", "calibrate"])["stored"], true);
    let shown = shell.json(&["embedder", "show"]);
    assert_eq!(shown["calibrated"], true);
    for key in ["same_topic", "answering"] {
        assert_eq!(shown[key], measured[key]);
    }
    // Conversations of one's own: each is a topic if no changes are marked.
    let words = ["harbor quay ship tide", "锅 汤 盐 火", "loan bank rate fee"];
    let own: String = words
        .iter()
        .cycle()
        .take(12)
        .enumerate()
        .map(|(n, words)| {
            let said = |i: usize| format!("{words} {i}");
            let messages = (0..8).map(|i| foldback_core::Message::user(&said(i))).collect();
            line(&format!("own-{n}"), messages)
        })
        .collect();
    let own = shell.write("own.jsonl", own);
    let measured = shell.json(&["embedder", "calibrate", &own]);
    assert!(measured["balanced_accuracy"].as_f64() > Some(0.9), "{measured}");
    let ran = shell.run(&["embedder", "calibrate", &file]);
    assert!(ran.code == 2 && ran.stderr.contains("boundaries"), "{ran:?}");
}
