//! Texts as the page has them: bounded in total, with their beginnings and their ends.

use super::picture::Said;
use foldback_core::thousands;

/// The most bytes that the texts of one conversation take in the page, if that is possible with the
/// least of the lengths below.
const BYTES_MOST: usize = 4_000_000;

/// The lengths of texts, in characters: the first with which all of them fit is used.
const LENGTHS: [usize; 8] = [200_000, 50_000, 20_000, 8_000, 4_000, 2_000, 1_000, 400];

/// Cuts the texts to the greatest length with which all of them fit, and returns that length.
pub(super) fn bound(messages: &mut [Said]) -> usize {
    let least = LENGTHS.last().copied().unwrap_or(0);
    let fits = |most: &usize| {
        let all = messages.iter().flat_map(texts);
        all.map(|text| bytes(&cut(text, *most))).sum::<usize>() <= BYTES_MOST
    };
    let most = LENGTHS.iter().find(|most| fits(most)).copied().unwrap_or(least);
    for message in messages {
        message.t = cut(&message.t, most);
        for (_, arguments) in &mut message.c {
            *arguments = cut(arguments, most);
        }
    }
    most
}

/// A text of about `most` characters: two thirds of them from the beginning, the rest from the end.
pub(super) fn cut(text: &str, most: usize) -> String {
    // No text has more characters than bytes, so most texts are not counted.
    let chars = if text.len() <= most { 0 } else { text.chars().count() };
    if chars <= most {
        return text.to_owned();
    }
    let (head, tail) = (most * 2 / 3, most / 3);
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let begin = text.get(..place(head)).unwrap_or_default();
    let end = text.get(place(chars - tail)..).unwrap_or_default();
    let left_out = thousands((chars - head - tail) as u64);
    format!("{begin}\n[… {left_out} characters are left out of this page …]\n{end}")
}

fn texts(message: &Said) -> impl Iterator<Item = &str> {
    std::iter::once(message.t.as_str()).chain(message.c.iter().map(|(_, a)| a.as_str()))
}

/// The bytes of a text in the page, counting the escapes of JSON and the page.
fn bytes(text: &str) -> usize {
    let written = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '<' | '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    };
    text.chars().map(written).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        let arguments = ("write".to_owned(), text.to_owned());
        Said {
            r: "user".to_owned(),
            n: None,
            t: text.to_owned(),
            c: vec![arguments],
            by: None,
            x: None,
            at: None,
            k: 1,
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        let text = format!("begin{}end", "数".repeat(1_000));
        let cut = cut(&text, 400);
        assert!(cut.starts_with("begin数") && cut.ends_with("数end"), "{cut}");
        assert!(cut.contains("[… 609 characters are left out of this page …]"), "{cut}");
        assert_eq!(super::cut("数数", 2), "数数");
    }

    #[test]
    fn many_long_texts_are_cut_until_they_fit() {
        let mut few = vec![said("short"), said(&"x".repeat(30_000))];
        assert_eq!(bound(&mut few), 200_000);
        assert_eq!(few[1].t.len(), 30_000);
        let mut many: Vec<_> = (0..200).map(|_| said(&"<数".repeat(20_000))).collect();
        let most = bound(&mut many);
        let all: usize = many.iter().flat_map(texts).map(bytes).sum();
        assert!(most < 20_000 && all <= BYTES_MOST, "{most}: {all}");
        assert!(many[0].c[0].1.contains("left out of this page"));
    }
}
