//! A sub-agent as a tool: it receives arguments, and returns a result.

use super::SubAgents;
use super::assignment::ended;
use super::conclusion::conclusion;
use crate::json_line::compact;
use crate::own_tool::{context_of, read};
use crate::todo::{child_id, failed};
use foldback_core::{ItemState, quoted};
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name that a template uses for all arguments, as JSON.
const ALL: &str = "arguments";

const OUTPUT: &str = r#"{
    "type": "object",
    "properties": {
        "step": {"type": "string"},
        "args": {"type": "object"},
        "result": {"type": "string"}
    }
}"#;

/// A sub-agent as a tool, like a calculator: it sees its arguments and nothing of the caller's
/// conversation, which grows only by a short conclusion and not by the sub-agent's work:
/// `{"step": "<tool>", "args": {..}, "result": ".."}`.
///
/// Each call has a todo of its own, a child of the caller's, where its work can be inspected later. With a
/// journal, a call that was killed resumes where it was.
#[derive(Debug)]
pub struct SubAgentTool {
    spec: ToolSpec,
    sub_agents: SubAgents,
    template: String,
}

impl SubAgentTool {
    /// Creates a tool that has one of `sub_agents` work on `template`, in which `{name}` is replaced by the
    /// argument of that name (a text as it is, anything else as JSON) and `{arguments}` by all of them as JSON.
    ///
    /// An effectful spec is treated as [`Effect::Idempotent`]: a call that was killed is repeated, and the
    /// journal of the sub-agent's own run holds what it has done.
    #[must_use]
    pub fn new(spec: ToolSpec, sub_agents: SubAgents, template: &str) -> Self {
        let effect = match spec.effect {
            Effect::ReadOnly => Effect::ReadOnly,
            Effect::Idempotent | Effect::Effectful => Effect::Idempotent,
        };
        let mut spec = spec.with_effect(effect);
        spec.output.get_or_insert_with(|| OUTPUT.to_owned());
        Self { spec, sub_agents, template: template.to_owned() }
    }

    async fn answer(&self, arguments: &str, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let name = self.spec.name();
        let context = context_of(call, name)?;
        let values: Values = read(arguments)?;
        let request = filled(&self.template, arguments, &values);
        let agent = self.sub_agents.agent(None, &[]).map_err(ToolError::permanent)?;
        let key: String = call.idempotency_key.chars().take(12).collect();
        let todo = child_id(context.todo(), &format!("{name}-{key}"));
        let mut child = context.child(todo).await.map_err(|error| failed(context, &error))?;
        let run = format!("{}/{name}", call.idempotency_key);
        let report = self.sub_agents.work(&agent, call, child.as_mut(), (run, request)).await;
        if call.cancelled.is_cancelled() {
            return Err(ToolError::permanent("the sub-agent was stopped before it finished"));
        }
        let (state, words) = ended(report)?;
        let result = conclusion(&words, self.sub_agents.conclusion_tokens);
        if state != ItemState::Completed {
            return Err(ToolError::permanent(result));
        }
        let (step, args, result) = (quoted(name), compact(arguments), quoted(&result));
        Ok(ToolOutput::json(format!(r#"{{"step":{step},"args":{args},"result":{result}}}"#)))
    }
}

impl Tool for SubAgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns an unlimited time: the sub-agent has limits of its own.
    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        Some(Duration::MAX)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.answer(arguments, context).boxed()
    }
}

/// Arguments by name, as they are written.
type Values = BTreeMap<String, Box<RawValue>>;

/// Fills a template with arguments; inserted text is not filled again.
fn filled(template: &str, arguments: &str, values: &Values) -> String {
    let mut out = String::with_capacity(template.len() + arguments.len());
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(before);
        let named = from.split_once('}').and_then(|(name, after)| {
            let value = match values.get(name) {
                Some(value) => {
                    let text = serde_json::from_str(value.get());
                    text.unwrap_or_else(|_| compact(value.get()))
                }
                None if name == ALL => compact(arguments),
                None => return None,
            };
            Some((value, after))
        });
        match named {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = from;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CX7: a request is made from the arguments alone.
    #[test]
    fn cx7_a_template_is_filled_once() {
        #[track_caller]
        fn check(template: &str, arguments: &str, expected: &str) {
            let values = serde_json::from_str(arguments).unwrap();
            assert_eq!(filled(template, arguments, &values), expected);
        }
        check("查 {query}", r#"{"query": "杭州周末天气"}"#, "查 杭州周末天气");
        check("{a}{b}", r#"{"a": "{b}", "b": [1, 2.50]}"#, "{b}[1,2.50]");
        check("Look: {arguments}.", r#"{ "q" : "x" }"#, r#"Look: {"q":"x"}."#);
        check(r#"{"json": {q}} {unknown} {"#, r#"{"q": 1}"#, r#"{"json": 1} {unknown} {"#);
    }
}
