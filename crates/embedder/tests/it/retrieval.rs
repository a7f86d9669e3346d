//! Whether the table finds the evidence for questions about long dialogues.

use foldback_core::Embedder;
use foldback_embedder::StaticEmbedder;

use crate::corpus::{self, cosine};

/// Units of five turns, questions of the categories that can be answered. Measured
/// on six dialogues, 851 questions: R@1 .338, R@5 .600, R@10 .706.
#[test]
fn evidence_is_among_the_best_ten_units_of_five_turns() {
    let Some(folder) = corpus::folder("evidence_is_among_the_best_ten_units_of_five_turns") else {
        return;
    };
    let embedder = StaticEmbedder::new();
    let (mut at_1, mut at_5, mut at_10, mut asked) = (0.0, 0.0, 0.0, 0.0);
    for dialogue in corpus::documents(&folder.join("dialogue/restricted_locomo.jsonl.zst")) {
        let messages = corpus::messages(&dialogue);
        let lines: Vec<String> = messages
            .iter()
            .map(|message| {
                let name = message["name"].as_str().unwrap_or_default();
                let caption = message["image_caption"].as_str().unwrap_or_default();
                format!("{name}: {} {caption}", corpus::text(message))
            })
            .collect();
        let units: Vec<String> = lines.chunks(5).map(|unit| unit.join("\n")).collect();
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        let vectors = embedder.embed(&units).unwrap();

        for question in dialogue["qa"].as_array().unwrap() {
            let mut wanted: Vec<usize> = question["evidence"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|id| messages.iter().position(|message| message["id"] == *id))
                .map(|message| message / 5)
                .collect();
            wanted.dedup();
            if wanted.is_empty() || question["category"] == 5 {
                continue;
            }
            let asked_for = embedder.embed(&[question["question"].as_str().unwrap()]).unwrap();
            let asked_for = asked_for.row(0).unwrap();
            let scores: Vec<f32> = vectors.rows().map(|row| cosine(asked_for, row)).collect();
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let recall = |k: usize| {
                let found = wanted.iter().filter(|unit| order[..k].contains(unit)).count();
                found as f64 / wanted.len() as f64
            };
            at_1 += recall(1);
            at_5 += recall(5);
            at_10 += recall(10);
            asked += 1.0;
        }
    }
    eprintln!(
        "{asked} questions: R@1 {:.3}, R@5 {:.3}, R@10 {:.3}",
        at_1 / asked,
        at_5 / asked,
        at_10 / asked
    );
    assert!(at_10 / asked >= 0.69, "R@10 is {:.3}", at_10 / asked);
}
