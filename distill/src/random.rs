//! Random numbers that are the same everywhere.

/// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, and without, 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `end`; 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.share() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Puts `items` in a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end));
        }
    }

    /// `count` of `items`, or all where there are fewer, in the order in which they stand.
    pub(crate) fn sample<T>(&mut self, items: Vec<T>, count: usize) -> Vec<T> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        self.shuffle(&mut order);
        let mut kept = vec![false; items.len()];
        order.into_iter().take(count).for_each(|at| kept[at] = true);
        items.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(item, _)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_in_order_and_depends_on_the_seed() {
        let of = |seed| Random::new(seed).sample((0..100).collect(), 10);
        assert_eq!(of(1).len(), 10);
        assert!(of(1).is_sorted());
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(Random::new(1).sample(vec!['a', 'b'], 10), ['a', 'b']);
    }

    #[test]
    fn numbers_fill_their_range() {
        let mut random = Random::new(7);
        let mut counts = [0; 5];
        (0..1000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|&count| count > 150), "{counts:?}");
    }
}
