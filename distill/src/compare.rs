//! What a table is worth: how often the passage that answers a question is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::Value;

use crate::matrix::{Matrix, dot};
use crate::texts::{documents, read};

/// Of the meetings every fifth is asked about, which is quicker and tells as much.
const MEETINGS: usize = 5;

/// Messages of a block.
const BLOCK: usize = 5;

/// The shares that words have of a fused score.
pub(crate) const WORDS: [f32; 6] = [0.0, 0.2, 0.3, 0.4, 0.5, 0.6];

/// A conversation cut into units, and questions about it.
pub(crate) struct Conversation {
    pub(crate) units: Vec<String>,
    pub(crate) questions: Vec<Question>,
}

/// A question, and the numbers of the units that answer it.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) answers: BTreeSet<usize>,
}

/// Conversations of one kind, cut in one way.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) conversations: Vec<Conversation>,
}

/// What is found among the first 1, 5 and 10: the mean share of a question's answers.
pub(crate) type Recall = [f64; 3];

/// The sets in `folder`.
pub(crate) fn sets(folder: &Path) -> Result<Vec<Set>> {
    let load = |path: &str| documents(path, &read(&folder.join(path))?);
    let dialogues = load("dialogue/restricted_locomo.jsonl.zst")?;
    let memories = load("dialogue/bfcl_memory.jsonl")?;
    let meetings = load("segmentation/qmsum_meetings.jsonl.zst")?;
    let set = |name, documents: &[Value], step, unit| Set {
        name,
        conversations: documents.iter().step_by(step).map(|d| conversation(d, unit)).collect(),
    };
    Ok(vec![
        set("LoCoMo, turns", &dialogues, 1, 1),
        set("LoCoMo, blocks", &dialogues, 1, BLOCK),
        set("BFCL memory, messages", &memories, 1, 1),
        set("QMSum, blocks", &meetings, MEETINGS, BLOCK),
    ])
}

fn conversation(document: &Value, unit: usize) -> Conversation {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = list(&document["messages"]);
    let said: Vec<String> = messages.iter().map(said).collect();
    let questions = list(&document["qa"]).into_iter().filter(|question| question["category"] != 5);
    let questions = questions.filter_map(|question| {
        let of_ids = list(&question["evidence"])
            .into_iter()
            .filter_map(|id| messages.iter().position(|message| message["id"] == id));
        let of_spans = list(&question["evidence_spans"]).into_iter().flat_map(|span| {
            let end = |at: usize| span[at].as_u64().unwrap_or(0) as usize;
            end(0)..end(1) + 1
        });
        let answers: BTreeSet<usize> = of_ids.chain(of_spans).map(|at| at / unit).collect();
        let text = question["question"].as_str()?.to_owned();
        (!answers.is_empty()).then_some(Question { text, answers })
    });
    Conversation {
        units: said.chunks(unit).map(|unit| unit.join("\n")).collect(),
        questions: questions.collect(),
    }
}

/// A message as it is embedded: who speaks, what is said, what is on a picture that is shown.
fn said(message: &Value) -> String {
    let name = message["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
    let part = |key: &str| message[key].as_str().unwrap_or_default();
    format!("{name}{} {}", part("content"), part("image_caption")).trim_end().to_owned()
}

/// What is found in `set` at each of [`WORDS`], with vectors of length 1 by `embed`, and with words
/// alone.
pub(crate) fn recall(
    set: &Set,
    mut embed: impl FnMut(&[String]) -> Result<Matrix>,
) -> Result<(Vec<Recall>, Recall)> {
    let (mut found, mut by_words) = (vec![[0.0; 3]; WORDS.len()], [0.0; 3]);
    let mut asked = 0.0;
    for Conversation { units, questions } in &set.conversations {
        let vectors = embed(units)?;
        let texts: Vec<String> = questions.iter().map(|question| question.text.clone()).collect();
        let asking = embed(&texts)?;
        let words = Words::new(units);
        for (question, vector) in questions.iter().zip(asking.rows()) {
            let scores = words.scores(&question.text);
            let most = scores.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
            let cosines: Vec<f32> = vectors.rows().map(|row| dot(vector, row)).collect();
            for (weight, found) in WORDS.iter().zip(&mut found) {
                let fused = scores.iter().zip(&cosines);
                let fused = fused.map(|(score, cos)| weight * score / most + (1.0 - weight) * cos);
                count(&fused.collect::<Vec<f32>>(), &question.answers, found);
            }
            count(&scores, &question.answers, &mut by_words);
            asked += 1.0;
        }
    }
    let mean = |sums: Recall| sums.map(|sum| sum / asked);
    Ok((found.into_iter().map(mean).collect(), mean(by_words)))
}

fn count(scores: &[f32], answers: &BTreeSet<usize>, found: &mut Recall) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    for (sum, first) in found.iter_mut().zip([1, 5, 10]) {
        let hits = order.iter().take(first).filter(|unit| answers.contains(unit)).count();
        *sum += hits as f64 / answers.len() as f64;
    }
}

/// BM25 over stemmed words, with the usual constants.
struct Words {
    units: Vec<BTreeMap<String, f32>>,
    lengths: Vec<f32>,
    holding: BTreeMap<String, f32>,
    stemmer: Stemmer,
}

impl Words {
    fn new(units: &[String]) -> Self {
        let mut words = Self {
            units: Vec::new(),
            lengths: Vec::new(),
            holding: BTreeMap::new(),
            stemmer: Stemmer::create(Algorithm::English),
        };
        for unit in units {
            let mut counts = BTreeMap::new();
            words
                .stems(unit)
                .into_iter()
                .for_each(|stem| *counts.entry(stem).or_insert(0.0) += 1.0);
            words.lengths.push(counts.values().sum());
            counts.keys().for_each(|s| *words.holding.entry(s.clone()).or_insert(0.0) += 1.0);
            words.units.push(counts);
        }
        words
    }

    fn stems(&self, text: &str) -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(|word| self.stemmer.stem(word).into_owned()).collect()
    }

    fn scores(&self, question: &str) -> Vec<f32> {
        const K1: f32 = 1.2;
        const B: f32 = 0.75;
        let count = self.units.len() as f32;
        let mean = self.lengths.iter().sum::<f32>() / count.max(1.0);
        let stems = self.stems(question);
        let score = |(unit, length): (&BTreeMap<String, f32>, &f32)| {
            let terms = stems.iter().filter_map(|stem| {
                let (times, holding) = (unit.get(stem)?, self.holding.get(stem)?);
                let rare = ((count - holding + 0.5) / (holding + 0.5)).ln_1p();
                Some(rare * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length / mean)))
            });
            terms.sum()
        };
        self.units.iter().zip(&self.lengths).map(score).collect()
    }
}

/// The rows of the table in `file`.
pub(crate) fn table_rows(file: &Path) -> Result<Matrix> {
    crate::table::rows(&read(file)?).with_context(|| format!("{} is no table", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_what_has_them_and_blocks_are_units() {
        let document = serde_json::json!({
            "messages": (0..12).map(|n| serde_json::json!({
                "id": n, "content": if n == 7 { "the disks are full" } else { "all is well" },
            })).collect::<Vec<_>>(),
            "qa": [
                {"question": "Which disk is full?", "evidence": [7]},
                {"question": "Never said", "evidence": [3], "category": 5},
                {"question": "is it well", "evidence_spans": [[4, 6]]},
            ],
        });
        let blocks = conversation(&document, BLOCK);
        assert_eq!(blocks.units.len(), 3);
        assert_eq!(blocks.questions.len(), 2);
        assert_eq!(blocks.questions[1].answers, BTreeSet::from([0, 1]));
        let scores = Words::new(&blocks.units).scores(&blocks.questions[0].text);
        let mut found = [0.0; 3];
        count(&scores, &blocks.questions[0].answers, &mut found);
        assert_eq!(found, [1.0; 3]);
    }
}
