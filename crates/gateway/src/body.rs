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
    let encoding = crate::headers::text(headers, "content-encoding").unwrap_or("identity");
    let mut bytes = Cow::Borrowed(&body[..]);
    // What was done last is named last.
    for way in encoding.rsplit(',').map(str::trim) {
        bytes = match way.to_ascii_lowercase().as_str() {
            "" | "identity" => bytes,
            "gzip" | "x-gzip" => Cow::Owned(read(flate2::read::MultiGzDecoder::new(&bytes[..]))?),
            "deflate" => Cow::Owned(read(flate2::read::ZlibDecoder::new(&bytes[..]))?),
            "zstd" => Cow::Owned(read(zstd::stream::read::Decoder::new(&bytes[..]).ok()?)?),
            "br" => Cow::Owned(read(brotli_decompressor::Decompressor::new(&bytes[..], 4096))?),
            _ => return None,
        };
    }
    Some(bytes)
}

fn read(packed: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    packed.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LONGEST).then_some(bytes)
}
