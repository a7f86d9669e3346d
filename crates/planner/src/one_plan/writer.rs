//! Writes a plan as OnePlan JSON.

use super::step_object::ANCHOR;
use crate::template::quote_into;
use crate::{Action, FailurePolicy, Plan, Spelling, Step, StepId};

/// Why a plan cannot be written in a certain form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A text in the arguments would be read back as a reference.
    #[error("{step}: the text `{text}` would be read as a reference")]
    LooksLikeReference {
        /// The step whose arguments contain it.
        step: StepId,
        /// The text.
        text: String,
    },
    /// The form cannot express something.
    #[error("{step}: {form} cannot express {what}")]
    Inexpressible {
        /// The step.
        step: StepId,
        /// The form.
        form: &'static str,
        /// What it cannot express.
        what: &'static str,
    },
}

/// Writes a plan as OnePlan JSON, one step per line. Read back, it gives the same steps.
///
/// # Errors
/// When a text in the arguments would be read as a reference.
pub fn write_one_plan(plan: &Plan) -> Result<String, WriteError> {
    let mut text = String::from("{\"action_plan\": {");
    for (place, step) in plan.steps.iter().enumerate() {
        text.push_str(if place == 0 { "\n  " } else { ",\n  " });
        write_step(step, &mut text)?;
    }
    text.push_str("\n}}");
    Ok(text)
}

fn write_step(step: &Step, out: &mut String) -> Result<(), WriteError> {
    out.push_str(&format!("\"{}\": {{\"function\": ", step.id));
    match &step.action {
        Action::Call { function, arguments } => {
            if function == ANCHOR {
                return Err(WriteError::Inexpressible {
                    step: step.id,
                    form: "OnePlan",
                    what: "a tool named like the anchor",
                });
            }
            quote_into(function, out);
            out.push_str(", \"args\": ");
            if let Some(text) = arguments.misread(Spelling::OnePlan) {
                return Err(WriteError::LooksLikeReference { step: step.id, text });
            }
            arguments.write(Spelling::OnePlan, out);
        }
        Action::Anchor { task } => {
            quote_into(ANCHOR, out);
            out.push_str(", \"args\": {\"task\": ");
            quote_into(task, out);
            out.push('}');
        }
    }
    let numbers: Vec<String> = step.after.iter().map(|step| step.0.to_string()).collect();
    out.push_str(&format!(", \"dependence\": [{}]", numbers.join(", ")));
    match step.on_failure {
        FailurePolicy::SkipDependents => {}
        FailurePolicy::FailFast => out.push_str(", \"on_failure\": \"fail_fast\""),
        FailurePolicy::ContinueWithError => {
            out.push_str(", \"on_failure\": \"continue_with_error\"");
        }
    }
    out.push('}');
    Ok(())
}
