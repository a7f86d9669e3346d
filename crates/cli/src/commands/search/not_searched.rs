//! Warnings of what was not searched, for a person.

use crate::cli::Globals;
use crate::output;
use foldback::{NotSearched, WhyUnsearched};
use foldback_core::thousands;

/// Warns of what was not searched, once for each kind.
pub(super) fn warn_of(globals: &Globals, not_searched: &NotSearched) {
    let NotSearched { parts, more } = not_searched;
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for part in parts {
        let why = match &part.why {
            WhyUnsearched::Unreadable(detail) => format!("cannot be read now ({detail})"),
            WhyUnsearched::NoRoom => "no room in memory until an index holds it".to_owned(),
            WhyUnsearched::Missing => "missing".to_owned(),
            _ => "damaged".to_owned(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(part.name()),
            None => kinds.push((why, vec![part.name()])),
        }
    }
    for (why, names) in kinds {
        output::warn(globals, format_args!("not searched: {} ({why})", names.join(", ")));
    }
    if *more > 0 {
        let more = thousands(*more);
        output::warn(
            globals,
            format_args!("{more} more parts were not searched; see `foldback doctor`"),
        );
    }
}
