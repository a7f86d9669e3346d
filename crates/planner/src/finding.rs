//! Findings: errors in a plan, and notes about it.

use crate::StepId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A finding in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its kind, for programs.
    pub kind: FindingKind,
    /// The step that it concerns.
    pub step: Option<StepId>,
    /// The position in the plan's text, if it was found while reading.
    pub at: Option<Position>,
    /// A sentence that a model can act on: the place, the fault and what was expected.
    pub message: String,
}

/// The kinds of finding. Those that [are errors](Self::is_error) keep a plan from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// The text does not follow the form.
    Syntax,
    /// The text is truncated.
    Truncated,
    /// The plan has no steps: there may be nothing to do.
    EmptyPlan,
    /// Two steps have the same number.
    DuplicateStep,
    /// A key occurs twice in one object.
    DuplicateKey,
    /// A reference cannot be read.
    MalformedReference,
    /// No tool has the name.
    UnknownFunction,
    /// The arguments do not fit the tool's schema.
    Arguments,
    /// A named step is not in the plan.
    UnknownStep,
    /// A step waits for itself or refers to its own result.
    SelfDependence,
    /// A step waits for a step with a higher number, or refers to its result.
    ForwardDependence,
    /// A step refers to the result of a step that is not certain to end before it.
    Unordered,
    /// Steps wait for each other.
    Cycle,
    /// A reference names a part that the result does not have.
    ReferencePath,
    /// A reference names a step without a result: a failed step, or an anchor.
    NoResult,
    /// An effect that has already taken place would be repeated.
    RepeatedEffect,
    /// The schema of a tool cannot be used; the plan is not to blame.
    ToolSchema,
    /// A bound is exceeded.
    OverLimit,
    /// Note: the output schema of a tool cannot be used, so references to its results are not checked.
    OutputSchema,
    /// Note: a reference names a part of a result that the tool's output schema does not declare but
    /// does not rule out either.
    UndeclaredPart,
    /// Note: a dependence was added because the arguments refer to the step.
    AddedDependence,
    /// Note: a step got another number, because its own was taken.
    Renumbered,
    /// Note: a step that is already done was written again, and is left out.
    AlreadyDone,
    /// Note: a dependence was left out, because it already holds.
    DroppedDependence,
    /// Note: something was read leniently.
    Leniency,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The number of bytes before it.
    pub offset: usize,
    /// Its line, counted from 1.
    pub line: usize,
    /// The number of characters before it in its line, plus one.
    pub column: usize,
}

/// All findings in a plan: errors and notes, in the order of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings(Vec<Finding>);

impl FindingKind {
    /// Returns whether a plan with this finding must not run. A finding that is not an error is a note.
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(
            self,
            Self::OutputSchema
                | Self::UndeclaredPart
                | Self::AddedDependence
                | Self::Renumbered
                | Self::AlreadyDone
                | Self::DroppedDependence
                | Self::Leniency
        )
    }
}

impl Finding {
    /// Returns a finding about a step.
    #[must_use]
    pub fn of_step(kind: FindingKind, step: StepId, message: impl Into<String>) -> Self {
        Self { kind, step: Some(step), at: None, message: message.into() }
    }

    /// Returns a finding about the plan as a whole.
    #[must_use]
    pub fn of_plan(kind: FindingKind, message: impl Into<String>) -> Self {
        Self { kind, step: None, at: None, message: message.into() }
    }

    /// Returns the same finding with its position.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self { at: Some(position), ..self }
    }
}

impl Findings {
    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Returns all findings, errors and notes.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    /// Returns the errors, which keep the plan from running.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.kind.is_error())
    }

    /// Returns the notes: what was settled without asking.
    pub fn notes(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| !finding.kind.is_error())
    }

    /// Returns whether an error keeps the plan from running.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Returns whether there are no findings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of findings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Sorts the findings by step; those about the whole plan come first.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|finding| (finding.step, finding.kind));
    }
}

impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        self.0.extend(findings);
    }
}

impl FromIterator<Finding> for Findings {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        Self(findings.into_iter().collect())
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_error() {
            f.write_str("note: ")?;
        }
        f.write_str(&self.message)?;
        self.at.map_or(Ok(()), |at| write!(f, " ({at})"))
    }
}

impl fmt::Display for Findings {
    /// One line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|finding| writeln!(f, "- {finding}"))
    }
}
