//! A tool's way to the context of the loop that calls it.

use foldback_core::{
    ContextError, ContextManager, HandOver, ItemState, Reference, TodoId, TodoList, ToolAnswer,
    ToolCall, panic_text, sub_tasks_of,
};
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{mpsc, oneshot};

/// A tool's way to the context of the loop that calls it.
///
/// The loop owns its context and lends it to nobody. While calls run it [serves](Requests::serve) the requests of
/// tools one after the other, so that tools that run at the same time cannot disturb each other.
#[derive(Clone)]
pub struct ContextHandle {
    todo: TodoId,
    requests: mpsc::UnboundedSender<Request>,
}

/// An operation on the context that a tool asks for.
type Request = Box<dyn FnOnce(&mut dyn ContextManager) + Send>;

/// The loop's end of a handle, where the requests of its holders arrive.
#[derive(Debug)]
pub struct Requests(mpsc::UnboundedReceiver<Request>);

impl ContextHandle {
    /// Creates a handle to the context of `todo`, and the receiver of its requests.
    #[must_use]
    pub fn new(todo: TodoId) -> (Self, Requests) {
        let (requests, arriving) = mpsc::unbounded_channel();
        (Self { todo, requests }, Requests(arriving))
    }

    /// Returns the todo that the context belongs to.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// Returns whether both handles lead to the same loop.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.requests.same_channel(&other.requests)
    }

    /// Creates a separate context for a sub-task; see [`ContextManager::child`].
    ///
    /// # Errors
    /// As there, and when the loop has ended.
    pub async fn child(&self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        self.ask(move |context| context.child(todo)).await
    }

    /// Returns the current todo list; see [`SubTasks::todo_list`](foldback_core::SubTasks::todo_list).
    ///
    /// # Errors
    /// When the loop has ended.
    pub async fn todo_list(&self) -> Result<TodoList, ContextError> {
        self.ask(|context| Ok(sub_tasks_of(context)?.todo_list())).await
    }

    /// Replaces the todo list; see [`SubTasks::set_todo_list`](foldback_core::SubTasks::set_todo_list).
    ///
    /// # Errors
    /// As there, and when the loop has ended.
    pub async fn set_todo_list(&self, list: TodoList) -> Result<(), ContextError> {
        self.ask(move |context| sub_tasks_of(context)?.set_todo_list(&list)).await
    }

    /// Changes the current todo list in one step, with no other change in between. Returns the new list, or
    /// the error that `change` gave.
    ///
    /// # Errors
    /// As [`set_todo_list`](Self::set_todo_list), and when `change` panics: the list is then unchanged.
    pub async fn change_todo_list<E: Send + 'static>(
        &self,
        change: impl FnOnce(TodoList) -> Result<TodoList, E> + Send + 'static,
    ) -> Result<Result<TodoList, E>, ContextError> {
        self.ask(move |context| {
            let kept = sub_tasks_of(context)?;
            let list = kept.todo_list();
            let changed = catch_unwind(AssertUnwindSafe(|| change(list))).map_err(|panic| {
                let message = format!(
                    "a change of the todo list panicked: {}",
                    panic_text(&*panic).unwrap_or("without a message")
                );
                ContextError { message, source: None }
            })?;
            if let Ok(list) = &changed {
                kept.set_todo_list(list)?;
            }
            Ok(changed)
        })
        .await
    }

    /// Records the result of a sub-task; see [`SubTasks::finish_item`](foldback_core::SubTasks::finish_item).
    ///
    /// # Errors
    /// As there, and when the loop has ended.
    pub async fn finish_item(
        &self,
        item: TodoId,
        state: ItemState,
        result: Option<String>,
        references: Vec<Reference>,
    ) -> Result<bool, ContextError> {
        self.ask(move |context| {
            sub_tasks_of(context)?.finish_item(&item, state, result.as_deref(), &references)
        })
        .await
    }

    /// Grants another todo the right to read; see [`SubTasks::grant`](foldback_core::SubTasks::grant).
    ///
    /// # Errors
    /// As there, and when the loop has ended.
    pub async fn grant(
        &self,
        to: TodoId,
        references: Vec<Reference>,
    ) -> Result<bool, ContextError> {
        self.ask(move |context| sub_tasks_of(context)?.grant(&to, &references)).await
    }

    /// Returns the way to hand tools the contents that references name, if the context stores any; see
    /// [`ContextManager::hand_over`].
    ///
    /// # Errors
    /// When the loop has ended.
    pub async fn hand_over(&self) -> Result<Option<Arc<dyn HandOver>>, ContextError> {
        self.ask(|context| Ok(context.hand_over())).await
    }

    /// Runs a call of one of the policy's tools; see [`ContextManager::call`].
    ///
    /// # Errors
    /// As there, and when the loop has ended.
    pub async fn call(&self, call: ToolCall) -> Result<ToolAnswer, ContextError> {
        self.ask(move |context| context.call(&call)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut dyn ContextManager) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let gone = || {
            let todo = &self.todo;
            let message = format!("the loop of todo {todo} has ended, and its context with it");
            ContextError { message, source: None }
        };
        let (answer, answered) = oneshot::channel();
        let request: Request = Box::new(move |context| {
            // The caller may have been stopped meanwhile.
            let _ = answer.send(what(context));
        });
        self.requests.send(request).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl fmt::Debug for ContextHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextHandle").field(&self.todo).finish()
    }
}

impl Requests {
    /// Waits for `work`, and meanwhile serves the requests of the handle's holders on the context.
    pub async fn serve<T>(
        &mut self,
        context: &mut dyn ContextManager,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            while let Poll::Ready(Some(request)) = self.0.poll_recv(cx) {
                request(context);
            }
            work.as_mut().poll(cx)
        })
        .await
    }
}
