//! The measurements of the lab, in a program that was built with it.

mod index;
mod plans;
mod recall;
#[cfg(feature = "postgres")]
mod scale;
