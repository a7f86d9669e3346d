//! HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2): a key and 16 bytes of a nonce give another key.

/// What a state begins with: "expand 32-byte k".
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The key that belongs to the first 16 bytes of a nonce.
pub(crate) fn hchacha20(key: &[u8; 32], nonce: &[u8; 16]) -> [u8; 32] {
    let mut state = [0; 16];
    let words = key.chunks_exact(4).chain(nonce.chunks_exact(4));
    let words = words.map(|word| word.try_into().map_or(0, u32::from_le_bytes));
    state.iter_mut().zip(SIGMA.into_iter().chain(words)).for_each(|(to, from)| *to = from);
    for _ in 0..10 {
        for column in 0..4 {
            quarter(&mut state, [column, column + 4, column + 8, column + 12]);
        }
        for at in 0..4 {
            quarter(&mut state, [at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4]);
        }
    }
    let mut out = [0; 32];
    let (first, rest) = state.split_at(4);
    let last = rest.get(8..).unwrap_or_default();
    for (to, word) in out.chunks_exact_mut(4).zip(first.iter().chain(last)) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn quarter(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (first, second) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(first);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    /// The vector of the draft, section 2.2.1.
    #[test]
    fn s14_the_vector_of_the_draft_holds() {
        let key: Vec<u8> = (0..32).collect();
        let nonce = HEXLOWER.decode(b"000000090000004a0000000031415927").unwrap();
        let subkey = hchacha20(&key.try_into().unwrap(), &nonce.try_into().unwrap());
        assert_eq!(
            HEXLOWER.encode(&subkey),
            "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
        );
    }
}
