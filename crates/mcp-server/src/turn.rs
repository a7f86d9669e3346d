//! The turns of a client's calls that write: they are carried out in the order in which they came.

use foldback::MemoryTool;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, Extensions, GetExtensions as _};
use std::sync::Arc;
use tokio::sync::{Mutex, oneshot};

/// Gives out turns.
#[derive(Default)]
pub(crate) struct Turns {
    /// Ends with the last turn that was given.
    last: Option<Before>,
}

/// Ends with a turn. One that is dropped before it came names the turn that must end first.
struct Before(oneshot::Receiver<Before>);

/// A turn: it comes when the one before it is dropped, and lasts until it is dropped.
pub(crate) struct Turn {
    before: Mutex<Option<Before>>,
    until: Option<oneshot::Sender<Before>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let (Some(before), Some(until)) = (self.before.get_mut().take(), self.until.take()) {
            // If no later turn waits, none must know.
            let _unread = until.send(before);
        }
    }
}

impl Turns {
    /// Gives the message a turn if it is a call that writes.
    pub(crate) fn give(&mut self, message: &mut ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(message) = message else { return };
        let tool = match &message.request {
            ClientRequest::CallToolRequest(call) => Some(&*call.params.name),
            ClientRequest::CustomRequest(call) if call.method == "tools/call" => {
                call.params.as_ref().and_then(|params| params.get("name")?.as_str())
            }
            _ => None,
        };
        let is_writing = |tool| MemoryTool::all().iter().any(|one| one.writes && one.name == tool);
        if tool.is_some_and(is_writing) {
            let (until, ended) = oneshot::channel();
            let before = Mutex::new(self.last.replace(Before(ended)));
            message.request.extensions_mut().insert(Arc::new(Turn { before, until: Some(until) }));
        }
    }
}

/// Waits for the turn that a call was given, if there is one.
pub(crate) async fn wait(call: &Extensions) {
    let Some(turn) = call.get::<Arc<Turn>>() else { return };
    // What it waits for stays in the turn, where it is kept if the call is cancelled meanwhile.
    let mut before = turn.before.lock().await;
    while let Some(Before(ended)) = &mut *before {
        let next = ended.await.ok();
        *before = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// Returns what a request of this method for the tool `record` was given.
    fn given(turns: &mut Turns, method: &str, arguments: Value) -> Extensions {
        let params = json!({"name": "record", "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut message = serde_json::from_value(request).unwrap();
        turns.give(&mut message);
        let ClientJsonRpcMessage::Request(mut message) = message else { panic!("a request") };
        std::mem::take(message.request.extensions_mut())
    }

    fn has_come(call: &Extensions) -> bool {
        pin!(wait(call)).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// RC2: a call that ends before its turn, waiting or not, lets no later one pass those before it.
    #[test]
    fn rc2_a_turn_that_is_given_up_lets_none_overtake() {
        let mut turns = Turns::default();
        let mut call = |arguments| given(&mut turns, "tools/call", arguments);
        let [first, second] = [(); 2].map(|()| call(json!({"text": "杭"})));
        let [third, fourth] = [(); 2].map(|()| call(json!("{}")));
        assert!(has_come(&first) && !has_come(&second) && !has_come(&fourth));
        drop((third, second));
        assert!(!has_come(&fourth));
        drop(first);
        assert!(has_come(&fourth));
        assert!(!has_come(&call(json!({}))));
        drop(fourth);
        assert!(has_come(&call(json!({}))));
    }

    #[test]
    fn rc2_only_calls_of_tools_have_turns() {
        let mut turns = Turns::default();
        for method in ["no/such", "prompts/get"] {
            assert!(given(&mut turns, method, json!({})).get::<Arc<Turn>>().is_none());
        }
    }
}
