//! The longest answer of Anthropic's models, which their API requires in each request.
//!
//! The numbers come from Anthropic's public list of models, which names the greatest output of each. Some
//! models allow more than is listed here: a number that is too small can end an answer early, one that is
//! too great is refused.

/// Returns the greatest number of tokens that may be requested, by the name of the model: an unknown
/// model is taken for a usual one of today. A name may have a gateway's words around it, as in
/// `anthropic/claude-opus-4.5`, and other separators between its parts.
pub(crate) fn longest_answer(name: &str) -> u32 {
    let name = name.find("claude-").map_or(name, |start| &name[start..]);
    let name = &name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match (version_of("opus", name), version_of("haiku", name)) {
        (Some((4, 8..) | (5.., _)), _) | (_, Some((5.., _))) => 128_000,
        (Some((4, 5..)), _) => 64_000,
        (Some((4, _)), _) => 32_000,
        (Some((3, _)), _) => 4_096,
        _ if has(&["fable", "mythos"]) => 128_000,
        _ if has(&["claude-sonnet", "claude-haiku", "claude-3-7-sonnet"]) => 64_000,
        _ if has(&["claude-3-5"]) => 8_192,
        _ if has(&["3-opus", "3-sonnet", "3-haiku"]) => 4_096,
        _ => 64_000,
    }
}

/// Returns the version in a name such as `claude-opus-4-5-20251101`, as major and minor.
fn version_of(family: &str, name: &str) -> Option<(u32, u32)> {
    let version = name.strip_prefix("claude-")?.strip_prefix(family)?.strip_prefix('-')?;
    // A number with more digits is a date.
    let is_number = |part: &&str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut numbers = version.split('-').take_while(is_number).map(str::parse);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::longest_answer;

    #[test]
    fn names_say_how_long_an_answer_may_be() {
        for (name, expected) in [
            ("claude-opus-5", 128_000),
            ("claude-opus-4-10", 128_000),
            ("claude-opus-4-8", 128_000),
            ("claude-opus-4-5-20251101", 64_000),
            ("claude-opus-4-1-20250805", 32_000),
            ("claude-opus-4-20250514", 32_000),
            ("claude-opus-3", 4_096),
            ("claude-opus-latest", 64_000),
            ("claude-haiku-5", 128_000),
            ("claude-haiku-4-5", 64_000),
            ("claude-sonnet-4-5", 64_000),
            ("claude-fable-1", 128_000),
            ("claude-3-7-sonnet-latest", 64_000),
            ("claude-3-5-haiku-latest", 8_192),
            ("claude-3-haiku-20240307", 4_096),
            ("claude-3-opus-20240229", 4_096),
            ("claude-3-sonnet-20240229", 4_096),
            ("anthropic/claude-opus-4-8", 128_000),
            ("anthropic/claude-opus-4-5", 64_000),
            ("anthropic/claude-opus-4-1", 32_000),
            ("anthropic/claude-opus-4.8", 128_000),
            ("anthropic/claude-haiku-5", 128_000),
            ("anthropic/claude-3.5-sonnet", 8_192),
            ("us.anthropic.claude-opus-4-8-v1:0", 128_000),
            ("claude-opus-4-5@20251101", 64_000),
            ("anthropic/claude-3-sonnet", 4_096),
            ("网关/claude-opus-4-1", 32_000),
            ("deepseek-chat", 64_000),
        ] {
            assert_eq!(longest_answer(name), expected, "{name}");
        }
    }
}
