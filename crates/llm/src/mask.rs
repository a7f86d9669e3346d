//! Which tools may be called now, while the list of tools stays the same.
//!
//! A [`Mask`] names tools, and families of tools by their common prefix; [`Availability`] says
//! which mask applies in which state of a session. The mask becomes the [`ToolChoice`] of a
//! request.

mod availability;

pub use availability::{Availability, AvailabilityError, AvailabilityState, ToolAvailability};

use crate::{AllowedTools, ToolChoice};
use foldback_core::ToolDefinition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The declared tools that a model may call. A mask without families and names allows all.
///
/// ```
/// use foldback_llm::{CallMode, Mask};
///
/// let mask = Mask::required().family("browser_").name("shell_发起退款");
/// assert!(mask.allows("browser_查询订单") && mask.allows("shell_发起退款"));
/// assert!(!mask.allows("shell_修改地址"));
/// assert_eq!(mask.mode, CallMode::Required);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mask {
    /// Whether a tool may, must or must not be called.
    pub mode: CallMode,
    /// Families that are allowed, by their common prefix, such as `browser_`.
    pub families: BTreeSet<String>,
    /// Single tools that are allowed.
    pub names: BTreeSet<String>,
    /// The allowed tool to prefer; the others stay allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// Whether a tool may, must or must not be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must answer in words.
    ReplyOnly,
}

/// A contradiction between a mask and the tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskProblem {
    /// A family without a tool.
    #[error("no tool's name begins with {0:?}")]
    Family(String),
    /// A name that no tool has.
    #[error("there is no tool {0:?}")]
    Name(String),
    /// The preferred tool is not allowed.
    #[error("the tool {0:?} is preferred, but it is not among the allowed ones")]
    Preferred(String),
    /// A call is required, but there are no tools.
    #[error("a tool call is required, but there are no tools")]
    Nothing,
    /// Tools are named although none may be called.
    #[error("the mode is reply_only, which allows no tool, but the mask names some")]
    ReplyOnly,
}

impl Mask {
    /// Allows all tools; the model decides.
    #[must_use]
    pub fn auto() -> Self {
        Self::default()
    }

    /// Allows all tools; one must be called.
    #[must_use]
    pub fn required() -> Self {
        Self { mode: CallMode::Required, ..Self::default() }
    }

    /// Allows no tool.
    #[must_use]
    pub fn reply_only() -> Self {
        Self { mode: CallMode::ReplyOnly, ..Self::default() }
    }

    /// Allows the tools whose names begin with `prefix`.
    #[must_use]
    pub fn family(mut self, prefix: &str) -> Self {
        self.families.insert(prefix.to_owned());
        self
    }

    /// Allows this tool.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.names.insert(name.to_owned());
        self
    }

    /// Prefers this one of the allowed tools.
    #[must_use]
    pub fn prefer(self, name: &str) -> Self {
        Self { preferred: Some(name.to_owned()), ..self }
    }

    /// Returns whether a tool of this name may be called.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.mode != CallMode::ReplyOnly
            && (self.is_open()
                || self.names.contains(name)
                || self.families.iter().any(|family| name.starts_with(family)))
    }

    /// Returns everything about the mask that does not fit these tools.
    #[must_use]
    pub fn problems(&self, tools: &[ToolDefinition]) -> Vec<MaskProblem> {
        let any = |test: &dyn Fn(&str) -> bool| tools.iter().any(|tool| test(&tool.name));
        let mut found = Vec::new();
        let families = self.families.iter().filter(|family| !any(&|n| n.starts_with(*family)));
        found.extend(families.cloned().map(MaskProblem::Family));
        let names = self.names.iter().filter(|name| !any(&|n| n == *name));
        found.extend(names.cloned().map(MaskProblem::Name));
        let preferred =
            self.preferred.iter().filter(|name| !(self.allows(name) && any(&|n| n == *name)));
        found.extend(preferred.cloned().map(MaskProblem::Preferred));
        if self.mode == CallMode::Required && tools.is_empty() {
            found.push(MaskProblem::Nothing);
        }
        if self.mode == CallMode::ReplyOnly && !self.is_open() {
            found.push(MaskProblem::ReplyOnly);
        }
        found
    }

    /// Returns the choice to put in a request. All tools stay declared.
    ///
    /// # Errors
    /// Lists everything about the mask that does not fit the tools.
    pub fn choice(&self, tools: &[ToolDefinition]) -> Result<ToolChoice, Vec<MaskProblem>> {
        let problems = self.problems(tools);
        if !problems.is_empty() {
            return Err(problems);
        }
        let required = self.mode == CallMode::Required;
        if self.mode == CallMode::ReplyOnly {
            return Ok(ToolChoice::ReplyOnly);
        }
        if self.is_open() && self.preferred.is_none() {
            return Ok(if required { ToolChoice::Required } else { ToolChoice::Auto });
        }
        let names: BTreeSet<&str> =
            tools.iter().map(|tool| tool.name.as_str()).filter(|name| self.allows(name)).collect();
        let names = names.into_iter().map(str::to_owned).collect();
        Ok(ToolChoice::Allowed(AllowedTools { names, required, preferred: self.preferred.clone() }))
    }

    /// Returns whether it names nothing, and so allows everything.
    fn is_open(&self) -> bool {
        self.families.is_empty() && self.names.is_empty()
    }
}
