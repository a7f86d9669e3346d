//! Requests to the model: within its window, and once more with less if one was too long.

use super::ReactLoop;
use crate::agent::AgentError;
use crate::model_caller::{Reply, estimated};
use crate::one_plan::reading::{is_for, written_plan};
use crate::react::CallForm;
use crate::trajectory::Purpose;
use foldback_core::{Budget, ContextManager, thousands};
use foldback_llm::{ChatRequest, ModelErrorKind};
use foldback_planner::Intent;

impl ReactLoop<'_> {
    /// Returns whether an answer is a plan for the agent's tools.
    pub(super) fn is_plan(&self, text: &str) -> bool {
        let catalog = self.agent.executor.catalog();
        matches!(written_plan(text), Some(Intent::Plan(plan)) if is_for(&plan, catalog))
    }

    /// Returns how large a prompt may be: by the settings, and within the model's window.
    pub(super) fn bound(&self) -> Budget {
        let window = self.agent.window.budget();
        let tokens = [self.settings.prompt.tokens, window.tokens].into_iter().flatten().min();
        Budget { tokens }
    }

    /// Asks the model, or finds the answer that it gave before the run was killed. A request that is too
    /// long for the model is shortened once.
    pub(super) async fn ask(
        &mut self,
        context: &mut dyn ContextManager,
        request: ChatRequest,
    ) -> Result<Reply, AgentError> {
        self.asked += 1;
        let key = self.asked.to_string();
        let is_known = self.run.model_caller.holds(&Purpose::REACT, &key);
        let was_known = std::mem::replace(&mut self.is_known, is_known);
        if was_known && !self.is_known {
            self.stuck.goes_on();
        }
        let mut size = estimated(&request);
        // Work that a tool began may still send requests to the context.
        let mut reply =
            self.run.serve(context, self.run.ask(Purpose::REACT, &key, request)).await?;
        if let Reply::Failed(error) = &reply
            && error.kind == ModelErrorKind::ContextLength
        {
            self.agent.window.exceeded(size);
            let smaller = self.request(context);
            let tokens = estimated(&smaller);
            if tokens.all < size.all {
                self.log.note(format_args!(
                    "the request of about {} tokens is too long for the model; asking again with {}",
                    thousands(size.all as u64),
                    thousands(tokens.all as u64)
                ));
                size = tokens;
                reply =
                    self.run.serve(context, self.run.ask(Purpose::REACT, &key, smaller)).await?;
            }
        }
        // An answer from the journal belongs to another request than the current one.
        if let Reply::Answer(answer) = &reply
            && !self.is_known
            && let called = !answer.message.tool_calls().is_empty()
            && let Some(dropped) = self.agent.window.counted(size, answer.usage, called)
        {
            self.log.note(format_args!(
                "tools seem not to arrive: the server counted {} of about {} tokens; see `foldback model check`",
                thousands(dropped.counted),
                thousands(dropped.estimated as u64)
            ));
        }
        Ok(reply)
    }

    /// Returns the names of the tools that may be called now, including the memory's.
    pub(crate) fn callable(&self, context: &dyn ContextManager) -> Vec<String> {
        let mut names: Vec<String> = self.tools.iter().map(|tool| tool.name.clone()).collect();
        if self.settings.calls == CallForm::ExecuteTools {
            let specs = self.agent.executor.toolbox().specs();
            names.extend(specs.map(|spec| spec.name().to_owned()));
        }
        names.extend(context.tools().iter().map(|tool| tool.name.clone()));
        names.retain(|name| self.choice.may_call(name));
        names.sort_unstable();
        names.dedup();
        names
    }
}
