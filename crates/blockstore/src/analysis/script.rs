//! The script of a text, as far as languages are told apart by it.

use foldback_core::script::{is_hangul, is_ideograph, is_kana};

/// Which script the terms of a text are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Script {
    /// Three quarters or more are Chinese, Japanese or Korean.
    Cjk,
    /// Three quarters or more are not.
    Other,
    /// Neither, or there are none.
    #[default]
    Both,
}

impl Script {
    pub(crate) const ALL: [Self; 3] = [Self::Cjk, Self::Other, Self::Both];

    /// That of these terms, each so often.
    pub(crate) fn of<'t>(terms: impl Iterator<Item = (&'t str, u32)>) -> Self {
        let is_cjk = |term: &str| {
            term.chars().next().is_some_and(|c| is_ideograph(c) || is_kana(c) || is_hangul(c))
        };
        let (mut cjk, mut all) = (0_u64, 0_u64);
        for (term, count) in terms {
            all += u64::from(count);
            cjk += if is_cjk(term) { u64::from(count) } else { 0 };
        }
        match cjk * 4 {
            _ if all == 0 => Self::Both,
            quarters if quarters >= 3 * all => Self::Cjk,
            quarters if quarters <= all => Self::Other,
            _ => Self::Both,
        }
    }

    /// Whether a text in one is in another script than one in the other.
    pub(crate) fn differs(self, other: Self) -> bool {
        matches!((self, other), (Self::Cjk, Self::Other) | (Self::Other, Self::Cjk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_the_terms_are_a_script() {
        let of = |terms: &[(&'static str, u32)]| Script::of(terms.iter().copied());
        assert_eq!(of(&[("码头", 3), ("quay", 1)]), Script::Cjk);
        assert_eq!(of(&[("码头", 2), ("quay", 1)]), Script::Both);
        assert_eq!(of(&[("부두", 1), ("quay", 3)]), Script::Other);
        assert_eq!(of(&[("ふ頭", 1)]), Script::Cjk);
        assert_eq!(of(&[]), Script::Both);
        assert!(Script::Cjk.differs(Script::Other) && Script::Other.differs(Script::Cjk));
        assert!(!Script::Cjk.differs(Script::Both) && !Script::Both.differs(Script::Other));
    }
}
