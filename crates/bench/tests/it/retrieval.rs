//! How recall is counted, on conversations whose evidence is known.

use crate::cases::cases;
use foldback::Options;
use foldback::embedder::{StaticEmbedder, WordsOnly};
use foldback_bench::retrieval::{Cuts, LeftOut, Retrieval, VectorsOf, measure};
use foldback_blockstore::Ranking;
use foldback_core::Embedder;
use serde_json::{Value, json};
use std::sync::Arc;

fn measured(lines: &[Value], embedders: &[Arc<dyn Embedder>]) -> Retrieval {
    measure(&cases(lines), embedders, &Options::default()).unwrap()
}

fn built_in() -> Vec<Arc<dyn Embedder>> {
    vec![Arc::new(StaticEmbedder::new())]
}

/// A talk of 48 messages about twelve things, four messages each, in two languages. Each thing has a
/// code that occurs in exactly one message.
fn talk(id: &str, qa: &Value) -> Value {
    let things = [
        "ferry",
        "oven",
        "garden",
        "violin",
        "passport",
        "bicycle",
        "渡轮",
        "烤箱",
        "花园",
        "小提琴",
        "护照",
        "自行车",
    ];
    let messages: Vec<Value> = (0..48)
        .map(|i| {
            let thing = things[i / 4];
            let content = match i % 4 {
                0 => format!("Tell me about the {thing}, please."),
                1 => format!("The {thing} has the code K-{:03}.", 100 + i / 4),
                2 => format!("Is the {thing} in good order?"),
                _ => format!("Yes, the {thing} was looked after last week."),
            };
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "id": format!("m{i}"), "content": content })
        })
        .collect();
    json!({ "id": id, "messages": messages, "qa": qa })
}

fn qa() -> Value {
    json!([
        { "question": "Which thing has the code K-104?", "category": 1, "evidence": ["m17"] },
        { "question": "谁的编号是 K-108？", "category": "zh", "evidence": ["m33"] },
        { "question": "What is said about the garden?", "evidence_spans": [[8, 11]] },
        { "question": "Who sings?", "category": 5, "evidence": ["m1"] },
        { "question": "Who dances?", "evidence": ["m99"] },
        { "question": "Who waits?", "evidence": [] },
    ])
}

#[test]
fn evidence_that_is_found_first_is_recalled() {
    let found = measured(&[talk("talk", &qa()), talk("without", &json!([]))], &built_in());
    assert_eq!(found.all.questions, 3);
    assert_eq!(found.left_out, LeftOut { adversarial: 1, without_evidence: 2 });
    // A code identifies its block, and four messages are in at most three blocks.
    let named: Vec<_> =
        found.categories.iter().map(|c| (c.category.as_str(), c.recall.hit_at_1)).collect();
    assert_eq!(named[1..], [("1", Some(1.0)), ("zh", Some(1.0))]);
    assert_eq!(found.all.recall_at[&5], 1.0);
    // The whole talk has fewer than 2,000 tokens.
    assert_eq!(found.all.recall_at_tokens[&4_000], 1.0);
    assert!(found.all.curve.is_sorted_by(|a, b| a.1 <= b.1));
    assert!(found.block_tokens > 30.0 && found.block_tokens < 200.0, "{}", found.block_tokens);
}

#[test]
fn every_setting_is_asked_every_question() {
    let found = measured(&[talk("talk", &qa())], &built_in());
    let ways: Vec<_> = found
        .settings
        .iter()
        .map(|way| (way.setting.cuts, way.setting.vectors, way.setting.ranking))
        .collect();
    use Ranking::{Fused, Meaning, Words};
    let (blocks, message) = (Cuts::Blocks, VectorsOf::Message);
    assert_eq!(
        ways,
        [
            (blocks, message, Fused),
            (blocks, message, Words),
            (blocks, message, Meaning),
            (blocks, VectorsOf::Block, Fused),
            (blocks, VectorsOf::Block, Meaning),
            (Cuts::Windows(4), message, Fused),
            (Cuts::Windows(4), message, Words),
            (Cuts::Windows(6), message, Fused),
            (Cuts::Windows(6), message, Words),
        ]
    );
    assert!(found.settings.iter().all(|way| way.all.recall.questions == 3));
    assert_eq!(found.settings[5].all.blocks, 12);
    assert_eq!(found.settings[7].all.blocks, 8);
    // The talk consists of groups of four, so one window of four contains a whole answer.
    assert_eq!(found.settings[5].all.recall.recall_at[&5], 1.0);
    assert_eq!(found.sheets().len(), 2);
    // Each setting for all and for the file, and the headline's three categories.
    assert_eq!(found.sheet_of_each().rows.len(), 9 * 2 + 3);
    found.sheet_of_each().csv().unwrap();
}

#[test]
fn a_second_embedder_stands_beside_the_first() {
    let both: Vec<Arc<dyn Embedder>> = vec![Arc::new(StaticEmbedder::new()), Arc::new(WordsOnly)];
    let found = measured(&[talk("talk", &qa())], &both);
    assert_eq!((found.settings.len(), found.embedder.as_str()), (18, WordsOnly::MODEL_ID));
    // Without vectors nothing is found by meaning.
    let meaning = &found.settings[9 + 2];
    assert_eq!(meaning.setting.ranking, Ranking::Meaning);
    assert_eq!(meaning.all.recall.recall_at[&10], 0.0);
    assert_eq!(found.all, found.settings[9].all.recall);
}

#[test]
fn figures_are_the_same_again_and_nothing_is_measured_of_nothing() {
    let json = || {
        let mut found = measured(&[talk("talk", &qa()), talk("again", &qa())], &built_in());
        found.took_us_p50 = 0;
        for way in &mut found.settings {
            way.all.took_us_p50 = 0;
            way.files.iter_mut().for_each(|file| file.took_us_p50 = 0);
        }
        serde_json::to_string(&found).unwrap()
    };
    assert_eq!(json(), json());
    let nothing = measured(&[talk("talk", &json!([]))], &built_in());
    assert_eq!((nothing.all.questions, nothing.all.hit_at_1), (0, None));
    assert!(nothing.sheets().is_empty());
}
