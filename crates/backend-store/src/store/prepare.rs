//! Prepares bytes to be committed.

use super::packed::pack;
use super::{BackendStore, name_of};
use crate::file::format::CHUNK;
use crate::file::reader::Reader;
use crate::file::writer::{Writer, Written};
use crate::payload_files::{CopyId, Draft, Sealed, Stored};
use crate::sniff::Sniffer;
use crate::{Error, Fault, Meta, Pending, Prepared};
use foldback_core::Check;
use foldback_kv::{Key, Space, Todo};
use std::io;
use std::io::Read;

impl BackendStore {
    /// Prepares bytes to be committed: known ones become the payload that the todo already has, new
    /// ones get the next number. Large ones are in a durable file when this returns; nothing is
    /// committed. Known bytes whose stored form is missing or visibly damaged are stored again
    /// under their number.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Io`] and errors of the transactional store; then nothing was prepared.
    pub fn prepare(&self, pending: &mut Pending, bytes: &[u8]) -> Result<Prepared, Error> {
        self.check_size(bytes.len() as u64)?;
        let hash = *blake3::hash(bytes).as_bytes();
        if let Some(meta) = self.known(pending, &hash)? {
            return Ok(Prepared { meta, new: false });
        }
        let mut sniffer = Sniffer::new();
        sniffer.push(bytes);
        let Some(files) = self.files.as_ref().filter(|_| bytes.len() > self.config.inline_max)
        else {
            return self.keep_record(pending, hash, &sniffer, bytes);
        };
        let sealing = self.sealing(pending.todo.no())?;
        let draft = files.draft(pending.todo.no())?;
        let address = draft.address();
        let (draft, written) = Writer::new(draft, self.config.level, sealing)
            .and_then(|mut writer| {
                writer.push(bytes)?;
                writer.finish()
            })
            .map_err(|error| Error::io("write", address, error))?;
        self.keep_file(pending, draft, written, &sniffer)
    }

    /// Like [`prepare`](Self::prepare), for bytes that may not fit into memory: with a folder for
    /// files, this takes a few megabytes, whatever the size; with an object store, some 30.
    ///
    /// # Errors
    /// Like [`prepare`](Self::prepare), and [`Error::Stream`] when `reader` fails.
    pub fn prepare_stream(
        &self,
        pending: &mut Pending,
        mut reader: impl Read,
    ) -> Result<Prepared, Error> {
        let read_error = |source| Error::Stream { doing: "read", source };
        let Some(files) = &self.files else {
            let most = self.most();
            let mut bytes = Vec::new();
            reader.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(read_error)?;
            return self.prepare(pending, &bytes);
        };
        let mut first = Vec::new();
        let inline = self.config.inline_max as u64;
        reader.by_ref().take(inline + 1).read_to_end(&mut first).map_err(read_error)?;
        if first.len() as u64 <= inline {
            return self.prepare(pending, &first);
        }

        let sealing = self.sealing(pending.todo.no())?;
        let draft = files.draft(pending.todo.no())?;
        let address = draft.address();
        let write_error = |error| Error::io("write", &address, error);
        let mut sniffer = Sniffer::new();
        let mut writer = Writer::new(draft, self.config.level, sealing).map_err(write_error)?;
        sniffer.push(&first);
        writer.push(&first).map_err(write_error)?;
        let mut size = first.len() as u64;
        let mut buffer = first;
        buffer.resize(CHUNK, 0);
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(read_error(error)),
            };
            let bytes = buffer.get(..count).unwrap_or(&buffer);
            size += bytes.len() as u64;
            self.check_size(size)?;
            sniffer.push(bytes);
            writer.push(bytes).map_err(write_error)?;
        }
        let (draft, written) = writer.finish().map_err(write_error)?;
        if let Some(meta) = self.known(pending, &written.hash)? {
            return Ok(Prepared { meta, new: false });
        }
        self.keep_file(pending, draft, written, &sniffer)
    }

    /// Prepares the payload `n` of the same todo in another store, with its number and its description. Its bytes are
    /// kept as this store keeps payloads of their size. Prepare them in ascending order of their numbers.
    ///
    /// # Errors
    /// Like [`prepare`](Self::prepare), and those of [`get`](Self::get) for `source`.
    pub fn prepare_copy(&self, pending: &mut Pending, source: &Self, n: u64) -> Result<(), Error> {
        let todo = pending.todo.clone();
        let meta = source.meta(&todo, n)?;
        self.check_size(meta.bytes)?;
        let is_large = meta.bytes > self.config.inline_max as u64;
        let body = match self.files.as_ref().filter(|_| is_large) {
            None => NewBody::Record(pack(&source.get(&todo, n)?, self.config.level)),
            Some(files) => {
                let draft = files.draft(todo.no())?;
                let address = draft.address();
                let write_error = |error| Error::io("write", &address, error);
                let sealing = self.sealing(todo.no())?;
                let mut writer =
                    Writer::new(draft, self.config.level, sealing).map_err(write_error)?;
                source.write_to(&todo, n, &mut writer)?;
                let (draft, written) = writer.finish().map_err(write_error)?;
                NewBody::File(self.put_file(&todo, draft, written)?)
            }
        };
        let StoredForm { bytes: stored, seal, copy } = body.stored();
        self.put(pending, &Meta { stored, seal, copy, ..meta }, body)?;
        pending.next_n = pending.next_n.max(n + 1);
        Ok(())
    }

    /// Returns the payload of these bytes, if the todo has it and it can still be read.
    fn known(&self, pending: &mut Pending, hash: &[u8; 32]) -> Result<Option<Meta>, Error> {
        if let Some(meta) = pending.by_hash.get(hash) {
            return Ok(Some(meta.clone()));
        }
        let Some(meta) = self.committed(pending, hash)? else { return Ok(None) };
        // Reads only the table of a file, which shows whether it is missing or was replaced.
        let sound = match self.body(&pending.todo, &meta) {
            Ok(_) => true,
            Err(Error::Corrupt { .. } | Error::Refused { .. }) => false,
            Err(error) => return Err(error),
        };
        Ok(sound.then_some(meta))
    }

    /// Looks these bytes up in the todo's records.
    fn committed(&self, pending: &Pending, hash: &[u8; 32]) -> Result<Option<Meta>, Error> {
        for n in self.bucket(pending, hash)? {
            match self.find(&pending.todo, n) {
                Ok(Some(meta)) if meta.hash == *hash => return Ok(Some(meta)),
                // Numbers of this commit are looked up by their whole hash, and a damaged record is
                // no reason not to store the bytes again.
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns the numbers that share a hash key with these bytes.
    fn bucket(&self, pending: &Pending, hash: &[u8; 32]) -> Result<Vec<u64>, Error> {
        let key = self.hash_key(&pending.todo, hash)?;
        if let Some(numbers) = pending.buckets.get(&key.n) {
            return Ok(numbers.clone());
        }
        match self.kv.get(key) {
            Ok(value) => {
                let value = value.unwrap_or_default();
                Ok(rmp_serde::from_slice(&value).unwrap_or_default())
            }
            // The only cost is that equal bytes may be stored twice.
            Err(foldback_kv::Error::Corrupt { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn keep(
        &self,
        pending: &mut Pending,
        sniffer: &Sniffer,
        hash: [u8; 32],
        bytes: u64,
        body: NewBody,
    ) -> Result<Prepared, Error> {
        // Known bytes reach this point when they must be stored again, and keep their number.
        let known = self.committed(pending, &hash)?.map(|meta| (meta.n, meta.origin));
        let (n, origin) = known.unwrap_or((pending.next_n, pending.origin));
        let stored = body.stored();
        let meta = Meta {
            n,
            check: Check::of_hash(&blake3::Hash::from_bytes(hash)),
            hash,
            kind: sniffer.kind(),
            bytes,
            lines: sniffer.lines(),
            stored: stored.bytes,
            origin,
            seal: stored.seal,
            copy: stored.copy,
        };
        self.put(pending, &meta, body)?;
        if known.is_none() {
            pending.next_n += 1;
        }
        Ok(Prepared { meta, new: known.is_none() })
    }

    /// Adds the records of a payload to a commit.
    fn put(&self, pending: &mut Pending, meta: &Meta, body: NewBody) -> Result<(), Error> {
        let (n, todo) = (meta.n, pending.todo.no());
        let record = meta.write().map_err(|fault| fault.of(n, "record"))?;
        let key = self.hash_key(&pending.todo, &meta.hash)?;
        let mut numbers = self.bucket(pending, &meta.hash)?;
        if !numbers.contains(&n) {
            numbers.push(n);
        }
        let bucket = rmp_serde::to_vec(&numbers).map_err(|error| Error::Corrupt {
            n,
            what: format!("its hash record cannot be written: {error}"),
        })?;
        pending.puts.insert(key, bucket);
        pending.puts.insert(Key { space: Space::Payload, todo, n }, record);
        if let NewBody::Record(value) = body {
            pending.puts.insert(Key { space: Space::PayloadBytes, todo, n }, value);
        }
        pending.buckets.insert(key.n, numbers);
        pending.by_hash.insert(meta.hash, meta.clone());
        Ok(())
    }

    fn keep_record(
        &self,
        pending: &mut Pending,
        hash: [u8; 32],
        sniffer: &Sniffer,
        bytes: &[u8],
    ) -> Result<Prepared, Error> {
        let body = NewBody::Record(pack(bytes, self.config.level));
        self.keep(pending, sniffer, hash, bytes.len() as u64, body)
    }

    fn keep_file(
        &self,
        pending: &mut Pending,
        draft: Box<dyn Draft + '_>,
        written: Written,
        sniffer: &Sniffer,
    ) -> Result<Prepared, Error> {
        let (hash, bytes) = (written.hash, written.bytes);
        let file = self.put_file(&pending.todo, draft, written)?;
        self.keep(pending, sniffer, hash, bytes, NewBody::File(file))
    }

    /// Gives a complete file its name, unless there is a good one of its bytes.
    fn put_file(
        &self,
        todo: &Todo,
        draft: Box<dyn Draft + '_>,
        written: Written,
    ) -> Result<Stored, Error> {
        let Written { hash, seal, bytes, stored } = written;
        let sealing = self.sealing(todo.no())?;
        let name = name_of(sealing.as_ref(), &hash);
        let mut good = |file| {
            let mut reader = Reader::open(file, &hash, bytes, None, sealing.clone()).ok()?;
            reader.whole(|_| Ok::<(), Fault>(())).ok()?;
            Some(reader.sealed())
        };
        draft.put_if_absent(&name, Sealed { seal, stored }, &mut good)
    }

    /// Returns the key of the record with the numbers of the payloads whose hashes begin alike.
    fn hash_key(&self, todo: &Todo, hash: &[u8; 32]) -> Result<Key, Error> {
        let [a, b, c, d, ..] = name_of(self.sealing(todo.no())?.as_ref(), hash);
        let n = u64::from(u32::from_le_bytes([a, b, c, d]));
        Ok(Key { space: Space::PayloadHash, todo: todo.no(), n })
    }
}

/// Where the bytes of a new payload are.
enum NewBody {
    /// In a record with this value.
    Record(Vec<u8>),
    /// In a file that is durable already.
    File(Stored),
}

impl NewBody {
    /// Returns what the description of the payload says about its stored form.
    fn stored(&self) -> StoredForm {
        match self {
            Self::Record(value) => StoredForm { bytes: value.len() as u64, seal: None, copy: None },
            Self::File(Stored { sealed, copy }) => {
                StoredForm { bytes: sealed.stored, seal: Some(sealed.seal), copy: *copy }
            }
        }
    }
}

/// The parts of a payload's description that depend on how its bytes are stored.
struct StoredForm {
    bytes: u64,
    seal: Option<[u8; 32]>,
    copy: Option<CopyId>,
}
