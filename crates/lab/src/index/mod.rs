//! The speed of the store, compared with others on the same files, and as it grows.
//!
//! - [`contest()`] runs workload W1: the same blocks, vectors and questions that other stores are given,
//!   with the same keys in its result.
//! - [`climb`] measures the assembled memory at one step of a ladder: a number of blocks in a todo, or
//!   a number of todos.
//! - [`Load`] measures it under load: todos that come and go, readers beside writers, single adds, a
//!   killed writer, large payloads, the search over all todos.
//!
//! - `Scale`, with the feature `postgres`, measures stores in a database: as they grow, and with several nodes.
//!
//! Memory and cold starts have to be measured in separate processes, so all measurements are given the
//! command that runs a [`Part`] ([`Again`]). Counts are the same each time; times are not.

mod contest;
mod contestant;
mod growth;
mod ladder;
mod load;
#[cfg(feature = "postgres")]
mod scale;
mod workload;

mod again;
mod cold;
mod machine;
mod page;
mod part;
mod slope;
mod table;
mod talk;
mod words;

pub use again::Again;
pub use contest::{Standing, contest};
pub use growth::{Growth, growth, growth_sheet};
pub use ladder::{
    BLOCKS_EACH, LADDER_NOTE, Rung, Step, climb, ladder_counts, ladder_sheet, ladder_times, rungs,
};
pub use load::{Load, Measured};
pub use page::{contest_page, ladder_page};
pub use part::Part;
#[cfg(feature = "postgres")]
pub use scale::{NodeLoad, Scale, Task};
pub(crate) use words::Random;
pub use workload::Workload;
