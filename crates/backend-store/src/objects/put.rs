//! Puts an object under a name that only this writer knows.
//!
//! Such a name is written once. A request whose outcome is unknown may therefore be sent again: the object that it then
//! finds is its own.

use super::client::Client;
use super::trouble::{is_uncertain, knows_no_condition};
use crate::Error;
use object_store::path::Path;
use object_store::{Error as StoreError, PutMode, PutPayload};
use std::io;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a put is sent whose outcome is unknown.
const TRIES: u32 = 3;

/// No try begins later than this after the first.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before the second try. It grows with each.
const PAUSE: Duration = Duration::from_millis(200);

impl Client {
    /// Puts an object under a name that only this writer knows. Returns what the service calls its bytes.
    pub(super) fn put_new(&self, path: &Path, bytes: PutPayload) -> Result<Option<String>, Error> {
        let size = bytes.content_length() as u64;
        let begun = Instant::now();
        let mut tries = 1;
        loop {
            let has_condition = !self.knows_no_condition.load(Ordering::Relaxed);
            let mode = if has_condition { PutMode::Create } else { PutMode::Overwrite };
            let error = match self.wait("write", path, self.put(path, bytes.clone(), mode))? {
                Ok(put) => return Ok(put.e_tag),
                Err(error) => error,
            };
            // Nobody else knows the name, so the condition can be left out.
            if has_condition && knows_no_condition(&error) {
                self.knows_no_condition.store(true, Ordering::Relaxed);
                continue;
            }
            let is_there = matches!(error, StoreError::AlreadyExists { .. });
            if is_there && let Some(tag) = self.own(path, size)? {
                return Ok(tag);
            }
            let may_be_done = is_there || is_uncertain(&error);
            if !may_be_done || tries == TRIES || begun.elapsed() > PATIENCE {
                return Err(self.failed("write", path, self.told(&error)));
            }
            sleep(PAUSE * tries);
            tries += 1;
        }
    }

    /// Returns what the service calls the bytes of an object whose name only this writer knows, if it is there: the
    /// answer to the request that put it was lost.
    ///
    /// # Errors
    /// When there is an object of another size, and when the service fails.
    pub(super) fn own(&self, path: &Path, size: u64) -> Result<Option<Option<String>>, Error> {
        match self.head(path)? {
            Some(found) if found.size == size => Ok(Some(found.e_tag)),
            Some(found) => {
                let what = format!("an object of {} bytes is there, and not of {size}", found.size);
                let error = io::Error::new(io::ErrorKind::AlreadyExists, what);
                Err(self.failed("write", path, error))
            }
            None => Ok(None),
        }
    }
}
