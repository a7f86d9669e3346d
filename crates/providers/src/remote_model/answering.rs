//! An answer as the server gives it: streamed, or whole if it does not stream.

use super::reading::Reading;
use super::{Opened, RemoteModel, broke_off};
use crate::{Provider, ToolCalls};
use foldback_llm::{
    ChatChunk, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind, StopReason,
};
use futures::{StreamExt, TryStreamExt, stream};

impl RemoteModel {
    /// Returns the answer to a request, streamed if the server streams. Self-hosted servers that give nothing
    /// in pieces are asked once more for the whole: llama-cpp-python streams no calls, and breaks off instead
    /// of saying what is wrong with a request.
    pub(super) async fn answer<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> Result<ChatStream<'a>, ModelError> {
        if !self.config.stream || self.streaming.is_given_up(request) {
            let response = self.whole(request).await?;
            self.streaming.came_whole(response.usage);
            return Ok(all_at_once(response));
        }
        let reading = match self.open_or_whole(request).await? {
            Opened::Pieces(reading) => *reading,
            Opened::Whole(response) => return Ok(all_at_once(*response)),
            Opened::Broken(busy, error) if !self.is_own() => return Err(self.failed(&busy, error)),
            // The request for the whole shows whether the server is available.
            Opened::Broken(busy, error) => {
                drop(busy);
                let is_lost = error.kind == ModelErrorKind::Unavailable;
                return Ok(all_at_once(self.whole_instead(request, None, is_lost).await?));
            }
        };
        let read_on = move |going: Option<(Reading, usize)>| async move {
            let Some((mut reading, pieces)) = going else { return Ok(None) };
            let end = match reading.chunk().await {
                Some(Ok(ChatChunk::Done(response))) => Ok(*response),
                Some(Ok(piece)) => return Ok(Some((vec![piece], Some((reading, pieces + 1))))),
                Some(Err(error)) => Err(self.failed(reading.busy(), error)),
                None => Err(broke_off()),
            };
            // The server is no longer working on it.
            let has_broken = reading.has_broken();
            drop(reading);
            let last = self.ended(request, pieces, end, has_broken).await;
            last.map(|chunks| Some((chunks, None)))
        };
        let chunks = stream::try_unfold(Some((reading, 0)), read_on);
        Ok(chunks.map_ok(|chunks| stream::iter(chunks.into_iter().map(Ok))).try_flatten().boxed())
    }

    /// Determines the outcome at the end of a stream, after this many pieces. A stream whose connection failed shows
    /// nothing about the others.
    async fn ended(
        &self,
        request: &ChatRequest,
        pieces: usize,
        end: Result<ChatResponse, ModelError>,
        has_broken: bool,
    ) -> Result<Vec<ChatChunk>, ModelError> {
        let is_native = self.config.tool_calls() == ToolCalls::Native;
        let is_nothing = match &end {
            Ok(response) => response.usage.output == 0 && response.stop == StopReason::End,
            // In the Hermes format, a malformed call is an error although the model answered.
            Err(error) => error.kind == ModelErrorKind::Response && is_native,
        };
        if self.is_own() && is_nothing && pieces == 0 {
            return Ok(self.whole_instead(request, end.ok(), false).await?.into_chunks());
        }
        let response = end?;
        if self.is_own() && !has_broken {
            self.streaming.streamed(request, response.usage);
        }
        Ok(vec![ChatChunk::Done(Box::new(response))])
    }

    /// Returns the whole answer, after a stream that gave none, or was lost.
    async fn whole_instead(
        &self,
        request: &ChatRequest,
        streamed: Option<ChatResponse>,
        is_lost: bool,
    ) -> Result<ChatResponse, ModelError> {
        let whole = match (self.whole_behind(request, true).await, streamed) {
            (Ok(whole), None) => whole,
            (Ok(whole), Some(streamed)) => {
                let mut usage = streamed.usage;
                usage += whole.usage;
                ChatResponse { usage, ..whole }
            }
            // The model had nothing to say.
            (Err(_), Some(streamed)) => return Ok(streamed),
            // This error says what was wrong with the request; the broken stream did not.
            (Err(error), None) => return Err(error),
        };
        if is_lost {
            self.streaming.lost(request);
        } else if !whole.message.tool_calls().is_empty() || !whole.message.text().trim().is_empty()
        {
            self.streaming.gave_nothing(request);
        }
        Ok(whole)
    }

    fn is_own(&self) -> bool {
        self.config.provider == Provider::OpenAiCompatible
    }
}

/// Returns a stream of a complete answer.
fn all_at_once<'a>(response: ChatResponse) -> ChatStream<'a> {
    stream::iter(response.into_chunks().into_iter().map(Ok)).boxed()
}
