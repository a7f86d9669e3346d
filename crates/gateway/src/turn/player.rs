//! A turn whose answers are streamed.

use super::failed::Failed;
use super::parked::Parked;
use super::rounds::{Next, Rounds};
use super::stream::Stream;
use super::{Ask, Pieces, pieces};
use crate::Api;
use crate::body::unpacked;
use crate::headers::text;
use axum::BoxError;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long a client waits without a keep-alive.
const PING: Duration = Duration::from_secs(5);

/// Plays a turn whose answers are streamed, as fast as the client reads. It ends when the client disconnects, and so
/// does its request to the provider.
pub(super) struct Player {
    ask: Ask,
    stream: Stream,
    /// `None` while it is in use in another thread.
    rounds: Option<Rounds>,
    stage: Stage,
}

enum Stage {
    Reading(Pieces),
    Deciding(JoinHandle<(Rounds, Next)>),
    /// Waits for an answer; if that is not a stream, resolves to what it is.
    Asking(BoxFuture<'static, Result<Pieces, Failed>>),
    /// What must be kept is kept before the client can continue from it.
    Parking(JoinHandle<()>, Vec<u8>),
    Over,
}

/// The result of waiting.
enum Waited {
    /// A piece for the client.
    Piece(Result<Bytes, BoxError>),
    /// Nothing yet.
    Nothing,
}

impl Player {
    pub(super) fn new(ask: Ask, api: Api, rounds: Rounds, pieces: Pieces) -> Self {
        let stream = Stream::new(api, rounds.tools().to_vec());
        let stage = Stage::Reading(pieces);
        Self { ask, stream, rounds: Some(rounds), stage }
    }

    /// Returns what the client gets.
    pub(super) fn stream(
        self,
    ) -> impl futures::Stream<Item = Result<Bytes, BoxError>> + Send + 'static {
        stream::unfold(self, |mut player| async move {
            let mut until = Instant::now() + PING;
            while !matches!(player.stage, Stage::Over) {
                match tokio::time::timeout_at(until, player.wait()).await {
                    Ok(Waited::Piece(piece)) => return Some((piece, player)),
                    Ok(Waited::Nothing) => {}
                    Err(_) if player.stream.is_hiding() => {
                        let ping = Bytes::from_static(player.stream.ping().as_bytes());
                        return Some((Ok(ping), player));
                    }
                    Err(_) => until = Instant::now() + PING,
                }
            }
            None
        })
    }

    /// Waits for the next event. It is safe to cancel and call again.
    async fn wait(&mut self) -> Waited {
        match &mut self.stage {
            Stage::Reading(pieces) => match pieces.next().await {
                Some(Ok(piece)) => self.read(&piece),
                Some(Err(error)) => {
                    self.stage = Stage::Over;
                    Waited::Piece(Err(error))
                }
                None if self.stream.close() => self.decide(),
                None => {
                    let rest = self.stream.rest();
                    self.over(Bytes::from(rest))
                }
            },
            Stage::Deciding(decided) => match decided.await {
                Ok((rounds, next)) => {
                    self.rounds = Some(rounds);
                    self.go_on(next)
                }
                // An internal error; the client still gets its answer.
                Err(_) => self.end(None),
            },
            Stage::Asking(asked) => {
                let answered = asked.await;
                self.answered(answered)
            }
            Stage::Parking(kept, last) => {
                // If it failed, the log says so.
                let _ = kept.await;
                let last = std::mem::take(last);
                self.over(Bytes::from(last))
            }
            Stage::Over => Waited::Nothing,
        }
    }

    fn read(&mut self, piece: &[u8]) -> Waited {
        let out = self.stream.read(piece);
        if let Some(rounds) = &self.rounds {
            rounds.bill(self.stream.usage());
        }
        if self.stream.is_to_be_decided() {
            self.decide();
        }
        if out.is_empty() { Waited::Nothing } else { Waited::Piece(Ok(Bytes::from(out))) }
    }

    /// Has the calls of an answer answered, or determines its end.
    fn decide(&mut self) -> Waited {
        let Some(mut rounds) = self.rounds.take() else { return self.end(None) };
        let (answer, is_whole) = self.stream.answer();
        let decided = tokio::task::spawn_blocking(move || {
            let next = rounds.after(&answer, is_whole);
            (rounds, next)
        });
        self.stage = Stage::Deciding(decided);
        Waited::Nothing
    }

    fn go_on(&mut self, next: Next) -> Waited {
        match next {
            Next::Ask(body) => {
                self.stream.go_on();
                self.stage = Stage::Asking(ask(&self.ask, body));
                Waited::Nothing
            }
            Next::End(parked) => self.end(parked),
        }
    }

    fn answered(&mut self, answered: Result<Pieces, Failed>) -> Waited {
        match answered {
            Ok(pieces) => {
                self.stage = Stage::Reading(pieces);
                Waited::Nothing
            }
            Err(failed) => {
                if let Some(rounds) = &self.rounds {
                    rounds.failed(&failed);
                }
                let error = self.stream.error(&failed);
                self.over(Bytes::from(error))
            }
        }
    }

    /// Ends the client's answer.
    fn end(&mut self, parked: Option<Parked>) -> Waited {
        let last = self.stream.end();
        match (parked, self.rounds.take()) {
            (Some(parked), Some(rounds)) => {
                let shown = self.stream.shown();
                let kept = tokio::task::spawn_blocking(move || rounds.park(&parked, &shown));
                self.stage = Stage::Parking(kept, last);
                Waited::Nothing
            }
            _ => self.over(Bytes::from(last)),
        }
    }

    /// Gives the client the last piece.
    fn over(&mut self, piece: Bytes) -> Waited {
        self.stage = Stage::Over;
        Waited::Piece(Ok(piece))
    }
}

/// Asks the model again, for a stream. If the answer is not a stream, returns what it is.
fn ask(ask: &Ask, body: Bytes) -> BoxFuture<'static, Result<Pieces, Failed>> {
    let asked = ask(body);
    async move {
        let answer = asked.await.map_err(|_| Failed::default())?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let kind = text(&headers, "content-type").unwrap_or_default();
        if status.is_success() && kind.starts_with("text/event-stream") {
            let failed = || Failed { status: Some(status), ..Failed::default() };
            return pieces(answer).ok_or_else(failed);
        }
        let bytes = answer.bytes().await.unwrap_or_default();
        let body = unpacked(&headers, &bytes).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(Failed { status: Some(status), body })
    }
    .boxed()
}

#[cfg(test)]
mod tests;
