//! Named points at which a test ends the process.

/// Marks a point on a write path. With the feature `failpoints`, a test may end the process there, as with
/// `fail::fail_point`; without it, this does nothing.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        $crate::fail::fail_point!($name)
    };
}

/// Marks a point on a write path. With the feature `failpoints`, a test may end the process there; without it, as here,
/// this does nothing.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {};
}
