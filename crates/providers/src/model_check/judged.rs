//! What came of a request by which a server is tried.

use crate::{ModelConfig, RemoteModel};
use foldback_llm::{ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, Sampling};

/// The longest answer to a question, in tokens: whether there is one is what is asked.
const ANSWER: u32 = 48;

/// What came of a request.
pub(super) enum Judged {
    /// In how many pieces the answer came, and the answer.
    Taken(usize, Box<ChatResponse>),
    /// The server does not take such a request.
    Refused(ModelError),
    /// It says nothing of what the server takes: there are too many requests, the key is refused, or
    /// nobody is there.
    Unanswered(ModelError),
}

impl Judged {
    /// What comes of a request.
    ///
    /// Some servers fail, or break off, where they mean to refuse: one that answers a plain request in
    /// between, and fails at the same one again, refuses it.
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
            // What is no stream says that there is none.
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

/// A short answer, asked for once, and in how many pieces it came.
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
