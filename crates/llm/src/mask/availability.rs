//! Which mask applies in which state of a session.

use super::{Mask, MaskProblem};
use crate::ToolChoice;
use foldback_core::ToolDefinition;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A state machine as data: a mask for each state, and the state that each event leads to. An event
/// that a state does not name changes nothing.
///
/// ```
/// use foldback_llm::{Availability, CallMode};
///
/// let table: Availability = serde_json::from_str(
///     r#"{"start": "greeting", "states": {
///         "greeting": {"mask": {"mode": "reply_only"}, "on": {"order_known": "lookup"}},
///         "lookup": {"mask": {"mode": "required", "families": ["browser_"]}}
///     }}"#,
/// )?;
/// assert_eq!(table.states["lookup"].mask.mode, CallMode::Required);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Availability {
    /// The initial state.
    pub start: String,
    /// The states by name.
    pub states: BTreeMap<String, AvailabilityState>,
}

/// One state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AvailabilityState {
    /// The tools that may be called in this state.
    pub mask: Mask,
    /// The state that each event leads to.
    pub on: BTreeMap<String, String>,
}

/// Everything that is wrong with a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AvailabilityError {
    /// One sentence for each problem, which names the state.
    pub problems: Vec<String>,
}

impl fmt::Display for AvailabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for AvailabilityError {}

impl From<String> for AvailabilityError {
    fn from(problem: String) -> Self {
        Self { problems: vec![problem] }
    }
}

impl AvailabilityState {
    /// Creates a state with this mask, which no event leaves.
    #[must_use]
    pub fn new(mask: Mask) -> Self {
        Self { mask, on: BTreeMap::new() }
    }

    /// Leaves the state for `next` when `event` happens.
    #[must_use]
    pub fn with_event(mut self, event: &str, next: &str) -> Self {
        self.on.insert(event.to_owned(), next.to_owned());
        self
    }
}

impl Availability {
    /// Creates a table of these states, by name, beginning with `start`.
    #[must_use]
    pub fn new<'a>(
        start: &str,
        states: impl IntoIterator<Item = (&'a str, AvailabilityState)>,
    ) -> Self {
        let states = states.into_iter().map(|(name, state)| (name.to_owned(), state)).collect();
        Self { start: start.to_owned(), states }
    }

    /// Returns the choice of each state.
    fn choices(
        &self,
        tools: &[ToolDefinition],
    ) -> Result<BTreeMap<String, ToolChoice>, AvailabilityError> {
        let mut problems = Vec::new();
        let is_state = |name: &String| self.states.contains_key(name);
        if !is_state(&self.start) {
            problems.push(format!("the start {:?} is not a state", self.start));
        }
        let mut choices = BTreeMap::new();
        let reached = self.reached();
        for (name, state) in &self.states {
            let lost = state.on.iter().filter(|(_, next)| !is_state(next));
            problems.extend(lost.map(|(event, next)| {
                format!("in the state {name:?}, the event {event:?} leads to {next:?}, which is not a state")
            }));
            if is_state(&self.start) && !reached.contains(name.as_str()) {
                problems.push(format!("the state {name:?} is never reached"));
            }
            let sentence = |problem: MaskProblem| format!("in the state {name:?}, {problem}");
            match state.mask.choice(tools) {
                Ok(choice) => _ = choices.insert(name.clone(), choice),
                Err(found) => problems.extend(found.into_iter().map(sentence)),
            }
        }
        if problems.is_empty() { Ok(choices) } else { Err(AvailabilityError { problems }) }
    }

    fn reached(&self) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![self.start.as_str()];
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                let next = self.states.get(name).into_iter().flat_map(|state| state.on.values());
                open.extend(next.map(String::as_str));
            }
        }
        reached
    }
}

/// The tools of a session, and which of them may be called now. The tools never change.
#[derive(Clone, Debug)]
pub struct ToolAvailability {
    table: Availability,
    tools: Vec<ToolDefinition>,
    choices: BTreeMap<String, ToolChoice>,
    state: String,
}

impl ToolAvailability {
    /// Begins a session at its start.
    ///
    /// # Errors
    /// Lists everything that is wrong with the table: a start, target or tool that does not exist,
    /// a state that is never reached, a mask that contradicts itself.
    pub fn new(table: Availability, tools: Vec<ToolDefinition>) -> Result<Self, AvailabilityError> {
        let choices = table.choices(&tools)?;
        let state = table.start.clone();
        Ok(Self { table, tools, choices, state })
    }

    /// Returns the same session in a saved state.
    ///
    /// # Errors
    /// When there is no such state.
    pub fn at(self, state: &str) -> Result<Self, AvailabilityError> {
        if !self.table.states.contains_key(state) {
            return Err(format!("there is no state {state:?}").into());
        }
        Ok(Self { state: state.to_owned(), ..self })
    }

    /// Returns all tools: the same in every state.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns what may be called in the current state.
    #[must_use]
    pub fn choice(&self) -> ToolChoice {
        self.choices.get(&self.state).cloned().unwrap_or_default()
    }

    /// Returns whether this tool may be called now, for callers that run calls a model made
    /// regardless.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let state = self.table.states.get(&self.state);
        state.is_some_and(|state| state.mask.allows(name))
    }

    /// Handles an event, and returns whether the state has changed.
    ///
    /// # Errors
    /// When no state names the event.
    pub fn fire(&mut self, event: &str) -> Result<bool, AvailabilityError> {
        if !self.table.states.values().any(|state| state.on.contains_key(event)) {
            return Err(format!("no state names the event {event:?}").into());
        }
        let state = self.table.states.get(&self.state);
        let next = state.and_then(|state| state.on.get(event)).filter(|next| **next != self.state);
        if let Some(next) = next {
            self.state.clone_from(next);
            return Ok(true);
        }
        Ok(false)
    }
}
