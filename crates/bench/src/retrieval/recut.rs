//! A conversation in blocks that were cut by some other rule, searched by the same code.

use crate::BenchError;
use foldback_blockstore::{BlockStore, Commit, Head, IndexConfig, NewMessage, Searcher};
use foldback_chunker::{Described, describe};
use foldback_core::{
    Block, BlockId, CloseReason, Embedder, Message, Piece, SeqNo, SeqRange, StoredMessage,
    Timestamp, TodoId, Vectors,
};
use foldback_kv::Registry;
use std::ops::RangeInclusive;

/// The maximum number of windows of a message that a memory embeds.
const WINDOWS: usize = 8;

/// Returns the vectors of all messages, as a memory computes them.
pub(super) fn vectors_of(
    embedder: &dyn Embedder,
    messages: &[Message],
) -> Result<Vec<Vectors>, BenchError> {
    let of = |message: &Message| {
        let mut text = message.text().into_owned();
        for call in message.tool_calls() {
            text.push_str(&format!("\n{} {}", call.name, call.arguments));
        }
        Ok(embedder.embed(&embedder.windows(&text, WINDOWS)).map_err(foldback::Error::from)?)
    };
    messages.iter().map(of).collect()
}

/// Returns consecutive windows of `size` messages.
pub(super) fn windows(messages: usize, size: usize) -> Vec<RangeInclusive<usize>> {
    let starts = (0..messages).step_by(size.max(1));
    starts.map(|first| first..=messages.min(first + size.max(1)) - 1).collect()
}

/// Returns one vector for each block: the direction of the mean of its messages' vectors. It belongs to
/// the block's first message; the others have none.
pub(super) fn block_means(blocks: &[RangeInclusive<usize>], vectors: &[Vectors]) -> Vec<Vectors> {
    let mut means = vec![Vectors::default(); vectors.len()];
    for block in blocks {
        let rows = vectors.get(block.clone()).unwrap_or_default().iter().flat_map(Vectors::rows);
        let mut sum: Vec<f32> = Vec::new();
        for row in rows {
            sum.resize(row.len(), 0.0);
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if norm > 0.0
            && let Some(mean) = means.get_mut(*block.start())
            && let Some(unit) =
                Vectors::new(sum.len(), sum.iter().map(|value| value / norm).collect())
        {
            *mean = unit;
        }
    }
    means
}

/// Puts messages, in these blocks and with these vectors, into a separate store.
pub(super) fn recut(
    model_id: &str,
    messages: &[Message],
    vectors: &[Vectors],
    blocks: &[RangeInclusive<usize>],
) -> Result<Searcher, BenchError> {
    let kv = foldback_kv::memory();
    let todo = TodoId::from_foreign("recut");
    let todo = Registry::new(kv.clone()).create(&todo, b"").map_err(foldback::Error::from)?;
    let store =
        BlockStore::open(kv, None, IndexConfig::default()).map_err(foldback::Error::from)?;
    let stored = |message: &Message| StoredMessage {
        pieces: vec![Piece::Text(message.json().to_owned())],
        offloads: Vec::new(),
        recall: false,
        recorded_at: 0,
    };
    let new: Vec<NewMessage> = messages
        .iter()
        .zip(vectors)
        .map(|(message, vectors)| NewMessage { stored: stored(message), vectors: vectors.clone() })
        .collect();
    let block = |(n, run): (u32, &RangeInclusive<usize>)| {
        let (first, last) = (*run.start() as u64, *run.end() as u64);
        let range = SeqRange::new(SeqNo(first), SeqNo(last))?;
        let recorded_at = Timestamp(0);
        let described = |message| Described::new(message, recorded_at);
        let parts: Vec<_> = messages.get(run.clone())?.iter().map(described).collect();
        let header = describe(BlockId::new(todo.id().clone(), n), &parts, &|_| false);
        Some(Block { header, range, close_reason: CloseReason::Size })
    };
    let blocks: Vec<Block> = (1..).zip(blocks).filter_map(block).collect();
    let commit = Commit {
        todo: &todo,
        head: Head::default(),
        messages: &new,
        blocks: &blocks,
        session: Vec::new(),
        extra: Vec::new(),
        delete: Vec::new(),
    };
    store.commit(commit, model_id).map_err(foldback::Error::from)?;
    Ok(store.searcher(&todo).map_err(foldback::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_every_message_once() {
        assert_eq!(windows(5, 2), [0..=1, 2..=3, 4..=4]);
        assert_eq!(windows(4, 4), [0..=3]);
        assert!(windows(0, 4).is_empty());
    }

    #[test]
    fn a_mean_is_a_direction_and_stands_with_the_first_message() {
        let vectors: Vec<Vectors> =
            [vec![1.0, 0.0], vec![0.0, 1.0, 0.0, 1.0], vec![], vec![-1.0, 0.0]]
                .into_iter()
                .map(|values| Vectors::new(if values.is_empty() { 0 } else { 2 }, values).unwrap())
                .collect();
        let means = block_means(&[0..=1, 2..=2, 3..=3], &vectors);
        let row = means[0].row(0).unwrap();
        let length = 5.0_f32.sqrt();
        assert!((row[0] - 1.0 / length).abs() < 1e-6 && (row[1] - 2.0 / length).abs() < 1e-6);
        assert!(means[1].is_empty() && means[2].is_empty());
        assert_eq!(means[3].row(0).unwrap(), [-1.0, 0.0]);
    }
}
