//! A sub-agent as a tool: it is given arguments, and answers a result.

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

/// What stands in a template for all arguments, as JSON.
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
/// conversation, and the caller's conversation grows by a short conclusion and nothing of its work:
/// `{"step": "<tool>", "args": {..}, "result": ".."}`.
///
/// Each call has a todo of its own, a child of the caller's, where its work can be looked at later. With
/// a journal, a call that was killed goes on where it stood.
#[derive(Debug)]
pub struct SubAgentTool {
    spec: ToolSpec,
    sub_agents: SubAgents,
    template: String,
}

impl SubAgentTool {
    /// A tool that has one of `sub_agents` work on `template`, in which `{name}` stands for the argument
    /// of that name (a text as it is, anything else as JSON) and `{arguments}` for all of them as JSON.
    ///
    /// A spec that is effectful is taken as [`Effect::Idempotent`]: a call that was killed is made again,
    /// and what the sub-agent has done stands in the journal of its own run.
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

    /// As long as the sub-agent takes: it has bounds of its own.
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

/// Arguments by their names, as they are written.
type Values = BTreeMap<String, Box<RawValue>>;

/// The template with arguments in the place of their names; what is filled in is not looked at again.
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

    /// CX7: a request is made of the arguments alone.
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
