//! Named points at which a test ends the process.

/// Marks a point of a write route. With the feature `failpoints` a test may end the process there, as `fail::fail_point`
/// has it; without, it is nothing.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        $crate::fail::fail_point!($name)
    };
}

/// Marks a point of a write route. With the feature `failpoints` a test may end the process there; without, as here, it is
/// nothing.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {};
}
