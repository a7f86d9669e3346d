//! A context of a third-party policy, whose conversation the memory keeps.

use foldback::Memory;
use foldback_core::{
    ContextError, ContextLayer, ContextManager, HandOver, Message, Recorded, TodoId,
};
use std::sync::Arc;

/// A context of a policy that keeps nothing itself: its messages are recorded in the memory as well, from which the
/// policy receives all of them when the conversation resumes.
pub(crate) struct Kept {
    policy: Box<dyn ContextManager>,
    /// The same conversation, as the memory keeps it.
    session: Box<dyn ContextManager>,
    memory: Memory,
}

/// This many messages are read at once.
const STEP: u64 = 256;

impl Kept {
    /// Opens the context of a todo for `policy`, which has received no message yet.
    pub(crate) fn open(
        policy: Box<dyn ContextManager>,
        memory: &Memory,
    ) -> Result<Self, ContextError> {
        let session = Box::new(memory.session(policy.todo())?);
        Self::told(policy, session, memory)
    }

    fn told(
        mut policy: Box<dyn ContextManager>,
        session: Box<dyn ContextManager>,
        memory: &Memory,
    ) -> Result<Self, ContextError> {
        let len = session.recorded();
        for from in (0..len).step_by(STEP as usize) {
            for message in memory.messages(session.todo(), from..len.min(from + STEP))? {
                policy.record(message)?;
            }
        }
        // A model's summary was paid for earlier.
        drop(policy.take_side_calls());
        Ok(Self { policy, session, memory: memory.clone() })
    }
}

impl ContextLayer for Kept {
    fn inner(&self) -> &dyn ContextManager {
        self.policy.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.policy.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        self.session.record(message.clone())?;
        self.policy.record(message)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        let session = self.session.child(todo.clone())?;
        let policy = self.policy.child(todo)?;
        Ok(Box::new(Self::told(policy, session, &self.memory)?))
    }

    fn hand_over(&self) -> Option<Arc<dyn HandOver>> {
        self.session.hand_over()
    }
}

#[cfg(test)]
mod tests {
    use crate::Policy;
    use foldback::{Memory, Options};
    use foldback_core::{Budget, ContextManager, Message, TodoId};

    fn shown(context: &dyn ContextManager) -> Vec<String> {
        let prompt = context.prompt(&Budget::default());
        prompt.messages.iter().map(|message| message.text().into_owned()).collect()
    }

    /// The model sees the same conversation under every policy, whichever was used before.
    #[test]
    fn a_conversation_goes_on_under_any_policy() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let todo = TodoId::new("trip").unwrap();
        let mut own = memory.session(&todo).unwrap();
        own.record(Message::user("Which gate? 哪个登机口？")).unwrap();
        own.record(Message::assistant("B 12.")).unwrap();
        drop(own);
        for (at, name) in ["full", "deepagents", "stm-ltm", "foldback", "full"].iter().enumerate() {
            let policy = Policy::named(name).unwrap();
            let mut context = policy.open(&todo, &memory).unwrap();
            assert_eq!(context.recorded(), 2 + at as u64, "{name}");
            assert!(shown(context.as_ref())[0].contains("哪个登机口"), "{name}");
            context.record(Message::user(&format!("And {at}?"))).unwrap();
        }
        assert_eq!(memory.len(&todo).unwrap(), 7);
        let full = Policy::named("full").unwrap().open(&todo, &memory).unwrap();
        assert_eq!(shown(full.as_ref())[2..], ["And 0?", "And 1?", "And 2?", "And 3?", "And 4?"]);
    }

    /// The messages of a sub-agent are kept below its caller's conversation.
    #[test]
    fn a_child_is_kept_as_well() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let (todo, item) = (TodoId::new("trip").unwrap(), TodoId::new("trip.hotel").unwrap());
        let full = Policy::named("full").unwrap();
        let mut context = full.open(&todo, &memory).unwrap();
        context.record(Message::user("Find one.")).unwrap();
        let mut child = context.child(item.clone()).unwrap();
        child.record(Message::user("A hotel at the quay, please.")).unwrap();
        drop((child, context));
        let mut context = full.open(&todo, &memory).unwrap();
        assert_eq!(shown(context.child(item).unwrap().as_ref()), ["A hotel at the quay, please."]);
    }
}
