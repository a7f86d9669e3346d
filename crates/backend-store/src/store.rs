//! The store of payloads.

mod packed;
mod prepare;

use crate::body::Body;
use crate::error::{NO_BYTES, NO_FILE};
use crate::excerpt::{self, Failure, Matching};
use crate::file::reader::Reader;
use crate::file::sealing::Sealing;
use crate::folder::Folder;
use crate::payload_files::{FileName, PayloadFiles};
use crate::place_note::PlaceNote;
use crate::place_of_store::files_of;
use crate::{BackendConfig, Error, Excerpt, Fault, Meta, PayloadPlace, Pending, Position};
use foldback_core::PayloadRef;
use foldback_kv::{Key, Kv, Mode, Space, Todo};
use packed::unpack;
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The payloads of all todos of one store. Nothing is read or written without a [`Todo`], and no
/// two todos share anything.
///
/// Any number of threads and processes may use one store at once.
pub struct BackendStore {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) files: Option<Box<dyn PayloadFiles>>,
    /// Whether the store had a place for its large payloads when it was opened.
    has_place: bool,
    config: BackendConfig,
}

impl BackendStore {
    /// Opens the payloads of this store. Large ones become files in the folder `files`, which is
    /// created with the first of them; without a folder all of them are kept in `kv`.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid setting.
    pub fn open(
        kv: Arc<dyn Kv>,
        files: Option<PathBuf>,
        config: BackendConfig,
    ) -> Result<Self, Error> {
        let config = config.check()?;
        let files = files.map(|root| Box::new(Folder::new(root)) as Box<dyn PayloadFiles>);
        Ok(Self { kv, files, has_place: false, config })
    }

    /// Opens the payloads of this store, whose large ones become files in `folder` or, if one is named, at `place`. A
    /// store that is written for the first time with a place notes it in its records; from then on it opens with that
    /// place alone.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid setting, and when the place is not the one at which the store's payloads are;
    /// [`Error::Io`] when a new place cannot be written.
    pub fn open_at(
        kv: Arc<dyn Kv>,
        folder: PathBuf,
        place: Option<&PayloadPlace>,
        mode: Mode,
        config: BackendConfig,
    ) -> Result<Self, Error> {
        let config = config.check()?;
        let note = PlaceNote::read(kv.as_ref())?;
        let has_place = note.is_some() || (place.is_some() && mode == Mode::ReadWrite);
        let files = files_of(kv.as_ref(), note, folder, place, mode)?;
        Ok(Self { kv, files: Some(files), has_place, config })
    }

    /// Opens payloads whose files are here.
    #[cfg(all(test, feature = "objects-cloud"))]
    pub(crate) fn with_files(
        kv: Arc<dyn Kv>,
        files: Box<dyn PayloadFiles>,
        config: BackendConfig,
    ) -> Self {
        Self { kv, files: Some(files), has_place: true, config }
    }

    /// Begins a commit that may add payloads. The todo's next payload number is read here, so the
    /// batch must expect the todo's head as it was **before** this call.
    ///
    /// # Errors
    /// When the store fails.
    pub fn begin(&self, todo: &Todo) -> Result<Pending, Error> {
        Ok(Pending::new(todo, self.last(todo)? + 1))
    }

    /// Returns the description of the payload with this number.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Corrupt`] when its record is damaged.
    pub fn meta(&self, todo: &Todo, n: u64) -> Result<Meta, Error> {
        self.find(todo, n)?.ok_or_else(|| Error::NotFound { reference: format!("payload {n}") })
    }

    /// Returns up to `limit` payloads with numbers above `after`, ascending. One whose record is
    /// damaged is left out; [`verify`](Self::verify) reports it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn metas(&self, todo: &Todo, after: u64, limit: usize) -> Result<Vec<Meta>, Error> {
        let mut metas = Vec::new();
        let mut from = after.saturating_add(1);
        while metas.len() < limit {
            match self.kv.scan(Space::Payload, todo.no(), from..Key::N_END, limit - metas.len()) {
                Ok(found) => {
                    let Some((last, _)) = found.last() else { break };
                    from = last + 1;
                    metas.extend(found.iter().filter_map(|(n, value)| Meta::read(*n, value).ok()));
                }
                Err(foldback_kv::Error::Corrupt { key, .. }) if key.n >= from => {
                    let most = limit - metas.len();
                    let found = self.kv.scan(Space::Payload, todo.no(), from..key.n, most)?;
                    metas.extend(found.iter().filter_map(|(n, value)| Meta::read(*n, value).ok()));
                    from = match found.last() {
                        Some((last, _)) if found.len() == most => last + 1,
                        _ => key.n + 1,
                    };
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(metas)
    }

    /// Returns the payloads with these numbers, ascending, which are read at once. One that does not exist or whose record
    /// is damaged is left out.
    ///
    /// # Errors
    /// When the store fails.
    pub fn metas_of(
        &self,
        todo: &Todo,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Meta>, Error> {
        let numbers: BTreeSet<u64> = numbers.into_iter().collect();
        let numbers: Vec<u64> = numbers.range(1..Key::N_END).copied().collect();
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        match self.kv.get_each(Space::Payload, todo.no(), &numbers) {
            Ok(found) => {
                let found = numbers.into_iter().zip(found);
                Ok(found.filter_map(|(n, value)| Meta::read(n, &value?).ok()).collect())
            }
            // It names only one of those that are damaged.
            Err(foldback_kv::Error::Corrupt { .. }) => {
                let each = numbers.into_iter().map(|n| self.find(todo, n));
                let each = each.filter(|found| !matches!(found, Err(Error::Corrupt { .. })));
                each.filter_map(Result::transpose).collect()
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns all bytes of a payload.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Corrupt`] when the stored bytes are not those that were prepared.
    pub fn get(&self, todo: &Todo, n: u64) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.write_to(todo, n, &mut out)?;
        Ok(out)
    }

    /// Returns the bytes of a range, reading no more of the payload than necessary.
    ///
    /// # Errors
    /// [`Error::BadRange`] when the range is backward or ends beyond the payload, and the errors of
    /// [`get`](Self::get).
    pub fn read_range(&self, todo: &Todo, n: u64, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let meta = self.meta(todo, n)?;
        if range.start > range.end || range.end > meta.bytes {
            return Err(Error::BadRange {
                asked: format!("bytes {} to {}", range.start, range.end),
                has: format!("{} bytes", meta.bytes),
            });
        }
        let mut body = self.body(todo, &meta)?;
        body.range(range).map_err(|fault| self.blame(todo, &meta, fault))
    }

    /// Writes a payload to `out`, each part after it was checked, and returns the number of bytes.
    /// This takes a few megabytes of memory, whatever the size.
    ///
    /// # Errors
    /// [`Error::Stream`] when `out` fails, and the errors of [`get`](Self::get). When damage is
    /// found in a later part, the parts before it are already written.
    pub fn write_to(&self, todo: &Todo, n: u64, mut out: impl Write) -> Result<u64, Error> {
        let meta = self.meta(todo, n)?;
        let write_error = |source| Error::Stream { doing: "write", source };
        match self.body(todo, &meta)? {
            Body::Record(bytes) => out.write_all(&bytes).map_err(write_error)?,
            Body::File(mut reader) => reader
                .whole(|part| out.write_all(part).map_err(|error| Trouble::Out(write_error(error))))
                .map_err(|trouble| match trouble {
                    Trouble::Out(error) => error,
                    Trouble::Fault(fault) => self.blame(todo, &meta, fault),
                })?,
        }
        Ok(meta.bytes)
    }

    /// Returns the payload that a reference names, as seen from inside `todo`.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a number that does not exist and for any reference into another
    /// todo, whether that exists or not, with the same text; [`Error::WrongCheck`] when the number
    /// exists in this todo but the check differs.
    pub fn resolve(&self, todo: &Todo, reference: &PayloadRef) -> Result<Meta, Error> {
        let not_found = || Error::NotFound { reference: reference.to_string() };
        if reference.todo.as_ref().is_some_and(|named| named != todo.id()) {
            return Err(not_found());
        }
        let meta = self.find(todo, reference.n)?.ok_or_else(not_found)?;
        if meta.check == reference.check {
            Ok(meta)
        } else {
            Err(Error::WrongCheck { reference: reference.clone(), meant: meta.reference() })
        }
    }

    /// Returns the lines from `first` to `last`, counted from 1, as far as `budget_tokens` go; the
    /// rest follows from the excerpt's `next`. A `last` beyond the end means the end. The joined
    /// runs of successive excerpts are the payload's bytes.
    ///
    /// # Errors
    /// [`Error::BadRange`] when there is no line `first` or `last` comes before it, and the errors
    /// of [`get`](Self::get).
    pub fn lines(
        &self,
        todo: &Todo,
        n: u64,
        first: impl Into<Position>,
        last: u64,
        budget_tokens: usize,
    ) -> Result<Excerpt, Error> {
        let meta = self.meta(todo, n)?;
        let mut body = self.body(todo, &meta)?;
        excerpt::lines(&meta, &mut body, first.into(), last, budget_tokens)
            .map_err(|failure| self.failed(todo, &meta, failure))
    }

    /// Returns the lines that a regular expression matches, from `from` on, with up to 100 lines of context around
    /// each, as far as `budget_tokens` go; the rest follows from the excerpt's `next`.
    ///
    /// The pattern is matched line by line, without the line's end. A line of more than 64 KiB is
    /// cut into parts of that size, each of which is matched separately; of any line over 2 KiB
    /// only the part around the match is shown.
    ///
    /// # Errors
    /// [`Error::BadPattern`], [`Error::BadRange`] when there is no line `from`, and the errors of
    /// [`get`](Self::get).
    pub fn matching(
        &self,
        todo: &Todo,
        n: u64,
        pattern: &str,
        context_lines: usize,
        budget_tokens: usize,
        from: impl Into<Position>,
    ) -> Result<Excerpt, Error> {
        let matching = Matching::new(pattern, context_lines)?;
        let meta = self.meta(todo, n)?;
        let mut body = self.body(todo, &meta)?;
        matching
            .search(&meta, &mut body, from.into(), budget_tokens)
            .map_err(|failure| self.failed(todo, &meta, failure))
    }

    fn find(&self, todo: &Todo, n: u64) -> Result<Option<Meta>, Error> {
        if n == 0 || n >= Key::N_END {
            return Ok(None);
        }
        let value = self.record(Key { space: Space::Payload, todo: todo.no(), n })?;
        value.map(|value| Meta::read(n, &value).map_err(|fault| fault.of(n, "record"))).transpose()
    }

    /// Returns a record of one payload; damage to it is damage to that payload.
    fn record(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.kv.get(key).map_err(|error| match error {
            foldback_kv::Error::Corrupt { .. } => {
                Error::Corrupt { n: key.n, what: error.to_string() }
            }
            error => error.into(),
        })
    }

    /// Returns the greatest number that the todo has given to a payload; 0 for none.
    ///
    /// # Errors
    /// When the store fails.
    pub fn last(&self, todo: &Todo) -> Result<u64, Error> {
        match self.kv.last(Space::Payload, todo.no()) {
            Ok(last) => Ok(last.map_or(0, |(n, _)| n)),
            Err(foldback_kv::Error::Corrupt { key, .. }) => Ok(key.n),
            Err(error) => Err(error.into()),
        }
    }

    fn body(&self, todo: &Todo, meta: &Meta) -> Result<Body, Error> {
        let gone = |what: &str| Error::Corrupt { n: meta.n, what: what.to_owned() };
        if let Some(seal) = &meta.seal {
            let files = self.files.as_ref().ok_or_else(|| {
                gone("it is a file, and the store was opened without a folder for files")
            })?;
            let sealing = self.sealing(todo.no())?;
            let name = file_name(todo.no(), sealing.as_ref(), meta);
            let Some(file) = files.open(&name)? else {
                if !self.has_place && PlaceNote::read(self.kv.as_ref())?.is_some() {
                    let what = "the store was given a place for its large payloads after it was opened here; open it again";
                    return Err(Error::Config { what: what.to_owned() });
                }
                return Err(gone(NO_FILE));
            };
            return Reader::open(file, &meta.hash, meta.bytes, Some(seal), sealing)
                .map(|reader| Body::File(Box::new(reader)))
                .map_err(|fault| self.blame(todo, meta, fault));
        }
        let key = Key { space: Space::PayloadBytes, todo: todo.no(), n: meta.n };
        let value = self.record(key)?.ok_or_else(|| gone(NO_BYTES))?;
        unpack(value, meta).map(Body::Record).map_err(|fault| self.blame(todo, meta, fault))
    }

    fn blame(&self, todo: &Todo, meta: &Meta, fault: Fault) -> Error {
        let sealing = self.sealing(todo.no()).ok().flatten();
        let name = file_name(todo.no(), sealing.as_ref(), meta);
        let address = self.files.as_ref().map(|files| files.address(&name));
        fault.of(meta.n, address.unwrap_or_default())
    }

    fn failed(&self, todo: &Todo, meta: &Meta, failure: Failure) -> Error {
        match failure {
            Failure::Fault(fault) => self.blame(todo, meta, fault),
            Failure::Range { asked, line } => Error::BadRange {
                asked,
                has: match (line, meta.lines) {
                    (Some((line, bytes)), _) => format!("{bytes} bytes in line {line}"),
                    (None, 1) => "1 line".to_owned(),
                    (None, lines) => format!("{lines} lines"),
                },
            },
        }
    }

    /// Returns what seals the todo's files, if the store is encrypted.
    pub(crate) fn sealing(&self, todo: u32) -> Result<Option<Sealing>, Error> {
        Ok(self.kv.cipher(todo)?.map(|cipher| Sealing::new(cipher, todo)))
    }

    /// Returns the maximum size of a payload.
    fn most(&self) -> u64 {
        // One byte of a record says how the rest is packed.
        let record = foldback_kv::MAX_VALUE_BYTES as u64 - 1;
        if self.files.is_some() { self.config.max_bytes } else { self.config.max_bytes.min(record) }
    }

    fn check_size(&self, bytes: u64) -> Result<(), Error> {
        let most = self.most();
        if bytes > most { Err(Error::TooLarge { bytes, most }) } else { Ok(()) }
    }
}

/// Returns the name of a payload's file.
pub(crate) fn file_name(todo: u32, sealing: Option<&Sealing>, meta: &Meta) -> FileName {
    FileName { todo, hash: name_of(sealing, &meta.hash), copy: meta.copy }
}

/// Returns the bytes by which the file of a payload with this hash is named.
pub(crate) fn name_of(sealing: Option<&Sealing>, hash: &[u8; 32]) -> [u8; 32] {
    sealing.map_or(*hash, |sealing| sealing.name(hash))
}

/// Why a payload could not be transferred.
enum Trouble {
    Out(Error),
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// How many records are read at once.
pub(crate) const PAGE: usize = 1000;
