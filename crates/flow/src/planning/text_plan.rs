//! A plan whose steps are texts, and the way it is shown.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A plan whose steps are texts, worked on one after the other.
///
/// It is shown as a page with a title, the progress and a line for each step:
///
/// ```
/// use foldback_flow::{StepStatus, TextPlan};
///
/// let mut plan = TextPlan::new("trip", "杭州两日游", ["查天气", "Book a hotel"]);
/// plan.steps[0].status = StepStatus::Completed;
/// plan.steps[0].notes = "小雨".to_owned();
/// assert_eq!(plan.to_string(), "\
/// Plan: 杭州两日游 (ID: trip)
/// =======================
///
/// Progress: 1/2 steps completed (50.0%)
/// Status: 1 completed, 0 in progress, 0 blocked, 1 not started
///
/// Steps:
/// 0. [✓] 查天气
///    Notes: 小雨
/// 1. [ ] Book a hotel
/// ");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPlan {
    /// Its name among the plans of the same keeper.
    pub id: String,
    /// What it is for, in a few words.
    pub title: String,
    /// The steps, in order; a step's number is its place, counted from 0.
    pub steps: Vec<TextStep>,
}

/// A step of such a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextStep {
    /// What is to be done.
    pub text: String,
    /// Its status.
    pub status: StepStatus,
    /// Notes on the step; empty if there are none.
    pub notes: String,
}

/// The status of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It has not begun.
    #[default]
    NotStarted,
    /// It is being worked on.
    InProgress,
    /// It is done.
    Completed,
    /// It cannot be done at present.
    Blocked,
}

impl StepStatus {
    /// Every status, in the order in which a step goes through them.
    pub const ALL: [Self; 4] = [Self::NotStarted, Self::InProgress, Self::Completed, Self::Blocked];

    /// Returns the name, as a model writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Returns the mark before a step's text.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::NotStarted => "[ ]",
            Self::InProgress => "[→]",
            Self::Completed => "[✓]",
            Self::Blocked => "[!]",
        }
    }

    /// Returns whether something is left to do.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::NotStarted | Self::InProgress)
    }
}

impl TextStep {
    /// Creates a step that has not begun.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: StepStatus::NotStarted, notes: String::new() }
    }
}

impl TextPlan {
    /// Creates a plan of which no step has begun.
    #[must_use]
    pub fn new<T: Into<String>>(id: &str, title: &str, steps: impl IntoIterator<Item = T>) -> Self {
        let steps = steps.into_iter().map(TextStep::new).collect();
        Self { id: id.to_owned(), title: title.to_owned(), steps }
    }

    /// Counts the steps with a status.
    #[must_use]
    pub fn count(&self, status: StepStatus) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }

    /// Returns the number of the first step that has not begun or is in progress.
    #[must_use]
    pub fn next_open(&self) -> Option<usize> {
        self.steps.iter().position(|step| step.status.is_open())
    }

    /// Replaces the steps. Status and notes stay if the text at a place is the same as before.
    pub(crate) fn replace_steps(&mut self, texts: Vec<String>) {
        let mut before = std::mem::take(&mut self.steps).into_iter();
        let step = |text| match before.next() {
            Some(step) if step.text == text => step,
            _ => TextStep::new(text),
        };
        self.steps = texts.into_iter().map(step).collect();
    }
}

impl fmt::Display for TextPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("Plan: {} (ID: {})\n", self.title, self.id);
        // The rule is as long as the line above it, including its line break.
        let rule = "=".repeat(title.chars().count());
        let [not_started, in_progress, completed, blocked] =
            StepStatus::ALL.map(|status| self.count(status));
        let total = self.steps.len();
        let percent = match total {
            0 => "0".to_owned(),
            _ => format!("{:.1}", completed as f64 / total as f64 * 100.0),
        };
        writeln!(f, "{title}{rule}\n")?;
        writeln!(f, "Progress: {completed}/{total} steps completed ({percent}%)")?;
        writeln!(
            f,
            "Status: {completed} completed, {in_progress} in progress, {blocked} blocked, \
             {not_started} not started\n"
        )?;
        writeln!(f, "Steps:")?;
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "{at}. {} {}", step.status.mark(), step.text)?;
            if !step.notes.is_empty() {
                writeln!(f, "   Notes: {}", step.notes)?;
            }
        }
        Ok(())
    }
}
