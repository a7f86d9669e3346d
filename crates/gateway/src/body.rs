//! Bodies that were packed for the way.

use axum::http::HeaderMap;
use bytes::Bytes;
use std::borrow::Cow;
use std::io::Read;

/// At most so many bytes come out of a packed body. What is larger passes, and is not read.
const LONGEST: u64 = 256 << 20;

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
    let encoding = crate::headers::text(headers, "content-encoding").unwrap_or("identity");
    let mut bytes = Cow::Borrowed(&body[..]);
    // What was done last is named last.
    for way in encoding.rsplit(',').map(str::trim) {
        let (read, is_end) = match way.to_ascii_lowercase().as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => read(flate2::read::MultiGzDecoder::new(&bytes[..])),
            "deflate" => read(flate2::read::ZlibDecoder::new(&bytes[..])),
            "zstd" => read(zstd::stream::read::Decoder::new(&bytes[..]).ok()?),
            "br" => read(brotli_decompressor::Decompressor::new(&bytes[..], 4096)),
            _ => return None,
        };
        bytes = Cow::Owned(read);
        is_whole &= is_end;
    }
    Some((bytes, is_whole))
}

fn read(packed: impl Read) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let is_end = packed.take(LONGEST + 1).read_to_end(&mut bytes).is_ok();
    let is_whole = is_end && bytes.len() as u64 <= LONGEST;
    (bytes, is_whole)
}
