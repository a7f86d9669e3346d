//! The texts of a folder of recorded conversations that training may read.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::wheel::sha256_hex;

/// A file that training reads.
pub(crate) struct Source {
    /// Where it is in the folder.
    pub(crate) path: &'static str,
    /// The most passages of it that are kept, so that no kind of text drowns the others.
    pub(crate) most: usize,
    /// The fewest words of a passage.
    pub(crate) words: usize,
}

const fn source(path: &'static str, most: usize, words: usize) -> Source {
    Source { path, most, words }
}

/// All that is read. Every file is under the MIT or the Apache licence, which permits this. Not
/// among them: what the product is measured on (LoCoMo, the BFCL memory conversations), what may
/// not be spread (`restricted_`), and what only repeats these files.
pub(crate) const SOURCES: [Source; 15] = [
    source("dialogue/longmemeval_single.jsonl.zst", 12_000, 3),
    source("dialogue/memorybank_en.jsonl.zst", 5_000, 3),
    source("dialogue/secom_example.jsonl", 5_000, 3),
    source("segmentation/tiage.jsonl.zst", 8_000, 3),
    source("segmentation/qmsum_meetings.jsonl.zst", 26_000, 6),
    source("agent/intercode_shell_sql_ctf.jsonl.zst", 2_000, 3),
    source("agent/medical_records_fhir.jsonl.zst", 600, 3),
    source("agent/openhands.jsonl.zst", 2_000, 3),
    source("agent/swe_agent.jsonl.zst", 2_000, 3),
    source("agent/tau2_airline_timestamped.jsonl.zst", 2_000, 3),
    source("agent/tau2_retail_airline.jsonl.zst", 5_000, 3),
    source("agent/tau_bench_airline.jsonl.zst", 4_000, 3),
    source("agent/toolbench.jsonl.zst", 1_000, 3),
    source("plans/bfcl_multi_turn.jsonl.zst", 2_000, 3),
    source("plans/llmcompiler_qa.jsonl.zst", 2_000, 3),
];

/// A file's SHA-256 and its texts: what each message says, each question and its answer, each task.
/// A document whose own licence asks that what is made of it be shared alike is left out.
pub(crate) fn texts(folder: &Path, source: &Source) -> Result<(String, Vec<String>)> {
    let bytes = read(&folder.join(source.path))?;
    let mut texts = Vec::new();
    for document in documents(source.path, &bytes)? {
        if document["licence"].as_str().is_some_and(|licence| !licence.contains("-SA")) {
            collect(&document, &mut texts);
        }
    }
    Ok((sha256_hex(&bytes), texts))
}

/// The documents of a JSON Lines file, compressed or not.
pub(crate) fn documents(path: &str, bytes: &[u8]) -> Result<Vec<Value>> {
    let unpacked = if path.ends_with(".zst") {
        zstd::decode_all(bytes).with_context(|| format!("{path} cannot be unpacked"))?
    } else {
        bytes.to_vec()
    };
    let lines = unpacked.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).with_context(|| format!("{path} is not JSON")))
        .collect()
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn collect(document: &Value, texts: &mut Vec<String>) {
    let all = |name: &str| document[name].as_array().into_iter().flatten();
    for message in all("messages") {
        // Prompts and outputs of tools repeat themselves and are long.
        let most = match message["role"].as_str() {
            Some("system") => 3_000,
            Some("tool") => 1_500,
            _ => 12_000,
        };
        let text = message["content"].as_str().unwrap_or_default();
        texts.push(text.chars().take(most).collect());
    }
    for question in all("qa") {
        texts.extend(question["question"].as_str().map(str::to_owned));
        texts.extend(question["answer"].as_str().map(str::to_owned));
    }
    for turn in all("turns") {
        texts.extend(turn["user"].as_str().map(str::to_owned));
    }
    if document["messages"].is_null() {
        texts.extend(document["task"].as_str().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_document_is_read_once() {
        let document = serde_json::json!({
            "task": "what it is",
            "messages": [
                {"role": "tool", "content": "x".repeat(2_000)},
                {"role": "assistant", "content": null},
                {"role": "user", "content": "我的订单在哪里？"},
            ],
            "qa": [{"question": "where?", "answer": "there"}],
        });
        let mut texts = Vec::new();
        collect(&document, &mut texts);
        let long = "x".repeat(1_500);
        assert_eq!(texts, [long.as_str(), "", "我的订单在哪里？", "where?", "there"]);
        let mut texts = Vec::new();
        let plan = serde_json::json!({"task": "find it", "turns": [{"user": "please"}]});
        collect(&plan, &mut texts);
        assert_eq!(texts, ["please", "find it"]);
    }
}
