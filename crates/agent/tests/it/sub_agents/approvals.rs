//! The agent or sub-agent that asks for approval.

use super::{delegate, journaled};
use crate::keeping::{Keeping, Watching, calling, scripts};
use crate::script::task;
use crate::toolkit::{executor, options, plan, spec, step, tool};
use foldback_agent::{AgentEvent, ApprovalRequest, Approver, Decision, Executor, React};
use foldback_tool::{Effect, ToolOutput, Toolbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;

/// Approves only calls of the agent itself; remembers who asked.
#[derive(Default)]
struct OnlyTheAgent(Mutex<Vec<Option<String>>>);

impl Approver for OnlyTheAgent {
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        let decide = |call: &ApprovalRequest| {
            let who = call.todo.as_ref().map(ToString::to_string);
            self.0.lock().push(who.clone());
            match who.as_deref() {
                Some("task") => Decision::Approved,
                _ => Decision::Denied { reason: "不行".to_owned() },
            }
        };
        async move { calls.iter().map(decide).collect() }.boxed()
    }
}

fn send() -> Arc<dyn foldback_tool::Tool> {
    tool(spec("send", Effect::Effectful), |_, _| async { Ok(ToolOutput::text("sent")) })
}

/// S13: a call that waits for approval names its owner to the approver and to observers.
#[tokio::test]
async fn s13_a_call_says_which_todo_wants_it() {
    let model = scripts([
        (
            "task",
            vec![
                calling("send", json!({})),
                delegate(json!([{"id": "a", "task": "发"}])),
                "完成".into(),
            ],
        ),
        ("task.a", vec![calling("send", json!({"to": "杭州"})), "没有发".into()]),
    ]);
    let approver = Arc::new(OnlyTheAgent::default());
    let executor = Executor::new(Toolbox::default()).with_approver(approver.clone());
    let agent = journaled(&model, vec![send()], executor, |sub_agents| sub_agents);
    let watching = Arc::new(Watching::default());
    let task = task("写报告").with_observer(watching.clone());
    agent.run(&React::default(), &mut Keeping::new(), &task).await.unwrap();
    assert_eq!(*approver.0.lock(), [Some("task".to_owned()), Some("task.a".to_owned())]);
    let told: Vec<String> = watching
        .0
        .lock()
        .iter()
        .filter(|(_, event)| {
            matches!(event, AgentEvent::ApprovalAsked { .. } | AgentEvent::ApprovalDecided { .. })
        })
        .map(|(todo, event)| format!("{todo} {}", serde_json::to_string(event).unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            r#"task {"event":"approval_asked","turn":0,"step":1,"tool":"send","arguments":"{}"}"#,
            r#"task {"event":"approval_decided","turn":0,"step":1,"decision":"approved"}"#,
            r#"task.a {"event":"approval_asked","turn":0,"step":1,"tool":"send","arguments":"{\"to\":\"杭州\"}"}"#,
            r#"task.a {"event":"approval_decided","turn":0,"step":1,"decision":"denied","reason":"不行"}"#,
        ]
    );
}

/// If no agent makes the calls, no todo is named.
#[tokio::test]
async fn a_plan_without_an_agent_names_nobody() {
    let approver = Arc::new(OnlyTheAgent::default());
    let executor = executor([send()]).with_approver(approver.clone());
    executor.run(&plan(vec![step(1, "send", &[])]), options("run")).await.unwrap();
    assert_eq!(*approver.0.lock(), [None]);
}
