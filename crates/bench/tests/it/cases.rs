//! Conversations for the tests, as a file would hold them.

use foldback_bench::Case;
use serde_json::Value;

/// One case for each line of a file of foldback JSON Lines.
pub(crate) fn cases(lines: &[Value]) -> Vec<Case> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    foldback_transcript::read_bytes(text.as_bytes())
        .unwrap()
        .map(|conversation| {
            let conversation = conversation.unwrap();
            let id = conversation.id.clone().unwrap();
            Case::new(id, "a/file.jsonl".to_owned(), conversation)
        })
        .collect()
}
