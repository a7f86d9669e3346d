//! The cosine that stands for "same topic", measured where the changes of topic are known.

use foldback_embedder::StaticEmbedder;
use serde_json::Value;

use crate::corpus::{self, cosine};

/// Neighbouring rough blocks: two runs of 2, 3 or 4 messages, one directly after the other, either
/// both in one segment, or the first at the end of a segment and the second at the start of the
/// next. The three sets count alike, and so do the three lengths.
#[test]
fn bl5_same_topic_parts_neighbours_within_a_segment_from_neighbours_across_a_change() {
    let test = "bl5_same_topic_parts_neighbours_within_a_segment_from_neighbours_across_a_change";
    let Some(folder) = corpus::folder(test) else { return };
    let mut pairs = Vec::new();
    for name in ["restricted_dialseg711", "tiage", "composite_agent_multitask"] {
        let conversations =
            corpus::documents(&folder.join(format!("segmentation/{name}.jsonl.zst")));
        for turns in 2..=4 {
            let found = Neighbours::of(&conversations, turns);
            eprintln!("{name}, {turns} messages: {found}");
            pairs.push(found);
        }
    }
    let accuracy = |cosine: f32| -> f64 {
        pairs.iter().map(|p| p.balanced_accuracy(cosine)).sum::<f64>() / pairs.len() as f64
    };
    let best = (0..100)
        .map(|percent| percent as f32 / 100.0)
        .max_by(|&a, &b| accuracy(a).total_cmp(&accuracy(b)))
        .unwrap();
    let chosen = StaticEmbedder::SAME_TOPIC;
    eprintln!(
        "best cosine {best:.2}, balanced accuracy {:.3}; at {chosen} {:.3}; at +-.1 {:.3} {:.3}",
        accuracy(best),
        accuracy(chosen),
        accuracy(chosen - 0.1),
        accuracy(chosen + 0.1)
    );
    assert!((best - chosen).abs() <= 0.03, "the best is {best}");
    assert!(accuracy(chosen) > 0.65);
}

struct Neighbours {
    within: Vec<f32>,
    across: Vec<f32>,
}

impl Neighbours {
    fn of(conversations: &[Value], turns: usize) -> Self {
        let (mut within, mut across) = (Vec::new(), Vec::new());
        for conversation in conversations {
            let texts: Vec<String> = corpus::messages(conversation)
                .iter()
                .map(|message| corpus::text(message).chars().take(3000).collect())
                .collect();
            let starts: Vec<usize> = conversation["boundaries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|start| start.as_u64().unwrap() as usize)
                .collect();
            let segment = |message: usize| starts.partition_point(|&start| start <= message);
            let runs: Vec<Vec<f32>> = texts
                .windows(turns)
                .map(|run| {
                    let mut vector = Vec::new();
                    StaticEmbedder::new().embed_into(&run.join("\n"), &mut vector);
                    vector
                })
                .collect();
            for (first, (a, b)) in runs.iter().zip(runs.iter().skip(turns)).enumerate() {
                let (second, end) = (first + turns, first + 2 * turns - 1);
                if segment(first) == segment(end) {
                    within.push(cosine(a, b));
                } else if segment(first) == segment(second - 1)
                    && segment(second) == segment(end)
                    && segment(second) == segment(first) + 1
                {
                    across.push(cosine(a, b));
                }
            }
        }
        within.sort_by(f32::total_cmp);
        across.sort_by(f32::total_cmp);
        Self { within, across }
    }

    /// The mean of the share of pairs within that reach `cosine` and of pairs across that do not.
    fn balanced_accuracy(&self, cosine: f32) -> f64 {
        let below = |sorted: &[f32]| {
            sorted.partition_point(|&value| value < cosine) as f64 / sorted.len() as f64
        };
        (1.0 - below(&self.within) + below(&self.across)) / 2.0
    }
}

impl std::fmt::Display for Neighbours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, sorted) in [("within", &self.within), ("across", &self.across)] {
            let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
            write!(
                f,
                "{name} {} pairs, p10 {:.2} p50 {:.2} p90 {:.2}; ",
                sorted.len(),
                at(0.1),
                at(0.5),
                at(0.9)
            )?;
        }
        Ok(())
    }
}
