//! A request on its way to the provider, and the answer on its way back.

use crate::body::unpacked;
use crate::check::Check;
use crate::exchange::{Answering, Asked, Course, Instead};
use crate::fold::Rewritten;
use crate::headers::passed;
use crate::recorder_thread::{Folded, Recalling, SHORTEST};
use crate::refusal::refusal;
use crate::traffic::taped;
use crate::turn::{Ask, Billed, Place, Prepared, as_it_is, play, prepare};
use crate::{Api, Gateway, GatewayConfig, GatewayError, Keeping, RecallBy, Upstream, WhyWhole};
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The header that says what the gateway could not do.
pub(crate) const NOTICE: &str = "x-foldback-notice";

/// The header that says how much of a request was sent.
pub(crate) const SENT: &str = "x-foldback-sent";

/// A longer conversation, in bytes, is passed on without being read.
const LONGEST: usize = 64 << 20;

/// The greatest number of characters in a notice.
const LONGEST_NOTICE: usize = 200;

/// The result of reading a body before it is sent.
enum Read {
    Whole(Bytes),
    /// Too long, or broken off: what was read, and the rest.
    Begun(Bytes, axum::body::BodyDataStream),
}

/// Passes a request on unchanged, or with less in it, and returns the provider's answer as it arrives.
pub(crate) async fn forward(gateway: &Gateway, api: Api, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let trouble = gateway.recorder.trouble().filter(|_| api.has_conversation());
    let is_closed = trouble.is_some() && gateway.config.fail_closed;
    if let Some(trouble) = gateway.recorder.fresh_trouble().filter(|_| is_closed) {
        let why = format!("{trouble}; only requests that can be recorded are passed on");
        return refusal(api, StatusCode::SERVICE_UNAVAILABLE, &why);
    }
    let way = match Way::of(gateway, api, &head) {
        Ok(way) => way,
        Err(error) => return refusal(api, StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let has_body = head.headers.contains_key("content-length")
        || head.headers.contains_key("transfer-encoding");
    let (mut asked, mut course, mut tape) = (None, Course::default(), None);
    let (billed, mut check) = (Billed::default(), None);
    let answer = match has_body {
        false => way.send(None).await,
        true if api.has_conversation() => match read(body).await {
            Read::Whole(bytes) => {
                let (path, recorder) = (head.uri.path(), &gateway.recorder);
                asked = recorder.asked(api, path, &head.headers, &bytes);
                let traffic = gateway.traffic.as_ref();
                tape = traffic.map(|traffic| traffic.asked(api, path, &head.headers, &bytes));
                let becoming = (&mut course, &mut check);
                way.converse(api, bytes, asked.as_ref(), becoming, &billed).await
            }
            Read::Begun(..) if gateway.config.fail_closed => {
                let why = "the request is too long to be recorded, and only recorded requests are passed on";
                return refusal(api, StatusCode::SERVICE_UNAVAILABLE, why);
            }
            Read::Begun(begun, rest) => {
                let why = format!(
                    "a request of over {LONGEST} bytes, or one that broke off, is not recorded"
                );
                (gateway.config.log)(&why);
                way.send(Some(continued(begun, rest))).await
            }
        },
        true if is_count(&head) && gateway.config.recall != RecallBy::Off => match read(body).await
        {
            Read::Whole(bytes) => {
                let (path, recorder) = (head.uri.path(), &gateway.recorder);
                asked = recorder.asked(Api::Messages, path, &head.headers, &bytes);
                way.count(bytes, asked.as_ref(), &mut course).await
            }
            Read::Begun(begun, rest) => way.send(Some(continued(begun, rest))).await,
        },
        true => way.send(Some(reqwest::Body::wrap_stream(body.into_data_stream()))).await,
    };
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => {
            // An address may contain a key.
            let error = reason(&error.without_url());
            let why = format!("{} cannot be reached: {error}", way.upstream);
            (gateway.config.log)(&why);
            return refusal(api, StatusCode::BAD_GATEWAY, &why);
        }
    };
    say(&mut response, NOTICE, trouble.as_deref());
    let less = course.instead.as_ref().zip(asked.as_ref());
    let less = less.map(|(sent, asked)| format!("{} of {} bytes", sent.bytes, asked.bytes()));
    say(&mut response, SENT, less.as_deref());
    if api.has_conversation() && !response.status().is_success() {
        gateway.recorder.ledger().refused();
    }
    let is_said = api.has_conversation() && response.status().is_success();
    let answering = asked.filter(|_| is_said).map(|asked| {
        let headers = response.headers().clone();
        Answering::new(asked, course, billed, check, headers, gateway.recorder.clone())
    });
    let answered = tape.map(|tape| tape.answered(response.status(), response.headers()));
    response.map(|body| {
        let pieces = taped(body.into_data_stream(), answered);
        Body::from_stream(copied(pieces, answering))
    })
}

/// The route of a request to its provider.
struct Way<'g> {
    gateway: &'g Gateway,
    upstream: &'g Upstream,
    method: Method,
    url: reqwest::Url,
    headers: HeaderMap,
}

impl<'g> Way<'g> {
    fn of(gateway: &'g Gateway, api: Api, head: &Parts) -> Result<Self, GatewayError> {
        let upstream =
            if api.is_anthropic() { &gateway.config.anthropic } else { &gateway.config.openai };
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = upstream.url(path, api.is_anthropic())?;
        let headers = passed(&head.headers);
        Ok(Self { gateway, upstream, method: head.method.clone(), url, headers })
    }

    async fn send(&self, body: Option<reqwest::Body>) -> Result<Response<Body>, reqwest::Error> {
        let http = self.gateway.http(self.upstream);
        let out = http.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        match body {
            Some(body) => out.body(body).send().await.map(as_it_is),
            None => out.send().await.map(as_it_is),
        }
    }

    /// Sends a conversation: less of it, if some of it is in the store. If a provider refuses the shortened one,
    /// it is sent once more whole; if it accepts that, the conversation is sent whole from then on.
    async fn converse(
        &self,
        api: Api,
        bytes: Bytes,
        asked: Option<&Asked>,
        (course, check): (&mut Course, &mut Option<Arc<Check>>),
        billed: &Billed,
    ) -> Result<Response<Body>, reqwest::Error> {
        let (config, recorder) = (&self.gateway.config, &self.gateway.recorder);
        let may_fold = match config.recall {
            RecallBy::Off => false,
            RecallBy::Mcp | RecallBy::Stream => {
                bytes.len() >= SHORTEST || self.headers.contains_key(header::CONTENT_ENCODING)
            }
            RecallBy::Always => true,
        };
        let Some(asked) = asked.filter(|_| may_fold) else {
            return self.send(Some(bytes.into())).await;
        };
        let Folded { part, whole, recall, why } = recorder.folded(asked).await;
        // A turn that was billed is not played again.
        let is_begun = || !billed.lock().is_empty();
        let mut refused = None;
        if let Some(part) = part {
            course.instead = Some((&part).into());
            *check = self.check(api, asked, &bytes);
            let sent = (Some(part), &mut *course);
            let answer = self.send_written(api, &bytes, sent, recall.clone(), billed).await?;
            let status = answer.status().as_u16();
            if !matches!(status, 400 | 413 | 422) || is_begun() {
                return Ok(answer);
            }
            recorder.ledger().refused();
            refused = Some(status);
        }
        course.instead = whole.as_ref().map(Instead::from);
        course.whole = refused.map(|_| WhyWhole::Refused).or(why);
        let sent = (whole, &mut *course);
        let answer = self.send_written(api, &bytes, sent, recall.clone(), billed).await?;
        if answer.status().is_success() {
            if let Some(status) = refused {
                recorder.leave_alone(asked, status);
            }
            return Ok(answer);
        }
        if api != Api::Messages || answer.status() != StatusCode::BAD_REQUEST || is_begun() {
            return Ok(answer);
        }
        // While the store was failing, it may not have recorded what preceded each piece of thinking.
        let (answer, is_of_thoughts) = speaks_of_thoughts(answer).await;
        let unthought = match is_of_thoughts {
            true => recorder.without_thoughts(asked).await,
            false => None,
        };
        let Some(unthought) = unthought else { return Ok(answer) };
        let (instead, whole) = (Some((&unthought).into()), course.whole);
        let mut again = Course { instead, whole, ..Course::default() };
        let sent = (Some(unthought), &mut again);
        match self.send_written(api, &bytes, sent, recall, billed).await {
            Ok(answer) if answer.status().is_success() => {
                *course = again;
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }

    /// Requests the count of the client's own body, if that is due.
    fn check(&self, api: Api, asked: &Asked, bytes: &Bytes) -> Option<Arc<Check>> {
        let Gateway { config, folded, .. } = self.gateway;
        if config.check_every == 0 || api != Api::Messages {
            return None;
        }
        let is_due =
            (folded.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(config.check_every);
        let body = unpacked(&asked.headers, bytes).filter(|_| is_due)?;
        let mut url = self.url.clone();
        url.set_path(&format!("{}/count_tokens", self.url.path().trim_end_matches('/')));
        let request = self.gateway.http(self.upstream).post(url).headers(self.own_headers());
        Check::begin(str::from_utf8(&body).ok()?, request)
    }

    /// Returns the headers of a body that the gateway has written.
    fn own_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        for name in [header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
            headers.remove(name);
        }
        headers
    }

    /// Requests the token count of what would be sent of a conversation.
    async fn count(
        &self,
        bytes: Bytes,
        asked: Option<&Asked>,
        course: &mut Course,
    ) -> Result<Response<Body>, reqwest::Error> {
        let Some(asked) = asked else { return self.send(Some(bytes.into())).await };
        let Folded { part, whole, recall, .. } = self.gateway.recorder.foreseen(asked).await;
        let sent = part.or(whole).map(Arc::new);
        course.instead = sent.as_deref().map(Instead::from);
        let declared = self.prepared(Api::Messages, sent.clone(), recall, &Billed::default()).await;
        let written = || sent.map(|sent| Arc::unwrap_or_clone(sent).body);
        match declared.map(|prepared| prepared.body).or_else(written) {
            Some(body) => self.asker(false)(body.into()).await.map(as_it_is),
            None => self.send(Some(bytes.into())).await,
        }
    }

    /// Returns what is sent if the model may look things up.
    async fn prepared(
        &self,
        api: Api,
        sent: Option<Arc<Rewritten>>,
        recall: Option<Arc<Recalling>>,
        billed: &Billed,
    ) -> Option<Prepared> {
        let GatewayConfig { keeping, log, .. } = &self.gateway.config;
        let (Keeping::On(memory), Some(recalling)) = (keeping, recall) else { return None };
        let (memory, billed, log) = (memory.clone(), Arc::clone(billed), log.clone());
        let place = Place { memory, billed, log };
        let prepared = move || prepare(api, &recalling, sent.as_deref(), place);
        tokio::task::spawn_blocking(prepared).await.ok().flatten()
    }

    /// Sends a conversation as the client has written it, or what is `sent` in its place, and notes how. If its model
    /// may look things up, the turn is played.
    async fn send_written(
        &self,
        api: Api,
        bytes: &Bytes,
        (sent, course): (Option<Rewritten>, &mut Course),
        recall: Option<Arc<Recalling>>,
        billed: &Billed,
    ) -> Result<Response<Body>, reqwest::Error> {
        let written = sent.map(Arc::new);
        let prepared = self.prepared(api, written.clone(), recall, billed).await;
        (course.has_tools, course.put_back) = (prepared.is_some(), Vec::new());
        if let Some(Prepared { body, recall, put_back }) = prepared {
            course.put_back = put_back;
            return play(self.asker(true), api, body, recall).await;
        }
        match written {
            Some(sent) => {
                self.asker(false)(Arc::unwrap_or_clone(sent).body.into()).await.map(as_it_is)
            }
            None => self.send(Some(bytes.clone().into())).await,
        }
    }

    /// Returns what sends the gateway's bodies in place of a client's. `is_read` says whether the gateway reads
    /// the answer.
    fn asker(&self, is_read: bool) -> Ask {
        let http = self.gateway.http(self.upstream).clone();
        let (method, url, mut headers) =
            (self.method.clone(), self.url.clone(), self.own_headers());
        if is_read {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        Arc::new(move |body| {
            let request = http.request(method.clone(), url.clone()).headers(headers.clone());
            request.body(body).send().boxed()
        })
    }
}

/// Returns a refusal unchanged, and whether it mentions a model's thinking.
async fn speaks_of_thoughts(answer: Response<Body>) -> (Response<Body>, bool) {
    let (head, body) = answer.into_parts();
    match read(body).await {
        Read::Whole(bytes) => {
            let text = unpacked(&head.headers, &bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).to_lowercase();
            let is_of_thoughts = text.contains("thinking") || text.contains("signature");
            (Response::from_parts(head, Body::from(bytes)), is_of_thoughts)
        }
        Read::Begun(begun, rest) => {
            let body = stream::once(async { Ok(begun) }).chain(rest);
            (Response::from_parts(head, Body::from_stream(body)), false)
        }
    }
}

/// Adds a header of the gateway's own to an answer.
fn say(response: &mut Response<Body>, name: &'static str, what: Option<&str>) {
    let text = what.unwrap_or_default().replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?");
    let text: String = text.chars().take(LONGEST_NOTICE).collect();
    let value = HeaderValue::from_str(&text).ok().filter(|_| what.is_some());
    response.headers_mut().extend(value.map(|value| (HeaderName::from_static(name), value)));
}

/// Returns whether a request asks only for a token count.
fn is_count(head: &Parts) -> bool {
    let path = head.uri.path().trim_end_matches('/');
    head.method == Method::POST && path.ends_with("/messages/count_tokens")
}

/// Returns a body of which the beginning was read.
fn continued(begun: Bytes, rest: axum::body::BodyDataStream) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::once(async { Ok(begun) }).chain(rest))
}

/// Reads a body to its end, or up to the limit.
async fn read(body: Body) -> Read {
    let length = usize::try_from(body.size_hint().lower()).unwrap_or(LONGEST);
    let mut bytes = BytesMut::with_capacity(length.min(LONGEST));
    let mut stream = body.into_data_stream();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            // The request to the provider breaks off where the client's did.
            Err(error) => {
                let broken = Body::from_stream(stream::once(async { Err::<Bytes, _>(error) }));
                return Read::Begun(bytes.freeze(), broken.into_data_stream());
            }
        }
        if bytes.len() > LONGEST {
            return Read::Begun(bytes.freeze(), stream);
        }
    }
    Read::Whole(bytes.freeze())
}

/// Passes the pieces on, with a copy for the recorder.
fn copied<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    answering: Option<Answering>,
) -> impl Stream<Item = Result<Bytes, E>> {
    let state = (Box::pin(pieces), answering);
    stream::unfold(state, |(mut pieces, mut answering)| async move {
        let piece = pieces.next().await;
        if let (Some(Ok(piece)), Some(answering)) = (&piece, &mut answering) {
            answering.copy(piece);
        }
        piece.map(|piece| (piece, (pieces, answering)))
    })
}

/// Returns the error, down to its cause.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
