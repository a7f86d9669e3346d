//! Compressed bodies.

mod unpacker;

pub(crate) use unpacker::Unpacker;

use axum::http::HeaderMap;
use bytes::Bytes;
use std::borrow::Cow;
use std::io::Read;

/// The limit on the unpacked bytes of a compressed body. A larger body is passed on, and not read.
const LONGEST: u64 = 256 << 20;

/// A compressed body may unpack to this many times its size, however often it was compressed. Recorded
/// conversations reach about 60.
const RATIO: u64 = 100;

/// The ratio applies only from this many unpacked bytes on.
const RATIO_FROM: u64 = 1 << 20;

/// A body may request a window of 2 to the power of this, 8 MiB: what RFC 9659 allows for zstd over HTTP.
const WINDOW_LOG_MOST: u32 = 23;

/// Returns the body unpacked; `None` if its encoding is unknown, it is damaged, or it exceeds all limits.
pub(crate) fn unpacked<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<Cow<'b, [u8]>> {
    let (bytes, is_whole) = read_all(headers, body)?;
    is_whole.then_some(bytes)
}

/// As [`unpacked`], for a body that broke off: as far as it came.
pub(crate) fn begun<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<Cow<'b, [u8]>> {
    read_all(headers, body).map(|(bytes, _)| bytes)
}

/// How a body is packed.
#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Deflate,
    Zstd,
    Brotli,
}

impl Packing {
    /// Returns how a body is packed, the last packing first; `None` if one of them is unknown.
    fn of(headers: &HeaderMap) -> Option<Vec<Self>> {
        let encoding = crate::headers::text(headers, "content-encoding").unwrap_or("identity");
        let mut packings = Vec::new();
        // The last encoding is named last.
        for name in encoding.rsplit(',').map(str::trim) {
            packings.push(match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Self::Gzip,
                "deflate" => Self::Deflate,
                "zstd" => Self::Zstd,
                "br" => Self::Brotli,
                _ => return None,
            });
        }
        Some(packings)
    }
}

/// Returns the content of a body, and whether it is complete.
fn read_all<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<(Cow<'b, [u8]>, bool)> {
    let mut is_whole = true;
    let most = most(body.len() as u64);
    let mut bytes = Cow::Borrowed(&body[..]);
    for packing in Packing::of(headers)? {
        let (read, is_end) = match packing {
            Packing::Gzip => read(flate2::read::MultiGzDecoder::new(&bytes[..]), most),
            Packing::Deflate => read(flate2::read::ZlibDecoder::new(&bytes[..]), most),
            Packing::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(&bytes[..]).ok()?;
                decoder.window_log_max(WINDOW_LOG_MOST).ok()?;
                read(decoder, most)
            }
            Packing::Brotli => read(brotli_decompressor::Decompressor::new(&bytes[..], 4096), most),
        };
        bytes = Cow::Owned(read);
        is_whole &= is_end;
    }
    Some((bytes, is_whole))
}

/// Returns how many bytes a body of this many packed bytes may unpack to.
fn most(packed: u64) -> u64 {
    packed.saturating_mul(RATIO).clamp(RATIO_FROM, LONGEST)
}

/// Reads at most this many bytes, and returns whether that is all.
fn read(packed: impl Read, most: u64) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let is_end = packed.take(most + 1).read_to_end(&mut bytes).is_ok();
    let is_whole = is_end && bytes.len() as u64 <= most;
    (bytes, is_whole)
}

#[cfg(test)]
mod tests;
