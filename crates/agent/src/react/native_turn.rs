//! A turn whose calls are tool calls of the chat API: they run together, and each has its own result.

use super::loop_tools::LoopAnswer;
use super::react_loop::ReactLoop;
use crate::agent::AgentError;
use crate::observation::{self, CallTold};
use crate::run_log::{RunEvent, RunLog, ToolOwner};
use crate::trajectory::TerminateStatus;
use foldback_core::{ContextManager, ToolAnswer, ToolCall};
use foldback_planner::{
    ArgumentsError, Failure, FindingKind, Findings, Plan, Step, StepId, StepResult, lower_calls,
};
use foldback_tool::{FailureKind, ToolSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The outcome of a turn, besides its results.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// Whether, and how, the model ended the run.
    pub(crate) terminates: Option<TerminateStatus>,
    /// Whether none of its calls may be made.
    pub(crate) is_refused: bool,
    /// Whether some of its calls have no result yet: a resumed run makes them.
    pub(crate) is_left_open: bool,
}

/// Runs the calls of a message that is already recorded, and records their results in its order: first those
/// of the policy's own tools, one after the other, then the agent's, together, then the loop's.
///
/// A call that cannot be made (arguments that are not JSON, or too large) has an error as its result; the
/// others still run. The turn ends when the policy or the journal fails, or the run is cancelled. With a
/// journal, calls that a resumed run makes stay without a result until then, and so do the calls after
/// them: only actual results are recorded. Without one, unknown results are recorded as unknown, so that no
/// call stays without a result.
pub(crate) async fn run(
    react: &mut ReactLoop<'_>,
    context: &mut dyn ContextManager,
    calls: &[ToolCall],
) -> Result<Ran, AgentError> {
    let mut turn = NativeTurn::plan(react, context, calls);
    let mut ran = turn.carry_out(react, context).await;
    let unknown = CallTold::unknown(match &ran {
        Ok(_) => String::new(),
        Err(error) => format!("Not known: the run ended early: {error}"),
    });
    for (step, call, _) in &turn.calls {
        let told = match turn.results.get(step) {
            None if react.is_resumable() => {
                ran.iter_mut().for_each(|ran| ran.is_left_open = true);
                break;
            }
            told => told.unwrap_or(&unknown),
        };
        context.record(told.message(&call.id))?;
    }
    ran
}

/// The owner of a called tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Policy,
    Agent,
    Loop,
    /// The model may not make it now.
    Nobody,
}

/// The calls of a message; step N is the call at index N - 1.
struct NativeTurn<'c> {
    number: u32,
    calls: Vec<(StepId, &'c ToolCall, Whose)>,
    /// The calls of the agent's tools.
    own: Plan,
    /// The faults of the calls as they are written, and of those of the agent's tools.
    findings: [Findings; 2],
    /// The known results of the steps, as the model is shown them.
    results: BTreeMap<StepId, CallTold>,
    /// The steps whose calls succeeded.
    succeeded: BTreeSet<StepId>,
}

impl<'c> NativeTurn<'c> {
    /// Determines the owners of the calls, and their faults.
    fn plan(react: &ReactLoop<'_>, context: &dyn ContextManager, calls: &'c [ToolCall]) -> Self {
        let number = react.log.next_turn();
        let lowered = lower_calls(calls);
        let calls = sorted(react, context, calls);
        let mut whole = lowered.plan;
        let is_own = |step: &mut Step| {
            calls.iter().any(|(id, _, whose)| *id == step.id && *whose == Whose::Agent)
        };
        let steps = whole.steps.extract_if(.., is_own).collect();
        let mut own = Plan { form: whole.form, steps };
        let checked = react.agent.validator().plan(&mut own);
        whole.steps.extend(own.steps.iter().cloned());
        whole.steps.sort_by_key(|step| step.id);
        react.planned(number, &whole, calls.len(), &[]);
        let findings = [lowered.findings, checked];
        Self { number, calls, own, findings, results: BTreeMap::new(), succeeded: BTreeSet::new() }
    }

    /// Runs the calls. If that fails, the results so far are kept.
    async fn carry_out(
        &mut self,
        react: &mut ReactLoop<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<Ran, AgentError> {
        self.look_back(&react.log, context)?;
        self.refuse(react, context);
        self.run_own(react, context).await?;
        let is_refused = self.of(Whose::Nobody).count() == self.calls.len();
        let terminates = self.call_loop(react);
        for (step, call, _) in &self.calls {
            if self.succeeded.contains(step) {
                react.choice.succeeded(&call.name);
            }
        }
        Ok(Ran { terminates, is_refused, is_left_open: false })
    }

    fn of(&self, who: Whose) -> impl Iterator<Item = (StepId, &'c ToolCall)> {
        let of = self.calls.iter().filter(move |(_, _, whose)| *whose == who);
        of.map(|(step, call, _)| (*step, *call))
    }

    /// Makes the calls of the policy's tools.
    fn look_back(
        &mut self,
        log: &RunLog,
        context: &mut dyn ContextManager,
    ) -> Result<(), AgentError> {
        for (step, call) in self.of(Whose::Policy).collect::<Vec<_>>() {
            log.emit(RunEvent::OwnCallBegan { turn: self.number, step, call });
            let answer = context.call(call)?;
            let ToolAnswer { text, is_error } = &answer;
            let (turn, owner, is_error) = (self.number, ToolOwner::Policy, *is_error);
            log.emit(RunEvent::OwnCallEnded { turn, step, call, owner, text, is_error });
            if !is_error {
                self.succeeded.insert(step);
            }
            // The policy recognises its own answers by their text.
            self.results.insert(step, answer.into());
        }
        Ok(())
    }

    /// Refuses the calls that cannot or may not be made.
    fn refuse(&mut self, react: &ReactLoop<'_>, context: &dyn ContextManager) {
        let denied =
            || Failure { kind: FailureKind::Denied, message: observation::NOT_ALLOWED.to_owned() };
        for (step, call, whose) in &self.calls {
            let failure = match whose {
                Whose::Agent => failure(*step, &self.findings),
                Whose::Nobody => Some(denied()),
                Whose::Policy | Whose::Loop => None,
            };
            let Some(mut failure) = failure else { continue };
            if failure.kind == FailureKind::UnknownTool {
                failure.message = unknown_tool(react, context, call);
            }
            let (turn, step, result) = (self.number, *step, &StepResult::Error { failure });
            react.log.emit(RunEvent::StepRefused { turn, step, call, result });
            self.results.insert(step, CallTold::of_result(result, None));
        }
    }

    /// Runs the calls of the agent's tools that were not refused.
    async fn run_own(
        &mut self,
        react: &mut ReactLoop<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<(), AgentError> {
        if self.of(Whose::Agent).next().is_none() {
            return Ok(());
        }
        self.own.steps.retain(|step| !self.results.contains_key(&step.id));
        let outcome = react.run_steps(context, self.number, &self.own).await?;
        for (step, result) in &outcome.results {
            if matches!(result, StepResult::Success { .. }) {
                self.succeeded.insert(*step);
            }
            if !react.is_open(result) {
                let told = CallTold::of_result(result, self.tool(react, *step));
                let shown = react.shown(self.number, *step, told.clone().into_text());
                self.results.insert(*step, told.in_words(shown));
            }
        }
        Ok(())
    }

    /// Returns the tool that a step calls.
    fn tool<'r>(&self, react: &'r ReactLoop<'_>, step: StepId) -> Option<&'r ToolSpec> {
        let (_, call, _) = self.calls.iter().find(|(id, ..)| *id == step)?;
        react.agent.executor.catalog().get(&call.name)
    }

    /// Makes the calls of the loop's own tools; returns how the run went if one of them ends it.
    fn call_loop(&mut self, react: &ReactLoop<'_>) -> Option<TerminateStatus> {
        let (log, turn, owner) = (&react.log, self.number, ToolOwner::Loop);
        let mut ends = None;
        for (step, call) in self.of(Whose::Loop).collect::<Vec<_>>() {
            log.emit(RunEvent::OwnCallBegan { turn, step, call });
            let LoopAnswer { text, is_error, terminates } = react.own.call(call);
            ends = ends.or(terminates);
            if !is_error {
                self.succeeded.insert(step);
            }
            log.emit(RunEvent::OwnCallEnded { turn, step, call, owner, text: &text, is_error });
            self.results.insert(step, ToolAnswer { text, is_error }.into());
        }
        ends
    }
}

/// Returns the calls with their numbers and owners.
fn sorted<'c>(
    react: &ReactLoop<'_>,
    context: &dyn ContextManager,
    calls: &'c [ToolCall],
) -> Vec<(StepId, &'c ToolCall, Whose)> {
    let whose = |call: &ToolCall| {
        let owner = if context.tools().iter().any(|tool| tool.name == call.name) {
            Whose::Policy
        } else if react.own.has(&call.name) {
            Whose::Loop
        } else if react.agent.executor.catalog().get(&call.name).is_some() {
            Whose::Agent
        } else {
            // The agent's validator reports that there is no such tool.
            return Whose::Agent;
        };
        if react.choice.may_call(&call.name) { owner } else { Whose::Nobody }
    };
    (1..).map(StepId).zip(calls).map(|(id, call)| (id, call, whose(call))).collect()
}

/// Returns the message on a call of an unknown tool, with all that may be called: the memory's tools are not
/// among the agent's.
fn unknown_tool(react: &ReactLoop<'_>, context: &dyn ContextManager, call: &ToolCall) -> String {
    let catalog = react.agent.executor.catalog();
    let nearest = catalog.nearest(&call.name).map(str::to_owned);
    let unknown = ArgumentsError::UnknownFunction { function: call.name.clone(), nearest };
    let callable = react.callable(context);
    if callable.is_empty() {
        return unknown.to_string();
    }
    let names = callable.join("`, `");
    match &unknown {
        ArgumentsError::UnknownFunction { nearest: Some(_), .. } => {
            format!("{unknown} You may call `{names}`.")
        }
        _ => format!("{unknown}; you may call `{names}`"),
    }
}

/// Returns why a call cannot be made: all faults of the call, or of the turn as a whole.
fn failure(id: StepId, findings: &[Findings]) -> Option<Failure> {
    let concerns = |kind: FindingKind, step: Option<StepId>| match step {
        Some(step) => step == id,
        None => kind == FindingKind::OverLimit,
    };
    let errors = findings.iter().flat_map(|findings| findings.errors());
    let mine: Vec<_> = errors.filter(|finding| concerns(finding.kind, finding.step)).collect();
    let kind = match mine.first()?.kind {
        FindingKind::UnknownFunction => FailureKind::UnknownTool,
        FindingKind::OverLimit => FailureKind::Quota,
        _ => FailureKind::Arguments,
    };
    let messages: Vec<String> = mine.iter().map(ToString::to_string).collect();
    Some(Failure { kind, message: joined(&messages) })
}

/// Joins sentences; a beginning that all of them share, up to a colon, is written only once.
fn joined(messages: &[String]) -> String {
    let Some((first, others)) = messages.split_first() else { return String::new() };
    let alike = |other: &String| {
        let same = first.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
        same.map_or(first.len().min(other.len()), |((at, _), _)| at)
    };
    let same = others.iter().map(alike).min().unwrap_or(0);
    let shared = first[..same].rfind(": ").map_or(0, |colon| colon + 2);
    let rest = others.iter().map(|other| &other[shared..]);
    [first.as_str()].into_iter().chain(rest).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn what_sentences_share_is_said_once() {
        let of = |messages: &[&str]| {
            joined(&messages.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            of(&["a call: `潮`: no id", "a call: `潮`: no title"]),
            "a call: `潮`: no id; no title"
        );
        assert_eq!(of(&["too many", "too large"]), "too many; too large");
        assert_eq!((of(&["one: two"]), of(&[])), ("one: two".to_owned(), String::new()));
    }
}
