//! Korean words without their particles and endings.
//!
//! No dictionary: the end of a word is compared with lists of particles (josa) and verb endings
//! (eomi), and the last sound decides whether a particle is possible there. Stored texts and
//! questions are treated alike, so a wrong cut costs little.

use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// The lists below, in the form for looking up a part of a word.
struct Words {
    particles: FxHashSet<Box<[char]>>,
    endings: FxHashSet<Box<[char]>>,
    function_pairs: FxHashSet<Box<[char]>>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let set = |list: &str| list.split_whitespace().map(|word| word.chars().collect()).collect();
    Words {
        particles: set(LONG_PARTICLES),
        endings: set(ENDINGS),
        function_pairs: set(FUNCTION_PAIRS),
    }
});

/// The longest particle and the longest ending, in syllables.
const LONGEST: usize = 6;

/// Particles of more than one syllable.
const LONG_PARTICLES: &str = "
에서부터 에게서 한테서 으로서 으로써 으로는 으로도 에서는 에서도 에서의 까지는 까지도 이라는 이라고 에서
에게 한테 으로 까지 부터 처럼 보다 마다 이나 이랑 하고 께서 조차 밖에 에는 에도 만큼 대로 라는";

/// Endings of verbs and of the copula of more than one syllable.
const ENDINGS: &str = "
하겠습니다 했습니다만 이었습니다 하였습니다 겠습니다 었습니다 았습니다 했습니다 였습니다 했는데요 습니다만
으려고 하려고 하려면 으니까 습니다 습니까 입니다 입니까 합니다 합니까 됩니다 됩니까 인가요 은가요 이에요
거든요 으면서 하면서 하지만 하는데 했는데 었는데 았는데 는데요 은데요 인데요 십니까 십니다 으려면 했어요
었어요 았어요 하세요 으세요 할까요 을까요 일까요 해야죠 나요 가요 까요 네요 군요 어요 아요 세요 지요
해요 예요 에요 래요 대요 려고 려면 면서 지만 는데 은데 인데 던데 는지 은지 어서 아서 해서 해야 니까
다면 라면 으면 하면 하는 하고 하기 하게 하다 하던 하실 했던 했다 했어 되는 되면 되고 됐다 됐어 도록";

/// Endings of one syllable. Two must be left before them, as many nouns end alike.
const SHORT_ENDINGS: &str = "는은을던고며면게지죠다네요어아야나냐니까자서기음할한해함될된돼됨";

/// Syllables of the past tense and of intention, which come between a stem and its ending.
const TENSES: &str = "었았였했겠됐";

/// Puts the stem of `word`, syllables only, into `stem`: 날짜를 gives 날짜, 늘었어요 gives 늘.
pub(super) fn stem(word: &[char], stem: &mut Vec<char>) {
    stem.clear();
    stem.extend_from_slice(word);
    if strip_particle(stem) {
        // A particle may follow a noun of action: 변경하기를.
        strip_ending(stem, 2);
        return;
    }
    if strip_ending(stem, 1) {
        strip_ending(stem, 2);
        strip_tense(stem);
    }
}

/// Returns whether a word, or what is left of it, says nothing about a topic.
pub(super) fn is_function(word: &[char]) -> bool {
    match word {
        [one] => FUNCTION_SYLLABLES.contains(*one),
        [_, _] => WORDS.function_pairs.contains(word),
        _ => false,
    }
}

/// Words of one syllable that occur in any sentence, and what is left of the most common verbs.
const FUNCTION_SYLLABLES: &str =
    "이그저것거게건걸수데줄때등및더안못잘좀다또왜뭐몇참네예제내나너할한해하되된될있없같";

/// Words of two syllables by which people ask and point.
const FUNCTION_PAIRS: &str = "
무엇 어디 언제 누구 누가 어떻 떻게 얼마 마나 무슨 어느 어떤 뭐야 있나 있어 하나 우리 그런 이런 저는
제가 하기 했어 했죠 돼요 되나";

fn strip_particle(word: &mut Vec<char>) -> bool {
    if strip(word, &WORDS.particles) {
        return true;
    }
    let [.., before, last] = word.as_slice() else { return false };
    // Several particles have one form after a vowel and one after a consonant.
    let closed = coda(*before).is_none_or(|coda| coda != 0);
    let fits = match *last {
        '은' | '을' | '과' => closed,
        '이' => closed && word.len() > 1,
        '는' | '를' | '와' => !closed,
        '가' => !closed,
        '로' => !closed || coda(*before) == Some(RIEUL),
        '의' | '에' | '도' | '만' | '랑' => true,
        _ => false,
    };
    if fits {
        word.pop();
    }
    fits
}

fn strip_ending(word: &mut Vec<char>, rounds: usize) -> bool {
    let mut stripped = false;
    for _ in 0..rounds {
        let long = strip(word, &WORDS.endings);
        let short = !long
            && word.len() > 2
            && word.last().is_some_and(|last| SHORT_ENDINGS.contains(*last));
        if short {
            word.pop();
        }
        if !(long || short) {
            break;
        }
        stripped = true;
    }
    stripped
}

/// Removes a syllable of tense, or opens the last syllable: 나왔 gives 나오, 바꿨 gives 바꾸.
fn strip_tense(word: &mut Vec<char>) {
    while let [_, .., last] = word.as_slice()
        && TENSES.contains(*last)
    {
        word.pop();
    }
    if let Some(last) = word.last_mut()
        && coda(*last) == Some(SSANG_SIOS)
    {
        *last = open(*last);
    }
}

/// Removes the longest of `endings` from `word`; at least one syllable is left.
fn strip(word: &mut Vec<char>, endings: &FxHashSet<Box<[char]>>) -> bool {
    let ending = |left: usize| word.get(left..).is_some_and(|tail| endings.contains(tail));
    let first = word.len().saturating_sub(LONGEST).max(1);
    let found = (first..word.len().saturating_sub(1)).find(|left| ending(*left));
    if let Some(left) = found {
        word.truncate(left);
    }
    found.is_some()
}

/// The codas of a syllable: ㄹ and ㅆ among 28, of which the first is none.
const RIEUL: u32 = 8;
const SSANG_SIOS: u32 = 20;
const SYLLABLES: u32 = 0xac00;

fn coda(syllable: char) -> Option<u32> {
    let place = (syllable as u32).checked_sub(SYLLABLES)?;
    (place < 11_172).then_some(place % 28)
}

/// Returns the syllable without its coda, and without the vowel that an ending left in it.
fn open(syllable: char) -> char {
    let Some(coda) = coda(syllable) else { return syllable };
    let place = syllable as u32 - SYLLABLES - coda;
    let (onset, vowel) = (place / 588, place / 28 % 21);
    let vowel = match vowel {
        // ㅘ, ㅝ, ㅕ, ㅙ are ㅗ, ㅜ, ㅣ, ㅚ with the ending 아 or 어.
        9 => 8,
        14 => 13,
        6 => 20,
        10 => 11,
        other => other,
    };
    char::from_u32(SYLLABLES + onset * 588 + vowel * 28).unwrap_or(syllable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bl10_particles_and_endings_are_taken_off() {
        for (word, expected) in [
            ("날짜를", "날짜"),
            ("비용이", "비용"),
            ("서버에서는", "서버"),
            ("카드사로", "카드사"),
            ("회의", "회"),
            ("회의를", "회의"),
            ("가을", "가을"),
            ("차이", "차이"),
            ("사고", "사고"),
            ("늘었어요", "늘"),
            ("변경했습니다", "변경"),
            ("변경하려고", "변경"),
            ("나왔어요", "나오"),
            ("바꿨습니다", "바꾸"),
            ("바꾸려고", "바꾸"),
            ("돈", "돈"),
        ] {
            let chars: Vec<char> = word.chars().collect();
            let mut found = Vec::new();
            stem(&chars, &mut found);
            assert_eq!(found.iter().collect::<String>(), expected, "{word}");
        }
    }

    #[test]
    fn bl10_something_is_left_of_every_word() {
        let mut found = Vec::new();
        for ending in WORDS.particles.iter().chain(&WORDS.endings) {
            assert!((2..=LONGEST).contains(&ending.len()), "{ending:?}");
            stem(ending, &mut found);
            assert!(!found.is_empty(), "{ending:?}");
        }
    }
}
