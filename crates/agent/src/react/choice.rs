//! The choice of tools that the model may call at a step, while the declared ones stay the same.

use super::ReactSettings;
use foldback_core::ToolDefinition;
use foldback_llm::{AvailabilityError, ToolAvailability, ToolChoice};

/// The tools that the model may call: the same throughout, or by the state of the run.
#[derive(Debug)]
pub(crate) enum Choice {
    Fixed(ToolChoice),
    ByState(Box<ToolAvailability>),
}

impl Choice {
    /// Returns the choice at the beginning of a run that declares these tools.
    ///
    /// # Errors
    /// When the table of states does not fit the tools; the error lists all faults.
    pub(crate) fn new(
        settings: &ReactSettings,
        tools: Vec<ToolDefinition>,
    ) -> Result<Self, AvailabilityError> {
        let Some(table) = settings.availability.clone() else {
            return Ok(Self::Fixed(settings.tool_choice.clone()));
        };
        let events = table.states.values().flat_map(|state| state.on.keys());
        let is_tool = |event: &String| tools.iter().any(|tool| tool.name == *event);
        let problems: Vec<String> = events
            .filter(|event| !is_tool(event))
            .map(|event| format!("the event {event:?} does not name a declared tool"))
            .collect();
        if !problems.is_empty() {
            return Err(AvailabilityError { problems });
        }
        Ok(Self::ByState(Box::new(ToolAvailability::new(table, tools)?)))
    }

    /// Returns the choice for a request that declares these tools: the policy of a context may declare its own
    /// later, and providers refuse a choice that names undeclared tools. If no tool is left to be called, the
    /// model answers in words.
    pub(crate) fn stated(
        &self,
        policy: &[ToolDefinition],
        declared: &[ToolDefinition],
    ) -> ToolChoice {
        let has = |tools: &[ToolDefinition], name: &str| tools.iter().any(|tool| tool.name == name);
        let mut allowed = match self.now() {
            ToolChoice::Allowed(allowed) => allowed,
            ToolChoice::Required if declared.is_empty() && !policy.is_empty() => {
                return ToolChoice::ReplyOnly;
            }
            choice => return choice,
        };
        let is_none_meant = allowed.names.is_empty();
        match self {
            // The provider refuses a name that no tool has.
            Self::Fixed(_) => {
                allowed.names.retain(|name| has(declared, name) || !has(policy, name));
            }
            Self::ByState(state) => {
                let names = declared.iter().map(|tool| &tool.name);
                allowed.names = names.filter(|name| state.allows(name)).cloned().collect();
                allowed.names.sort_unstable();
            }
        }
        if allowed.names.is_empty() && !is_none_meant {
            return ToolChoice::ReplyOnly;
        }
        allowed.preferred = allowed.preferred.filter(|name| allowed.names.contains(name));
        ToolChoice::Allowed(allowed)
    }

    /// Returns the choice among the tools that were there at the beginning.
    fn now(&self) -> ToolChoice {
        match self {
            Self::Fixed(choice) => choice.clone(),
            Self::ByState(state) => state.choice(),
        }
    }

    /// Returns whether the model may call a tool now, whether it is declared yet or not.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        match self {
            Self::Fixed(ToolChoice::Auto | ToolChoice::Required) => true,
            Self::Fixed(ToolChoice::ReplyOnly) => false,
            Self::Fixed(ToolChoice::Allowed(allowed)) => {
                allowed.names.iter().any(|allowed| allowed == name)
            }
            Self::ByState(state) => state.allows(name),
        }
    }

    /// Notes that a call of this tool succeeded. If no state waits for that, nothing changes.
    pub(crate) fn succeeded(&mut self, name: &str) {
        if let Self::ByState(state) = self {
            let _ = state.fire(name);
        }
    }
}
