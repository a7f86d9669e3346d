//! The cues found in one message, packed into one number, which is stored with every message of the window. What each
//! looks for is a row of `signals.rs`.

use crate::reading::Reading;
use crate::signals;

/// The cues of a message, and about how many words of content it has.
///
/// Part of the stored state (`State`, through `Said`): a bit never changes its meaning. The meaning of the bits, and
/// the code that reads them:
///
/// | bits | meaning | weighed in the score of a cut | also read by |
/// |---|---|---|---|
/// | 0 | asks | after it | the row of courtesies, `describe`, `sentence` |
/// | 1 | closes | before and after it | `Chunker::caution`, the term "user after a close" |
/// | 2 | thanks | before it | `Chunker::caution`, the row of courtesies |
/// | 3 | acknowledges | before it | |
/// | 4 | refers back | before it | |
/// | 5 | requests | before it | the row of courtesies, the term "user requests", `sentence` |
/// | 6 | asks you | before it | the row of acknowledgements |
/// | 7 | greets | before and after it | |
/// | 8 | few words | before it | |
/// | 9 | courtesy | | `Chunker::hear`: nothing is cut before it |
/// | 10 to 15 | words of content | | `Chunker::is_long_talk` |
/// | 16 to 31 | free | | |
///
/// Stored as a number that is no longer than necessary, so that a bit from 16 on leaves the stored form of all others
/// unchanged. A bit that this program does not know is kept and read by nothing; a bit that an earlier program did not
/// look for is not set. A new cue therefore does not change the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cues(pub(crate) u32);

/// The bits, by the names that the rows of the table and other readers use.
impl Cues {
    /// It asks something.
    pub(crate) const ASKS: u32 = 1;
    /// It offers an end: "anything else?", "have a great day".
    pub(crate) const CLOSES: u32 = 1 << 1;
    /// It thanks, or expresses satisfaction.
    pub(crate) const THANKS: u32 = 1 << 2;
    /// It begins by taking up what was said: "yes", "sounds good".
    pub(crate) const ACKNOWLEDGES: u32 = 1 << 3;
    /// It points back: "it", "those".
    pub(crate) const REFERS_BACK: u32 = 1 << 4;
    /// It asks for something to be done.
    pub(crate) const REQUESTS: u32 = 1 << 5;
    /// It asks the other speaker about themself.
    pub(crate) const ASKS_YOU: u32 = 1 << 6;
    /// It greets.
    pub(crate) const GREETS: u32 = 1 << 7;
    /// It has at most four words.
    pub(crate) const FEW_WORDS: u32 = 1 << 8;
    /// It is a courtesy and nothing else: thanks in at most five words of content.
    pub(crate) const COURTESY: u32 = 1 << 9;

    /// Six bits that count words of content.
    pub(crate) const CONTENT: u32 = Self::MOST_CONTENT << Self::CONTENT_FROM;
    const CONTENT_FROM: u32 = 10;
    /// The count stops at this number.
    const MOST_CONTENT: u32 = 63;
}

impl Cues {
    /// Reads what is said (not what is called).
    pub(crate) fn of(text: &str) -> Self {
        let text = Reading::of(text);
        let mut found = Self::default();
        for cue in signals::cues() {
            if (cue.is_found)(&text, found) {
                found.0 |= cue.bit;
            }
        }
        let content =
            u32::try_from(text.content()).map_or(Self::MOST_CONTENT, |n| n.min(Self::MOST_CONTENT));
        Self(found.0 | content << Self::CONTENT_FROM)
    }

    /// Returns whether one of these cues was found.
    pub(crate) fn has(self, cues: u32) -> bool {
        self.0 & cues != 0
    }

    /// Returns about how many words of content it has, up to 63; 0 for messages stored before they were counted.
    pub(crate) fn content_words(self) -> u32 {
        (self.0 & Self::CONTENT) >> Self::CONTENT_FROM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cue of the table is looked at.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(names(Cues::of(text)), expected, "{text:?}");
    }

    fn names(found: Cues) -> String {
        let cues = signals::cues().filter(|cue| found.has(cue.bit));
        cues.map(|cue| cue.name).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn english_cues() {
        check("Hello there", "refers back, greets, few words");
        check("Is there anything else I can help you with?", "asks, closes, refers back, requests");
        check("Great, book it.", "thanks, acknowledges, refers back, few words, courtesy");
        check("A great hotel", "few words");
        check("I'd like a taxi", "requests, few words");
        check("Which one do you like?", "asks, asks you");
        check("You’re welcome!", "closes, few words");
        check("", "few words");
    }

    #[test]
    fn bl10_chinese_cues() {
        check("你好，我想订一张机票", "requests, greets, few words");
        check("好的，谢谢", "thanks, acknowledges, few words, courtesy");
        check("还有什么可以帮您的吗？", "asks, closes");
        check("对了，帮我查一下天气", "requests, greets, few words");
        check("還有一個問題，保險要不要買嗎", "asks, greets");
        check("謝謝，沒有別的問題了", "closes, thanks, few words, courtesy");
        check("内质网呢？", "asks, acknowledges, refers back, few words");
    }

    #[test]
    fn bl10_japanese_cues() {
        check("こんにちは、部屋を予約したいのですが", "requests, greets");
        check("ところで、それは今日ですか", "asks, greets, few words");
        check("はい、ありがとうございます", "thanks, acknowledges, few words, courtesy");
        check("他に何かございますか？", "asks, closes, few words");
        check("すみません、話は変わりますが", "greets, few words");
    }

    #[test]
    fn bl10_korean_cues() {
        check("안녕하세요, 날짜를 바꾸고 싶어요", "requests, greets");
        check("그건 그렇고 비용은 얼마인가요", "asks, greets");
        check("네, 감사합니다", "thanks, acknowledges, few words, courtesy");
        check("더 필요하신 것이 있나요", "asks, closes");
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
}
