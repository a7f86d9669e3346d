//! What is wrong with a plan, or worth saying about it.

use crate::StepId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing found in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing, for programs.
    pub kind: FindingKind,
    /// The step it is about.
    pub step: Option<StepId>,
    /// Where in the text of the plan, when it was found while reading.
    pub at: Option<Position>,
    /// A sentence that a model can act on: where, what is wrong and what was expected.
    pub message: String,
}

/// The kinds of finding. Those that [are errors](Self::is_error) keep a plan from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// The text is not of the form.
    Syntax,
    /// The text ends in the middle.
    Truncated,
    /// The plan has no steps: there may be nothing to do.
    EmptyPlan,
    /// A number is used by two steps.
    DuplicateStep,
    /// A key stands twice in one object.
    DuplicateKey,
    /// A reference cannot be read.
    MalformedReference,
    /// No tool has the name.
    UnknownFunction,
    /// The arguments do not fit the tool's schema.
    Arguments,
    /// A step is named that is not in the plan.
    UnknownStep,
    /// A step waits for itself or refers to its own result.
    SelfDependence,
    /// A step waits for one with a higher number, or refers to its result.
    ForwardDependence,
    /// A step refers to the result of one that does not surely end before it.
    Unordered,
    /// Steps wait for each other.
    Cycle,
    /// A reference names a part that the result does not have.
    ReferencePath,
    /// A reference names a step that has no result to refer to: one that failed, or an anchor.
    NoResult,
    /// An effect that was had already would be had again.
    RepeatedEffect,
    /// The schema of a tool cannot be used; the plan is not to blame.
    ToolSchema,
    /// A bound is passed.
    OverLimit,
    /// Note: the output schema of a tool cannot be used, so references to its results are not checked.
    OutputSchema,
    /// Note: a reference names a part of a result that the tool's output schema does not declare, though
    /// it does not rule it out.
    UndeclaredPart,
    /// Note: a dependence was added because the arguments refer to the step.
    AddedDependence,
    /// Note: a step got another number, because its own was taken.
    Renumbered,
    /// Note: a step that is done already was written again, and is left out.
    AlreadyDone,
    /// Note: a dependence was left out, because it holds already.
    DroppedDependence,
    /// Note: something was read leniently.
    Leniency,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line, from 1 on.
    pub line: usize,
    /// Characters before it in its line, plus one.
    pub column: usize,
}

/// All that was found in a plan: errors and notes, in the order of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings(Vec<Finding>);

impl FindingKind {
    /// Whether a plan with it must not run. What is no error is a note.
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
    /// A finding about a step.
    #[must_use]
    pub fn of_step(kind: FindingKind, step: StepId, message: impl Into<String>) -> Self {
        Self { kind, step: Some(step), at: None, message: message.into() }
    }

    /// A finding about the plan as a whole.
    #[must_use]
    pub fn of_plan(kind: FindingKind, message: impl Into<String>) -> Self {
        Self { kind, step: None, at: None, message: message.into() }
    }

    /// The same with the place where it was found.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self { at: Some(position), ..self }
    }
}

impl Findings {
    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// All, errors and notes.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    /// What keeps the plan from running.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.kind.is_error())
    }

    /// What was settled without asking.
    pub fn notes(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| !finding.kind.is_error())
    }

    /// Whether anything keeps the plan from running.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts them in the order of the steps, what concerns the whole plan first.
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
