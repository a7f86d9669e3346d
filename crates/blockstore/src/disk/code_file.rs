//! The file of vectors with one byte per number: written in chunks that only grow at the end, and
//! mapped into memory to be read.
//!
//! ```text
//! chunk   "fbcodes3", the length of the body, its checksum (8 bytes each), the body
//! body    the length of its head (4 bytes), the head (MessagePack: which blocks, and the rows of
//!         each model), then for each model the columns of its rows, and their codes
//! ```

use super::Damage;
use super::codes::{CodeGroup, Codes, Columns, error_of};
use super::sealing::Sealing;
use crate::block_doc::{BlockDoc, DocVectors};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tantivy::directory::{Directory, MmapDirectory, OwnedBytes};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"fbcodes3";
const CHUNK_HEAD: usize = 24;

/// Rows to be written.
#[derive(Debug, Default)]
pub(crate) struct NewCodes {
    groups: Vec<NewGroup>,
}

/// The new rows of one model.
#[derive(Debug)]
struct NewGroup {
    model_id: String,
    dim: usize,
    columns: Columns,
    /// Row after row, each `dim` long.
    codes: Vec<u8>,
}

/// The description of a chunk.
#[derive(Serialize, Deserialize)]
struct ChunkHead {
    first_block: u32,
    last_block: u32,
    groups: Vec<GroupHead>,
}

#[derive(Serialize, Deserialize)]
struct GroupHead {
    model_id: String,
    dim: usize,
    rows: usize,
}

impl NewCodes {
    /// Adds the vectors of the next block.
    pub(crate) fn push(&mut self, doc: &BlockDoc) {
        for vectors in &doc.vectors {
            self.group_of(&vectors.model_id, vectors.dim).push(doc.n, vectors);
        }
    }

    fn group_of(&mut self, model_id: &str, dim: usize) -> &mut NewGroup {
        let same = |g: &NewGroup| g.model_id == model_id && g.dim == dim;
        let place = self.groups.iter().position(same).unwrap_or_else(|| {
            let (columns, codes) = (Columns::default(), Vec::new());
            self.groups.push(NewGroup { model_id: model_id.to_owned(), dim, columns, codes });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Returns whether `codes` holds these rows and no others.
    pub(crate) fn are(&self, codes: &Codes) -> bool {
        let same = |(new, read): (&NewGroup, &CodeGroup)| {
            let mut rows = new.codes.chunks_exact(new.dim.max(1)).enumerate();
            (new.model_id.as_str(), new.dim) == (read.model_id.as_str(), read.dim)
                && new.columns == read.columns
                && rows.all(|(row, codes)| codes == read.codes(row))
        };
        let read = codes.groups();
        self.groups.len() == read.len() && self.groups.iter().zip(read).all(same)
    }

    /// Appends these rows, of blocks `first` to `last`, to the file after its first `at` bytes,
    /// makes them durable, and returns the file's new length.
    pub(crate) fn append_to(
        self,
        path: &Path,
        at: u64,
        (first_block, last_block): (u32, u32),
        sealing: Option<&Sealing>,
    ) -> std::io::Result<u64> {
        let groups = self.groups.iter().map(|group| {
            let (model_id, dim, rows) = (group.model_id.clone(), group.dim, group.columns.len());
            GroupHead { model_id, dim, rows }
        });
        let head = ChunkHead { first_block, last_block, groups: groups.collect() };
        let head = rmp_serde::to_vec(&head).map_err(std::io::Error::other)?;
        let mut body = (head.len() as u32).to_le_bytes().to_vec();
        body.extend_from_slice(&head);
        for group in &self.groups {
            group.columns.write(&mut body);
            body.extend_from_slice(&group.codes);
        }
        if let Some(sealing) = sealing {
            body = sealing.seal(&at, &body)?;
        }
        let mut head = [0u8; CHUNK_HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        head[16..].copy_from_slice(&xxh3_64(&body).to_le_bytes());
        let mut file = open_at(path, at)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&head)?;
        file.write_all(&body)?;
        file.sync_all()?;
        Ok(at + (CHUNK_HEAD + body.len()) as u64)
    }
}

/// Opens the file to be written after its first `at` bytes, which are its last ones then. Searches
/// have it mapped, so it is never truncated: a longer file is replaced by a copy of its beginning.
fn open_at(path: &Path, at: u64) -> std::io::Result<File> {
    let len = match std::fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if len < at {
        let what = format!("vectors.i8 holds {len} bytes, but at least {at} were expected");
        return Err(std::io::Error::new(ErrorKind::InvalidData, what));
    }
    if len > at {
        let copy = path.with_extension("new");
        let mut begin = File::open(path)?.take(at);
        let mut file = File::create(&copy)?;
        std::io::copy(&mut begin, &mut file)?;
        // The index counts on these bytes, and uses the file under this name as it is.
        file.sync_all()?;
        std::fs::rename(copy, path)?;
        #[cfg(unix)]
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
    }
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

impl NewGroup {
    fn push(&mut self, block: u32, vectors: &DocVectors) {
        let rows = vectors.values.chunks_exact(self.dim.max(1));
        for (values, place) in rows.zip(&vectors.places) {
            let largest = values.iter().fold(0.0f32, |max, value| max.max(value.abs()));
            let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
            let mut left = Vec::with_capacity(values.len());
            for value in values {
                let code = (value / scale).round().clamp(-127.0, 127.0);
                self.codes.push(code as i8 as u8);
                left.push(value - code * scale);
            }
            self.columns.push(scale, error_of(values, &left, scale), block, *place);
        }
    }
}

impl Codes {
    /// Reads the rows in the first `bytes` bytes of the file, which hold the blocks 1 to `blocks`.
    /// Every checksum is verified; the codes stay in the file, which is mapped.
    pub(crate) fn read(
        path: &Path,
        bytes: u64,
        blocks: u32,
        sealing: Option<&Sealing>,
    ) -> Result<Self, Damage> {
        let damage = |what: &str| format!("vectors.i8 {what}");
        let mapped = map(path).map_err(|error| damage(&format!("cannot be read: {error}")))?;
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        if mapped.len() < len {
            return Err(damage("is shorter than its manifest says"));
        }
        let mut codes = Self::default();
        let (mut at, mut last) = (0, 0);
        while at < len {
            let rest = mapped.slice(at..len);
            let (mut body, sum) = read_chunk(&rest).map_err(|what| damage(&what))?;
            let next = at + CHUNK_HEAD + body.len();
            if let Some(sealing) = sealing {
                let opened = sealing.open(&at, &body);
                body = OwnedBytes::new(
                    opened.ok_or_else(|| damage("has a chunk that cannot be decrypted"))?,
                );
            }
            at = next;
            last = codes.append(&body, last + 1).map_err(|what| damage(&what))?;
            codes.chunks.push((at as u64, sum));
        }
        if last != blocks {
            return Err(damage(&format!("ends at block {last}, but {blocks} was expected")));
        }
        Ok(codes)
    }

    /// Appends the rows of a chunk that begins with block `first`, and returns the last block that
    /// it holds.
    fn append(&mut self, body: &OwnedBytes, first: u32) -> Result<u32, Damage> {
        let cut = || "has a chunk that is cut short".to_owned();
        let (len, rest) = body.split_first_chunk::<4>().ok_or_else(cut)?;
        let len = u32::from_le_bytes(*len) as usize;
        let head = rest.get(..len).ok_or_else(cut)?;
        let head: ChunkHead =
            rmp_serde::from_slice(head).map_err(|error| format!("has a bad chunk: {error}"))?;
        if head.first_block != first || head.last_block < first {
            return Err("leaves blocks out".to_owned());
        }
        let mut at = 4 + len;
        for GroupHead { model_id, dim, rows } in head.groups {
            let columns = rows.checked_mul(Columns::ROW_BYTES).and_then(|len| at.checked_add(len));
            let columns_end = columns.filter(|end| *end <= body.len()).ok_or_else(cut)?;
            let codes = rows.checked_mul(dim).and_then(|len| columns_end.checked_add(len));
            let end = codes.filter(|end| *end <= body.len()).ok_or_else(cut)?;
            let columns = body.get(at..columns_end).unwrap_or_default();
            let columns = Columns::read(columns, rows, first..=head.last_block)?;
            self.group_of(&model_id, dim).append(columns, body.slice(columns_end..end));
            at = end;
        }
        if at == body.len() { Ok(head.last_block) } else { Err(cut()) }
    }
}

/// Returns the bytes of a file, mapped into memory.
fn map(path: &Path) -> Result<OwnedBytes, String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err("it is not a file".to_owned());
    };
    let folder = MmapDirectory::open(folder).map_err(|error| error.to_string())?;
    let file = folder.open_read(Path::new(name)).map_err(|error| error.to_string())?;
    file.read_bytes().map_err(|error| error.to_string())
}

/// Returns the body of the chunk at the beginning, and its checksum, which is verified.
fn read_chunk(bytes: &OwnedBytes) -> Result<(OwnedBytes, u64), Damage> {
    let cut = || "ends in the middle of a chunk".to_owned();
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or_else(cut)
    };
    let (len, sum) = (number(8)?, number(16)?);
    if !bytes.starts_with(MAGIC) {
        return Err("holds something other than chunks".to_owned());
    }
    let end = usize::try_from(len).ok().and_then(|len| len.checked_add(CHUNK_HEAD));
    let end = end.filter(|end| *end <= bytes.len()).ok_or_else(cut)?;
    let body = bytes.slice(CHUNK_HEAD..end);
    if xxh3_64(&body) != sum {
        return Err("has a chunk whose checksum does not match".to_owned());
    }
    Ok((body, sum))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::block_doc::Place;

    pub(in crate::disk) fn unit(values: Vec<f32>) -> Vec<f32> {
        let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-9);
        values.iter().map(|v| v / norm).collect()
    }

    pub(in crate::disk) fn doc(n: u32, rows: &[Vec<f32>]) -> BlockDoc {
        let vectors = DocVectors {
            model_id: "m".to_owned(),
            dim: rows[0].len(),
            values: rows.concat(),
            places: (0..rows.len()).map(|i| Place { seq: u64::from(n), row: i as u16 }).collect(),
        };
        BlockDoc { vectors: vec![vectors], ..BlockDoc::unreadable(n) }
    }

    /// The rows of blocks as they are read back from a file with one chunk for each run of blocks.
    pub(in crate::disk) fn written(path: &Path, runs: &[&[BlockDoc]]) -> Codes {
        let mut at = 0;
        let mut last = 0;
        for docs in runs {
            let mut new = NewCodes::default();
            docs.iter().for_each(|doc| new.push(doc));
            let to = last + docs.len() as u32;
            at = new.append_to(path, at, (last + 1, to), None).unwrap();
            last = to;
        }
        Codes::read(path, at, last, None).unwrap()
    }

    #[test]
    fn r4_no_flipped_byte_gives_other_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v");
        let rows: Vec<Vec<f32>> = (0..6)
            .map(|i| unit((0..8).map(|j| ((i * 7 + j * 3) as f32).sin()).collect()))
            .collect();
        let docs: Vec<BlockDoc> = (1..).zip(rows.chunks(2)).map(|(n, rows)| doc(n, rows)).collect();
        let back = written(&path, &[&docs[..2], &docs[2..]]);
        let mut all = NewCodes::default();
        docs.iter().for_each(|doc| all.push(doc));
        assert!(all.are(&back));
        assert_eq!(back.groups()[0].rows_of(2), 2..4);
        let bytes = back.file_bytes();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, bytes);
        let other = dir.path().join("other");
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&other, &flipped).unwrap();
            assert!(Codes::read(&other, bytes, 3, None).is_err(), "byte {at}");
            std::fs::write(&other, &whole[..at]).unwrap();
            assert!(Codes::read(&other, bytes, 3, None).is_err(), "cut at {at}");
        }
        // What follows the manifest's length is left over from a write that was cut short.
        std::fs::write(&other, [whole.as_slice(), b"torn"].concat()).unwrap();
        assert!(all.are(&Codes::read(&other, bytes, 3, None).unwrap()));
        // Other rows are recognised as different.
        let mut less = NewCodes::default();
        docs[..2].iter().for_each(|doc| less.push(doc));
        assert!(!less.are(&back));
    }

    /// R10: rows that a search has mapped stay unchanged, wherever others continue to write.
    #[test]
    fn r10_no_write_changes_or_cuts_what_is_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.i8");
        let rows: Vec<Vec<f32>> = (0..6)
            .map(|i| unit((0..8).map(|j| ((i * 5 + j * 3) as f32).cos()).collect()))
            .collect();
        let docs: Vec<BlockDoc> = (1..).zip(rows.chunks(2)).map(|(n, rows)| doc(n, rows)).collect();
        let new = |docs: &[BlockDoc]| {
            let mut new = NewCodes::default();
            docs.iter().for_each(|doc| new.push(doc));
            new
        };
        for torn in [b"".as_slice(), b"what a killed writer left"] {
            for kept in 0..=3usize {
                std::fs::remove_file(&path).ok();
                let mapped = written(&path, &[&docs[..1], &docs[1..2], &docs[2..]]);
                let mut file = OpenOptions::new().append(true).open(&path).unwrap();
                file.write_all(torn).unwrap();
                let old = File::open(&path).unwrap();
                let before = old.metadata().unwrap().len();
                let at = kept.checked_sub(1).map_or(0, |last| mapped.chunks[last].0);
                let to = kept as u32 + 1;
                let next = doc(to, &rows[..2]);
                let end = new(&[next]).append_to(&path, at, (to, to), None).unwrap();
                assert!(new(&docs).are(&mapped), "{kept} chunks kept");
                assert!(old.metadata().unwrap().len() >= before, "{kept} chunks kept");
                assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
                let read = Codes::read(&path, end, to, None).unwrap();
                assert_eq!(read.groups()[0].len(), 2 * (kept + 1));
                let after = new(&docs).append_to(&path, end + 1, (to + 1, to + 3), None);
                assert!(after.unwrap_err().to_string().contains("expected"));
            }
        }
    }
}
