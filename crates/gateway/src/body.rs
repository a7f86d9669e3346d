//! Bodies that were packed for the way.

use axum::http::HeaderMap;
use bytes::Bytes;
use std::borrow::Cow;
use std::io::Read;

/// At most so many bytes come out of a packed body. What is larger passes, and is not read.
const LONGEST: u64 = 256 << 20;

/// A packed body may unpack to this many times its size, however often it was packed. Recorded conversations reach
/// about 60.
const RATIO: u64 = 100;

/// The ratio counts only from this many unpacked bytes on.
const RATIO_FROM: u64 = 1 << 20;

/// A body may ask for a window of 2 to this many bytes, 8 MiB: what RFC 9659 allows for zstd over HTTP.
const WINDOW_LOG_MOST: u32 = 23;

/// The body as it was before it was packed; `None` where it is packed in a way that is not known, damaged, or
/// beyond all bounds.
pub(crate) fn unpacked<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<Cow<'b, [u8]>> {
    let (bytes, is_whole) = read_all(headers, body)?;
    is_whole.then_some(bytes)
}

/// As [`unpacked`], of a body that broke off: as far as it came.
pub(crate) fn begun<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<Cow<'b, [u8]>> {
    read_all(headers, body).map(|(bytes, _)| bytes)
}

/// What was in a body, and whether it came to its end.
fn read_all<'b>(headers: &HeaderMap, body: &'b Bytes) -> Option<(Cow<'b, [u8]>, bool)> {
    let mut is_whole = true;
    let most = (body.len() as u64).saturating_mul(RATIO).clamp(RATIO_FROM, LONGEST);
    let encoding = crate::headers::text(headers, "content-encoding").unwrap_or("identity");
    let mut bytes = Cow::Borrowed(&body[..]);
    // What was done last is named last.
    for way in encoding.rsplit(',').map(str::trim) {
        let (read, is_end) = match way.to_ascii_lowercase().as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => read(flate2::read::MultiGzDecoder::new(&bytes[..]), most),
            "deflate" => read(flate2::read::ZlibDecoder::new(&bytes[..]), most),
            "zstd" => {
                let mut decoder = zstd::stream::read::Decoder::new(&bytes[..]).ok()?;
                decoder.window_log_max(WINDOW_LOG_MOST).ok()?;
                read(decoder, most)
            }
            "br" => read(brotli_decompressor::Decompressor::new(&bytes[..], 4096), most),
            _ => return None,
        };
        bytes = Cow::Owned(read);
        is_whole &= is_end;
    }
    Some((bytes, is_whole))
}

/// At most so many bytes, and whether that is all.
fn read(packed: impl Read, most: u64) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let is_end = packed.take(most + 1).read_to_end(&mut bytes).is_ok();
    let is_whole = is_end && bytes.len() as u64 <= most;
    (bytes, is_whole)
}

#[cfg(test)]
mod tests;
