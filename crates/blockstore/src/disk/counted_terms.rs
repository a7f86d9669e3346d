//! The terms of a document, each with its count, as a text that tantivy takes apart again.
//!
//! tantivy's own form of analysed text repeats a term for each of its occurrences, and passes through JSON.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Writes terms, each with how often it occurs, as the text that [`CountedTerms`] reads.
pub(super) fn counted(terms: &[(Box<str>, u32)]) -> String {
    let mut text = String::with_capacity(terms.iter().map(|(term, _)| term.len() + 8).sum());
    for (term, count) in terms {
        for number in [count, &(term.len() as u32)] {
            text.push_str(&number.to_string());
            text.push(' ');
        }
        text.push_str(term);
    }
    text
}

/// The tokenizer of texts that [`counted`] has written.
#[derive(Clone)]
pub(super) struct CountedTerms;

impl CountedTerms {
    /// The name that the schema knows it by.
    pub(super) const NAME: &'static str = "counted_terms";
}

impl Tokenizer for CountedTerms {
    type TokenStream<'a> = Counted<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Counted<'a> {
        // Positions are not indexed.
        Counted { rest: text, left: 0, token: Token { position: 0, ..Token::default() } }
    }
}

/// Each term as often as it occurs.
pub(super) struct Counted<'a> {
    rest: &'a str,
    /// How often the current term is still to come.
    left: u32,
    token: Token,
}

impl Counted<'_> {
    /// Moves on to the next term; `None` at the end, or where the text is not one of [`counted`].
    fn next_term(&mut self) -> Option<()> {
        let (count, rest) = self.rest.split_once(' ')?;
        let (len, rest) = rest.split_once(' ')?;
        let (term, rest) = rest.split_at_checked(len.parse().ok()?)?;
        self.left = count.parse().ok()?;
        self.rest = rest;
        self.token.text.clear();
        self.token.text.push_str(term);
        Some(())
    }
}

impl TokenStream for Counted<'_> {
    fn advance(&mut self) -> bool {
        while self.left == 0 {
            if self.next_term().is_none() {
                return false;
            }
        }
        self.left -= 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_back_as_often_as_they_occur() {
        let terms = [("港口", 2), ("a 3 b", 1), ("never", 0), ("", 1), ("x", 3)];
        let text = counted(&terms.map(|(term, count)| (term.into(), count)));
        let mut tokenizer = CountedTerms;
        let mut stream = tokenizer.token_stream(&text);
        let mut tokens = Vec::new();
        stream.process(&mut |token| tokens.push(token.text.clone()));
        assert_eq!(tokens, ["港口", "港口", "a 3 b", "", "x", "x", "x"]);
    }
}
