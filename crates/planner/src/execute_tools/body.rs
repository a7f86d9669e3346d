//! The text of a body.

/// Returns the text that a body stands for: CDATA is opened, entities are decoded once, and surrounding
/// white space is removed.
pub(super) fn text(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    // Where the text may be trimmed: before and after CDATA.
    let mut verbatim: Option<(usize, usize)> = None;
    let mut rest = body;
    while let Some(at) = rest.find("<![CDATA[") {
        decode_into(&rest[..at], &mut text);
        let data = &rest[at + "<![CDATA[".len()..];
        let length = data.find("]]>").unwrap_or(data.len());
        let from = text.len();
        text.push_str(&data[..length]);
        verbatim = Some((verbatim.map_or(from, |(from, _)| from), text.len()));
        rest = data.get(length + "]]>".len()..).unwrap_or("");
    }
    decode_into(rest, &mut text);
    let (from, to) = verbatim.unwrap_or((text.len(), 0));
    let end = to.max(text.trim_end().len());
    text.truncate(end);
    let blank = text.len() - text.trim_start().len();
    // In a text of several lines the first line's indent matters, at least to Python.
    let line = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    let is_single = !text[blank..].contains('\n');
    text.drain(..if is_single { blank } else { line }.min(from));
    text
}

/// Decodes entities, once: the result is not scanned again.
fn decode_into(text: &str, out: &mut String) {
    const LONGEST: usize = "&#x0010ffff;".len();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end + 1))) {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    u32::from_str_radix(digits, 16)
                }
                None if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse(),
                _ => return None,
            };
            code.ok().and_then(char::from_u32).filter(|c| *c != '\0')?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::text;

    /// ET7: entities are decoded once, CDATA is verbatim, and surrounding space is removed.
    #[test]
    fn et7_a_body_means_its_text() {
        for (body, expected) in [
            ("a &lt; b &amp;&amp; c", "a < b && c"),
            ("a < b && c", "a < b && c"),
            ("&amp;lt; &amp;amp;", "&lt; &amp;"),
            (
                "&nbsp; &; &#; &#x; &#xZ; &#0; &#x110000; & &amp",
                "&nbsp; &; &#; &#x; &#xZ; &#0; &#x110000; & &amp",
            ),
            ("&#26477;&#x5DDE;&apos;&quot;", "杭州'\""),
            ("<![CDATA[ a &lt; ]]>", " a &lt; "),
            ("\n <![CDATA[\n]]]]><![CDATA[>]]> \n", "\n]]>"),
            ("  query  \n", "query"),
            ("\n  if a:\n    b\n  ", "  if a:\n    b"),
            ("\n\n", ""),
            ("", ""),
            ("x<![CDATA[ ]]>", "x "),
        ] {
            assert_eq!(text(body), expected, "{body:?}");
        }
    }
}
