//! Plans generated from a seed: known shapes in known sizes.

use super::gold::{GoldPlan, PlanSet};
use crate::index::Random;
use foldback_planner::{Piece, Reference, StepId, Template};
use serde::{Deserialize, Serialize};

/// The shape of a generated plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Each step waits for the previous one.
    Chain,
    /// No step waits for any.
    Independent,
    /// One step, many that wait for it, and one that waits for those.
    ForkJoin,
    /// Each step except the first waits for one step, and at most two wait for the same step.
    Tree,
    /// Layers of random width; each step waits for one to three of the layer above.
    Layered,
}

impl Family {
    /// All shapes.
    pub const ALL: [Self; 5] =
        [Self::Chain, Self::Independent, Self::ForkJoin, Self::Tree, Self::Layered];

    /// Returns the name as it is reported.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Independent => "independent",
            Self::ForkJoin => "fork_join",
            Self::Tree => "tree",
            Self::Layered => "layered",
        }
    }

    /// Returns, for each of `n` steps, the indexes of those that it waits for: ascending, each below
    /// its own.
    #[must_use]
    pub fn waits(self, n: usize, seed: u64) -> Vec<Vec<usize>> {
        let mut random = Random::new(seed);
        match self {
            Self::Chain => (0..n).map(|at| at.checked_sub(1).into_iter().collect()).collect(),
            Self::Independent => vec![Vec::new(); n],
            Self::ForkJoin => (0..n)
                .map(|at| match at {
                    0 => Vec::new(),
                    _ if at + 1 == n && n > 2 => (1..at).collect(),
                    _ => vec![0],
                })
                .collect(),
            Self::Tree => {
                (0..n).map(|at| at.checked_sub(1).map(|at| at / 2).into_iter().collect()).collect()
            }
            Self::Layered => layered(n, &mut random),
        }
    }
}

/// Returns layers of up to eight steps.
fn layered(n: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut waits = Vec::with_capacity(n);
    let mut above = 0..0;
    while waits.len() < n {
        let start = waits.len();
        let end = (start + 1 + random.below(8) as usize).min(n);
        for _ in start..end {
            let count = if above.is_empty() { 0 } else { 1 + random.below(3) as usize };
            let one = |random: &mut Random| above.start + random.below(above.len() as u64) as usize;
            let mut all: Vec<usize> = (0..count).map(|_| one(random)).collect();
            all.sort_unstable();
            all.dedup();
            waits.push(all);
        }
        above = start..end;
    }
    waits
}

/// The sizes in which each shape is generated.
pub const SIZES: [usize; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// Returns every shape in every size up to `most`.
#[must_use]
pub fn generated(most: usize, seed: u64) -> Vec<GoldPlan> {
    let of = |family: Family| {
        let sizes = SIZES.into_iter().filter(move |size| *size <= most);
        sizes.map(move |size| plan(family, size, seed))
    };
    Family::ALL.into_iter().flat_map(of).collect()
}

/// Returns a plan of a shape. Each step is given the results of those that it waits for.
#[must_use]
pub fn plan(family: Family, size: usize, seed: u64) -> GoldPlan {
    let id = format!("{} {size}", family.as_str());
    let calls = family.waits(size, seed).into_iter().zip(1_u32..).map(|(waits, number)| {
        let mut members = vec![("number".to_owned(), Template::Literal(number.to_string()))];
        let references: Vec<Reference> = waits.iter().map(|at| whole(*at)).collect();
        match <[Reference; 1]>::try_from(references) {
            Ok([only]) => members.push(("from".to_owned(), Template::Whole(only))),
            Err(all) if all.is_empty() => {}
            Err(all) => {
                let mut pieces: Vec<Piece> = Vec::new();
                for reference in all {
                    pieces.push(Piece::Reference(reference));
                    pieces.push(Piece::Text(" ".to_owned()));
                }
                pieces.pop();
                members.push(("from".to_owned(), Template::Mixed(pieces)));
            }
        }
        ("work".to_owned(), Template::Object(members), Vec::new())
    });
    GoldPlan::new(id.clone(), PlanSet::Generated, id, calls.collect())
}

/// Returns a reference to the result of the step at an index.
fn whole(at: usize) -> Reference {
    let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
    Reference { step: StepId(number), path: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_edges() {
        let waits = |family: Family, n| family.waits(n, 7);
        assert_eq!(waits(Family::Chain, 3), [vec![], vec![0], vec![1]]);
        assert_eq!(waits(Family::Independent, 2), vec![Vec::<usize>::new(); 2]);
        assert_eq!(waits(Family::ForkJoin, 4), [vec![], vec![0], vec![0], vec![1, 2]]);
        assert_eq!(waits(Family::ForkJoin, 2), [vec![], vec![0]]);
        assert_eq!(waits(Family::Tree, 5), [vec![], vec![0], vec![0], vec![1], vec![1]]);
        assert_ne!(waits(Family::Layered, 50), Family::Layered.waits(50, 8));
        for family in Family::ALL {
            for size in SIZES {
                let plan = plan(family, size, 7);
                assert_eq!(plan.waits(), family.waits(size, 7), "{}", plan.id);
                assert_eq!(plan.plan.steps.len(), size);
                let forward = |(at, waits): (usize, &Vec<usize>)| waits.iter().all(|one| *one < at);
                assert!(plan.waits().iter().enumerate().all(forward), "{}", plan.id);
            }
        }
        assert_eq!(generated(20, 7).len(), 25);
    }
}
