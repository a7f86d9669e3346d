//! How well changes of topic are found.
//!
//! Conversations are recorded into a memory as an import does it. If a block closed by topic, gap or
//! switch, the memory says that the topic changes; boundaries of blocks within a topic (loop, size) are
//! judged separately. Conversations whose source says where topics begin are scored; agent sessions
//! with a single task show how often a topic is cut without a change.

mod cuts;
mod page;
mod result;
mod score;
mod tiling;

pub use result::{Cutting, Figures, FileFigures, Judged, Score, Segmentation, SingleTask};
pub use score::{Errors, Tally, window};

use crate::{BenchError, Case};
use cuts::{MemoryCuts, even};
use foldback::Options;
use rayon::prelude::*;
use tiling::Tiling;

/// Cuts conversations by a memory with these options, and judges the cuts.
///
/// # Errors
/// When the memory fails.
pub fn measure(cases: &[Case], options: &Options) -> Result<Segmentation, BenchError> {
    let judged: Result<Vec<_>, _> = cases.par_iter().map(|case| judge(case, options)).collect();
    Ok(Segmentation::of(judged?))
}

fn judge(case: &Case, options: &Options) -> Result<Judged, BenchError> {
    let messages = &case.conversation.messages;
    let given = case.boundaries().unwrap_or_default();
    // Two messages contain no window, so they cannot be judged.
    let window = Some(window(messages.len(), given.len()))
        .filter(|window| !given.is_empty() && *window < messages.len());
    let cutting = |found: &[usize]| Cutting {
        errors: window
            .map_or_else(Errors::default, |k| Errors::of(messages.len(), k, &given, found)),
        tally: Tally::of(&given, found),
    };
    let beside = |tiling| match window {
        Some(_) => cutting(&tiling::cuts(messages, tiling)),
        None => Cutting::default(),
    };
    let found = MemoryCuts::of(case, options)?;
    Ok(Judged {
        id: case.id.clone(),
        file: case.file.clone(),
        kind: case.kind,
        messages: messages.len(),
        window,
        topics: cutting(&found.topics),
        blocks: cutting(&found.blocks),
        no_cut: cutting(&[]),
        even_cuts: cutting(&even(messages.len(), given.len())),
        text_tiling: beside(Tiling::OF_THE_PAPER),
        text_tiling_by_message: beside(Tiling::BY_MESSAGE),
    })
}
