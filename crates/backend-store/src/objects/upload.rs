//! An upload in parts, which is noted so that a dead writer's parts are found and removed.

use super::UPLOAD_LIMIT;
use super::client::Client;
use super::draft::PART;
use super::object_name::{note_name, random};
use super::request_thread::Sent;
use crate::Error;
use crate::payload_files::FileName;
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{Error as StoreError, PutPayload};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Instant;

/// How many parts are under way at once. Each is held in memory.
const AT_ONCE: usize = 2;

/// The most parts that every service takes.
const MOST_PARTS: u64 = 10_000;

/// What a note says: which upload it is, so that it can be ended.
#[derive(Serialize, Deserialize)]
struct UploadNote {
    object: String,
    upload: String,
}

impl Client {
    /// Puts a large file under a name that only this writer knows. Returns what the service calls its bytes.
    ///
    /// The object appears when all parts are there, or never.
    pub(super) fn upload(
        &self,
        name: &FileName,
        file: File,
        size: u64,
    ) -> Result<Option<String>, Error> {
        let path = self.path(name);
        let begun = Instant::now();
        let (store, at) = (self.store(), path.clone());
        let begin = self.send(async move { store.create_multipart(&at).await });
        let id = self.finish("begin an upload to", &path, begin)?;
        let note = match self.note(name.todo, &path, &id) {
            Ok(note) => note,
            Err(error) => {
                // It has no part yet.
                drop(self.abort(&path, &id));
                return Err(error);
            }
        };
        let done = Upload { client: self, path: &path, id: &id, begun }.put(file, size);
        // If ending it fails too, the note stays, and a sweep ends the upload.
        if done.is_ok() || matches!(self.abort(&path, &id), Ok(Ok(()))) {
            drop(self.delete(vec![note]));
        }
        done
    }

    /// Notes an upload before its first part is put. Returns the note's path.
    pub(super) fn note(&self, todo: u32, path: &Path, id: &str) -> Result<Path, Error> {
        let failed = |error: io::Error| self.failed("note the upload to", path, error);
        let at = self.below(todo, &note_name(&random().map_err(failed)?));
        let note = UploadNote { object: path.to_string(), upload: id.to_owned() };
        let note = serde_json::to_vec(&note).map_err(|error| failed(error.into()))?;
        self.put_over(&at, note.into())?;
        Ok(at)
    }

    /// Ends the upload that a note is about. One that is already complete or ended is not an error.
    pub(super) fn end_upload(&self, todo: u32, note: &Path) -> Result<(), Error> {
        let Some(bytes) = self.whole(note)? else { return Ok(()) };
        // A note that is not ours ends no upload.
        let Ok(UploadNote { object, upload }) = serde_json::from_slice(&bytes) else {
            return Ok(());
        };
        let path = Path::from(object);
        if !path.prefix_matches(&self.todo(todo)) {
            return Ok(());
        }
        match self.abort(&path, &upload)? {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => match self.head(&path)? {
                // It is complete, and its parts are no longer parts.
                Some(_) => Ok(()),
                None => Err(self.failed("end the upload to", &path, self.told(&error))),
            },
        }
    }

    fn abort(&self, path: &Path, id: &str) -> Result<Result<(), StoreError>, Error> {
        let (store, at, id) = (self.store(), path.clone(), id.to_owned());
        let sent = self.send(async move { store.abort_multipart(&at, &id).await });
        self.wait("end the upload to", path, sent)
    }
}

type SentPart = Sent<Result<PartId, StoreError>>;

/// An upload that is under way.
struct Upload<'a> {
    client: &'a Client,
    path: &'a Path,
    id: &'a String,
    begun: Instant,
}

impl Upload<'_> {
    fn put(&self, file: File, size: u64) -> Result<Option<String>, Error> {
        let mut under_way = VecDeque::new();
        let done = match self.put_parts(file, size, &mut under_way) {
            Ok(done) => done,
            Err(error) => {
                // A part that arrived after the end of its upload would stay.
                under_way.into_iter().for_each(|sent| drop(sent.wait()));
                return Err(error);
            }
        };
        let (store, path, id) = (self.client.store(), self.path.clone(), self.id.clone());
        let sent =
            self.client.send(async move { store.complete_multipart(&path, &id, done).await });
        match self.client.finish("complete the upload to", self.path, sent) {
            Ok(put) => Ok(put.e_tag),
            // It may be complete all the same: then the answer was lost.
            Err(error) => match self.client.own(self.path, size) {
                Ok(Some(tag)) => Ok(tag),
                _ => Err(error),
            },
        }
    }

    fn put_parts(
        &self,
        mut file: File,
        size: u64,
        under_way: &mut VecDeque<SentPart>,
    ) -> Result<Vec<PartId>, Error> {
        let part = size.div_ceil(MOST_PARTS).max(PART as u64);
        let mut done = Vec::new();
        let mut left = size;
        let mut number = 0;
        while left > 0 || !under_way.is_empty() {
            self.check_time()?;
            if left == 0 || under_way.len() == AT_ONCE {
                let Some(oldest) = under_way.pop_front() else { break };
                done.push(self.client.finish("write a part of", self.path, oldest)?);
                continue;
            }
            let mut bytes = vec![0; usize::try_from(part.min(left)).unwrap_or(PART)];
            let read = file.read_exact(&mut bytes);
            read.map_err(|error| self.client.failed("read what goes to", self.path, error))?;
            left -= bytes.len() as u64;
            under_way.push_back(self.send_part(number, bytes));
            number += 1;
        }
        Ok(done)
    }

    fn send_part(&self, number: usize, bytes: Vec<u8>) -> SentPart {
        let (store, path, id) = (self.client.store(), self.path.clone(), self.id.clone());
        let bytes = PutPayload::from(bytes);
        self.client.send(async move { store.put_part(&path, &id, number, bytes).await })
    }

    /// Gives up before a sweep could take the upload for that of a dead writer.
    fn check_time(&self) -> Result<(), Error> {
        if self.begun.elapsed() < UPLOAD_LIMIT {
            return Ok(());
        }
        let what = format!("it took more than {} hours", UPLOAD_LIMIT.as_secs() / 3600);
        let error = io::Error::new(io::ErrorKind::TimedOut, what);
        Err(self.client.failed("complete the upload to", self.path, error))
    }
}
