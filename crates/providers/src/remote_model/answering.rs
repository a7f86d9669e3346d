//! An answer as the server gives it: piece by piece, or whole where it gives none so.

use super::reading::Reading;
use super::{Opened, RemoteModel, broke_off};
use crate::{Provider, ToolCalls};
use foldback_llm::{
    ChatChunk, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind, StopReason,
};
use futures::{StreamExt, TryStreamExt, stream};

impl RemoteModel {
    /// The answer to a request, piece by piece where the server gives it so. Servers of one's own that give
    /// nothing in pieces are asked for it once more as a whole: llama-cpp-python streams no calls, and breaks
    /// off instead of saying what is wrong with a request.
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
            // Whether the server is there is seen by the request for the whole.
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
            // The server is at it no more.
            drop(reading);
            let last = self.ended(request, pieces, end).await;
            last.map(|chunks| Some((chunks, None)))
        };
        let chunks = stream::try_unfold(Some((reading, 0)), read_on);
        Ok(chunks.map_ok(|chunks| stream::iter(chunks.into_iter().map(Ok))).try_flatten().boxed())
    }

    /// What the end of an answer comes to, behind so many pieces.
    async fn ended(
        &self,
        request: &ChatRequest,
        pieces: usize,
        end: Result<ChatResponse, ModelError>,
    ) -> Result<Vec<ChatChunk>, ModelError> {
        let is_native = self.config.tool_calls() == ToolCalls::Native;
        let is_nothing = match &end {
            Ok(response) => response.usage.output == 0 && response.stop == StopReason::End,
            // A call in words that is none has been written.
            Err(error) => error.kind == ModelErrorKind::Response && is_native,
        };
        if self.is_own() && is_nothing && pieces == 0 {
            return Ok(self.whole_instead(request, end.ok(), false).await?.into_chunks());
        }
        let response = end?;
        if self.is_own() {
            self.streaming.streamed(request, response.usage);
        }
        Ok(vec![ChatChunk::Done(Box::new(response))])
    }

    /// The answer as a whole, behind a stream that gave none, or was lost.
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
            // It had nothing to say.
            (Err(_), Some(streamed)) => return Ok(streamed),
            // What was wrong with the request is said here, and not where the stream broke off.
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

/// A stream of what is there already.
fn all_at_once<'a>(response: ChatResponse) -> ChatStream<'a> {
    stream::iter(response.into_chunks().into_iter().map(Ok)).boxed()
}
