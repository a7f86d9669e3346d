//! Checks whether a whole request would have been as large as the ledger says.

use crate::{Entry, Ledger};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the ledger waits for a count.
const PATIENCE: Duration = Duration::from_secs(10);

/// The members of a request that Anthropic's token counting accepts
/// (platform.claude.com/docs/en/api/messages/count_tokens), its betas included.
const TAKEN: [&str; 12] = [
    "cache_control",
    "context_management",
    "mcp_servers",
    "messages",
    "model",
    "output_config",
    "output_format",
    "speed",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];

/// A request whose provider is asked to count the client's own body. It is recorded in the ledger with that count, or
/// without it if there is none.
#[derive(Default)]
pub(crate) struct Check {
    entry: Mutex<Option<(Entry, Ledger)>>,
    counted: OnceLock<u64>,
}

impl Check {
    /// Requests the count of a client's body, which is not known yet; `None` if the body cannot be counted.
    pub(crate) fn begin(body: &str, request: reqwest::RequestBuilder) -> Option<Arc<Self>> {
        let request = request.body(countable(body)?);
        let check = Arc::<Self>::default();
        let waiting = Arc::clone(&check);
        tokio::spawn(async move {
            if let Ok(Some(tokens)) = tokio::time::timeout(PATIENCE, counted(request)).await {
                // It is set once.
                let _ = waiting.counted.set(tokens);
            }
        });
        Some(check)
    }

    /// Takes the entry, which is recorded once the count is there or the wait is over.
    pub(crate) fn note(&self, entry: Entry, ledger: &Ledger) {
        *self.entry.lock() = Some((entry, ledger.clone()));
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        if let Some((mut entry, ledger)) = self.entry.get_mut().take() {
            entry.counted = self.counted.get().copied();
            ledger.note(&entry);
        }
    }
}

/// Returns the part of a body that is counted.
fn countable(body: &str) -> Option<String> {
    let body: BTreeMap<&str, &RawValue> = serde_json::from_str(body).ok()?;
    let taken: BTreeMap<_, _> = body.into_iter().filter(|(key, _)| TAKEN.contains(key)).collect();
    serde_json::to_string(&taken).ok()
}

async fn counted(request: reqwest::RequestBuilder) -> Option<u64> {
    let answer = request.send().await.ok()?.error_for_status().ok()?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    answer["input_tokens"].as_u64()
}
