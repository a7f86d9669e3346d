//! The vectors of a message: of what it says and calls, one for each window of the text.

use foldback_core::{EmbedError, Embedder, Message, Vectors};

/// At most this many vectors are kept for one message; a longer text is embedded in its first
/// windows, and found by its words beyond them.
const MAX_WINDOWS: usize = 8;

/// The vectors of what a message says and calls, one for each window.
pub(crate) fn vectors_of(
    embedder: &dyn Embedder,
    message: &Message,
) -> Result<Vectors, EmbedError> {
    embedder.embed(&embedder.windows(&text_of(message), MAX_WINDOWS))
}

/// The vectors of each of several messages, made together: an embedder works on many texts beside each
/// other. Where it does not take them so, each is tried by itself.
pub(crate) fn vectors_of_each(
    embedder: &dyn Embedder,
    messages: &[&Message],
) -> Vec<Result<Vectors, EmbedError>> {
    let texts: Vec<String> = messages.iter().map(|message| text_of(message)).collect();
    let windows: Vec<Vec<&str>> =
        texts.iter().map(|text| embedder.windows(text, MAX_WINDOWS)).collect();
    let all: Vec<&str> = windows.iter().flatten().copied().collect();
    let together = match embedder.embed(&all) {
        Ok(vectors) if vectors.len() == all.len() => vectors,
        _ => return messages.iter().map(|message| vectors_of(embedder, message)).collect(),
    };
    let mut rows = together.rows();
    let of = |windows: &Vec<&str>| {
        let values = rows.by_ref().take(windows.len()).flatten().copied().collect();
        Vectors::new(together.dim(), values).ok_or_else(|| EmbedError {
            model: embedder.model_id().to_owned(),
            message: format!("it gave vectors that are no rows of {} numbers", together.dim()),
        })
    };
    windows.iter().map(of).collect()
}

/// In how many windows a message is embedded.
pub(crate) fn windows_of(embedder: &dyn Embedder, message: &Message) -> usize {
    embedder.windows(&text_of(message), MAX_WINDOWS).len()
}

/// What a message says and calls.
pub(crate) fn text_of(message: &Message) -> String {
    let mut text = message.text().into_owned();
    for call in message.tool_calls() {
        text.push('\n');
        text.push_str(&call.name);
        text.push(' ');
        text.push_str(&call.arguments);
    }
    text
}

/// The direction in which a message is compared with its neighbours: the mean of its windows, of length 1. `vectors` are those
/// that are stored of it.
pub(crate) fn direction(
    embedder: &dyn Embedder,
    message: &Message,
    vectors: &Vectors,
) -> Option<Vec<f32>> {
    if vectors.is_empty() {
        return None;
    }
    let text = text_of(message);
    match embedder.embed_for_topics(&embedder.windows(&text, MAX_WINDOWS)) {
        Some(vectors) => mean(&vectors),
        None => mean(vectors),
    }
}

fn mean(vectors: &Vectors) -> Option<Vec<f32>> {
    if vectors.is_empty() {
        return None;
    }
    let mut sum = vec![0.0; vectors.dim()];
    for row in vectors.rows() {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += value;
        }
    }
    let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm == 0.0 {
        return None;
    }
    sum.iter_mut().for_each(|value| *value /= norm);
    Some(sum)
}
