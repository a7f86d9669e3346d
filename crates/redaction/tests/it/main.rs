//! What is found, and what is not.

mod benign;
mod bounds;
mod recall;
mod samples;
