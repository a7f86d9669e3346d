//! Compressed bodies that arrive in pieces.

use super::{Packing, WINDOW_LOG_MOST, most};
use axum::http::HeaderMap;
use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use std::io::{Error, Result, Write};
use zstd::stream::write::Decoder;

/// Unpacks a body that arrives in pieces, up to the limits of one that is there.
pub(crate) struct Unpacker {
    /// What unpacks each piece, one after the other.
    steps: Vec<Step>,
    /// How many packed bytes came.
    came: u64,
}

enum Step {
    Gzip(MultiGzDecoder<Unpacked>),
    Deflate(ZlibDecoder<Unpacked>),
    Zstd(Decoder<'static, Unpacked>),
    Brotli(Box<DecompressorWriter<Unpacked>>),
}

/// The bytes that a step has unpacked.
#[derive(Default)]
struct Unpacked {
    /// Those that were not taken yet.
    bytes: Vec<u8>,
    count: u64,
    most: u64,
}

impl Unpacker {
    /// Returns what unpacks a body with these headers; `None` if its encoding is unknown.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let steps = Packing::of(headers)?.into_iter().map(Step::new).collect::<Result<_>>();
        Some(Self { steps: steps.ok()?, came: 0 })
    }

    /// Returns whether the body is not packed.
    pub(crate) fn is_idle(&self) -> bool {
        self.steps.is_empty()
    }

    /// Unpacks a piece, as far as it can be unpacked without the next one.
    ///
    /// # Errors
    /// When the body is damaged, or exceeds all limits.
    pub(crate) fn unpack(&mut self, piece: &[u8]) -> Result<Vec<u8>> {
        self.came += piece.len() as u64;
        let most = most(self.came);
        self.steps.iter_mut().try_fold(piece.to_vec(), |bytes, step| step.unpack(&bytes, most))
    }
}

impl Step {
    fn new(packing: Packing) -> Result<Self> {
        let out = Unpacked::default();
        Ok(match packing {
            Packing::Gzip => Self::Gzip(MultiGzDecoder::new(out)),
            Packing::Deflate => Self::Deflate(ZlibDecoder::new(out)),
            Packing::Zstd => {
                let mut decoder = Decoder::new(out)?;
                decoder.window_log_max(WINDOW_LOG_MOST)?;
                Self::Zstd(decoder)
            }
            Packing::Brotli => Self::Brotli(Box::new(DecompressorWriter::new(out, 4096))),
        })
    }

    fn unpack(&mut self, bytes: &[u8], most: u64) -> Result<Vec<u8>> {
        self.out().most = most;
        let packed: &mut dyn Write = match self {
            Self::Gzip(packed) => packed,
            Self::Deflate(packed) => packed,
            Self::Zstd(packed) => packed,
            Self::Brotli(packed) => packed,
        };
        packed.write_all(bytes)?;
        packed.flush()?;
        Ok(std::mem::take(&mut self.out().bytes))
    }

    fn out(&mut self) -> &mut Unpacked {
        match self {
            Self::Gzip(packed) => packed.get_mut(),
            Self::Deflate(packed) => packed.get_mut(),
            Self::Zstd(packed) => packed.get_mut(),
            Self::Brotli(packed) => packed.get_mut(),
        }
    }
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.count += bytes.len() as u64;
        if self.count > self.most {
            return Err(Error::other("it unpacks to too much"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
