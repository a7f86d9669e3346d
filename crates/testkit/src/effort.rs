//! How much a long test tries.

/// Returns all of `whole` if `FOLDBACK_WHOLE_TESTS` is set, as in `.ci/run`; otherwise a quarter of it,
/// so that nobody has to wait.
#[must_use]
pub fn effort(whole: u32) -> u32 {
    if std::env::var_os("FOLDBACK_WHOLE_TESTS").is_some() { whole } else { whole.div_ceil(4) }
}
