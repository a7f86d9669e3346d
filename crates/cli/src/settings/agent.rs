//! `[agent]`: how an agent works on its task, and what it may spend.

use super::Wrong;
use crate::run::Time;
use foldback_agent::{CallForm, OnePlanSettings};
use foldback_llm::Availability;
use foldback_reference_agent::strategy_name;
use serde::{Deserialize, Serialize};

/// How an agent works on its task, and what it may spend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentSettings {
    /// The strategy, by name.
    pub(crate) strategy: Option<String>,
    /// Standing instructions that follow the agent's own.
    pub(crate) instructions: Option<String>,
    /// The most answers of the model in one go.
    pub(crate) max_steps: Option<u32>,
    /// How the model writes its calls, by name.
    pub(crate) call_form: Option<String>,
    /// Whether it may call tools: `auto`, `none`, `required`, or the name of one.
    pub(crate) tool_choice: Option<String>,
    /// Whether it ends its work with a tool.
    pub(crate) terminate: bool,
    /// How many characters of a result it is shown, under a policy that cannot look back.
    pub(crate) max_observe: Option<u32>,
    /// Which tools the model may call in which phase of the run, step by step.
    pub(crate) tool_states: Option<Availability>,
    /// How often a plan may be rebuilt.
    pub(crate) max_replans: u32,
    /// Whether steps start while their plan is still being written.
    pub(crate) stream_plans: bool,
    /// The most calls of the model in a run.
    pub(crate) max_calls: Option<u64>,
    /// The most tokens of a run, in and out.
    pub(crate) max_tokens: Option<u64>,
    /// The highest cost of a run.
    pub(crate) max_cost: Option<f64>,
    /// The longest time of a run.
    pub(crate) max_time: Option<Time>,
    /// The part of what is left that a sub-agent may spend, in percent.
    pub(crate) sub_agent_share: Option<u8>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            strategy: None,
            instructions: None,
            max_steps: None,
            call_form: None,
            tool_choice: None,
            terminate: false,
            max_observe: None,
            tool_states: None,
            max_replans: 3,
            stream_plans: true,
            max_calls: None,
            max_tokens: None,
            max_cost: None,
            max_time: None,
            sub_agent_share: None,
        }
    }
}

impl AgentSettings {
    /// How it plans.
    pub(crate) fn one_plan(&self) -> OnePlanSettings {
        OnePlanSettings::default().with_max_replans(self.max_replans)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        if let Some(name) = &self.strategy {
            strategy_name(name).map_err(|error| ("agent.strategy", error.to_string()))?;
        }
        if let Some(name) = self.call_form.as_deref().filter(|n| CallForm::from_name(n).is_none()) {
            let forms = CallForm::ALL.map(CallForm::name).join(" or ");
            return Err(("agent.call_form", format!("expected {forms}, not {name:?}")));
        }
        let bounds = [
            ("agent.max_steps", self.max_steps.map(u64::from)),
            ("agent.max_observe", self.max_observe.map(u64::from)),
            ("agent.max_calls", self.max_calls),
            ("agent.max_tokens", self.max_tokens),
        ];
        for (key, bound) in bounds {
            if bound == Some(0) {
                return Err((key, "0 leaves nothing to do; at least 1 was expected".to_owned()));
            }
        }
        if self.max_cost.is_some_and(|cost| !(cost.is_finite() && cost > 0.0)) {
            return Err(("agent.max_cost", "a number above 0 was expected".to_owned()));
        }
        match self.sub_agent_share {
            Some(share) if !(1..=100).contains(&share) => {
                Err(("agent.sub_agent_share", "a number from 1 to 100 was expected".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_agent::ReactSettings;

    #[test]
    fn what_is_not_said_is_as_the_library_has_it() {
        let settings = AgentSettings::default();
        let one_plan = OnePlanSettings::default();
        assert_eq!(settings.max_replans, one_plan.max_replans);
        assert_eq!(settings.stream_plans, one_plan.stream);
        assert_eq!(settings.max_steps, ReactSettings::default().max_steps);
    }
}
