//! What a message sends beside its content and its calls.

/// The sizes of these fields. They are taken where the message is read, so that a count of tokens
/// does not parse it again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    reasoning: usize,
    others: usize,
}

impl Beside {
    /// Takes a field with its exact JSON value.
    pub(super) fn take(&mut self, key: &str, value: &str) {
        match key {
            "refusal" | "function_call" => self.others = self.others.saturating_add(bytes(value)),
            "thinking" | "thinking_blocks" => self.reasoning = self.reasoning.max(bytes(value)),
            _ if key.starts_with("reasoning") => self.reasoning = self.reasoning.max(bytes(value)),
            _ => {}
        }
    }

    pub(super) fn bytes(self) -> usize {
        self.reasoning.saturating_add(self.others)
    }
}

/// Returns the length of a value; an empty one is nothing.
fn bytes(value: &str) -> usize {
    match value.trim_matches(['"', '[', ']', '{', '}', ' ']) {
        "" | "null" => 0,
        _ => value.len(),
    }
}
