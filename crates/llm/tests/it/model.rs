//! What every model can do.

use foldback_core::{Message, ToolCall};
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ChatResponse, ModelError, StopReason, Usage,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::sync::Arc;

/// A model that only answers whole.
struct Whole(Message);

impl ChatModel for Whole {
    fn name(&self) -> &str {
        "whole"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        let response = ChatResponse {
            message: self.0.clone(),
            usage: Usage::default(),
            stop: StopReason::End,
            model: "whole".to_owned(),
        };
        async move { Ok(response) }.boxed()
    }
}

/// A model that does not stream can be asked as if it did, even if it is shared.
#[tokio::test]
async fn a_whole_answer_comes_as_text_calls_and_end() {
    let call = ToolCall::new("c", "get_weather", "{\"city\":\"上海\"}");
    for (message, expected) in [
        (Message::calls("看", vec![call.clone()]), ["text", "call", "done"].as_slice()),
        (Message::calls("", vec![call.clone(), call]), &["call", "call", "done"]),
        (Message::assistant(""), &["done"]),
    ] {
        let model: Arc<dyn ChatModel> = Arc::new(Whole(message.clone()));
        let request = ChatRequest::default();
        let chunks = model.stream(&request).await.unwrap();
        let told = chunks.map(|chunk| match chunk.unwrap() {
            ChatChunk::Text(text) => {
                assert_eq!(text, message.text());
                "text"
            }
            ChatChunk::ToolCall { index, id, name, arguments } => {
                let call = &message.tool_calls()[index];
                assert_eq!(id.as_deref(), Some(call.id.as_str()));
                assert_eq!((name.as_deref(), &arguments), (Some("get_weather"), &call.arguments));
                "call"
            }
            ChatChunk::Done(response) => {
                assert_eq!(response.message, message);
                "done"
            }
            ChatChunk::Again => panic!("nothing breaks off"),
        });
        assert_eq!(told.collect::<Vec<_>>().await, expected);
    }
}
