//! Checks whether references can be resolved.

use super::Scope;
use crate::schema::Part;
use crate::{Action, Finding, FindingKind, Findings, Plan, Reference};

impl Scope<'_> {
    /// Returns what to say about the path of a reference: that the result has no such part, or is not
    /// known to have it.
    pub(super) fn doubt(&self, reference: &Reference) -> Option<(FindingKind, String)> {
        match self.output_part(reference)? {
            Part::Missing(reason) => Some((FindingKind::ReferencePath, reason)),
            Part::Undeclared(reason) => Some((FindingKind::UndeclaredPart, reason)),
            Part::Types(_) => None,
        }
    }

    /// Returns what is known about a reference's value: nothing, unless the tool has an output schema.
    pub(super) fn output_part(&self, reference: &Reference) -> Option<Part> {
        let id = reference.step;
        let step = self.plan.step(id).or_else(|| self.validator.earlier(id))?;
        let Action::Call { function, .. } = &step.action else { return None };
        let schema = self.validator.catalog.entry(function)?.output()?.ok()?;
        Some(schema.part(&reference.path))
    }
}

/// Reports references to calls that may not have ended by then. (References to itself, to later and
/// to unknown calls are reported elsewhere.)
pub(super) fn check_order(plan: &Plan, findings: &mut Findings) {
    let mut pairs = Vec::new();
    for step in &plan.steps {
        if let Action::Call { arguments, .. } = &step.action {
            let earlier = arguments.references().into_iter().map(|reference| reference.step);
            let earlier = earlier.filter(|on| *on < step.id && plan.step(*on).is_some());
            pairs.extend(earlier.map(|on| (step.id, on)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let answers = plan.graph().without_self_dependences().come_after(&pairs);
    for ((step, on), _) in pairs.into_iter().zip(answers).filter(|(_, comes_after)| !comes_after) {
        let message = format!(
            "{}: it refers to the result of {}, which may run at the same time; put both in a \
             <sequential>, or leave the reference out",
            plan.form.label(step),
            plan.form.label(on)
        );
        findings.push(Finding::of_step(FindingKind::Unordered, step, message));
    }
}
