//! Instructions in the middle of a conversation, for providers that have no place for them: they are
//! put in the user's turn between tags, which no other text can contain.

/// The tag around such an instruction.
const TAG: &str = "system";

/// Returns an instruction as it is written in the user's turn.
pub(crate) fn tagged(text: &str) -> String {
    format!("<{TAG}>\n{text}\n</{TAG}>")
}

/// Returns whether a text begins with one of the tags, in any spacing or spelling that a model would recognise.
pub(crate) fn begins_with_tag(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('<') else { return false };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
    let name = rest.get(..TAG.len()).filter(|name| name.eq_ignore_ascii_case(TAG));
    name.is_some_and(|_| rest[TAG.len()..].trim_start().starts_with('>'))
}
