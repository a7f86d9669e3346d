//! The turns of a client's calls that write: they are carried out in the order in which they came.

use foldback::MemoryTool;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, Extensions, GetExtensions as _};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Gives out turns.
#[derive(Default)]
pub(crate) struct Turns {
    /// Ends with the last turn that was given.
    last: Option<oneshot::Receiver<()>>,
}

/// A turn: it comes when the one before it is dropped, and lasts until it is dropped.
pub(crate) struct Turn {
    before: Mutex<Option<oneshot::Receiver<()>>>,
    _until: oneshot::Sender<()>,
}

impl Turns {
    /// Gives the message a turn if it is a call that writes.
    pub(crate) fn give(&mut self, message: &mut ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(message) = message else { return };
        let tool = match &message.request {
            ClientRequest::CallToolRequest(call) => Some(&*call.params.name),
            ClientRequest::CustomRequest(call) => {
                call.params.as_ref().and_then(|params| params.get("name")?.as_str())
            }
            _ => None,
        };
        let is_writing = |tool| MemoryTool::all().iter().any(|one| one.writes && one.name == tool);
        if tool.is_some_and(is_writing) {
            let (until, ended) = oneshot::channel();
            let before = Mutex::new(self.last.replace(ended));
            message.request.extensions_mut().insert(Arc::new(Turn { before, _until: until }));
        }
    }
}

/// Waits for the turn that a call was given, if there is one.
pub(crate) async fn wait(call: &Extensions) {
    let before = call.get::<Arc<Turn>>().and_then(|turn| turn.before.lock().take());
    if let Some(before) = before {
        // It ends by being dropped.
        let _ended = before.await;
    }
}
