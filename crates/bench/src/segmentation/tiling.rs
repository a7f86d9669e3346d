//! TextTiling, for comparison: Hearst, "TextTiling: Segmenting Text into Multi-paragraph Subtopic
//! Passages", Computational Linguistics 23 (1), 1997. Messages take the place of its paragraphs.
//!
//! Stop words are ignored and the others are stemmed, as in the chunker; Chinese, Japanese and Korean
//! words are its terms too.

use foldback_chunker::words;
use foldback_core::Message;
use std::collections::BTreeMap;

/// The parameters of the method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    /// The number of words in a token sequence; `None` if each message is one.
    sequence: Option<usize>,
    /// The number of token sequences in a block, on each side of a gap.
    block: usize,
    /// Whether similarities are smoothed over three gaps.
    smooth: bool,
    /// What is added to the mean depth for the cut-off, in standard deviations.
    cutoff: f64,
    /// The minimum distance between two cuts, in token sequences.
    apart: usize,
}

impl Tiling {
    /// As in the paper, which is about expository text: token sequences of 20 words, blocks of 10
    /// sequences, one round of smoothing, the cut-off `mean - deviation / 2`, and at least three
    /// sequences between two cuts.
    pub(super) const OF_THE_PAPER: Self =
        Self { sequence: Some(20), block: 10, smooth: true, cutoff: -0.5, apart: 4 };

    /// Parameters for talk, the best of twenty settings tried on joined dialogues and open chat:
    /// messages as token sequences, blocks of 4, no smoothing, and the cut-off `mean + deviation`.
    pub(super) const BY_MESSAGE: Self =
        Self { sequence: None, block: 4, smooth: false, cutoff: 1.0, apart: 2 };
}

/// The frequency of each term.
type Counts = BTreeMap<u32, f64>;

/// Returns the messages before which TextTiling cuts, ascending.
pub(super) fn cuts(messages: &[Message], tiling: Tiling) -> Vec<usize> {
    let of_each: Vec<Vec<Option<u32>>> = messages.iter().map(words_of).collect();
    let mut similarities = similarities(&sequences(&of_each, tiling), tiling.block);
    if tiling.smooth {
        similarities = smoothed(&similarities);
    }
    // The position of each message's first word in the sequence of all words.
    let starts: Vec<usize> = of_each
        .iter()
        .scan(0, |sum, words| {
            let start = *sum;
            *sum += words.len();
            Some(start)
        })
        .collect();
    let mut cuts: Vec<usize> = boundaries(&depths(&similarities), tiling)
        .into_iter()
        .map(|gap| match tiling.sequence {
            Some(size) => nearest(&starts, (gap + 1) * size),
            None => gap + 1,
        })
        .filter(|at| *at > 0)
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn words_of(message: &Message) -> Vec<Option<u32>> {
    let mut found = words(&message.text());
    for call in message.tool_calls() {
        found.extend(words(&call.name).into_iter().chain(words(&call.arguments)));
    }
    found
}

fn sequences(of_each: &[Vec<Option<u32>>], tiling: Tiling) -> Vec<Counts> {
    match tiling.sequence {
        Some(size) => of_each.concat().chunks(size).map(count).collect(),
        None => of_each.iter().map(|words| count(words)).collect(),
    }
}

fn count(words: &[Option<u32>]) -> Counts {
    let mut counts = Counts::new();
    for term in words.iter().flatten() {
        *counts.entry(*term).or_default() += 1.0;
    }
    counts
}

/// Returns the cosine of the blocks on both sides of each gap; at the ends, both sides are as short as
/// the shorter one.
fn similarities(sequences: &[Counts], size: usize) -> Vec<f64> {
    let gaps = 1..sequences.len().max(1);
    let block = |run: &[Counts]| {
        let mut sum = Counts::new();
        for (term, n) in run.iter().flatten() {
            *sum.entry(*term).or_default() += n;
        }
        sum
    };
    let at = |gap: usize| {
        let reach = size.min(gap).min(sequences.len() - gap);
        let (left, right) = sequences.split_at(gap);
        let left = block(left.get(gap - reach..).unwrap_or_default());
        let right = block(right.get(..reach).unwrap_or_default());
        cosine(&left, &right)
    };
    gaps.map(at).collect()
}

fn cosine(a: &Counts, b: &Counts) -> f64 {
    let dot: f64 = a.iter().filter_map(|(term, n)| Some(n * b.get(term)?)).sum();
    let norm = |counts: &Counts| counts.values().map(|n| n * n).sum::<f64>();
    let length = (norm(a) * norm(b)).sqrt();
    if length > 0.0 { dot / length } else { 0.0 }
}

/// Returns the mean of each value and its neighbours.
fn smoothed(values: &[f64]) -> Vec<f64> {
    let around = |at: usize| {
        let near = values.get(at.saturating_sub(1)..values.len().min(at + 2)).unwrap_or_default();
        near.iter().sum::<f64>() / near.len().max(1) as f64
    };
    (0..values.len()).map(around).collect()
}

/// Returns how deep each gap lies below the peaks on its left and right.
fn depths(values: &[f64]) -> Vec<f64> {
    let climb = |from: f64, side: &mut dyn Iterator<Item = &f64>| {
        let mut peak = from;
        for value in side {
            if *value < peak {
                break;
            }
            peak = *value;
        }
        peak - from
    };
    let at = |(at, value): (usize, &f64)| {
        let (left, right) = values.split_at(at);
        climb(*value, &mut left.iter().rev()) + climb(*value, &mut right.iter().skip(1))
    };
    values.iter().enumerate().map(at).collect()
}

/// Returns the gaps whose depth exceeds the cut-off, the deepest first, none close to a deeper one.
fn boundaries(depths: &[f64], tiling: Tiling) -> Vec<usize> {
    let n = depths.len().max(1) as f64;
    let mean = depths.iter().sum::<f64>() / n;
    let deviation = (depths.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n).sqrt();
    let mut deep: Vec<(usize, f64)> = depths
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, depth)| *depth > 0.0 && *depth > mean + tiling.cutoff * deviation)
        .collect();
    deep.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut chosen: Vec<usize> = Vec::new();
    for (gap, _) in deep {
        if chosen.iter().all(|other| other.abs_diff(gap) >= tiling.apart) {
            chosen.push(gap);
        }
    }
    chosen
}

/// Returns the message that begins nearest to the word at `place`.
fn nearest(starts: &[usize], place: usize) -> usize {
    let behind = starts.partition_point(|start| *start < place);
    let distance = |at: usize| starts.get(at).map_or(usize::MAX, |start| start.abs_diff(place));
    match behind.checked_sub(1) {
        Some(before) if distance(before) <= distance(behind) => before,
        _ => behind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valley_is_as_deep_as_both_its_slopes() {
        let found = depths(&[0.5, 0.9, 0.2, 0.4, 0.6, 0.3]);
        let expected = [0.4, 0.0, 0.7 + 0.4, 0.2, 0.0, 0.3];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        assert_eq!(smoothed(&[1.0, 2.0, 6.0]), [1.5, 3.0, 4.0]);
    }

    #[test]
    fn a_cut_goes_to_the_nearest_message() {
        assert_eq!(nearest(&[0, 10, 40], 20), 1);
        assert_eq!(nearest(&[0, 10, 40], 35), 2);
        assert_eq!(nearest(&[0, 10, 40], 400), 2);
        let deepest = |depths: &[f64]| boundaries(depths, Tiling::OF_THE_PAPER);
        assert_eq!(deepest(&[0.0, 0.9, 0.8, 0.0, 0.0, 0.0, 0.7]), [1, 6]);
        assert!(deepest(&[]).is_empty());
    }

    /// Two subjects of many words, one after the other, also in Chinese.
    #[test]
    fn a_change_of_words_is_a_cut() {
        for [first, second] in [
            ["hotel room breakfast bed towel lobby", "engine brake wheel gear clutch oil"],
            ["酒店房间早餐毛巾大堂床位", "发动机刹车车轮齿轮机油离合"],
        ] {
            let say = |text: &str, i: usize| Message::user(&format!("{text} {text} number {i}"));
            let messages: Vec<Message> =
                (0..40).map(|i| say(if i < 20 { first } else { second }, i)).collect();
            for tiling in [Tiling::OF_THE_PAPER, Tiling::BY_MESSAGE] {
                let found = cuts(&messages, tiling);
                assert!(found.iter().any(|at| at.abs_diff(20) <= 1), "{found:?}");
            }
        }
        assert!(cuts(&[], Tiling::OF_THE_PAPER).is_empty());
        assert!(cuts(&[Message::user(""), Message::user("")], Tiling::BY_MESSAGE).is_empty());
    }
}
