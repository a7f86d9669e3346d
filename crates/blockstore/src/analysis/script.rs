//! The script of a text, as far as it distinguishes languages.

use foldback_core::script::{is_hangul, is_ideograph, is_kana};

/// The script that the terms of a text are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Script {
    /// Three quarters or more are Chinese, Japanese or Korean.
    Cjk,
    /// Three quarters or more are not.
    NotCjk,
    /// Neither holds, or there are no words.
    #[default]
    Mixed,
}

impl Script {
    pub(crate) const ALL: [Self; 3] = [Self::Cjk, Self::NotCjk, Self::Mixed];

    /// Returns the script of these terms; each comes with its count. Numbers, and names made of digits and marks, are
    /// of no script.
    pub(crate) fn of<'t>(terms: impl Iterator<Item = (&'t str, u32)>) -> Self {
        let is_cjk = |term: &str| {
            term.chars().next().is_some_and(|c| is_ideograph(c) || is_kana(c) || is_hangul(c))
        };
        let (mut cjk, mut all) = (0_u64, 0_u64);
        for (term, count) in terms {
            if !term.chars().all(char::is_alphabetic) {
                continue;
            }
            all += u64::from(count);
            cjk += if is_cjk(term) { u64::from(count) } else { 0 };
        }
        match cjk * 4 {
            _ if all == 0 => Self::Mixed,
            quarters if quarters >= 3 * all => Self::Cjk,
            quarters if quarters <= all => Self::NotCjk,
            _ => Self::Mixed,
        }
    }

    /// Returns whether a text in one is in another script than a text in the other.
    pub(crate) fn differs(self, other: Self) -> bool {
        matches!((self, other), (Self::Cjk, Self::NotCjk) | (Self::NotCjk, Self::Cjk))
    }
}

/// The scripts that some texts are in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scripts {
    is_any_cjk: bool,
    is_any_not_cjk: bool,
}

impl Scripts {
    pub(crate) fn add(&mut self, script: Script) {
        self.is_any_cjk |= script == Script::Cjk;
        self.is_any_not_cjk |= script == Script::NotCjk;
    }

    /// Returns whether one of the texts is in another script.
    pub(crate) fn any_differs(self, script: Script) -> bool {
        match script {
            Script::Cjk => self.is_any_not_cjk,
            Script::NotCjk => self.is_any_cjk,
            Script::Mixed => false,
        }
    }
}

impl FromIterator<Script> for Scripts {
    fn from_iter<T: IntoIterator<Item = Script>>(scripts: T) -> Self {
        let mut all = Self::default();
        scripts.into_iter().for_each(|script| all.add(script));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_the_terms_are_a_script() {
        let of = |terms: &[(&'static str, u32)]| Script::of(terms.iter().copied());
        assert_eq!(of(&[("码头", 3), ("quay", 1)]), Script::Cjk);
        assert_eq!(of(&[("码头", 2), ("quay", 1)]), Script::Mixed);
        assert_eq!(of(&[("부두", 1), ("quay", 3)]), Script::NotCjk);
        assert_eq!(of(&[("ふ頭", 1)]), Script::Cjk);
        assert_eq!(of(&[("码头", 3), ("e-4417", 9), ("7302", 9)]), Script::Cjk);
        assert_eq!(of(&[]), Script::Mixed);
        let scripts: Scripts = [Script::Cjk, Script::Mixed].into_iter().collect();
        assert!(scripts.any_differs(Script::NotCjk) && !scripts.any_differs(Script::Cjk));
        assert!(Script::Cjk.differs(Script::NotCjk) && Script::NotCjk.differs(Script::Cjk));
        assert!(!Script::Cjk.differs(Script::Mixed) && !Script::Mixed.differs(Script::NotCjk));
    }
}
