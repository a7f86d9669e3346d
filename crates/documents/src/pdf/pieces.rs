//! Splits the content of a page into pieces that each end with an operator: read at once, a page of a few
//! kilobytes that unpacks to some megabytes takes hundreds of megabytes.

/// The least number of bytes of a piece, except for the last.
const LEAST: usize = 64 << 10;

/// A longer piece is one operator with what it draws: a picture, or endless numbers. No text is lost with it.
const MOST: usize = 1 << 20;

/// Returns the pieces of a page's content, without those that are too long.
pub(super) fn pieces(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = content;
    let pieces = std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at_checked(end(rest))?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    });
    pieces.filter(|piece| piece.len() <= MOST)
}

/// Returns the end of the first operator after the least size of a piece; else the end of the content.
fn end(content: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = content.get(at) {
        at = match byte {
            b'%' => skip(content, at, |byte| !matches!(byte, b'\n' | b'\r')),
            b'(' => string_end(content, at),
            b'<' if content.get(at + 1) != Some(&b'<') => skip(content, at, |byte| byte != b'>'),
            b'/' => skip(content, at + 1, is_regular),
            byte if is_regular(*byte) => {
                let end = skip(content, at, is_regular);
                let token = content.get(at..end).unwrap_or_default();
                let end = if token == b"BI" { picture_end(content, end) } else { end };
                if end >= LEAST && is_operator(token) {
                    return end;
                }
                end
            }
            _ => at + 1,
        };
    }
    content.len()
}

/// Returns the place after the following bytes that satisfy the condition.
fn skip(content: &[u8], from: usize, is_so: impl Fn(u8) -> bool) -> usize {
    let rest = content.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| is_so(**byte)).count()
}

/// Returns the place after a text in brackets, which may contain others.
fn string_end(content: &[u8], from: usize) -> usize {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, byte) in content.iter().enumerate().skip(from) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'(' => depth += 1,
            b')' if depth <= 1 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
    }
    content.len()
}

/// Returns the place after a picture in the content, which ends with `EI`.
fn picture_end(content: &[u8], from: usize) -> usize {
    let rest = content.get(from..).unwrap_or_default();
    let ends = |window: &[u8]| matches!(window, [before, b'E', b'I', behind] if before.is_ascii_whitespace() && !is_regular(*behind));
    rest.windows(4).position(ends).map_or(content.len(), |at| from + at + 3)
}

/// Returns whether a byte is neither white space nor a PDF delimiter.
fn is_regular(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && byte != 0 && !b"()<>[]{}/%".contains(&byte)
}

/// Returns whether a token is an operator, which draws or sets something; all other tokens are operands.
fn is_operator(token: &[u8]) -> bool {
    let is_word =
        token.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"'\"".contains(byte));
    is_word && !matches!(token, b"true" | b"false" | b"null")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces add up to the whole, and none begins within an operator.
    #[test]
    fn a_piece_ends_with_an_operator() {
        let page = "BT /F1 12 Tf (a \\) ( ET ) b) Tj <48 65> Tj [(x) -200 (y)] TJ % ET\n 1 0 0 1 7 8.5 Tm << /A true >> BDC \
                    BI /W 1 ID \x01 Q ( EI Q (it's) ' T* ET ";
        let content = page.repeat(4_000);
        let all: Vec<&[u8]> = pieces(content.as_bytes()).collect();
        assert!(all.len() > 5, "{} pieces", all.len());
        assert_eq!(all.concat(), content.as_bytes());
        for piece in all {
            let words = String::from_utf8_lossy(piece);
            let last = words.trim_end().rsplit([' ', '\n']).next().unwrap_or_default();
            assert!(is_operator(last.as_bytes()), "{last}");
            assert_eq!(words.matches("(a \\)").count(), words.matches(") b)").count());
        }
    }

    #[test]
    fn what_never_ends_is_passed_over() {
        for open in ["(", "<", "[", "[0 ", "% ", "BI ", "/", "0 ", "(\\"] {
            let content = open.repeat(2 << 20);
            assert_eq!(pieces(content.as_bytes()).count(), 0, "{open}");
            assert_eq!(pieces(&content.as_bytes()[..100]).count(), 1, "{open}");
        }
        assert_eq!(pieces(b"").count(), 0);
    }
}
