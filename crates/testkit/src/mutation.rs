//! Bytes that were damaged, or made to do harm: what a disk, a half-written file, a careless program or
//! an attacker turns sound input into.

use crate::Random;

/// Numbers at the limits of a format's fields.
const EDGES: [&str; 12] = [
    "0",
    "-1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "-0.0",
];

/// Texts with a meaning in formats and readers, and bytes that are not text.
const SPECIAL: [&[u8]; 20] = [
    b"\0",
    b"\xff\xfe",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"]",
    b"\n\n",
    b"\r\n",
    b"null",
    b"true",
    b"[]",
    b"{}",
    "\u{feff}".as_bytes(),
    "\u{202e}港".as_bytes(),
    b"data: ",
    b"$$step1.result$$",
];

/// Returns one of the seeds, changed in one to four places.
///
/// # Panics
/// When there is no seed.
#[must_use]
pub fn mutated(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        mutate(random, &mut bytes, seeds);
    }
    bytes
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let (from, to) = range(random, bytes.len());
    match random.below(12) {
        0 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte = [0, 0x7f, 0x80, 0xc1, 0xdf, 0xff][random.below(6)];
            }
        }
        2 => bytes.truncate(from),
        3 => drop(bytes.drain(from..to)),
        4 => {
            let again = bytes[from..to].to_vec();
            let times = if random.below(16) == 0 { 300 } else { 1 };
            insert(bytes, to, &again[..again.len().min(4_096)].repeat(times));
        }
        5 => insert(bytes, from, SPECIAL[random.below(SPECIAL.len())]),
        6 => {
            // A number in decimal digits.
            let digits = |byte: &u8| byte.is_ascii_digit();
            let begin = bytes.iter().skip(from).position(digits).map_or(from, |at| from + at);
            let length = bytes.iter().skip(begin).take_while(|byte| digits(byte)).count();
            bytes.splice(begin..begin + length, EDGES[random.below(EDGES.len())].bytes());
        }
        7 => {
            // A number in binary.
            let width = [1, 2, 4, 8][random.below(4)];
            let value = [u64::MAX, 0, 1 << 31, 1 << 62, i64::MAX as u64][random.below(5)];
            for (byte, new) in bytes.iter_mut().skip(from).zip(&value.to_le_bytes()[..width]) {
                *byte = *new;
            }
        }
        8 => {
            let other = &seeds[random.below(seeds.len())];
            let (first, last) = range(random, other.len());
            insert(bytes, from, &other[first..last]);
        }
        9 => {
            let open: &[u8] = [&b"["[..], b"{\"a\":", b"<b>", b"("][random.below(4)];
            let depth = [3, 130, 3_000][random.below(3)];
            insert(bytes, from, &open.repeat(depth));
        }
        10 => {
            // Two lines, or two quoted texts, change places.
            let mark = if random.below(2) == 0 { b'\n' } else { b'"' };
            let mut parts: Vec<&[u8]> = bytes.split(|byte| *byte == mark).collect();
            let (a, b) = (random.below(parts.len()), random.below(parts.len()));
            parts.swap(a, b);
            *bytes = parts.join(&mark);
        }
        _ => {
            let noise: Vec<u8> = (0..random.below(24)).map(|_| random.below(256) as u8).collect();
            insert(bytes, from, &noise);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    // An input that grows from step to step stays within some size.
    if bytes.len() + new.len() <= 1 << 20 {
        bytes.splice(at..at, new.iter().copied());
    }
}

/// Returns a range within this many bytes, mostly a short one.
fn range(random: &mut Random, length: usize) -> (usize, usize) {
    let from = random.below(length + 1);
    let most = if random.below(4) == 0 { length - from } else { (length - from).min(16) };
    (from, from + random.below(most + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_make_the_same_damage() {
        let seeds = [b"{\"a\": [1, 2]}\n".to_vec(), Vec::new()];
        let made = |seed| -> Vec<Vec<u8>> {
            let mut random = Random::new(seed);
            (0..500).map(|_| mutated(&mut random, &seeds)).collect()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        let changed = made(1).iter().filter(|bytes| !seeds.contains(bytes)).count();
        assert!(changed > 300, "{changed} of 500 differ from the seeds");
    }
}
