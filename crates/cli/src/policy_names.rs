//! The names of context policies as options take them: in full, and the short ones of the memory's own.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use foldback_policies::Policy;

/// Reads one of these names, or a short one of theirs, as the name in full.
pub(crate) fn parser(
    names: impl Iterator<Item = &'static str>,
) -> impl TypedValueParser<Value = String> {
    let value = |name| {
        let short = Policy::named(name).and_then(Policy::short_name);
        PossibleValue::new(name).aliases(short)
    };
    let in_full =
        |name: String| Policy::named(&name).map_or(name, |policy| policy.name().to_owned());
    PossibleValuesParser::new(names.map(value)).map(in_full)
}
