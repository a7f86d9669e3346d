//! The measured meaning of a model's cosines, compared with the constants.

use foldback_core::{EmbedError, Embedder, Scale, Vectors};
use foldback_embedder::{
    Calibrated, Conversation, OwnCalibration, Question, StaticEmbedder, calibrate,
    calibrate_on_own_texts, own_texts,
};
use serde_json::Value;
use std::sync::Arc;

use crate::corpus;

/// BL5: the built-in embedder's own constants are reproduced where they were measured.
#[test]
fn bl5_the_built_in_scale_is_measured_again() {
    let Some(folder) = corpus::folder("bl5_the_built_in_scale_is_measured_again") else { return };
    let names = ["restricted_dialseg711", "tiage", "composite_agent_multitask"];
    let mut sets: Vec<Vec<Conversation>> = Vec::new();
    for name in names {
        let path = folder.join(format!("segmentation/{name}.jsonl.zst"));
        sets.push(corpus::documents(&path).iter().map(conversation).collect());
    }
    let dialogues = corpus::documents(&folder.join("dialogue/restricted_locomo.jsonl.zst"));
    let dialogues: Vec<Vec<Conversation>> =
        dialogues.iter().map(|dialogue| vec![conversation(dialogue)]).collect();
    // Only the questions of the long dialogues take part.
    sets.extend(dialogues);
    let embedder = StaticEmbedder::new();
    let measured = calibrate(&embedder, &sets[..3]).unwrap();
    eprintln!("within {}; across {}", measured.within, measured.across);
    eprintln!("{:?}, balanced accuracy {:.3}", measured.scale, measured.balanced_accuracy);
    assert!((measured.scale.same_topic - StaticEmbedder::SAME_TOPIC).abs() <= 0.03);
    assert!(measured.balanced_accuracy > 0.73);
    let all = calibrate(&embedder, &sets).unwrap();
    eprintln!("answers {}; others {}", all.answers, all.others);
    for share in [0.02, 0.05, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3] {
        eprintln!("  {:.0} % of answers reach {:.3}", 100.0 - 100.0 * share, all.answers.at(share));
    }
    assert!((all.scale.answering - embedder.answering()).abs() <= 0.03, "{:?}", all.scale);
}

/// BL5: the texts that come with the program distinguish the two kinds as well, and those in the
/// language that the model knows give a scale near the one that far more text gives.
#[test]
fn bl5_the_own_texts_part_topics() {
    let found = calibrate_on_own_texts(&StaticEmbedder::new(), "").unwrap();
    for OwnCalibration { language, measured } in &found {
        eprintln!("{language}: within {}; across {}", measured.within, measured.across);
        eprintln!("{language}: answers {}; others {}", measured.answers, measured.others);
        eprintln!("{:?}, balanced accuracy {:.3}", measured.scale, measured.balanced_accuracy);
        assert_eq!(measured.model_id, StaticEmbedder::MODEL_ID);
        assert!(measured.scale.is_sound());
        // Two questions per topic, of which none may be lost.
        assert_eq!(measured.answers.len(), 24);
    }
    let OwnCalibration { language, measured } = &found[0];
    assert_eq!(*language, "English", "the table is English");
    assert!(measured.balanced_accuracy > 0.85, "{}", measured.balanced_accuracy);
    assert!(measured.within.at(0.5) > measured.across.at(0.5));
    assert!(measured.answers.at(0.25) > measured.others.at(0.5) + 0.05);
    let scale = measured.scale;
    assert!((scale.same_topic - StaticEmbedder::SAME_TOPIC).abs() <= 0.06, "{scale:?}");
    assert!((scale.answering - StaticEmbedder::new().answering()).abs() <= 0.06, "{scale:?}");
    // The user's own language comes first, if it is known.
    let found = calibrate_on_own_texts(&StaticEmbedder::new(), "订单什么时候送达？").unwrap();
    assert_eq!(found[0].language, "Chinese");
}

/// A model whose cosines are squeezed: cosine' = (1 + cosine) / 2.
struct Squeezed;

impl Embedder for Squeezed {
    fn model_id(&self) -> &str {
        "squeezed"
    }

    fn dim(&self) -> usize {
        257
    }

    fn same_topic(&self) -> f32 {
        StaticEmbedder::SAME_TOPIC
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let half = 0.5f32.sqrt();
        let vectors = StaticEmbedder::new().embed(texts)?;
        let rows = vectors.rows().flat_map(|row| {
            row.iter().map(|value| value * half).chain(std::iter::once(half)).collect::<Vec<_>>()
        });
        Ok(Vectors::new(257, rows.collect()).unwrap())
    }
}

/// BL5: a scale that was measured means the same for a model that puts its cosines elsewhere.
#[test]
fn bl5_a_measured_scale_follows_the_model() {
    let sets = [own_texts().swap_remove(0).conversations];
    let plain = calibrate(&StaticEmbedder::new(), &sets).unwrap();
    let squeezed = calibrate(&Squeezed, &sets).unwrap();
    let follows = |plain: f32, squeezed: f32| (squeezed - (1.0 + plain) / 2.0).abs() < 0.02;
    assert!(follows(plain.scale.same_topic, squeezed.scale.same_topic), "{squeezed:?}");
    assert!(follows(plain.scale.answering, squeezed.scale.answering), "{squeezed:?}");
    let embedder = Calibrated::new(Arc::new(Squeezed), squeezed.scale);
    assert_eq!(embedder.model_id(), "squeezed");
    assert!((embedder.calibrated(squeezed.scale.same_topic) - 0.72).abs() < 1e-5);
    assert!((embedder.calibrated_answer(squeezed.scale.answering) - 0.72).abs() < 1e-5);
    let scale = Scale { same_topic: embedder.same_topic(), answering: embedder.answering() };
    assert_eq!(scale, squeezed.scale);
}

fn conversation(document: &Value) -> Conversation {
    let messages = corpus::messages(document);
    let place = |id: &Value| messages.iter().position(|message| message["id"] == *id);
    let questions = document["qa"].as_array().into_iter().flatten();
    let questions = questions.filter(|question| question["category"] != 5).map(|question| {
        let evidence = question["evidence"].as_array().into_iter().flatten();
        let text = question["question"].as_str().unwrap_or_default().to_owned();
        Question { text, answers: evidence.filter_map(place).collect() }
    });
    let changes = document["boundaries"].as_array().into_iter().flatten();
    let text = |message: &Value| {
        let name = message["name"].as_str().map_or(String::new(), |name| format!("{name}: "));
        let caption = message["image_caption"].as_str().unwrap_or_default();
        format!("{name}{} {caption}", corpus::text(message))
    };
    let has_questions = document["qa"].is_array();
    Conversation {
        messages: messages.iter().map(if has_questions { text } else { corpus::text }).collect(),
        changes: changes.filter_map(|start| Some(start.as_u64()? as usize)).collect(),
        questions: questions.filter(|question| !question.answers.is_empty()).collect(),
    }
}
