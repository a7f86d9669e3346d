//! The token of a commit, and other random numbers.

use super::pool::Asked;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio_postgres::Client;

/// Returns whether a commit is one of the few after which the old tokens of its slot are removed.
pub(super) fn is_time() -> bool {
    random_u32().is_multiple_of(64)
}

/// Deletes the tokens of commits that nobody sends again, in some slots: by the server's clock they are older than the
/// largest commit can be when it is given up. Nobody waits until that is on a disk.
pub(super) fn forget_old(client: Arc<Client>, slots: RangeInclusive<i32>) -> Asked<()> {
    Box::pin(async move {
        let sql = format!(
            "BEGIN; SET LOCAL synchronous_commit = off; DELETE FROM foldback_commit WHERE slot BETWEEN {} AND {} \
             AND made < now() - INTERVAL '1 hour'; COMMIT",
            slots.start(),
            slots.end()
        );
        client.batch_execute(&sql).await
    })
}

/// Returns a random id, as a UUID of version 4 is written.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 16];
    for part in bytes.chunks_exact_mut(4) {
        part.copy_from_slice(&random_u32().to_le_bytes());
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Returns half of a token as a number.
pub(super) fn digest(token: &str) -> u64 {
    let digits = token.chars().filter_map(|c| c.to_digit(16)).take(16);
    digits.fold(0, |number, digit| number << 4 | u64::from(digit))
}

/// Returns a random number of the system.
pub(super) fn random_u32() -> u32 {
    // The system's source fails on no system that is up; the standard library's own keys come from it, too.
    getrandom::u32().unwrap_or_else(|_| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one(std::process::id()) as u32
    })
}
