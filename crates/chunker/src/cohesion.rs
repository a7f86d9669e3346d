//! Lexical cohesion on both sides of a place in the window.

use crate::background::background;
use crate::terms::{TERMS_PER_MESSAGE, Term, damped};
use crate::window::Window;

/// The cohesion of the words before a cut and after it.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Cosines of the summed vectors of the 1, 2 and 4 messages on each side.
    pub(crate) cohesion: [f32; 3],
    /// The share of the message's terms that the 8 messages before it do not hold.
    pub(crate) novelty: f32,
    /// How much of these new terms returns in the 4 messages after it.
    pub(crate) persistence: f32,
    /// How many terms span the cut: their mentions before and after it are at most 4 messages
    /// apart.
    pub(crate) chains: f32,
}

/// The numbers of messages on each side of which cohesion is measured.
const SPANS: [usize; 3] = [1, 2, 4];
const LOOK_BACK: usize = 8;
const REACH: usize = 4;

impl Words {
    pub(crate) fn around(window: &Window, at: usize) -> Self {
        let mentions = mentions(window, at.saturating_sub(LOOK_BACK), at + REACH + 1);
        let mut found = Self::default();
        let mut dots = [0.0_f32; 3];
        let mut norms = [[0.0_f32; 2]; 3];
        let (mut mass, mut new, mut returning, mut spanning) = (0.0, 0.0, 0.0, 0.0);
        for same in mentions.chunk_by(|a, b| a.term == b.term) {
            let Some(first) = same.first() else { continue };
            let tells = background(first.term);
            let weight = tells * window.rarity(first.term);
            let split = same.partition_point(|mention| mention.at < at);
            let (before, behind) = same.split_at(split);
            for ((span, dot), norm) in SPANS.into_iter().zip(&mut dots).zip(&mut norms) {
                let sum = |side: &[Mention], inside: &dyn Fn(usize) -> bool| {
                    let counts = side.iter().filter(|mention| inside(mention.at));
                    weight * counts.map(|mention| mention.damped).sum::<f32>()
                };
                let left = sum(before, &|i| i + span >= at);
                let right = sum(behind, &|i| i < at + span);
                *dot += left * right;
                norm[0] += left * left;
                norm[1] += right * right;
            }
            if behind.first().is_some_and(|mention| mention.at == at) {
                mass += tells;
                if before.is_empty() {
                    new += tells;
                    if behind.len() > 1 {
                        returning += tells;
                    }
                }
            }
            if let (Some(last), Some(next)) = (before.last(), behind.first())
                && next.at - last.at <= REACH
            {
                spanning += tells;
            }
        }
        for ((cosine, dot), norm) in found.cohesion.iter_mut().zip(dots).zip(norms) {
            let length = (norm[0] * norm[1]).sqrt();
            *cosine = if length > 0.0 { dot / length } else { 0.0 };
        }
        found.novelty = new / (mass + 0.5);
        found.persistence = (1.0_f32 + returning).ln();
        found.chains = (1.0_f32 + spanning).ln();
        found
    }
}

struct Mention {
    term: Term,
    at: usize,
    damped: f32,
}

/// Returns the terms of the messages from `from` to `to`, by term and then by place.
fn mentions(window: &Window, from: usize, to: usize) -> Vec<Mention> {
    // Term, place and count in one number each, which sorts several times as fast.
    let mut packed: Vec<u64> = Vec::with_capacity(to.saturating_sub(from) * TERMS_PER_MESSAGE);
    for (at, said) in window.said().iter().enumerate().take(to).skip(from) {
        let found = said.terms.iter();
        packed.extend(
            found.map(|(term, count)| u64::from(term) << 16 | (at as u64) << 8 | u64::from(count)),
        );
    }
    packed.sort_unstable();
    let unpack = |packed: u64| Mention {
        term: (packed >> 16) as Term,
        at: (packed >> 8 & 0xff) as usize,
        damped: damped(packed as u8),
    };
    packed.into_iter().map(unpack).collect()
}

/// Returns the cosine of the summed vectors of two neighbouring runs of the window's messages: how
/// far two rough blocks are about the same thing, when there are no embeddings.
pub(crate) fn cohesion(window: &Window, from: usize, split: usize, to: usize) -> f32 {
    let (mut dot, mut left, mut right) = (0.0_f32, 0.0_f32, 0.0_f32);
    for same in mentions(window, from, to).chunk_by(|a, b| a.term == b.term) {
        let Some(first) = same.first() else { continue };
        let weight = background(first.term) * window.rarity(first.term);
        let sum = |behind: bool| {
            let counts = same.iter().filter(|mention| (mention.at >= split) == behind);
            weight * counts.map(|mention| mention.damped).sum::<f32>()
        };
        let (a, b) = (sum(false), sum(true));
        dot += a * b;
        left += a * a;
        right += b * b;
    }
    let length = (left * right).sqrt();
    if length > 0.0 { dot / length } else { 0.0 }
}
