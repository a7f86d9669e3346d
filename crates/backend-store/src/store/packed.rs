//! Packs and unpacks the bytes in a payload's record, which may be a zstd frame.

use crate::{BackendConfig, Fault, Meta};

pub(super) fn pack(bytes: &[u8], level: i32) -> Vec<u8> {
    // Larger ones are in a record only when the store is in memory.
    if (256..=BackendConfig::INLINE_LIMIT).contains(&bytes.len())
        && let Ok(packed) = zstd::bulk::compress(bytes, level)
        && packed.len() < bytes.len() - bytes.len() / 16
    {
        return [&[PACKED], packed.as_slice()].concat();
    }
    [&[PLAIN], bytes].concat()
}

pub(super) fn unpack(mut value: Vec<u8>, meta: &Meta) -> Result<Vec<u8>, Fault> {
    let bytes = match value.first() {
        Some(&PLAIN) => {
            value.remove(0);
            value
        }
        Some(&PACKED) if meta.bytes <= BackendConfig::INLINE_LIMIT as u64 => {
            let packed = value.get(1..).unwrap_or_default();
            match zstd::bulk::decompress(packed, meta.bytes as usize) {
                Ok(bytes) => bytes,
                Err(_) => return Fault::damaged("its bytes cannot be decompressed"),
            }
        }
        _ => return Fault::damaged("its bytes have an unknown encoding"),
    };
    if *blake3::hash(&bytes).as_bytes() != meta.hash {
        return Fault::damaged("its bytes do not match its hash");
    }
    Ok(bytes)
}

/// The first byte of a payload's record: whether the rest is the bytes, or a zstd frame of them.
const PLAIN: u8 = 0;

const PACKED: u8 = 1;
