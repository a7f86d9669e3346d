//! Estimates, and the exact cosines that they bound.

use super::super::code_file::tests::{doc, unit, written};
use super::*;
use crate::dot::dot;
use proptest::prelude::*;

proptest! {
    #[test]
    fn p5_the_true_cosine_is_within_its_bound(
        row in prop::collection::vec(-1.0f32..1.0, 256),
        query in prop::collection::vec(-1.0f32..1.0, 256),
    ) {
        let (row, query) = (unit(row), unit(query));
        let dir = tempfile::tempdir().unwrap();
        let doc = doc(1, std::slice::from_ref(&row));
        let codes = written(&dir.path().join("v"), &[&[doc]]);
        let estimate = codes.group("m", 256).unwrap().estimate(0, &Query::new(&query));
        prop_assert!((estimate.cosine - dot(&row, &query)).abs() <= estimate.error);
        prop_assert!(estimate.error < 0.004, "{}", estimate.error);
    }

    /// Rows of few different numbers, of few numbers, and with one dominant number, compared with
    /// questions made in the same way: their remainders have a direction.
    #[test]
    fn p5_the_true_cosine_is_within_its_bound_for_rows_of_a_pattern(
        levels in prop::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 1..40),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 256),
        zeros in 0usize..250,
        tower in prop::option::of(1.0f32..50.0),
    ) {
        let of = |number: fn((f32, f32)) -> f32| {
            let mut row: Vec<f32> = picks
                .iter()
                .map(|(pick, minus)| {
                    let value = number(*pick.get(&levels));
                    if *minus { -value } else { value }
                })
                .collect();
            row[..zeros].fill(0.0);
            row
        };
        let mut row = of(|(value, _)| value);
        if let Some(tower) = tower {
            row[255] = tower;
        }
        let row = unit(row);
        let dir = tempfile::tempdir().unwrap();
        let docs = [doc(1, std::slice::from_ref(&row))];
        let codes = written(&dir.path().join("v"), &[&docs]);
        let group = codes.group("m", 256).unwrap();
        // These include the remainder of the row, which is the worst question of all.
        let scale = row.iter().fold(0.0f32, |max, value| max.max(value.abs())) / 127.0;
        let left: Vec<f32> =
            row.iter().map(|v| v - (v / scale.max(1e-9)).round() * scale).collect();
        for query in [of(|(_, other)| other), of(|_| 1.0), row.clone(), left] {
            let query = unit(query);
            let estimate = group.estimate(0, &Query::new(&query));
            let error = (estimate.cosine - dot(&row, &query)).abs();
            prop_assert!(error <= estimate.error, "{error} and {}", estimate.error);
        }
    }

    /// A scan of any range gives each of its rows once, whatever chunks they were written in.
    #[test]
    fn a_scan_gives_the_rows_of_its_range(
        chunks in prop::collection::vec(1usize..4, 1..5),
        (from, to) in (0usize..14, 0usize..14),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let row = |i: u32| unit((0..40).map(|j| ((i * 7 + j * 3) as f32).sin()).collect());
        let docs: Vec<_> = (1..=20u32).map(|n| doc(n, &[row(2 * n), row(2 * n + 1)])).collect();
        let mut rest = docs.as_slice();
        let mut runs = Vec::new();
        for len in chunks {
            let (run, behind) = rest.split_at(len);
            runs.push(run);
            rest = behind;
        }
        let codes = written(&dir.path().join("v"), &runs);
        let group = codes.group("m", 40).unwrap();
        let query = Query::new(&row(99));
        let to = to.min(group.len());
        let mut found = Vec::new();
        group.scan(from..to, &query, |n, estimate| found.push((n, estimate)));
        let each = (from..to).map(|row| (group.block(row), group.estimate(row, &query)));
        prop_assert_eq!(found, each.collect::<Vec<_>>());
    }
}
