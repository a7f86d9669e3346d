//! Exact counts, and how close the estimate comes to them.

mod counts;
mod estimate;
