//! Searches through a tool: they are calls of that tool, with its effect.

use super::{model, plain, queries, usual};
use crate::script::{full, running};
use crate::toolkit::tool;
use foldback_agent::{Executor, Task};
use foldback_core::ToolDefinition;
use foldback_deep_search::{DeepSearch, ToolSearch};
use foldback_llm::ScriptedModel;
use foldback_tool::{Effect, ToolError, ToolOutput, ToolSpec, Toolbox};
use std::sync::{Arc, Mutex};

/// A model that wants one query, and no more.
fn one_query() -> Arc<ScriptedModel> {
    model(|request| match super::node(request) {
        "queries/queries" => queries(&["潮差"]).as_str().into(),
        "reflection/round-1" => super::sufficient().as_str().into(),
        _ => usual(request),
    })
}

/// A search through a tool that has an effect is not tried again, one that only reads is; the tool has the
/// key of its call and the token by which the run stops it.
#[tokio::test(start_paused = true)]
async fn a_search_has_the_effect_of_its_tool() {
    for (effect, expected) in
        [(Effect::Effectful, 1), (Effect::Idempotent, 2), (Effect::ReadOnly, 2)]
    {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = calls.clone();
        let spec = ToolSpec::new(ToolDefinition {
            name: "find".to_owned(),
            description: "Finds pages.".to_owned(),
            parameters: r#"{"type": "object", "properties": {"query": {"type": "string"}}}"#
                .to_owned(),
        });
        let find = tool(spec.with_effect(effect), move |arguments, context| {
            let mut calls = seen.lock().unwrap();
            calls.push((arguments, context));
            let is_first = calls.len() == 1;
            async move {
                if is_first {
                    return Err(ToolError::transient("忙"));
                }
                Ok(ToolOutput::json(r#"[{"url": "a.md", "title": "潮汐", "text": "潮差三米。"}]"#))
            }
        });
        let deep = DeepSearch::new(Arc::new(ToolSearch::new(find).unwrap())).with_settings(plain());
        let agent = running(&one_query(), Executor::new(Toolbox::default()));
        let task = Task::new("run", "潮差多少?");
        agent.run(&deep, full().as_mut(), &task).await.unwrap();
        let calls = std::mem::take(&mut *calls.lock().unwrap());
        assert_eq!(calls.len(), expected, "{effect:?}");
        for (at, (arguments, context)) in calls.iter().enumerate() {
            assert_eq!(arguments, r#"{"query":"潮差"}"#);
            assert_eq!(context.idempotency_key, calls[0].1.idempotency_key);
            assert_eq!(
                (context.idempotency_key.is_empty(), context.attempt as usize),
                (false, at + 1)
            );
        }
        task.cancelled.cancel();
        assert!(calls.iter().all(|(_, context)| context.cancelled.is_cancelled()));
    }
}
