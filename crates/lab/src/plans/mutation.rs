//! Deliberate mistakes in plans.

use super::gold::{GoldPlan, call_of, references};
use crate::index::Random;
use foldback_planner::{Action, FindingKind, Piece, Plan, Reference, Step, StepId, Template};
use serde::Serialize;

/// A mistake that a model could make in a plan. A plan with one of the first seven cannot be right, and
/// this can be detected before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutation {
    /// Steps wait for each other: one waits for a step that waits for it, directly or not.
    Cycle,
    /// A step waits for itself.
    SelfWait,
    /// The arguments refer to a missing step.
    DanglingReference,
    /// A step waits for a missing one.
    DanglingWait,
    /// The key of a step occurs twice.
    DuplicateStep,
    /// A reference names its own step, or a later one.
    SwappedToLater,
    /// A named tool does not exist.
    UnknownTool,
    /// A reference names another step before its own. If that step's answer has the same part, the
    /// result is another plan, and nothing reveals that it is wrong.
    SwappedToEarlier,
}

/// A plan with a mistake in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mutant {
    /// The plan.
    pub plan: Plan,
    /// Two steps, the second of which is to be written under the number of the first.
    pub doubled: Option<(StepId, StepId)>,
}

impl Mutation {
    /// All mistakes.
    pub const ALL: [Self; 8] = [
        Self::Cycle,
        Self::SelfWait,
        Self::DanglingReference,
        Self::DanglingWait,
        Self::DuplicateStep,
        Self::SwappedToLater,
        Self::UnknownTool,
        Self::SwappedToEarlier,
    ];

    /// Returns a description of the mistake.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::SelfWait => "waits for itself",
            Self::DanglingReference => "refers to no step",
            Self::DanglingWait => "waits for no step",
            Self::DuplicateStep => "step written twice",
            Self::SwappedToLater => "index now later",
            Self::UnknownTool => "unknown tool",
            Self::SwappedToEarlier => "index of another",
        }
    }

    /// Returns the finding that names it.
    #[must_use]
    pub fn named_by(self) -> &'static [FindingKind] {
        match self {
            Self::Cycle => &[FindingKind::Cycle],
            Self::SelfWait => &[FindingKind::SelfDependence],
            Self::DanglingReference | Self::DanglingWait => &[FindingKind::UnknownStep],
            Self::DuplicateStep => &[FindingKind::DuplicateStep],
            Self::SwappedToLater => {
                &[FindingKind::SelfDependence, FindingKind::ForwardDependence, FindingKind::Cycle]
            }
            Self::UnknownTool => &[FindingKind::UnknownFunction],
            Self::SwappedToEarlier => &[FindingKind::ReferencePath],
        }
    }

    /// Returns the plan with the mistake somewhere in it; `None` if it has no place for it.
    pub(crate) fn of(self, gold: &GoldPlan, random: &mut Random) -> Option<Mutant> {
        let mut plan = gold.plan.clone();
        let steps = plan.steps.len();
        let last = u32::try_from(steps).ok()?;
        let mut doubled = None;
        match self {
            Self::Cycle => {
                // Somewhere on a path: its first step waits for its last.
                let waits = gold.waits();
                let ends: Vec<usize> = (0..steps)
                    .filter(|at| waits.get(*at).is_some_and(|all| !all.is_empty()))
                    .collect();
                let (first, end) = match chosen(&ends, random) {
                    Some(end) => (*chosen(&ancestors(&waits, *end), random)?, *end),
                    None if steps > 1 => {
                        wait(plan.steps.get_mut(1)?, StepId(1));
                        (0, 1)
                    }
                    None => return None,
                };
                wait(plan.steps.get_mut(first)?, StepId(u32::try_from(end + 1).ok()?));
            }
            Self::SelfWait | Self::DanglingWait => {
                let step = chosen_mut(&mut plan.steps, random)?;
                let far = StepId(last + 1 + u32::try_from(random.below(9)).ok()?);
                let target = if self == Self::SelfWait { step.id } else { far };
                wait(step, target);
            }
            Self::DanglingReference => {
                let mut with_arguments: Vec<&mut Step> =
                    plan.steps.iter_mut().filter(|step| has_member(step)).collect();
                let at = random.below(with_arguments.len() as u64) as usize;
                let step = with_arguments.get_mut(at)?;
                let reference = Reference { step: StepId(last + 1), path: Vec::new() };
                *member(step, random)? = Template::Whole(reference);
            }
            Self::DuplicateStep => {
                if steps < 2 {
                    return None;
                }
                let at = 1 + random.below(steps as u64 - 1) as usize;
                let one = random.below(at as u64) as usize;
                doubled = Some((plan.steps.get(one)?.id, plan.steps.get(at)?.id));
            }
            Self::SwappedToLater => {
                let (step, reference) = referring(&mut plan, random)?;
                let behind = u64::from(last - step.0 + 1);
                reference.step = StepId(step.0 + u32::try_from(random.below(behind)).ok()?);
                wait_for_references(&mut plan, gold, step)?;
            }
            Self::SwappedToEarlier => {
                let (step, reference) = referring(&mut plan, random)?;
                let others: Vec<u32> =
                    (1..step.0).filter(|other| *other != reference.step.0).collect();
                reference.step = StepId(*chosen(&others, random)?);
                wait_for_references(&mut plan, gold, step)?;
            }
            Self::UnknownTool => {
                let step = chosen_mut(&mut plan.steps, random)?;
                if let Action::Call { function, .. } = &mut step.action {
                    function.push_str("_工具");
                }
            }
        }
        Some(Mutant { plan, doubled })
    }
}

fn wait(step: &mut Step, target: StepId) {
    step.after.push(target);
    step.after.sort_unstable();
    step.after.dedup();
}

/// Makes a step wait for what it refers to now, instead of what it referred to before.
fn wait_for_references(plan: &mut Plan, gold: &GoldPlan, id: StepId) -> Option<()> {
    let referred = |step: &Step| -> Vec<StepId> {
        let all = call_of(step).map_or_else(Vec::new, |(_, all)| references(all));
        all.into_iter().map(|reference| reference.step).collect()
    };
    let before = referred(gold.plan.step(id)?);
    let step = plan.steps.iter_mut().find(|step| step.id == id)?;
    step.after.retain(|other| !before.contains(other));
    for other in referred(step) {
        wait(step, other);
    }
    Some(())
}

fn chosen<'a, T>(all: &'a [T], random: &mut Random) -> Option<&'a T> {
    all.get(random.below(all.len() as u64) as usize)
}

fn chosen_mut<'a, T>(all: &'a mut [T], random: &mut Random) -> Option<&'a mut T> {
    let at = random.below(all.len() as u64) as usize;
    all.get_mut(at)
}

/// Returns the steps that a step waits for, directly or not.
fn ancestors(waits: &[Vec<usize>], of: usize) -> Vec<usize> {
    let mut is_found = vec![false; waits.len()];
    let mut left = vec![of];
    while let Some(at) = left.pop() {
        for before in waits.get(at).into_iter().flatten() {
            if let Some(found) = is_found.get_mut(*before).filter(|found| !**found) {
                *found = true;
                left.push(*before);
            }
        }
    }
    (0..waits.len()).filter(|at| is_found.get(*at) == Some(&true)).collect()
}

fn has_member(step: &Step) -> bool {
    matches!(call_of(step), Some((_, Template::Object(members))) if !members.is_empty())
}

fn member<'a>(step: &'a mut Step, random: &mut Random) -> Option<&'a mut Template> {
    match &mut step.action {
        Action::Call { arguments: Template::Object(members), .. } => {
            chosen_mut(members, random).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// Returns a reference somewhere in the plan, and the step that has it.
fn referring<'a>(plan: &'a mut Plan, random: &mut Random) -> Option<(StepId, &'a mut Reference)> {
    let count = |step: &Step| call_of(step).map_or(0, |(_, all)| references(all).len());
    let all: usize = plan.steps.iter().map(count).sum();
    let mut nth = random.below(all as u64) as usize;
    for step in &mut plan.steps {
        let here = count(step);
        if nth < here {
            let Action::Call { arguments, .. } = &mut step.action else { return None };
            return Some((step.id, nth_reference(arguments, &mut nth)?));
        }
        nth -= here;
    }
    None
}

fn nth_reference<'a>(template: &'a mut Template, nth: &mut usize) -> Option<&'a mut Reference> {
    let mut counted = |reference: &'a mut Reference| match *nth {
        0 => Some(reference),
        _ => {
            *nth -= 1;
            None
        }
    };
    match template {
        Template::Literal(_) | Template::Text(_) => None,
        Template::Whole(reference) => counted(reference),
        Template::Mixed(pieces) => pieces.iter_mut().find_map(|piece| match piece {
            Piece::Reference(reference) => counted(reference),
            Piece::Text(_) => None,
        }),
        Template::Array(items) => items.iter_mut().find_map(|item| nth_reference(item, nth)),
        Template::Object(members) => {
            members.iter_mut().find_map(|(_, value)| nth_reference(value, nth))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::{Family, plan};

    /// Each mistake is really one: the plan differs in the stated way.
    #[test]
    fn every_mistake_is_made() {
        for family in Family::ALL {
            for (size, seed) in [(1, 0), (2, 1), (10, 2), (50, 3)] {
                let gold = plan(family, size, 9);
                for mutation in Mutation::ALL {
                    let name = format!("{} in {}", mutation.as_str(), gold.id);
                    let Some(mutant) = mutation.of(&gold, &mut Random::new(seed)) else {
                        let has_no_edge = gold.waits().iter().all(Vec::is_empty);
                        let is_swap = matches!(
                            mutation,
                            Mutation::SwappedToEarlier | Mutation::SwappedToLater
                        );
                        // The second step of a plan has no third one to refer to instead.
                        let is_narrow = mutation == Mutation::SwappedToEarlier;
                        let has_no_place = size == 1 || is_swap && has_no_edge || is_narrow;
                        assert!(has_no_place, "{name}: no place for it");
                        continue;
                    };
                    assert_ne!(mutant, Mutant { plan: gold.plan.clone(), doubled: None }, "{name}");
                    assert!(is_wrong(&gold, &mutant, mutation), "{name}: {mutant:?}");
                }
            }
        }
    }

    fn is_wrong(gold: &GoldPlan, mutant: &Mutant, mutation: Mutation) -> bool {
        let steps = &mutant.plan.steps;
        let last = StepId(u32::try_from(steps.len()).unwrap());
        let referred = |step: &Step| {
            let all = call_of(step).map_or_else(Vec::new, |(_, all)| references(all));
            all.into_iter().map(|reference| reference.step).collect::<Vec<_>>()
        };
        match mutation {
            Mutation::Cycle => {
                let waits = GoldPlan { plan: mutant.plan.clone(), ..gold.clone() }.waits();
                (0..steps.len()).any(|at| ancestors(&waits, at).contains(&at))
            }
            Mutation::SelfWait => steps.iter().any(|step| step.after.contains(&step.id)),
            Mutation::DanglingReference => {
                steps.iter().any(|step| referred(step).iter().any(|id| *id > last))
            }
            Mutation::DanglingWait => {
                steps.iter().any(|step| step.after.iter().any(|id| *id > last))
            }
            Mutation::DuplicateStep => mutant.doubled.is_some_and(|(one, other)| one < other),
            Mutation::SwappedToLater => {
                steps.iter().any(|step| referred(step).iter().any(|id| *id >= step.id))
            }
            Mutation::UnknownTool => {
                steps.iter().filter_map(call_of).filter(|(function, _)| *function != "work").count()
                    == 1
            }
            Mutation::SwappedToEarlier => {
                let before: Vec<Vec<StepId>> = gold.plan.steps.iter().map(referred).collect();
                let is_earlier = |step: &Step| referred(step).iter().all(|other| *other < step.id);
                steps.iter().map(referred).ne(before) && steps.iter().all(is_earlier)
            }
        }
    }
}
