//! A real model, if its folder and ONNX Runtime are available: `FOLDBACK_MODEL_DIR` names a folder with
//! all-MiniLM-L6-v2 (`tests/models/make_onnx.py` makes one from the published weights).

use foldback_core::{Embedder, Scale};
use foldback_embedder::{
    Choice, LoadError, ModelEmbedder, ModelOptions, OwnCalibration, Pooling, StaticEmbedder,
    calibrate_on_own_texts, own_texts,
};
use serde_json::Value;
use std::path::PathBuf;

use crate::corpus::cosine;

/// Returns the model's folder. Reports when there is none, or nothing to run it, so that a test which proved nothing
/// does not look as if it had.
fn folder(test: &str) -> Option<PathBuf> {
    let skip = |why: String| {
        eprintln!("SKIPPED {test}: {why}");
        None
    };
    let Some(folder) = std::env::var_os("FOLDBACK_MODEL_DIR").map(PathBuf::from) else {
        return skip("no model; set FOLDBACK_MODEL_DIR".to_owned());
    };
    match ModelEmbedder::find_runtime() {
        Ok(_) => Some(folder),
        Err(error) => skip(error.to_string()),
    }
}

fn open(test: &str) -> Option<ModelEmbedder> {
    Some(ModelEmbedder::open(&folder(test)?, ModelOptions::default()).unwrap())
}

/// Texts, and the vectors of sentence-transformers 6.2 for them with the published weights: English, Chinese, and a mix
/// of scripts.
fn reference() -> Vec<(String, Vec<f32>)> {
    let documents: Vec<Value> =
        serde_json::from_str(include_str!("../models/minilm.json")).unwrap();
    documents
        .iter()
        .map(|document| {
            let vector = document["vector"].as_array().unwrap();
            let vector = vector.iter().map(|value| value.as_f64().unwrap() as f32).collect();
            (document["text"].as_str().unwrap().to_owned(), vector)
        })
        .collect()
}

#[test]
fn vectors_are_those_of_the_reference() {
    let Some(embedder) = open("vectors_are_those_of_the_reference") else { return };
    assert_eq!(embedder.dim(), 384);
    let reference = reference();
    let texts: Vec<&str> = reference.iter().map(|(text, _)| text.as_str()).collect();
    let vectors = embedder.embed(&texts).unwrap();
    for ((text, wanted), found) in reference.iter().zip(vectors.rows()) {
        let likeness = cosine(wanted, found);
        eprintln!("{likeness:.6} {text}");
        assert!(likeness > 0.9999, "{likeness} {text}");
    }
}

#[test]
fn a_text_has_the_same_unit_vector_whatever_stands_beside_it() {
    let test = "a_text_has_the_same_unit_vector_whatever_stands_beside_it";
    let Some(embedder) = open(test) else { return };
    let long = "one word after the other ".repeat(200);
    let alone = embedder.embed(&["我的航班明天早上九点起飞。"]).unwrap();
    let beside = embedder.embed(&[long.as_str(), "我的航班明天早上九点起飞。", " \n", ""]).unwrap();
    assert_eq!(alone.row(0), beside.row(1));
    for row in beside.rows().take(2) {
        assert!((cosine(row, row) - 1.0).abs() < 1e-5);
    }
    assert!(beside.rows().skip(2).flatten().all(|value| *value == 0.0));
    assert!(embedder.embed(&[]).unwrap().is_empty());
}

#[test]
fn a_long_text_is_cut_by_tokens() {
    let Some(embedder) = open("a_long_text_is_cut_by_tokens") else { return };
    let english = "The nightly export stopped again, and the disk is full. ".repeat(40);
    let chinese = "夜间的备份任务又失败了，日志里写着连接超时。".repeat(40);
    let blob = "QUJDREVGRw".repeat(400);
    for text in [&english, &chinese, &blob, &"😀é".repeat(300)] {
        let windows = embedder.windows(text, usize::MAX);
        assert!(windows.len() > 1);
        assert_eq!(windows.concat(), *text, "no gap and no overlap");
        let few = embedder.windows(text, 2);
        assert_eq!(few.len(), 2);
        assert!(few[1].is_empty() || text.ends_with(few[1]));
    }
    // A Chinese character is a token of this model, a word of English one or two.
    let window = embedder.windows(&chinese, 1)[0].chars().count();
    assert!((64..=128).contains(&window), "{window} characters");
    assert!(embedder.windows(&english, 1)[0].len() > 400);
    assert_eq!(embedder.windows("short", 8), ["short"]);
    assert!(embedder.windows("", 8).is_empty() && embedder.windows("text", 0).is_empty());
}

#[test]
fn an_id_names_the_folder_and_what_vectors_depend_on() {
    let test = "an_id_names_the_folder_and_what_vectors_depend_on";
    let Some(folder) = folder(test) else { return };
    let open = |options| ModelEmbedder::open(&folder, options).unwrap();
    let plain = open(ModelOptions::default());
    let name = folder.file_name().unwrap().to_str().unwrap();
    assert!(plain.model_id().starts_with(&format!("{name}-")), "{}", plain.model_id());
    assert_eq!(plain.model_id(), open(ModelOptions::default()).model_id());
    let cls = open(ModelOptions { pooling: Some(Pooling::Cls), ..ModelOptions::default() });
    assert_ne!(plain.model_id(), cls.model_id());
    let asked = open(ModelOptions {
        question_prefix: Some("query: ".to_owned()),
        ..ModelOptions::default()
    });
    let question = "When does the plane leave?";
    let (as_question, as_text) =
        (asked.embed_question(question).unwrap(), asked.embed(&[question]).unwrap());
    assert_eq!(as_text, plain.embed(&[question]).unwrap());
    assert_ne!(as_question, as_text);
    assert_eq!(as_question, plain.embed(&["query: When does the plane leave?"]).unwrap());
}

/// BL5: a model's own scale, from the texts that come with the program.
#[test]
fn bl5_a_model_is_measured_on_its_own_scale() {
    let Some(embedder) = open("bl5_a_model_is_measured_on_its_own_scale") else { return };
    let found = calibrate_on_own_texts(&embedder, "").unwrap();
    for OwnCalibration { language, measured } in &found {
        eprintln!("{language}: within {}; across {}", measured.within, measured.across);
        eprintln!("{language}: answers {}; others {}", measured.answers, measured.others);
        eprintln!("{:?}, balanced accuracy {:.3}", measured.scale, measured.balanced_accuracy);
    }
    // It is measured at changes of topic. Recorded dialogues (DialSeg711, TIAGE) give .28 to .34; with the table's .72
    // nothing would count as one topic.
    let OwnCalibration { language, measured } = &found[0];
    assert_eq!(*language, "English");
    let Scale { same_topic, answering } = measured.scale;
    assert!((0.22..=0.40).contains(&same_topic), "{:?}", measured.scale);
    assert!((0.18..=same_topic).contains(&answering), "{:?}", measured.scale);
    assert!(measured.balanced_accuracy > 0.8);
}

/// Questions about the own texts, asked of units of three messages of all topics: the mean
/// reciprocal rank of the answer.
fn reciprocal_rank(embedder: &dyn Embedder, set: usize) -> f64 {
    let conversation = &own_texts()[set].conversations[0];
    let units: Vec<String> =
        conversation.messages.chunks(3).map(|messages| messages.join("\n")).collect();
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let units = embedder.embed(&units).unwrap();
    let mut sum = 0.0;
    for question in &conversation.questions {
        let asked = embedder.embed_question(&question.text).unwrap();
        let scores: Vec<f32> =
            units.rows().map(|unit| cosine(asked.row(0).unwrap(), unit)).collect();
        let best = question.answers.iter().map(|message| scores[message / 3]).fold(-1.0, f32::max);
        sum += 1.0 / scores.iter().filter(|score| **score >= best).count() as f64;
    }
    sum / conversation.questions.len() as f64
}

/// Both know English only; of Chinese, both know some characters.
#[test]
fn a_model_finds_at_least_as_well_as_the_table_in_its_language() {
    let Some(embedder) = open("a_model_finds_at_least_as_well_as_the_table_in_its_language") else {
        return;
    };
    let ranks =
        |set| (reciprocal_rank(&embedder, set), reciprocal_rank(&StaticEmbedder::new(), set));
    let (english, chinese) = (ranks(0), ranks(1));
    eprintln!(
        "mean reciprocal rank, model and table: English {english:.3?}, Chinese {chinese:.3?}"
    );
    assert!(english.0 >= english.1, "{english:?}");
    // The model was made for English, and the table has rows for Chinese.
    assert!(chinese.0 < chinese.1, "{chinese:?}");
}

#[test]
fn a_folder_that_is_no_model_is_an_error() {
    let Some(folder) = folder("a_folder_that_is_no_model_is_an_error") else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("tokenizer.json"), dir.path().join("tokenizer.json")).unwrap();
    let open = || Choice::Model(dir.path().to_str().unwrap().to_owned()).load();
    let error = open().err().unwrap();
    assert!(error.to_string().contains("model.onnx or onnx/model.onnx is missing"), "{error}");
    std::fs::write(dir.path().join("model.onnx"), b"this is no network").unwrap();
    let error = open().err().unwrap();
    assert!(matches!(error, LoadError::Folder { .. }), "{error}");
}
