//! Instructions that are given in the middle of a conversation, where a provider has no place for them:
//! they stand in the user's turn between tags, which nobody else's words can write.

/// The tag around such an instruction.
const TAG: &str = "system";

/// An instruction as it stands in the user's turn.
pub(crate) fn tagged(text: &str) -> String {
    format!("<{TAG}>\n{text}\n</{TAG}>")
}

/// Whether a text begins with one of the tags, spaced or spelt however a model would still read it.
pub(crate) fn begins_with_tag(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('<') else { return false };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
    let name = rest.get(..TAG.len()).filter(|name| name.eq_ignore_ascii_case(TAG));
    name.is_some_and(|_| rest[TAG.len()..].trim_start().starts_with('>'))
}
