//! What a run may do and spend, from flags and from its record.

use super::account::Account;
use super::time::Time;
use crate::settings::Settings;
use clap::Args;
use foldback_agent::{Resource, SpendLimits};
use foldback_flow::FlowSettings;
use foldback_reference_agent::ReferenceAgent;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a run may do and spend. With --resume, these replace the earlier limits.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// Approve everything that changes something, without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// Ask the model at most this many times [default: 1000, if no other limit here applies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_calls: Option<u64>,

    /// Take at most this many steps, each of which asks the model once; this also applies to each step of a flow, and
    /// to each sub-agent [default: any number within the other limits]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u32>,

    /// Use at most this many of the model's tokens, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,

    /// Spend at most this much; the model's prices must be known
    #[arg(long, value_name = "MONEY", value_parser = money)]
    max_cost: Option<f64>,

    /// Work at most this long, counted anew after each resume: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    #[serde(rename = "max_seconds")]
    max_time: Option<u64>,

    /// Let a sub-agent spend at most this part of what is left of these limits when it begins [default: 50]
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(1..=100),
    )]
    sub_agent_share: Option<u8>,
}

/// The model calls of a run without any limit: far more than a task of hundreds of calls takes, but few enough that a
/// runaway ends.
pub(crate) const CALLS: u64 = 1_000;

impl Limits {
    /// Everything is approved, and nothing limited.
    pub(crate) fn approving() -> Self {
        Self { yes: true, ..Self::default() }
    }

    /// These limits, overridden by `newer`.
    pub(crate) fn overlaid(self, newer: Self) -> Self {
        Self {
            yes: self.yes || newer.yes,
            max_calls: newer.max_calls.or(self.max_calls),
            max_steps: newer.max_steps.or(self.max_steps),
            max_tokens: newer.max_tokens.or(self.max_tokens),
            max_cost: newer.max_cost.or(self.max_cost),
            max_time: newer.max_time.or(self.max_time),
            sub_agent_share: newer.sub_agent_share.or(self.sub_agent_share),
        }
    }

    /// These limits, completed from the settings.
    pub(crate) fn with_defaults(self, settings: &Settings) -> Self {
        let agent = &settings.agent;
        Self {
            yes: self.yes || settings.tools.approve,
            max_calls: self.max_calls.or(agent.max_calls),
            max_steps: self.max_steps.or(agent.max_steps),
            max_tokens: self.max_tokens.or(agent.max_tokens),
            max_cost: self.max_cost.or(agent.max_cost),
            max_time: self.max_time.or(agent.max_time.map(Time::seconds)),
            sub_agent_share: self.sub_agent_share.or(agent.sub_agent_share),
        }
    }

    /// Whether the cost of the run is limited.
    pub(crate) fn bounds_cost(self) -> bool {
        self.max_cost.is_some()
    }

    /// The part of what is left that a sub-agent may spend.
    pub(crate) fn sub_agent_share(self) -> f64 {
        let part = |percent| f64::from(percent) / 100.0;
        self.sub_agent_share.map_or(ReferenceAgent::SUB_AGENT_SHARE, part)
    }

    /// The limit on a resource, as it was given.
    pub(crate) fn reached(self, resource: Resource) -> Option<String> {
        match resource {
            Resource::ModelCalls => self.calls().map(|calls| format!("--max-calls {calls}")),
            Resource::Tokens => self.max_tokens.map(|tokens| format!("--max-tokens {tokens}")),
            Resource::Cost => self.max_cost.map(|cost| format!("--max-cost {cost}")),
            Resource::Time => {
                let time = self.max_time.and_then(Time::of_seconds);
                time.map(|time| format!("--max-time {time}"))
            }
            Resource::ToolCalls => None,
        }
    }

    /// A limit with which a run that has spent this can continue: as much again, and at least twice the old limit. Time
    /// starts anew by itself.
    pub(crate) fn raised(self, resource: Resource, account: &Account) -> Option<String> {
        let more = |bound: u64, spent: u64| bound.saturating_add(bound.max(spent));
        let tokens = account.usage.input.saturating_add(account.usage.output);
        let cost = account.cost.unwrap_or_default();
        let raised = Self {
            max_calls: self.calls().map(|bound| more(bound, account.calls)),
            max_tokens: self.max_tokens.map(|bound| more(bound, tokens)),
            max_cost: self.max_cost.map(|bound| rounded_up(bound + bound.max(cost))),
            ..self
        };
        if resource == Resource::Time { None } else { raised.reached(resource) }
    }

    /// How often the model may be asked: a run without any limit still ends by itself.
    fn calls(self) -> Option<u64> {
        let is_bounded = self.max_tokens.is_some() || self.bounds_cost() || self.bounds_time();
        self.max_calls.or((!is_bounded).then_some(CALLS))
    }

    /// How many steps may be taken one by one.
    pub(crate) fn max_steps(self) -> Option<u32> {
        self.max_steps
    }

    /// A limit on steps with which a run that has reached the old one can continue.
    pub(crate) fn more_steps(self) -> Option<String> {
        self.max_steps.map(|steps| format!("--max-steps {}", steps.saturating_mul(2)))
    }

    /// Whether the run's time is limited.
    pub(crate) fn bounds_time(self) -> bool {
        self.max_time.is_some()
    }

    /// A flow has an hour, unless the run has a time limit: then it may spend whatever the run may.
    pub(crate) fn flow_settings(self, settings: FlowSettings) -> FlowSettings {
        match self.bounds_time() {
            true => settings.with_limits(SpendLimits::default()),
            false => settings,
        }
    }

    /// What may be spent.
    pub(crate) fn spend_limits(self) -> SpendLimits {
        SpendLimits::default()
            .with_model_calls(self.calls())
            .with_tool_calls(None)
            .with_tokens(self.max_tokens)
            .with_cost(self.max_cost)
            .with_time(self.max_time.map(Duration::from_secs))
    }
}

/// A sum of money, rounded up to a few digits.
fn rounded_up(sum: f64) -> f64 {
    // Sums are small, and prices are given per million tokens.
    let (digits, more) = (1e6, 1e-9);
    let rounded = ((sum - more) * digits).ceil() / digits;
    if rounded.is_finite() { rounded } else { sum }
}

fn seconds(text: &str) -> Result<u64, String> {
    Time::read(text).map(Time::seconds)
}

fn money(text: &str) -> Result<f64, String> {
    let money = text.parse::<f64>().ok().filter(|money| money.is_finite() && *money > 0.0);
    money.ok_or_else(|| "expected a number above 0, such as 1.50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_llm::Usage;

    #[test]
    fn sums_are_read() {
        assert_eq!(money("1.50"), Ok(1.5));
        for bad in ["0", "-1", "NaN", "inf", "1€"] {
            assert!(money(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bound_is_named_as_it_was_given_and_can_be_raised() {
        let limits = Limits { max_calls: Some(3), max_cost: Some(0.25), ..Limits::default() };
        let spent = Account { calls: 3, cost: Some(0.25), ..Account::default() };
        let told = |resource| (limits.reached(resource), limits.raised(resource, &spent));
        let both = |one: &str, other: &str| (Some(one.to_owned()), Some(other.to_owned()));
        assert_eq!(told(Resource::ModelCalls), both("--max-calls 3", "--max-calls 6"));
        assert_eq!(told(Resource::Cost), both("--max-cost 0.25", "--max-cost 0.5"));
        assert_eq!(told(Resource::Tokens), (None, None));
        let timed = Limits { max_time: Some(90), ..Limits::default() };
        assert_eq!(timed.reached(Resource::Time).as_deref(), Some("--max-time 90s"));
        assert_eq!(timed.raised(Resource::Time, &spent), None, "each process has it");
    }

    /// A run without any limit ends, and continues with the line that is printed then.
    #[test]
    fn a_run_without_any_bound_has_one() {
        let calls = |limits: Limits| limits.spend_limits().model_calls;
        assert_eq!(calls(Limits::default()), Some(1_000));
        let spent = Account { calls: 1_000, ..Account::default() };
        let named = |told: Option<String>| told.unwrap();
        let limits = Limits::default();
        assert_eq!(named(limits.reached(Resource::ModelCalls)), "--max-calls 1000");
        assert_eq!(named(limits.raised(Resource::ModelCalls, &spent)), "--max-calls 2000");
        for bounded in [
            Limits { max_tokens: Some(9), ..limits },
            Limits { max_cost: Some(9.0), ..limits },
            Limits { max_time: Some(9), ..limits },
        ] {
            assert_eq!(calls(bounded), None);
        }
        // A sub-agent may take any number of steps, and a part of the calls.
        assert_eq!(calls(Limits { max_steps: Some(9), ..limits }), Some(1_000));
    }

    /// What the first call took may be ten times what was allowed.
    #[test]
    fn a_raised_bound_lets_a_run_go_on_that_went_far_beyond() {
        let limits = Limits { max_tokens: Some(1_000), max_cost: Some(0.01), ..Limits::default() };
        let usage = Usage { input: 9_000, output: 1_000, ..Usage::default() };
        let spent = Account { calls: 1, usage, cost: Some(0.1), ..Account::default() };
        let raised = |resource| limits.raised(resource, &spent).unwrap();
        assert_eq!(raised(Resource::Tokens), "--max-tokens 11000");
        assert_eq!(raised(Resource::Cost), "--max-cost 0.11");
    }

    #[test]
    fn newer_limits_take_the_place_of_older_ones() {
        let older =
            Limits { yes: true, max_calls: Some(3), max_time: Some(60), ..Limits::default() };
        let newer = Limits { max_calls: Some(9), ..Limits::default() };
        let both = older.overlaid(newer);
        assert_eq!((both.yes, both.max_calls, both.max_time), (true, Some(9), Some(60)));
        assert_eq!(both.spend_limits().time, Some(Duration::from_secs(60)));
    }
}
