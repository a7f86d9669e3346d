//! Which tools the model may call at this step, while the declared ones stay the same.

use super::ReactSettings;
use foldback_core::ToolDefinition;
use foldback_llm::{AvailabilityError, ToolAvailability, ToolChoice};

/// Which tools the model may call: the same throughout, or by the state of the run.
#[derive(Debug)]
pub(crate) enum Choice {
    Fixed(ToolChoice),
    ByState(Box<ToolAvailability>),
}

impl Choice {
    /// The choice at the beginning of a run that declares these tools.
    ///
    /// # Errors
    /// With everything about the table of states that does not fit the tools.
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
            .map(|event| format!("the event {event:?} is the name of no declared tool"))
            .collect();
        if !problems.is_empty() {
            return Err(AvailabilityError { problems });
        }
        Ok(Self::ByState(Box::new(ToolAvailability::new(table, tools)?)))
    }

    /// The choice that a request states.
    pub(crate) fn stated(&self) -> ToolChoice {
        match self {
            Self::Fixed(choice) => choice.clone(),
            Self::ByState(state) => state.choice(),
        }
    }

    /// Whether the model may call a tool now.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        match self.stated() {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::ReplyOnly => false,
            ToolChoice::Allowed(allowed) => allowed.names.iter().any(|allowed| allowed == name),
        }
    }

    /// Whether the model has to call a tool.
    pub(crate) fn must_call(&self) -> bool {
        match self.stated() {
            ToolChoice::Required => true,
            ToolChoice::Allowed(allowed) => allowed.required,
            ToolChoice::Auto | ToolChoice::ReplyOnly => false,
        }
    }

    /// A call of this tool succeeded. Where no state waits for it, nothing changes.
    pub(crate) fn succeeded(&mut self, name: &str) {
        if let Self::ByState(state) = self {
            let _ = state.fire(name);
        }
    }
}
