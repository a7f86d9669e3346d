//! The names of context policies as options accept them: full names, and short names for the memory's own policies.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use foldback_policies::Policy;

/// Parses a full or a short name, and returns the full name.
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
