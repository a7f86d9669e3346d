//! The format of a payload's file.
//!
//! The file can be read by range without reading the rest, and every byte that is returned was
//! checked. All numbers are little-endian.
//!
//! ```text
//! header   16 bytes   "FBPAYLD" and the version (1); the raw size of a chunk as u32; four zeros
//! chunks              one after the other: 256 KiB of the payload each (the last one the rest),
//!                     as a zstd frame if that saves a sixteenth, otherwise as they are
//! table    24 bytes   for each chunk: stored size as u32, its highest bit set for a zstd frame;
//!                     line feeds in it as u32; first 16 bytes of the BLAKE3 of its stored bytes
//! footer   96 bytes   chunks as u64; payload bytes as u64; line feeds as u64; eight zeros;
//!                     BLAKE3 of the payload; the seal
//! ```
//!
//! The **seal** is the BLAKE3 of header, table and the footer before it. It is also in the
//! payload's record, so the checks of the chunks depend on the transactional store: a part that is
//! read alone is checked as well as the whole, and a file that was put in the place of another is
//! refused. A chunk is checked before it is decompressed, and decompresses into at most its raw
//! size, which follows from the payload's size; no length in the file is ever allocated unchecked.
//! The offset of a chunk is the sum of the sizes before it, so no two fields can disagree.
//!
//! The length of the file must be exactly the sum that follows from the table.
//!
//! In an encrypted store the version is 2. Each chunk is sealed separately with the key of its todo, bound to its
//! number, and is 40 bytes longer; so are table and footer together. The checks in the table are those of the sealed
//! bytes.

pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod sealing;
pub(crate) mod writer;
