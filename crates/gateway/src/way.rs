//! The route of a request to its provider, and what is sent along it.

use crate::body::unpacked;
use crate::check::Check;
use crate::exchange::{Answering, Asked, Course, Instead};
use crate::fold::Rewritten;
use crate::headers::passed;
use crate::recorder_thread::{Folded, Recalling, SHORTEST};
use crate::turn::{Ask, Billed, Place, Prepared, as_it_is, play, prepare};
use crate::whole_body::{Read, read};
use crate::{Api, Gateway, GatewayConfig, GatewayError, Keeping, RecallBy, Upstream, WhyWhole};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The route of a request to its provider.
pub(crate) struct Way<'g> {
    gateway: &'g Gateway,
    pub(crate) upstream: &'g Upstream,
    method: Method,
    url: reqwest::Url,
    headers: HeaderMap,
}

impl<'g> Way<'g> {
    pub(crate) fn of(gateway: &'g Gateway, api: Api, head: &Parts) -> Result<Self, GatewayError> {
        let upstream =
            if api.is_anthropic() { &gateway.config.anthropic } else { &gateway.config.openai };
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = upstream.url(path, api.is_anthropic())?;
        let headers = passed(&head.headers);
        Ok(Self { gateway, upstream, method: head.method.clone(), url, headers })
    }

    pub(crate) async fn send(
        &self,
        body: Option<reqwest::Body>,
    ) -> Result<Response<Body>, reqwest::Error> {
        let http = self.gateway.http(self.upstream);
        let out = http.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        match body {
            Some(body) => out.body(body).send().await.map(as_it_is),
            None => out.send().await.map(as_it_is),
        }
    }

    /// Sends a conversation: less of it, if some of it is in the store. If a provider refuses the shortened one,
    /// it is sent once more whole; if it accepts that, the conversation is sent whole from then on.
    pub(crate) async fn converse(
        &self,
        api: Api,
        bytes: Bytes,
        answering: &mut Answering,
    ) -> Result<Response<Body>, reqwest::Error> {
        let (config, recorder) = (&self.gateway.config, &self.gateway.recorder);
        let Answering { asked, course, check, billed, .. } = answering;
        let billed = &*billed;
        let may_fold = match config.recall {
            RecallBy::Off => false,
            RecallBy::Mcp | RecallBy::Stream => {
                bytes.len() >= SHORTEST || self.headers.contains_key(header::CONTENT_ENCODING)
            }
            RecallBy::Always => true,
        };
        let Some(asked) = asked.as_ref().filter(|_| may_fold) else {
            course.is_sent = true;
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
            true => recorder.without_thoughts(asked.anew(&bytes)).await,
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
        let request = self.gateway.http(self.upstream).post(url).headers(self.read_headers());
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

    /// Returns the headers of a body that the gateway has written, and whose answer it reads.
    fn read_headers(&self) -> HeaderMap {
        let mut headers = self.own_headers();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers
    }

    /// Requests the token count of what would be sent of a conversation.
    pub(crate) async fn count(
        &self,
        bytes: Bytes,
        answering: &mut Answering,
    ) -> Result<Response<Body>, reqwest::Error> {
        let Answering { asked, course, .. } = answering;
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
        let ledger = self.gateway.recorder.ledger().clone();
        let place = Place { memory, billed, ledger, log };
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
        course.is_sent = true;
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
        let (method, url) = (self.method.clone(), self.url.clone());
        let headers = if is_read { self.read_headers() } else { self.own_headers() };
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
        Read::Begun(begun, rest) | Read::Broken(begun, rest) => {
            let body = stream::once(async { Ok(begun) }).chain(rest);
            (Response::from_parts(head, Body::from_stream(body)), false)
        }
    }
}
