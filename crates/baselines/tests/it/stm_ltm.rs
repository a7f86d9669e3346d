//! The last step unchanged, a memory of everything older, and the raw words behind it.

mod drive;
mod late;
mod memory;
mod raw;
mod shown;
