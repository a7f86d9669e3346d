//! Pages of results: one self-contained HTML file with tables and pictures.

mod bars;
mod lines;
mod page;
mod palette;

pub use bars::{Bar, Bars};
pub use lines::{Axis, Lines, Mark, Series};
pub use page::{Page, Section};
