//! The outcome of a request by which a server is tested.

use crate::{ModelConfig, RemoteModel};
use foldback_llm::{ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, Sampling};

/// The longest answer to a question, in tokens: only whether there is one matters.
const ANSWER: u32 = 48;

/// The outcome of a request.
pub(super) enum Judged {
    /// The number of pieces of the answer, and the answer.
    Taken(usize, Box<ChatResponse>),
    /// The server does not accept such a request.
    Refused(ModelError),
    /// This says nothing about what the server accepts: there are too many requests, the key is
    /// refused, or no server is there.
    Unanswered(ModelError),
}

impl Judged {
    /// Sends a request and judges its outcome.
    ///
    /// Some servers fail, or break off, when they mean to refuse: a server that answers a plain
    /// request in between, and fails again at the same one, refuses it.
    pub(super) async fn of(
        config: &ModelConfig,
        request: &ChatRequest,
        plain: &ChatRequest,
    ) -> Self {
        let error = match ask(config, request).await {
            Ok((pieces, answer)) => return Self::Taken(pieces, Box::new(answer)),
            Err(error) => error,
        };
        match error.kind {
            ModelErrorKind::Request => Self::Refused(error),
            // An answer that is not a stream shows that the server does not stream.
            ModelErrorKind::Response if config.stream => Self::Refused(error),
            ModelErrorKind::Unavailable => {
                if ask(&config.clone().with_stream(false), plain).await.is_err() {
                    return Self::Unanswered(error);
                }
                match ask(config, request).await {
                    Ok((pieces, answer)) => Self::Taken(pieces, Box::new(answer)),
                    Err(again) if again.kind == ModelErrorKind::Unavailable => Self::Refused(again),
                    Err(again) => Self::Unanswered(again),
                }
            }
            _ => Self::Unanswered(error),
        }
    }
}

/// Requests a short answer without retries, and returns its number of pieces.
pub(super) async fn ask(
    config: &ModelConfig,
    request: &ChatRequest,
) -> Result<(usize, ChatResponse), ModelError> {
    let model = RemoteModel::new(config.clone())?;
    let request = request.clone().with_sampling(Sampling::default().with_max_tokens(ANSWER));
    if config.stream {
        return model.pieces(&request).await;
    }
    model.complete(&request).await.map(|answer| (0, answer))
}
