//! The terms of a text: what two texts must share to be about the same thing.

use crate::background::background;
use crate::stems::Stem;
use foldback_core::first_chars;
use foldback_core::script::{
    is_hangul, is_hiragana, is_ideograph, is_ideograph_mark, is_kana, is_katakana,
    is_unspaced_alphabet,
};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use unicode_normalization::char::is_combining_mark;

/// A stem, as 24 bits of its hash. A conversation's window holds about a thousand terms, so that
/// two of them share a hash in one of thirty windows, and then add a little noise.
pub(crate) type Term = u32;

/// The terms of one message with how often they occur, in the order of their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Terms(Vec<u32>);

/// The number of terms of one message that are kept: those with the greatest weight. It bounds the state.
pub(crate) const TERMS_PER_MESSAGE: usize = 48;

impl Terms {
    /// Returns the terms of several texts together.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts: BTreeMap<Term, u8> = BTreeMap::new();
        for text in texts {
            each_word(text, |word| {
                let stem = Stem::of(word);
                if !stem.is_stop_word {
                    let count = counts.entry(stem.term).or_default();
                    *count = count.saturating_add(1);
                }
            });
        }
        let mut terms: Vec<(Term, u8)> = counts.into_iter().collect();
        if terms.len() > TERMS_PER_MESSAGE {
            let weight = |(term, count): (Term, u8)| background(term) * damped(count);
            let mut weighed: Vec<_> = terms.into_iter().map(|kept| (weight(kept), kept)).collect();
            weighed.select_nth_unstable_by(TERMS_PER_MESSAGE - 1, |a, b| {
                b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
            });
            terms = weighed.into_iter().take(TERMS_PER_MESSAGE).map(|(_, kept)| kept).collect();
            terms.sort_unstable();
        }
        Self(terms.into_iter().map(|(term, count)| term << 8 | u32::from(count)).collect())
    }

    /// Returns each term and how often it occurs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Term, u8)> {
        self.0.iter().map(|packed| (packed >> 8, *packed as u8))
    }

    /// Returns the packed form: four bytes for each term.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|packed| packed.to_be_bytes()).collect()
    }

    /// Reads the packed form; `None` when it is invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        let terms: Vec<u32> = chunks.iter().map(|chunk| u32::from_be_bytes(*chunk)).collect();
        let ordered = terms.windows(2).all(|pair| matches!(pair, [a, b] if a >> 8 < b >> 8));
        (rest.is_empty() && ordered && terms.len() <= TERMS_PER_MESSAGE).then_some(Self(terms))
    }
}

/// Returns a damped count: the second mention says less than the first.
pub(crate) fn damped(count: u8) -> f32 {
    1.0 + f32::from(count.max(1)).ln()
}

/// Returns the hash of a stem (FNV-1a). It is part of stored states, so it never changes.
pub(crate) fn hash(text: &str) -> Term {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in text.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    (hash ^ hash >> 24) & 0x00ff_ffff
}

/// Returns the words of a text by which topics are recognised, in their order: a number for the stem of each word, the
/// same for the same stem, and `None` for a word that says nothing about a topic. For Chinese, Japanese and Korean, the
/// parts that show a topic. For comparing other ways of finding topics with this one.
#[must_use]
pub fn words(text: &str) -> Vec<Option<u32>> {
    let mut words = Vec::new();
    each_word(text, |word| {
        let stem = Stem::of(word);
        words.push((!stem.is_stop_word).then_some(stem.term));
    });
    words
}

/// Returns about how many words of content a text has, whatever its script. In scripts without separated words, two
/// Chinese characters are about one word, and eight letters of Thai, Lao, Burmese or Khmer contain about two words, one
/// with content and one without.
pub(crate) fn content_words(text: &str) -> usize {
    let mut eighths = 0;
    each_word(text, |word| {
        let mut chars = word.chars();
        eighths += match chars.next() {
            Some(c) if is_unspaced_alphabet(c) => word.chars().count(),
            _ if is_stop_word(word) => 0,
            // Both characters of a pair were counted separately.
            Some(c) if is_cjk(c) && Script::of(c) == Script::Han => match chars.next() {
                None => 4,
                Some(_) => 0,
            },
            _ => 8,
        };
    });
    eighths.div_ceil(8)
}

/// Calls `take` with each word and number of `text` in lower case, without a possessive ending. For Chinese, Japanese
/// and Korean, see [`each_cjk_term`].
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let flush = |word: &mut String, take: &mut dyn FnMut(&str)| {
        if !word.is_empty() {
            let plain = word.trim_end_matches('\'');
            let plain = plain.strip_suffix("'s").unwrap_or(plain);
            if !plain.is_empty() {
                take(plain);
            }
            word.clear();
        }
    };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_cjk(c) {
            flush(&mut word, &mut take);
            let end = rest.find(|c| !is_cjk(c)).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(end);
            each_cjk_term(run, &mut take);
            rest = behind;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let c = if c == '\u{2019}' { '\'' } else { c };
        let digit = c.is_ascii_digit();
        let joins = word.chars().next_back().is_none_or(|last| last.is_ascii_digit() == digit);
        if c.is_alphanumeric() {
            // Letters and digits are separated: `line42` is a line, and a number.
            if !joins {
                flush(&mut word, &mut take);
            }
            if c.is_ascii() {
                word.push(c.to_ascii_lowercase());
            } else {
                word.extend(c.to_lowercase());
            }
        } else if is_combining_mark(c)
            && word.ends_with(char::is_alphabetic)
            && !is_unspaced_alphabet(c)
        {
            word.push(c);
        } else if c == '\'' && word.chars().next_back().is_some_and(char::is_alphabetic) {
            word.push('\'');
        } else {
            flush(&mut word, &mut take);
        }
    }
    flush(&mut word, &mut take);
}

/// Calls `take` with the parts of a run of CJK characters that show a topic: Chinese characters that are not function
/// words, and their pairs; words in katakana; the first two syllables of a Korean word, which its endings leave
/// unchanged. Hiragana are mostly endings and particles.
fn each_cjk_term(run: &str, take: &mut dyn FnMut(&str)) {
    let mut rest = run;
    while let Some(c) = rest.chars().next() {
        let script = Script::of(c);
        let end = rest.find(|c| Script::of(c) != script && c != 'ー').unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        match script {
            Script::Han => {
                for word in part.split(is_function_character) {
                    let mut before = None;
                    for (at, c) in word.char_indices() {
                        let end = at + c.len_utf8();
                        take(&word[at..end]);
                        if let Some(before) = before.replace(at) {
                            take(&word[before..end]);
                        }
                    }
                }
            }
            Script::Katakana => take(part.trim_end_matches('ー')),
            Script::Hangul => {
                if part.chars().nth(1).is_some() {
                    take(first_chars(part, 2));
                }
            }
            Script::Hiragana => {}
        }
    }
}

/// The scripts of CJK characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Han,
    Hiragana,
    Katakana,
    Hangul,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            c if is_hiragana(c) => Self::Hiragana,
            c if is_katakana(c) => Self::Katakana,
            c if is_hangul(c) => Self::Hangul,
            _ => Self::Han,
        }
    }
}

/// Returns whether `c` is a Chinese character, of either script, that occurs in any sentence.
fn is_function_character(c: char) -> bool {
    "的了是在我你他她它们們这這那吗嗎呢吧啊和与與及把被用从從到对對为為有不也都就还還要会會能可请請让讓给給很什怎么麼\
     没沒去来來说說好想得着著过過您几幾谁誰哪如何個个谢謝"
        .contains(c)
}

/// Returns whether `c` belongs to a script that is written without spaces, or, as Korean, with endings that a word list
/// would not match.
///
/// Stored states hold hashes of words that this function delimits, so ideographs that Unicode added later than
/// extension G stay letters of any other script.
pub(crate) fn is_cjk(c: char) -> bool {
    const LAST_OF_EXTENSION_G: char = '\u{3134f}';
    is_ideograph_mark(c)
        || is_kana(c)
        || is_hangul(c)
        || (is_ideograph(c) && c <= LAST_OF_EXTENSION_G)
}

/// Calls `take` with each run of two to six CJK characters between marks, spaces, the most frequent function characters
/// and changes of script: the nearest thing to a word without a dictionary. A Korean word loses a particle that follows
/// nouns only.
pub(crate) fn each_cjk_run(text: &str, mut take: impl FnMut(&str)) {
    let parts =
        |c: char| !is_cjk(c) || Script::of(c) == Script::Hiragana || is_function_character(c);
    for run in text.split(parts).filter(|run| !run.is_empty()) {
        let mut rest = run;
        while let Some(c) = rest.chars().next() {
            let script = Script::of(c);
            let end = rest.find(|c| Script::of(c) != script && c != 'ー').unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            rest = behind;
            let word = match script {
                Script::Hangul => word.strip_suffix(['은', '는', '을', '를', '의']).unwrap_or(word),
                _ => word,
            };
            if (2..=6).contains(&word.chars().count()) {
                take(word);
            }
        }
    }
}

/// Returns whether a word in lower case, or a pair of Chinese, Japanese or Korean characters, says nothing about a topic.
/// A pair of which only one character is a function word may be a word of its own.
///
/// ```
/// use foldback_chunker::says_nothing;
///
/// assert!(["the", "where", "我们", "什么", "です"].into_iter().all(says_nothing));
/// assert!(!["port", "端口", "目的", "会议", "返す"].into_iter().any(says_nothing));
/// ```
#[must_use]
pub fn says_nothing(word: &str) -> bool {
    is_stop_word(word) || word.chars().all(is_function_character) || word.chars().all(is_hiragana)
}

/// Returns whether `word` says nothing about a topic.
pub(crate) fn is_stop_word(word: &str) -> bool {
    static STOP: LazyLock<FxHashSet<&str>> =
        LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    STOP.contains(word)
}

/// Function words, contractions and courtesies of English; then frequent words of any talk in Chinese, Japanese and
/// Korean, as [`each_cjk_term`] gives them.
const STOP_WORDS: &str = "
a about after again all also am an and any are aren't as at be because been before being both but
by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for
from further get got had hadn't has hasn't have haven't having he he'd he'll her here hers him his
how i i'd i'll i'm i've if in into is isn't it it'd it'll its just let like me more most my no nor
not now of off on once one only or other our ours out over own same she she'd she'll should
shouldn't so some such than that that'll the their theirs them then there these they they'd they'll
they're they've this those through to too under until up us very was wasn't we we'd we'll we're
we've were weren't what when where which while who whom why will with won't would wouldn't yes you
you'd you'll you're you've your yours yeah ok okay oh well really hi hello hey thank thanks please
want need know good great sure
一个 一下 知道 需要 现在 現在 因为 因為 所以 但是 时候 時候 已经 已經 应该 應該 谢谢 謝謝
今 何 方 時 日 事 中 人 一 二 三 言 思 見 行 出 分 必要 場合 大丈夫 願
있습 없습 합니 입니 됩니 그런 그럼 이렇 그렇 어떻 어떤 어느 무슨 무엇 얼마 언제 어디 누가 누구 저는 제가 우리 그건 그거 이거
하는 하고 해서 해야 하면 했어 했습 하려 할게 할까 되나 되는 된다 좋아 좋은 감사 알겠 있는 있어 있나 없어 없나 같아 같은 거예
주세 드리 그리 정도 보고 지금 혹시 아니 네요 에서 으로
";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        assert_eq!(words, expected);
    }

    #[test]
    fn words_are_cut_in_every_script() {
        check("The user's get_order(#W42)", &["the", "user", "get", "order", "w", "42"]);
        check("I’m fine, don't worry", &["i'm", "fine", "don't", "worry"]);
        check("订机票", &["订", "机", "订机", "票", "机票"]);
        check("去 北京 2024年", &["北", "京", "北京", "2024", "年"]);
        check("这个偏差是什么", &["偏", "差", "偏差"]);
        check("サーバーの応答が遅い", &["サーバ", "応", "答", "応答", "遅"]);
        check("날짜를 바꾸고 싶어요", &["날짜", "바꾸", "싶어"]);
        check("Größe Привет", &["größe", "привет"]);
        check("한국어", &["한국"]);
        check("佐々木さん", &["佐", "々", "佐々", "木", "々木"]);
        check("हिन्दी में 7\u{301}", &["हिन्दी", "में", "7"]);
        check("", &[]);
    }

    /// A sentence in other languages has about as many words of content as in English.
    #[test]
    fn words_of_content_are_counted_in_every_script() {
        for (text, count) in [
            (
                "The night train to Chiang Mai leaves at seven, a ticket costs nine hundred baht.",
                11,
            ),
            ("去清迈的夜间火车七点出发，车票九百泰铢。", 8),
            ("去清邁的夜間火車七點出發，車票九百泰銖。", 8),
            ("チェンマイへの夜行列車は七時に出発し、切符は九百バーツです。", 7),
            ("치앙마이로 가는 야간 열차는 일곱 시에 출발하고, 표는 구백 바트입니다.", 10),
            ("รถไฟกลางคืนไปเชียงใหม่ออกเวลาเจ็ดโมง ตั๋วราคาเก้าร้อยบาท", 7),
            ("ချင်းမိုင်သို့ ညရထားသည် ခုနစ်နာရီတွင် ထွက်ခွာပြီး လက်မှတ်သည် ဘတ်ကိုးရာ ကျသည်။", 8),
            ("Ночной поезд в Чиангмай отправляется в семь, билет стоит девятьсот батов.", 11),
            ("知道了，谢谢", 1),
            ("", 0),
        ] {
            assert_eq!(content_words(text), count, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        let terms = |text: &str| Terms::of([text]);
        assert_eq!(terms("booking flights"), terms("booked flight"));
        assert_eq!(terms("the of and"), Terms::default());
        assert_eq!(terms("flight flight").iter().map(|t| t.1).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_long_text_is_bounded_and_packs_exactly() {
        let text: String = (0..500).map(|i| format!("{}x{} ", i, "abc".repeat(i % 7))).collect();
        let terms = Terms::of([text.as_str()]);
        assert_eq!(terms.iter().count(), TERMS_PER_MESSAGE);
        assert_eq!(Terms::from_bytes(&terms.to_bytes()), Some(terms));
        assert_eq!(Terms::from_bytes(&[0; 3]), None);
        assert_eq!(Terms::from_bytes(&[0; 8]), None);
    }
}
