//! The usage that a client sees.

use super::edits::{Edits, members};
use crate::Api;
use crate::usage::Usage;

/// Rewrites an answer's usage for a client that knows of one request alone: the output is that of all, and the input,
/// by which clients judge how full the context is, is that of the last, which is `own`.
pub(super) fn told(api: Api, words: &str, own: &Usage, earlier: &Usage) -> String {
    let Some(members) = members(words) else { return words.to_owned() };
    let mut edits = Edits::new(words);
    let output = if api == Api::ChatCompletions { "completion_tokens" } else { "output_tokens" };
    for key in [output, "total_tokens"] {
        let own = members.get(key).and_then(|own| own.get().parse::<u64>().ok());
        if let Some(own) = own {
            edits.set(&members, key, &own.saturating_add(earlier.output).to_string());
        }
    }
    if api == Api::Messages {
        for (key, value) in [
            ("input_tokens", own.input.plain),
            ("cache_creation_input_tokens", own.input.written),
            ("cache_read_input_tokens", own.input.read),
        ] {
            edits.set(&members, key, &value.to_string());
        }
    }
    edits.finish()
}
