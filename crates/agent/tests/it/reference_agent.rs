//! The reference agent's standing instructions, and the names of its questions.

use crate::script::{agent, full, model, says, task};
use foldback_agent::{React, reference_system_prompt};
use foldback_core::{Estimate, Role, TokenCounter, ToolCall};

/// OM12: the instructions are short, begin the conversation unchanged, and contain no time.
#[tokio::test(start_paused = true)]
async fn om12_the_reference_agent_is_told_how_to_work() {
    let system_prompt = reference_system_prompt();
    assert!(Estimate.count(system_prompt) < 350, "{}", Estimate.count(system_prompt));
    assert_eq!(system_prompt.trim(), system_prompt);
    let script = model(["done".into()]);
    let agent = agent(&script, vec![]).with_system_prompt(system_prompt);
    agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    let first = &script.requests()[0].messages[0];
    assert_eq!((first.role(), &*first.text()), (&Role::System, system_prompt));
}

/// R12: each question has a name of its own in the run, which is the same when the run is repeated.
#[tokio::test(start_paused = true)]
async fn r12_questions_have_names() {
    let ask = async || {
        let script = model([ToolCall::new("c", "read", "{}").into(), "done".into()]);
        let agent = agent(&script, vec![says("read", 1, "ok")]);
        agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
        script.requests().into_iter().map(|request| request.id.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ask().await, ["run/react/1", "run/react/2"]);
    assert_eq!(ask().await, ask().await);
}
