//! A call of a server's tool, and its answer part by part.

use foldback_core::beginning;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult,
    CancelledNotificationParam, ClientRequest, ContentBlock, CustomResult, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

/// Calls a tool. If this future is dropped, the server is notified that the call is cancelled.
///
/// # Errors
/// When the server refuses, ends, or sends an answer that cannot be read.
pub(crate) async fn call(
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
) -> Result<CallToolResponse, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_cancellable_request(request, options).await?;
    let mut abandoned = Abandoned { peer, id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    abandoned.id = None;
    match answer? {
        ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
        ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        // An answer with one part of an unknown type does not parse as the answer of a tool.
        ServerResult::CustomResult(CustomResult(answer)) => {
            let read = read_in_parts(answer).ok_or(ServiceError::UnexpectedResponse)?;
            Ok(CallToolResponse::Complete(read))
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Reads an answer part by part; a part that cannot be read is replaced by a line that names its type.
fn read_in_parts(mut answer: Value) -> Option<CallToolResult> {
    for part in answer.get_mut("content")?.as_array_mut()? {
        if serde_json::from_value::<ContentBlock>(part.clone()).is_err() {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or("unknown");
            let kind = beginning(kind, LONGEST_TYPE);
            let text = format!("[a part of the type {kind:?} that cannot be read: not shown]");
            *part = json!({ "type": "text", "text": text });
        }
    }
    serde_json::from_value(answer).ok()
}

/// How many characters of the name of a type are shown.
const LONGEST_TYPE: usize = 40;

/// Notifies the server that nobody waits for an answer, unless it has come.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        // Without a runtime the connection is gone as well.
        if let Some(id) = self.id.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let reason = Some("request abandoned by the caller".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let peer = self.peer.clone();
            runtime.spawn(async move {
                // A server that has ended needs no notice.
                let _ = peer.notify_cancelled(params).await;
            });
        }
    }
}
