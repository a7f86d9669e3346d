//! The fate of deliberate mistakes in plans.

use super::form::{checked, written};
use super::gold::GoldPlan;
use super::makespan::{execute, executor, failed_steps};
use super::mutation::Mutation;
use super::result::MutationFigures;
use super::stub::World;
use crate::index::Random;
use foldback_bench::BenchError;
use foldback_core::Object;
use foldback_planner::{Form, StepId};
use foldback_tool::Toolbox;

/// Makes each mistake once in a plan.
///
/// # Errors
/// When the runtime cannot be started.
pub(crate) fn make_mistakes(
    gold: &GoldPlan,
    seed: u64,
) -> Result<Vec<MutationFigures>, BenchError> {
    Mutation::ALL
        .into_iter()
        .zip(seed..)
        .map(|(mutation, seed)| make(gold, mutation, seed))
        .collect()
}

fn make(gold: &GoldPlan, mutation: Mutation, seed: u64) -> Result<MutationFigures, BenchError> {
    let mut figures = MutationFigures::none(mutation);
    let seed = gold.id.bytes().fold(seed, |seed, byte| seed.rotate_left(7) ^ u64::from(byte));
    let Some(mutant) = mutation.of(gold, &mut Random::new(seed)) else { return Ok(figures) };
    let world = World::trusting(gold);
    let toolbox =
        Toolbox::new(world.tools()).map_err(|error| BenchError::Input(error.to_string()))?;
    let Some(written) = written(&mutant.plan, Form::OnePlan, &toolbox) else { return Ok(figures) };
    let mut text = written.text;
    if let Some((one, other)) = mutant.doubled {
        text = doubled(&text, one, other).unwrap_or(text);
    }
    figures.tried = 1;
    match checked(&text, Form::OnePlan, &toolbox) {
        Err(refusal) => {
            figures.refused = 1;
            figures.named = usize::from(refusal.names(mutation.named_by()));
        }
        Ok(plan) => match execute(&executor(toolbox), &plan)? {
            None => figures.hangs = 1,
            Some(outcome) if failed_steps(&outcome) > 0 => figures.failed = 1,
            Some(_) => figures.other_plans = 1,
        },
    }
    Ok(figures)
}

/// Returns the text with the second step under the first one's key.
fn doubled(text: &str, one: StepId, other: StepId) -> Option<String> {
    let plan: Object<'_> = serde_json::from_str(text).ok()?;
    let steps = plan.object("action_plan")?;
    let key = |key: &str| if *key == other.to_string() { one.to_string() } else { key.to_owned() };
    let steps: Vec<String> =
        steps.0.iter().map(|(name, step)| format!("\"{}\": {}", key(name), step.get())).collect();
    Some(format!("{{\"action_plan\": {{{}}}}}", steps.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_twice() {
        let text = r#"{"action_plan": {"step1": {"function": "f"}, "step2": {"function": "g"}}}"#;
        assert_eq!(
            doubled(text, StepId(1), StepId(2)).unwrap(),
            r#"{"action_plan": {"step1": {"function": "f"}, "step1": {"function": "g"}}}"#
        );
    }
}
