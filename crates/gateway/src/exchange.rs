//! One request and its answer, copied as they pass.

use crate::body::unpacked;
use crate::check::Check;
use crate::class::HINTS;
use crate::contents::Laid;
use crate::conversation::Conversation;
use crate::fold::Rewritten;
use crate::identity::{AGENT, SESSION, Sender, TODO};
use crate::turn::Billed;
use crate::usage::Usage;
use crate::{Api, Recorder, WhyWhole};
use axum::http::{HeaderMap, HeaderName};
use bytes::{Bytes, BytesMut};
use foldback::ParkedName;
use foldback_core::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A copied answer with more bytes is not read.
const LONGEST: usize = 64 << 20;

/// A conversation as it was sent.
#[derive(Clone)]
pub(crate) struct Asked {
    /// When it was asked.
    pub(crate) at: Timestamp,
    began: Instant,
    pub(crate) api: Api,
    pub(crate) path: String,
    pub(crate) sender: Sender,
    /// The headers that say how the body is encoded, who sent it and what for. No key is among them.
    pub(crate) headers: HeaderMap,
    /// The length of the body as it came.
    bytes: usize,
    body: Arc<Mutex<AskedBody>>,
}

/// What a request says. It is read once, and kept until its answer is recorded, too.
#[derive(Default)]
struct AskedBody {
    /// As it came, until it is read.
    bytes: Bytes,
    read: Option<Box<Conversation>>,
}

impl Asked {
    pub(crate) fn new(
        at: Timestamp,
        api: Api,
        path: &str,
        headers: &HeaderMap,
        body: &Bytes,
        secret: &[u8; 32],
    ) -> Self {
        let own = ["content-encoding", "user-agent", TODO];
        let kept = own.into_iter().chain(SESSION).chain(AGENT).chain(HINTS);
        let kept = kept
            .filter_map(|name| Some((HeaderName::from_static(name), headers.get(name)?.clone())));
        let (headers, sender) = (kept.collect(), Sender::of(headers, secret));
        let bytes = body.len();
        let body = Arc::new(Mutex::new(AskedBody { bytes: body.clone(), read: None }));
        let began = Instant::now();
        Self { at, began, api, path: path.to_owned(), sender, headers, bytes, body }
    }

    /// Returns the same request, not yet read, with the body as it came.
    pub(crate) fn anew(&self, body: &Bytes) -> Self {
        let body = Arc::new(Mutex::new(AskedBody { bytes: body.clone(), read: None }));
        Self { body, ..self.clone() }
    }

    /// Returns the body as it came; empty if it was read already.
    pub(crate) fn came(&self) -> Bytes {
        self.body.lock().bytes.clone()
    }

    /// Returns the body, unpacked, as text.
    pub(crate) fn body(&self) -> Option<String> {
        String::from_utf8(unpacked(&self.headers, &self.came())?.into_owned()).ok()
    }

    /// Keeps the conversation that was read from it, for later use.
    pub(crate) fn hold(&self, read: Box<Conversation>) {
        *self.body.lock() = AskedBody { bytes: Bytes::new(), read: Some(read) };
    }

    /// Takes the conversation that was read from it.
    pub(crate) fn take(&self) -> Option<Box<Conversation>> {
        self.body.lock().read.take()
    }

    /// Returns how many bytes it has as it came.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What was sent in place of a client's body.
#[derive(Clone, Debug)]
pub(crate) struct Instead {
    /// How many bytes.
    pub(crate) bytes: usize,
    /// What the model was shown, as a number.
    pub(crate) shown: u64,
    /// What was sent of each message.
    pub(crate) laid: Arc<[Laid]>,
}

impl From<&Rewritten> for Instead {
    fn from(sent: &Rewritten) -> Self {
        Self { bytes: sent.body.len(), shown: sent.shown, laid: Arc::clone(&sent.laid) }
    }
}

/// How a request went to its provider.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Whether it was sent; a client may leave before that.
    pub(crate) is_sent: bool,
    /// What was sent in place of the client's body; `None` if that was sent.
    pub(crate) instead: Option<Instead>,
    /// Why nothing was left out, if that is not because there was nothing to leave out.
    pub(crate) whole: Option<WhyWhole>,
    /// Whether tools of the gateway were declared.
    pub(crate) has_tools: bool,
    /// The places among the client's messages at which look-ups were put back, with their names.
    pub(crate) put_back: Vec<(usize, ParkedName)>,
}

/// A request that was answered, or that its client no longer waits for.
pub(crate) struct Exchange {
    pub(crate) asked: Asked,
    pub(crate) course: Course,
    /// What each request of its turn was billed, if the gateway has played that turn.
    pub(crate) billed: Vec<Usage>,
    /// The count that its provider is asked for in addition to its answer.
    pub(crate) check: Option<Arc<Check>>,
    pub(crate) headers: HeaderMap,
    /// The time from its arrival to the end of its answer.
    pub(crate) took: Duration,
    /// `None` if it was too long. It may have broken off.
    pub(crate) answer: Option<Bytes>,
}

impl Exchange {
    /// Returns the answer, unpacked, as text.
    pub(crate) fn answer(&self) -> Option<String> {
        let body = self.answer.as_ref()?;
        String::from_utf8(unpacked(&self.headers, body)?.into_owned()).ok()
    }

    /// Returns how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.asked.bytes() + self.answer.as_ref().map_or(0, Bytes::len)
    }
}

/// A request that is being answered. What was asked is recorded even if the answer breaks off, or never begins.
pub(crate) struct Answering {
    /// `None` if it is not part of a conversation.
    pub(crate) asked: Option<Asked>,
    pub(crate) course: Course,
    /// What each request of its turn was billed, if the gateway plays that turn.
    pub(crate) billed: Billed,
    pub(crate) check: Option<Arc<Check>>,
    /// The headers of the answer.
    pub(crate) headers: HeaderMap,
    /// Whether it is recorded at its end.
    pub(crate) is_kept: bool,
    copy: Option<BytesMut>,
    recorder: Recorder,
    ending: watch::Receiver<bool>,
}

impl Answering {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self {
            asked: None,
            course: Course::default(),
            billed: Billed::default(),
            check: None,
            headers: HeaderMap::new(),
            is_kept: false,
            copy: Some(BytesMut::new()),
            ending: recorder.ending(),
            recorder,
        }
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.is_kept && self.asked.is_some()
    }

    /// Returns how much of the request was sent; `None` if all of it was.
    pub(crate) fn part_sent(&self) -> Option<String> {
        let (asked, sent) = (self.asked.as_ref()?, self.course.instead.as_ref()?);
        Some(format!("{} of {} bytes", sent.bytes, asked.bytes()))
    }

    /// Waits until the gateway ends, and records what was said so far.
    pub(crate) async fn ended(&mut self) {
        // Without a recorder it has ended, too.
        let _ = self.ending.wait_for(|is_ending| *is_ending).await;
    }

    /// Copies a piece.
    pub(crate) fn copy(&mut self, piece: &Bytes) {
        let fits = |copy: &BytesMut| copy.len() + piece.len() <= LONGEST;
        match self.copy.take_if(|copy| !fits(copy)) {
            Some(_) => {
                self.recorder.log(&format!("an answer of over {LONGEST} bytes is not recorded"));
            }
            None => self.copy.iter_mut().for_each(|copy| copy.extend_from_slice(piece)),
        }
    }
}

impl Drop for Answering {
    /// A server stops asking for pieces once the declared length is there, and a client may be gone with the last of
    /// them. Whether the copy is complete shows when it is read.
    fn drop(&mut self) {
        let Some(asked) = self.asked.take().filter(|_| self.is_kept) else { return };
        let headers = std::mem::take(&mut self.headers);
        let answer = self.copy.take().map(BytesMut::freeze);
        let course = std::mem::take(&mut self.course);
        let billed = std::mem::take(&mut *self.billed.lock());
        let check = self.check.take();
        let took = asked.began.elapsed();
        self.recorder.take(Exchange { asked, course, billed, check, headers, took, answer });
    }
}
