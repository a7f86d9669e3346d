//! A layer forwards what it does not change.

use super::*;
use crate::{BackgroundJob, BackgroundJobDone, BlockId, ItemState, Reference, SideCall, TodoList};
use std::sync::{Arc, Mutex};

/// What the context inside was asked for, in order.
type Asked = Arc<Mutex<Vec<&'static str>>>;

/// A context whose every answer differs from what a default would give.
struct Inside {
    todo: TodoId,
    tools: Vec<ToolDefinition>,
    asked: Asked,
}

impl Inside {
    fn new(asked: &Asked) -> Self {
        let name = "load".to_owned();
        let tool = ToolDefinition { name, description: String::new(), parameters: String::new() };
        let todo = TodoId::new("inside").unwrap();
        Self { todo, tools: vec![tool], asked: asked.clone() }
    }

    fn is_asked(&self, what: &'static str) {
        self.asked.lock().unwrap().push(what);
    }
}

impl ContextManager for Inside {
    fn todo(&self) -> &TodoId {
        self.is_asked("todo");
        &self.todo
    }

    fn recorded(&self) -> u64 {
        self.is_asked("recorded");
        7
    }

    fn record(&mut self, _message: Message) -> Result<Recorded, ContextError> {
        self.is_asked("record");
        Ok(Recorded { seq: SeqNo(7), closed: vec![BlockId::new(self.todo.clone(), 1)] })
    }

    fn set_front_tokens(&mut self, _tokens: u64) {
        self.is_asked("set_front_tokens");
    }

    fn note_recall(&mut self, _tokens: u64) {
        self.is_asked("note_recall");
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        self.is_asked("prompt");
        Prompt { tokens: budget.tokens.unwrap_or_default(), ..Prompt::default() }
    }

    fn tools(&self) -> &[ToolDefinition] {
        self.is_asked("tools");
        &self.tools
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        self.is_asked("call");
        Ok(ToolAnswer { text: call.name.clone(), is_error: true })
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        self.is_asked("pin");
        Err(ContextError { message: format!("there is no message {seq}"), source: None })
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        self.is_asked("child");
        Ok(Box::new(Self { todo, ..Self::new(&self.asked) }))
    }

    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        self.is_asked("sub_tasks");
        Some(self)
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        self.is_asked("background_work");
        Some(self)
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        self.is_asked("side_calls");
        Some(self)
    }
}

impl SubTasks for Inside {
    fn todo_list(&mut self) -> TodoList {
        TodoList::default()
    }

    fn set_todo_list(&mut self, _list: &TodoList) -> Result<(), ContextError> {
        Ok(())
    }

    fn finish_item(
        &mut self,
        _item: &TodoId,
        _state: ItemState,
        _result: Option<&str>,
        _references: &[Reference],
    ) -> Result<bool, ContextError> {
        Ok(true)
    }

    fn grant(&mut self, _to: &TodoId, _references: &[Reference]) -> Result<bool, ContextError> {
        Ok(true)
    }

    fn granted(&mut self) -> Result<Vec<Reference>, ContextError> {
        Ok(Vec::new())
    }

    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError> {
        Ok(Some(BlockId::new(self.todo.clone(), 9)))
    }
}

impl BackgroundWork for Inside {
    fn next_job(&mut self) -> Option<BackgroundJob> {
        Some(BackgroundJob(Box::new(|| BackgroundJobDone(Box::new(())))))
    }

    fn absorb(&mut self, _done: BackgroundJobDone) -> Result<(), ContextError> {
        Ok(())
    }
}

impl SideCalls for Inside {
    fn take(&mut self) -> Vec<SideCall> {
        vec![SideCall { purpose: "summary", input_tokens: 5, output_tokens: 3, cost: None }]
    }
}

/// A layer that changes nothing.
struct Through(Inside);

impl ContextLayer for Through {
    fn inner(&self) -> &dyn ContextManager {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        &mut self.0
    }
}

/// Asks a context for everything that the port has, and returns the answers as a text.
fn everything(context: &mut dyn ContextManager) -> String {
    context.set_front_tokens(300);
    context.note_recall(40);
    let child = TodoId::new("child").unwrap();
    let call = ToolCall::new("c1", "load", "{}");
    let answers = (
        context.todo().clone(),
        context.recorded(),
        context.record(Message::user("Good morning.")).unwrap(),
        context.prompt(&Budget { tokens: Some(12) }),
        context.tools().to_vec(),
        context.call(&call).unwrap(),
        context.pin(SeqNo(40)).unwrap_err().to_string(),
        context.child(child).map(|child| child.todo().clone()).unwrap(),
        context.sub_tasks().map(|kept| kept.conclude().unwrap()),
        context.background_work().map(|work| work.next_job().is_some()),
        context.take_side_calls(),
    );
    format!("{answers:#?}")
}

#[test]
fn a_layer_forwards_everything() {
    let (direct, through) = (Asked::default(), Asked::default());
    let expected = everything(&mut Inside::new(&direct));
    assert_eq!(everything(&mut Through(Inside::new(&through))), expected);
    let asked = through.lock().unwrap();
    assert_eq!(*asked, *direct.lock().unwrap());
    let port = [
        "set_front_tokens",
        "note_recall",
        "todo",
        "recorded",
        "record",
        "prompt",
        "tools",
        "call",
        "pin",
        "child",
        "todo",
        "sub_tasks",
        "background_work",
        "side_calls",
    ];
    assert_eq!(*asked, port);
}

/// A change of a layer is seen by its caller, and nothing else changes.
#[test]
fn a_layer_changes_what_it_writes() {
    struct Changed(Inside);

    impl ContextLayer for Changed {
        fn inner(&self) -> &dyn ContextManager {
            &self.0
        }

        fn inner_mut(&mut self) -> &mut dyn ContextManager {
            &mut self.0
        }

        fn recorded(&self) -> u64 {
            self.inner().recorded() + 1
        }

        fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
            None
        }
    }

    let mut changed = Changed(Inside::new(&Asked::default()));
    let context: &mut dyn ContextManager = &mut changed;
    assert_eq!(context.recorded(), 8);
    assert!(context.background_work().is_none());
    assert!(context.sub_tasks().is_some());
}
