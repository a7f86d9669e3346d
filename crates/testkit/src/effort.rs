//! How much a long test tries.

/// Returns all of `whole` if `FOLDBACK_WHOLE_TESTS` is set, as in `.ci/run`; otherwise a quarter of it,
/// so that nobody has to wait.
#[must_use]
pub fn effort(whole: u32) -> u32 {
    if is_whole() { whole } else { whole.div_ceil(4) }
}

/// Returns the step between the places that a test tries: 1, which is every place, if `FOLDBACK_WHOLE_TESTS` is set,
/// otherwise 5.
#[must_use]
pub fn stride() -> usize {
    if is_whole() { 1 } else { 5 }
}

fn is_whole() -> bool {
    std::env::var_os("FOLDBACK_WHOLE_TESTS").is_some()
}
