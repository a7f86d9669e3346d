//! What people say when they begin, end or go on with a topic.
//!
//! The lists are English, and matched word by word. Those of Chinese, Japanese and Korean are in
//! [`cjk_cues`].

use crate::cjk_cues;
use crate::terms::{content_words, is_cjk};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// What a message says about the course of the talk, and in its upper six bits how much it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cues(pub(crate) u16);

impl Cues {
    /// It asks something.
    pub(crate) const ASKS: u16 = 1;
    /// It offers an end: "anything else?", "have a great day".
    pub(crate) const CLOSES: u16 = 1 << 1;
    /// It thanks, or is content.
    pub(crate) const THANKS: u16 = 1 << 2;
    /// It begins by taking up what was said: "yes", "sounds good".
    pub(crate) const ACKNOWLEDGES: u16 = 1 << 3;
    /// It points back: "it", "those".
    pub(crate) const REFERS_BACK: u16 = 1 << 4;
    /// It asks for something to be done.
    pub(crate) const REQUESTS: u16 = 1 << 5;
    /// It asks the other about themself.
    pub(crate) const ASKS_YOU: u16 = 1 << 6;
    /// It greets.
    pub(crate) const GREETS: u16 = 1 << 7;
    /// It has at most four words.
    pub(crate) const FEW_WORDS: u16 = 1 << 8;
    /// It is a courtesy and nothing else: thanks in at most five words of content.
    pub(crate) const COURTESY: u16 = 1 << 9;

    /// Where the words of content begin.
    const WORDS: u32 = 10;
    /// More of them are not told apart.
    const MOST_WORDS: usize = 63;

    /// How many words of content it has, about, up to 63; 0 of what was stored before they were counted.
    pub(crate) fn content_words(self) -> u32 {
        u32::from(self.0 >> Self::WORDS)
    }

    /// Whether `cue` was found.
    pub(crate) fn has(self, cue: u16) -> bool {
        self.0 & cue != 0
    }

    /// Reads what is said (not what is called).
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim();
        let head = first(text, HEAD);
        let tail = tail(text);
        let mut cues = 0;
        if tail.contains(['?', '？']) {
            cues |= Self::ASKS;
        }
        let head_words = words(head);
        let tail_words = words(tail);
        cues |= matches(&head_words, &LISTS.head, cues);
        cues |= matches(&tail_words, &LISTS.tail, cues);
        if let Some(first) = head_words.first() {
            let pair = head_words.get(1).map(|second| (first.text.as_str(), second.text.as_str()));
            let start_of = |list: &str| list.split(' ').any(|word| word == first.text);
            if start_of(ACKNOWLEDGES) || matches!(pair, Some(("i", "see") | ("got", "it"))) {
                cues |= Self::ACKNOWLEDGES;
            }
            if start_of("hi hello hey greetings")
                || matches!(pair, Some(("good", "morning" | "afternoon" | "evening")))
            {
                cues |= Self::GREETS;
            }
        }
        if text.chars().take(HEAD).chain(tail.chars()).any(is_cjk) {
            cues |= cjk_cues::of(head, tail);
        }
        if length(&head_words) <= 4 {
            cues |= Self::FEW_WORDS;
        }
        if cues & (Self::THANKS | Self::ASKS | Self::REQUESTS) == Self::THANKS
            && content_words(tail) <= 5
        {
            cues |= Self::COURTESY;
        }
        let words = content_words(first(text, COUNTED)).min(Self::MOST_WORDS);
        Self(cues | (words as u16) << Self::WORDS)
    }
}

/// How many characters at the beginning and the end are looked at.
const HEAD: usize = 160;

/// In how many characters words of content are counted: as many as are told apart stand in fewer.
const COUNTED: usize = 800;

/// The first characters of a text.
fn first(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

fn tail(text: &str) -> &str {
    text.char_indices().nth_back(HEAD - 1).map_or(text, |(at, _)| &text[at..])
}

/// A word and whether a punctuation mark follows.
struct Word {
    text: String,
    marked: bool,
}

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        let c = if c == '\u{2019}' { '\'' } else { c };
        if c.is_alphanumeric() || (c == '\'' && open) {
            if !open {
                words.push(Word { text: String::new(), marked: false });
            }
            open = true;
            if let Some(word) = words.last_mut() {
                word.text.extend(c.to_lowercase());
            }
        } else {
            if open
                && matches!(c, '.' | '!' | ',' | ';')
                && let Some(word) = words.last_mut()
            {
                word.marked = true;
            }
            open = false;
        }
    }
    words
}

/// How many words there are. Where words are not parted, two Chinese characters or syllables of
/// Korean are about one, and three letters of kana.
fn length(words: &[Word]) -> usize {
    let of = |word: &Word| {
        let is_kana = |c: &char| matches!(c, '\u{3040}'..='\u{30ff}');
        let cjk = word.text.chars().filter(|c| is_cjk(*c)).count();
        let kana = word.text.chars().filter(is_kana).count();
        if cjk < 2 { 1 } else { ((cjk - kana) * 3 + kana * 2) / 6 }
    };
    words.iter().map(of).sum()
}

/// Phrases by their first word.
type Phrases = FxHashMap<&'static str, Vec<(Vec<&'static str>, u16)>>;

struct Lists {
    head: Phrases,
    tail: Phrases,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let phrases = |lists: &[(&'static str, u16)]| {
        let mut phrases = Phrases::default();
        for (list, cue) in lists {
            for phrase in list.split('/').map(str::trim).filter(|phrase| !phrase.is_empty()) {
                let mut words = phrase.split_whitespace();
                if let Some(first) = words.next() {
                    phrases.entry(first).or_default().push((words.collect(), *cue));
                }
            }
        }
        phrases
    };
    Lists {
        head: phrases(&[
            (REFERS_BACK, Cues::REFERS_BACK),
            (REQUESTS, Cues::REQUESTS),
            ("how can i help", Cues::GREETS),
        ]),
        tail: phrases(&[
            (CLOSES, Cues::CLOSES),
            (THANKS, Cues::THANKS),
            (ASKS_YOU, Cues::ASKS_YOU),
        ]),
    }
});

/// The cues whose phrases stand in `words`. In a phrase, `.` asks for a punctuation mark behind the
/// word before it, and `?` for a question.
fn matches(words: &[Word], phrases: &Phrases, so_far: u16) -> u16 {
    let mut found = 0;
    for (at, word) in words.iter().enumerate() {
        let Some(candidates) = phrases.get(word.text.as_str()) else { continue };
        for (rest, cue) in candidates {
            let mut here = at;
            let fits = rest.iter().all(|part| match *part {
                "." => words.get(here).is_some_and(|word| word.marked),
                "?" => so_far & Cues::ASKS != 0,
                part => {
                    here += 1;
                    words.get(here).is_some_and(|word| word.text == part)
                }
            });
            if fits {
                found |= cue;
            }
        }
    }
    found
}

const CLOSES: &str = "
anything else / something else / any other / other help / other question / other questions /
further assist / further assistance / further assisting / help you with ? / bye / goodbye /
have a great / have a good / have a nice / have a wonderful / have a lovely /
you're welcome / you are welcome / your welcome / no problem / glad to / enjoy your /
finish / submit / transfer successful / transferred successful / transferred successfully /
transferred to a human / transfer to a human / transfer you to a human / all set / take care /
my pleasure / anytime";

const THANKS: &str = "
thank / thanks / thankful / thx / appreciate / appreciated / that's all / that's it /
that's everything / that is all / that is it / that is everything / all i need / perfect /
great . / bye / goodbye";

const ACKNOWLEDGES: &str = "yes yeah yep yup no nope nah ok okay sure sounds that it they great \
    perfect good cool nice wow awesome thank thanks alright true right really lol haha oh both \
    either any none not";

const REFERS_BACK: &str = "
it / it's / its / they / they're / them / their / those / these / that / that's / there /
there's / this one / this ones / he / he's / she / she's / his / him / her / same / either / both";

const REQUESTS: &str = "
i need / i want / i would like / i'd like / i am looking / i'm looking / i am trying /
i'm trying / i am interested / i'm interested / i am going / i'm going / can you / could you /
would you / please / find / show / give me / tell me / set a / set up / set the / set my /
remind / schedule / what is / what's / what time / what are / what day / what date / where /
where's / when / when's / how many / how much / how do / how far / how long / is there /
are there / print / list / count / navigate / direct";

const ASKS_YOU: &str = "
do you / are you / have you / did you / what you / where you / how you / who you / which you /
do your / are your / have your / did your / what your / where your / how your / who your /
which your / what do you / where do you / how do you / who do you / which do you / what are you /
where are you / how are you / who are you / which are you / what is your / where is your /
how is your / who is your / which is your";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: u16) {
        let found = Cues::of(text).0 % Cues::FEW_WORDS;
        assert_eq!(found, expected, "{text:?}: {found:#b} instead of {expected:#b}");
    }

    #[test]
    fn english_cues() {
        check("Hello there", Cues::GREETS | Cues::REFERS_BACK);
        check(
            "Is there anything else I can help you with?",
            Cues::ASKS | Cues::CLOSES | Cues::REQUESTS | Cues::REFERS_BACK,
        );
        check("Great, book it.", Cues::ACKNOWLEDGES | Cues::REFERS_BACK | Cues::THANKS);
        check("A great hotel", 0);
        check("I'd like a taxi", Cues::REQUESTS);
        check("Which one do you like?", Cues::ASKS | Cues::ASKS_YOU);
        check("You’re welcome!", Cues::CLOSES);
        check("", 0);
    }

    #[test]
    fn bl10_chinese_cues() {
        check("你好，我想订一张机票", Cues::GREETS | Cues::REQUESTS);
        check("好的，谢谢", Cues::ACKNOWLEDGES | Cues::THANKS);
        check("还有什么可以帮您的吗？", Cues::ASKS | Cues::CLOSES);
        check("对了，帮我查一下天气", Cues::GREETS | Cues::REQUESTS);
        check("還有一個問題，保險要不要買嗎", Cues::GREETS | Cues::ASKS);
        check("謝謝，沒有別的問題了", Cues::THANKS | Cues::CLOSES);
        check("内质网呢？", Cues::ASKS | Cues::REFERS_BACK | Cues::ACKNOWLEDGES);
    }

    #[test]
    fn bl10_japanese_cues() {
        check("こんにちは、部屋を予約したいのですが", Cues::GREETS | Cues::REQUESTS);
        check("ところで、それは今日ですか", Cues::GREETS | Cues::ASKS);
        check("はい、ありがとうございます", Cues::ACKNOWLEDGES | Cues::THANKS);
        check("他に何かございますか？", Cues::ASKS | Cues::CLOSES);
        check("すみません、話は変わりますが", Cues::GREETS);
    }

    #[test]
    fn bl10_korean_cues() {
        check("안녕하세요, 날짜를 바꾸고 싶어요", Cues::GREETS | Cues::REQUESTS);
        check("그건 그렇고 비용은 얼마인가요", Cues::GREETS | Cues::ASKS);
        check("네, 감사합니다", Cues::ACKNOWLEDGES | Cues::THANKS);
        check("더 필요하신 것이 있나요", Cues::ASKS | Cues::CLOSES);
    }

    #[test]
    fn short_messages_and_mere_courtesies_are_told() {
        for (text, few, courtesy) in [
            ("", true, false),
            ("yes, that's all", true, true),
            ("Thank you so much for your help!", false, true),
            ("Thanks! Can you find a taxi?", false, false),
            ("book two rooms near Cambridge station tonight", false, false),
            ("好的，谢谢", true, true),
            ("我想订一张去北京的机票", false, false),
            ("いつ来てくれますか", true, false),
            ("本番のサーバーの応答が遅いので原因を調べてください", false, false),
            ("네, 감사합니다", true, true),
            ("결제 서비스에서 오류가 자꾸 나는데 확인해 줘", false, false),
        ] {
            let cues = Cues::of(text);
            assert_eq!(
                (cues.has(Cues::FEW_WORDS), cues.has(Cues::COURTESY)),
                (few, courtesy),
                "{text}"
            );
        }
    }

    #[test]
    fn words_of_content_stand_beside_the_cues() {
        for (text, count) in
            [("", 0), ("Thank you, the hotel in Cambridge was lovely", 3), ("酒店很好，谢谢", 1)]
        {
            assert_eq!(Cues::of(text).content_words(), count, "{text}");
        }
        let most = Cues::of(&"酒店".repeat(500));
        assert_eq!((most.content_words(), most.has(Cues::COURTESY)), (63, false));
    }

    #[test]
    fn heads_and_tails_are_cut_between_characters() {
        let text = "好".repeat(400);
        assert_eq!(first(&text, HEAD).chars().count(), HEAD);
        assert_eq!(tail(&text).chars().count(), HEAD);
        assert_eq!(tail("short"), "short");
    }
}
