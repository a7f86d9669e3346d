//! S11: compressed bodies that would fill the memory are abandoned within bounds.

use super::{LONGEST, RATIO, RATIO_FROM, Unpacker, begun, unpacked};
use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use foldback_testkit::memory::{grown, is_weighed, weigh};
use std::io::Write as _;

/// 64 MiB of blanks, compressed by brotli at its highest level.
const BROTLI: &str = "cfffff7ff82540e2b14020f7fe9ffffffff04b00c4610180eefd3fffffffe1970088c32200ddfbfffcffffc72f0110870500baf7ff";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

fn brotli() -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&BROTLI[at..at + 2], 16).unwrap();
    (0..BROTLI.len()).step_by(2).map(digit).collect()
}

/// A zstd frame with these bytes after the magic number.
fn frame(header: &[u8], rest: &[u8]) -> Vec<u8> {
    [&[0x28, 0xb5, 0x2f, 0xfd], header, rest].concat()
}

/// The name of each, its content encoding, and the body, which unpacks to this many bytes (that of brotli to 64 MiB).
fn bombs(size: usize) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let blanks = vec![b' '; size];
    let deep = "[".repeat(8 << 20).into_bytes();
    let message = r#"{"role":"user","content":"港"},"#.repeat((8 << 20) / 32);
    let packed = gzip(&blanks);
    let once = zstd(&blanks);
    let length = (1_u64 << 62).to_le_bytes();
    let declared = frame(&[0xe0], &[&length, &once[9..]].concat());
    vec![
        ("gzip", "gzip", packed.clone()),
        ("gzip of many members", "x-gzip", gzip(&blanks[..size / 64]).repeat(64)),
        ("gzip of brackets", "gzip", gzip(&deep)),
        ("deflate", "deflate", deflate(&blanks)),
        ("deflate of messages", "deflate", deflate(message.as_bytes())),
        ("zstd", "zstd", once.clone()),
        ("zstd of many frames", "zstd", zstd(&blanks[..size / 64]).repeat(64)),
        ("zstd that declares 4 EiB", "zstd", declared),
        ("zstd with a window of 3.75 TiB", "zstd", frame(&[0, 0xff], &once[6..])),
        ("zstd with a window of 16 MiB", "zstd", frame(&[0, 14 << 3], &once[6..])),
        ("brotli", "br", brotli()),
        ("gzip in gzip", "gzip, gzip", gzip(&packed)),
        ("zstd in zstd in zstd", "zstd,zstd,zstd", zstd(&zstd(&once))),
        ("zstd in deflate in gzip", "zstd, deflate, gzip", gzip(&deflate(&once))),
    ]
}

fn headers(encoding: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(
        axum::http::header::CONTENT_ENCODING,
        HeaderValue::from_static(encoding),
    )])
}

/// S11: what unpacks to over 100 times its size is not read, nor kept beyond that.
#[test]
fn s11_a_packed_bomb_is_given_up() {
    for (name, encoding, body) in bombs(8 << 20) {
        let (headers, body) = (headers(encoding), Bytes::from(body));
        assert!(unpacked(&headers, &body).is_none(), "{name}");
        let most = (body.len() as u64 * RATIO).max(RATIO_FROM) + 1;
        let held = begun(&headers, &body).map_or(0, |bytes| bytes.len() as u64);
        assert!(held <= most && most < LONGEST, "{name}: {held} of {}", body.len());
    }
}

/// S11: 14 bombs, most of 80 MiB, one after the other, within 64 MB of memory.
#[test]
fn s11_packed_bombs_take_little_memory() {
    if is_weighed() {
        return weigh_bombs();
    }
    let taken = grown("body::tests::s11_packed_bombs_take_little_memory");
    // If the system does not report its memory, they were still unpacked.
    assert!(taken.is_none_or(|kilobytes| kilobytes < 64 << 10), "{taken:?} kB");
}

fn weigh_bombs() {
    let bombs = bombs(80 << 20);
    weigh(|| {
        for (name, encoding, body) in bombs {
            let (headers, body) = (headers(encoding), Bytes::from(body));
            assert!(unpacked(&headers, &body).is_none(), "{name}");
            begun(&headers, &body);
        }
    });
}

/// What clients send is read, whatever its encoding: a body may be large, and may be short and well compressed.
#[test]
fn what_is_packed_as_clients_do_is_read() {
    let large: String = (0..400_000_u64).map(|n| format!("{:x}", n * n * 7_919)).collect();
    for text in [" ".repeat(1 << 20), large] {
        let body = text.as_bytes();
        for (encoding, packed) in [
            ("gzip", gzip(body)),
            ("deflate", deflate(body)),
            ("zstd", zstd(body)),
            ("zstd, gzip", gzip(&zstd(body))),
            ("identity", body.to_vec()),
        ] {
            let packed = Bytes::from(packed);
            let read = unpacked(&headers(encoding), &packed);
            assert!(read.is_some_and(|read| *read == *body), "{encoding}");
            for length in [1 << 10, packed.len()] {
                let mut unpacker = Unpacker::of(&headers(encoding)).unwrap();
                let pieces = packed.chunks(length);
                let read = pieces.flat_map(|piece| unpacker.unpack(piece).unwrap());
                assert!(read.eq(body.iter().copied()), "{encoding} in pieces");
            }
        }
    }
}

/// What an answer said so far can be read before the next piece comes; one that unpacks to too much ends.
#[test]
fn what_is_packed_in_pieces_is_read_at_once() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut unpacker = Unpacker::of(&headers("gzip")).unwrap();
    for words in ["data: 一\n\n", "data: 二\n\n", "data: 三\n\n"] {
        encoder.write_all(words.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let piece = std::mem::take(encoder.get_mut());
        assert_eq!(unpacker.unpack(&piece).unwrap(), words.as_bytes());
    }
    assert_eq!(Unpacker::of(&headers("br")).unwrap().unpack(&brotli()).ok(), None);
    let blanks = gzip(&vec![b' '; 64 << 20]);
    assert_eq!(Unpacker::of(&headers("gzip")).unwrap().unpack(&blanks).ok(), None);
    assert!(Unpacker::of(&headers("x-odd")).is_none());
}
