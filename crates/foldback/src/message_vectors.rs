//! The vectors of a message, one for each window of its text and calls.

use foldback_core::{EmbedError, Embedder, Message, Vectors};

/// At most this many vectors are kept for one message. Of a longer text the first and the last windows are embedded,
/// and the middle is found by its words.
const MAX_WINDOWS: usize = 8;

/// Embeds the text and calls of a message, one vector for each window.
pub(crate) fn vectors_of(
    embedder: &dyn Embedder,
    message: &Message,
) -> Result<Vectors, EmbedError> {
    embedder.embed(&embedder.windows(&text_of(message), MAX_WINDOWS))
}

/// Embeds several messages together, since an embedder can work on many texts in parallel. If it does
/// not accept them together, each is tried by itself.
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
            message: format!("it returned vectors that are not rows of {} numbers", together.dim()),
        })
    };
    windows.iter().map(of).collect()
}

/// Returns the number of windows in which a message is embedded.
pub(crate) fn windows_of(embedder: &dyn Embedder, message: &Message) -> usize {
    embedder.windows(&text_of(message), MAX_WINDOWS).len()
}

/// Returns the text and calls of a message.
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

/// Returns the direction in which a message is compared with its neighbours: the mean of its windows, of length 1.
/// `vectors` are its stored vectors.
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
