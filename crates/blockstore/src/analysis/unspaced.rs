//! Terms of scripts without spaces between words, and of Korean, whose words have endings.
//!
//! - A run is parted where the script changes. Chinese characters (brought to their simplified form)
//!   give themselves and their pairs, and numbers their digits.
//! - Kana give their pairs, katakana and hiragana alike; a word in katakana also gives itself, and
//!   so do Chinese characters among kana, as they are one word then.
//! - A Korean word gives its stem and the pairs of the stem.
//! - Other scripts (Thai, Lao, Burmese, Khmer) give characters and pairs.
//!
//! Words that occur in most sentences are function words of questions, as in English.

use super::{Form, han, hangul};
use foldback_core::script::{
    is_hangul, is_hiragana, is_jamo, is_katakana, is_small_katakana, is_unspaced_alphabet,
};
use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// The scripts that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Han,
    Hiragana,
    Katakana,
    Hangul,
    Other,
}

/// Turns runs into terms; kept so that its memory is reused.
#[derive(Default)]
pub(super) struct Unspaced {
    /// The characters as they are compared, and the script that each was written in.
    chars: Vec<char>,
    scripts: Vec<Script>,
    /// The same characters, and where each begins.
    text: String,
    starts: Vec<usize>,
    stem: Vec<char>,
    word: String,
}

impl Unspaced {
    /// Hands the terms of `run` to `sink`.
    pub(super) fn terms(&mut self, run: &str, sink: &mut impl FnMut(&str, Form)) {
        self.take(run);
        let mut from = 0;
        let mut parts = std::mem::take(&mut self.scripts);
        for part in parts.chunk_by(|a, b| a == b) {
            let to = from + part.len();
            match part.first() {
                Some(Script::Han) => self.han(from, to, &parts, sink),
                Some(Script::Hiragana) => self.hiragana(from, to, &parts, sink),
                Some(Script::Katakana) => self.katakana(from, to, sink),
                Some(Script::Hangul) => self.hangul(from, to, sink),
                Some(Script::Other) => {
                    self.singles(from, to, |_| false, sink);
                    self.pairs(from, to, |_| false, sink);
                }
                None => {}
            }
            from = to;
        }
        parts.clear();
        self.scripts = parts;
    }

    fn take(&mut self, run: &str) {
        self.chars.clear();
        self.scripts.clear();
        self.text.clear();
        self.starts.clear();
        for c in run.chars() {
            let script = match c {
                // The mark of a long vowel belongs to the vowel before it.
                'ー' => self.scripts.last().copied().unwrap_or(Script::Katakana),
                c if is_hiragana(c) => Script::Hiragana,
                c if is_katakana(c) || is_small_katakana(c) => Script::Katakana,
                c if is_jamo(c) || is_hangul(c) => Script::Hangul,
                c if is_unspaced_alphabet(c) => Script::Other,
                _ => Script::Han,
            };
            let c = match (script, c) {
                (Script::Han, c) => han::simplified(c),
                (_, '\u{30a1}'..='\u{30f6}' | '\u{30fd}' | '\u{30fe}') => {
                    char::from_u32(c as u32 - 0x60).unwrap_or(c)
                }
                (_, c) => c,
            };
            self.starts.push(self.text.len());
            self.text.push(c);
            self.chars.push(c);
            self.scripts.push(script);
        }
        self.starts.push(self.text.len());
    }

    /// Returns the characters from `from` to `to`.
    fn slice(&self, from: usize, to: usize) -> (&str, &[char]) {
        let at = |place: usize| self.starts.get(place).copied().unwrap_or(self.text.len());
        let text = self.text.get(at(from)..at(to)).unwrap_or_default();
        (text, self.chars.get(from..to).unwrap_or_default())
    }

    fn singles(
        &self,
        from: usize,
        to: usize,
        is_common: impl Fn(&[char]) -> bool,
        sink: &mut impl FnMut(&str, Form),
    ) {
        for at in from..to {
            let (text, chars) = self.slice(at, at + 1);
            sink(text, form(is_common(chars)));
        }
    }

    /// The pairs; for a single character the character itself.
    fn pairs(
        &self,
        from: usize,
        to: usize,
        is_common: impl Fn(&[char]) -> bool,
        sink: &mut impl FnMut(&str, Form),
    ) {
        for at in from..to.saturating_sub(1).max(from + 1) {
            let (text, chars) = self.slice(at, to.min(at + 2));
            sink(text, form(is_common(chars)));
        }
    }

    fn han(&self, from: usize, to: usize, scripts: &[Script], sink: &mut impl FnMut(&str, Form)) {
        self.singles(from, to, is_common_han, sink);
        if to - from > 1 {
            self.pairs(from, to, is_common_han, sink);
        }
        let is_kana = |at: Option<usize>| {
            let script = at.and_then(|at| scripts.get(at));
            matches!(script, Some(Script::Hiragana | Script::Katakana))
        };
        let kana_behind = is_kana(Some(to));
        if (3..=8).contains(&(to - from)) && (kana_behind || is_kana(from.checked_sub(1))) {
            sink(self.slice(from, to).0, Form::Plain);
        }
        // The first character of the kana that follow tells its reading: 食べ, 増え.
        if kana_behind && scripts.get(to) == Some(&Script::Hiragana) {
            let (text, chars) = self.slice(to - 1, to + 1);
            if !chars.last().is_some_and(|c| PARTICLES.contains(*c)) {
                sink(text, Form::Plain);
            }
        }
        self.numbers(from, to, sink);
    }

    /// The numbers among Chinese characters, in digits.
    fn numbers(&self, from: usize, to: usize, sink: &mut impl FnMut(&str, Form)) {
        let (_, chars) = self.slice(from, to);
        let mut at = 0;
        for part in chars.chunk_by(|a, b| han::is_numeral(*a) == han::is_numeral(*b)) {
            at += part.len();
            let counts = chars.get(at).is_some_and(|next| han::is_counter(*next));
            if !part.first().is_some_and(|c| han::is_numeral(*c)) || (part.len() < 2 && !counts) {
                continue;
            }
            if let Some(number) = han::number(part) {
                sink(&number.to_string(), Form::Plain);
            }
        }
    }

    fn hiragana(
        &self,
        from: usize,
        to: usize,
        scripts: &[Script],
        sink: &mut impl FnMut(&str, Form),
    ) {
        let before = from.checked_sub(1).and_then(|at| scripts.get(at));
        let behind_noun = matches!(before, Some(Script::Han | Script::Katakana));
        if behind_noun && to - from > 1 {
            // A particle and the first character after it: 料金のか.
            let (text, chars) = self.slice(from, from + 2);
            let is_particle = matches!(chars, ['は' | 'が' | 'を' | 'の', _]);
            sink(text, form(is_particle || is_common_kana(chars)));
            if to - from > 2 {
                self.pairs(from + 1, to, is_common_kana, sink);
            }
        } else {
            self.pairs(from, to, is_common_kana, sink);
        }
    }

    fn katakana(&self, from: usize, to: usize, sink: &mut impl FnMut(&str, Form)) {
        self.pairs(from, to, |_| false, sink);
        // サーバ and サーバー are one word.
        let long = to - from > 3 && self.chars.get(to - 1) == Some(&'ー');
        let end = if long { to - 1 } else { to };
        if (3..=16).contains(&(end - from)) {
            sink(self.slice(from, end).0, Form::Plain);
        }
    }

    fn hangul(&mut self, from: usize, to: usize, sink: &mut impl FnMut(&str, Form)) {
        let mut stem = std::mem::take(&mut self.stem);
        let mut word = std::mem::take(&mut self.word);
        let (text, chars) = self.slice(from, to);
        hangul::stem(chars, &mut stem);
        if chars.len() == 2 && stem.len() == 1 {
            // It may be a word that only happens to end like a particle: 회의.
            sink(text, form(hangul::is_function(chars)));
        }
        let mut give = |chars: &[char]| {
            word.clear();
            word.extend(chars);
            sink(&word, form(hangul::is_function(chars)));
        };
        if stem.len() <= MAX_STEM {
            give(&stem);
        }
        if stem.len() > 2 {
            stem.windows(2).for_each(give);
        }
        (self.stem, self.word) = (stem, word);
    }
}

/// The longest Korean stem that is a term of its own, in syllables.
const MAX_STEM: usize = 12;

fn form(is_common: bool) -> Form {
    if is_common { Form::Common } else { Form::Plain }
}

/// Particles of Japanese that directly follow a noun.
const PARTICLES: &str = "がはをにのとへもでかやだ";

/// Chinese characters that occur in any sentence, simplified; also 何 of Japanese. A pair of them is as common as each.
const COMMON_HAN: &str = "的了吗呢吧啊呀嘛么什怎哪谁几个们是在有和与及或把被从到对为就都也还又很太最这那\
    我你您他她它会能可要想请让给着过得地之其而但因所以如若何没不说来去";

/// Words with one of the characters that make any other pair common.
const TELLING_HAN: &str =
    "目的 标的 的士 的确 了解 了结 终了 酒吧 网吧 贴吧 吧台 吗啡 呢绒 呢子 啊哈 幺么";

fn is_common_han(chars: &[char]) -> bool {
    static COMMON: LazyLock<FxHashSet<char>> = LazyLock::new(|| COMMON_HAN.chars().collect());
    static TELLING: LazyLock<FxHashSet<[char; 2]>> = LazyLock::new(|| pairs_of(TELLING_HAN));
    match chars {
        ['多', '少'] => true,
        [a, b] if TELLING.contains(&[*a, *b]) => false,
        _ => {
            chars.iter().any(|c| "的了吗呢吧啊么".contains(*c))
                || chars.iter().all(|c| COMMON.contains(c))
        }
    }
}

fn pairs_of(list: &str) -> FxHashSet<[char; 2]> {
    let pairs = list.split_whitespace().map(|pair| {
        let mut chars = pair.chars();
        [chars.next().unwrap_or_default(), chars.next().unwrap_or_default()]
    });
    pairs.collect()
}

/// Pairs of hiragana that belong to endings, particles and question words.
const COMMON_KANA: &str = "です ます まし した して ので から まで には では とは とき こと もの など なに どこ \
    いつ だれ どれ どの どう どん った って てい いま いた ない なり なる なっ れる られ れた さい くだ ださ せん \
    ませ すか のか かか うか たか たの るの いの のは のが のに のを にし にな もう よう うに うな うで たら なら \
    れば ても でも だけ ほど くら ぐら らい いい よい いる ある あり りま きま しま えま いて ちゃ とい いう いつ \
    つま つか んな んで んだ ので には への での との から らの まの その この あの それ これ あれ そう こう ああ \
    ょう しょ でし すが るか たい たく なけ けれ";

fn is_common_kana(chars: &[char]) -> bool {
    static COMMON: LazyLock<FxHashSet<[char; 2]>> = LazyLock::new(|| pairs_of(COMMON_KANA));
    match chars {
        [_, 'を'] => true,
        [a, b] => COMMON.contains(&[*a, *b]),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(run: &str, expected: &str) {
        let mut terms = Vec::new();
        Unspaced::default().terms(run, &mut |term, _| terms.push(term.to_owned()));
        assert_eq!(terms.join(" "), expected, "{run}");
    }

    #[track_caller]
    fn check_common(run: &str, expected: &str) {
        let mut terms = Vec::new();
        Unspaced::default().terms(run, &mut |term, form| {
            if form == Form::Common {
                terms.push(term.to_owned());
            }
        });
        assert_eq!(terms.join(" "), expected, "{run}");
    }

    #[test]
    fn bl10_both_scripts_of_chinese_are_one() {
        check("發票", "发 票 发票");
        check("发票", "发 票 发票");
    }

    #[test]
    fn bl10_japanese_words_are_found_by_script() {
        check("標準偏差は", "标 准 偏 差 标准 准偏 偏差 标准偏差 は");
        check("食べる", "食 食べ べる");
        check("料金を", "料 金 料金 を");
        check("サーバー", "さー ーば ばー さーば");
        check("さーば", "さー ーば");
    }

    #[test]
    fn bl10_korean_words_are_found_by_their_stems() {
        check("보험으로", "보험");
        check("게이트웨이를", "게이트웨이 게이 이트 트웨 웨이");
        check("회의", "회의 회");
        check("돈이", "돈이 돈");
    }

    #[test]
    fn bl10_numbers_in_characters_are_found_in_digits() {
        check("三月十八", "三 月 十 八 三月 月十 十八 3 18");
        check("一个", "一 个 一个");
    }

    #[test]
    fn bl10_other_scripts_give_characters_and_pairs() {
        check("ภาษา", "ภ า ษ า ภา าษ ษา");
    }

    /// BL10: a sequence that looks like a particle or a function word may be part of a word that is searched for.
    #[test]
    fn bl10_words_of_common_characters_are_not_common() {
        for word in ["のど", "はがき", "がん", "はさみ", "目的", "酒吧", "了解"] {
            let mut telling = false;
            Unspaced::default().terms(word, &mut |term, form| {
                telling |= term.chars().count() == 2 && form != Form::Common;
            });
            assert!(telling, "{word}");
        }
        check_common("我的目的", "我 的 的 我的 的目");
        check_common("酒吧在哪", "吧 在 哪 吧在 在哪");
    }

    #[test]
    fn bl10_what_stands_in_most_sentences_is_common() {
        check_common("为什么这么贵", "为 什 么 这 么 为什 什么 么这 这么 么贵");
        check_common("いくらですか", "くら です すか");
        check_common("料金のことは", "のこ こと とは");
        check_common("얼마", "얼마");
    }
}
