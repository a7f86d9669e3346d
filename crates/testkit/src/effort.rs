//! How much a long test tries.

/// All of `whole` where `FOLDBACK_WHOLE_TESTS` is set, as in `.ci/run`; a quarter of it otherwise, so that a person
/// does not wait.
#[must_use]
pub fn effort(whole: u32) -> u32 {
    if std::env::var_os("FOLDBACK_WHOLE_TESTS").is_some() { whole } else { whole.div_ceil(4) }
}
