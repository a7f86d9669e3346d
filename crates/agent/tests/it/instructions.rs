//! The instructions of an agent in a conversation that somebody else began.

use crate::script::{agent, full, task, texts};
use foldback_agent::React;
use foldback_core::{Message, Role};

/// OM12: an agent's instructions are in each request: they are not added if the conversation began with them,
/// even among others; a sentence that merely contains them means something else.
#[tokio::test]
async fn om12_an_agent_has_its_instructions_in_any_conversation() {
    let system_prompt = "Answer in Chinese.\n只说中文。";
    for (began_with, is_added) in [
        (system_prompt, false),
        ("You help sailors.\nAnswer in Chinese.\n只说中文。\nBe brief.", false),
        ("You help sailors.\r\n\r\n  Answer in Chinese.\n只说中文。 \r\n", false),
        ("Never do this: Answer in Chinese.\n只说中文。", true),
        ("Answer in Chinese.\n只说中文。不要。", true),
        ("You help sailors.", true),
    ] {
        let model = texts(&["好。"]);
        let mut context = full();
        context.record(Message::system(began_with)).unwrap();
        context.record(Message::user("Hello.")).unwrap();
        context.record(Message::assistant("Hi.")).unwrap();
        let agent = agent(&model, vec![]).with_system_prompt(system_prompt);
        agent.run(&React::default(), context.as_mut(), &task("go")).await.unwrap();
        let request = model.requests().remove(0);
        let instructions: Vec<_> =
            request.messages.iter().filter(|m| *m.role() == Role::System).collect();
        assert_eq!(instructions.len(), 1 + usize::from(is_added), "{began_with}");
        assert_eq!(
            instructions.last().unwrap().text() == system_prompt,
            is_added || began_with == system_prompt
        );
    }
}
