//! What speaks for a change of topic in front of a message, and against it.
//!
//! A linear score over lexical cohesion, cues and roles. It needs no embedding and one threshold.

use crate::background::background;
use crate::closed::Score;
use crate::cues::Cues;
use crate::terms::{TERMS_PER_MESSAGE, Term, damped};
use crate::weights::{BIAS, NAMES, WEIGHTS};
use crate::window::{Said, Speaker, Window};

/// The score of a cut in front of the message at `at` of the window, from what is there.
/// `None` when the topic may not change there.
pub(crate) fn topic_score(window: &Window, at: usize) -> Option<Score> {
    let said = window.said();
    let current = said.get(at)?;
    let previous = said.get(at.checked_sub(1)?)?;
    if !current.may_begin {
        return None;
    }
    let mut terms = features(window, at, previous, current);
    for (term, weight) in terms.iter_mut().zip(WEIGHTS) {
        *term *= weight;
    }
    Some(Score { total: BIAS + terms.iter().sum::<f32>(), terms })
}

/// The features, in the order of [`NAMES`].
fn features(window: &Window, at: usize, p: &Said, c: &Said) -> [f32; NAMES.len()] {
    let lexical = Lexical::around(window, at);
    let is = |condition: bool| f32::from(u8::from(condition));
    let user = c.speaker == Speaker::User;
    [
        lexical.cohesion[0],
        lexical.cohesion[1],
        lexical.cohesion[2],
        lexical.novelty,
        lexical.persistence,
        lexical.chains,
        is(p.cues.has(Cues::ASKS)),
        is(p.cues.has(Cues::CLOSES)),
        is(c.cues.has(Cues::CLOSES)),
        is(c.cues.has(Cues::THANKS)),
        // Who takes up what was said and then asks about the other is done with it.
        is(c.cues.has(Cues::ACKNOWLEDGES) && !c.cues.has(Cues::ASKS_YOU)),
        is(c.cues.has(Cues::REFERS_BACK)),
        is(c.cues.has(Cues::REQUESTS)),
        is(c.cues.has(Cues::ASKS_YOU)),
        is(c.cues.has(Cues::GREETS)),
        is(p.cues.has(Cues::GREETS)),
        is(user),
        is(p.speaker == Speaker::User),
        is(c.cues.has(Cues::FEW_WORDS)),
        is(user && p.cues.has(Cues::CLOSES)),
        is(user && c.cues.has(Cues::REQUESTS)),
    ]
}

/// How the words before a cut and behind it hang together.
#[derive(Debug, Default)]
struct Lexical {
    /// Cosines of the summed vectors of the 1, 2 and 4 messages on each side.
    cohesion: [f32; 3],
    /// The share of the message's terms that the 8 messages before do not hold.
    novelty: f32,
    /// How much of these new terms returns in the 4 messages behind.
    persistence: f32,
    /// How many terms span the cut: their mention before and their mention behind it are at most
    /// 4 messages apart.
    chains: f32,
}

/// The numbers of messages on each side of which cohesion is measured.
const SPANS: [usize; 3] = [1, 2, 4];
const LOOK_BACK: usize = 8;
const REACH: usize = 4;

impl Lexical {
    fn around(window: &Window, at: usize) -> Self {
        let mentions = mentions(window, at.saturating_sub(LOOK_BACK), at + REACH + 1);
        let mut found = Self::default();
        let mut dots = [0.0_f32; 3];
        let mut norms = [[0.0_f32; 2]; 3];
        let (mut mass, mut new, mut returning, mut spanning) = (0.0, 0.0, 0.0, 0.0);
        for same in mentions.chunk_by(|a, b| a.term == b.term) {
            let Some(first) = same.first() else { continue };
            let tells = background(first.term);
            let weight = tells * window.rarity(first.term);
            let split = same.partition_point(|mention| mention.at < at);
            let (before, behind) = same.split_at(split);
            for ((span, dot), norm) in SPANS.into_iter().zip(&mut dots).zip(&mut norms) {
                let sum = |side: &[Mention], inside: &dyn Fn(usize) -> bool| {
                    let counts = side.iter().filter(|mention| inside(mention.at));
                    weight * counts.map(|mention| mention.damped).sum::<f32>()
                };
                let left = sum(before, &|i| i + span >= at);
                let right = sum(behind, &|i| i < at + span);
                *dot += left * right;
                norm[0] += left * left;
                norm[1] += right * right;
            }
            if behind.first().is_some_and(|mention| mention.at == at) {
                mass += tells;
                if before.is_empty() {
                    new += tells;
                    if behind.len() > 1 {
                        returning += tells;
                    }
                }
            }
            if let (Some(last), Some(next)) = (before.last(), behind.first())
                && next.at - last.at <= REACH
            {
                spanning += tells;
            }
        }
        for ((cosine, dot), norm) in found.cohesion.iter_mut().zip(dots).zip(norms) {
            let length = (norm[0] * norm[1]).sqrt();
            *cosine = if length > 0.0 { dot / length } else { 0.0 };
        }
        found.novelty = new / (mass + 0.5);
        found.persistence = (1.0_f32 + returning).ln();
        found.chains = (1.0_f32 + spanning).ln();
        found
    }
}

struct Mention {
    term: Term,
    at: usize,
    damped: f32,
}

/// The terms of the messages from `from` to `to`, by term and then by place.
fn mentions(window: &Window, from: usize, to: usize) -> Vec<Mention> {
    // Term, place and count in one number each: that sorts several times as fast.
    let mut packed: Vec<u64> = Vec::with_capacity(to.saturating_sub(from) * TERMS_PER_MESSAGE);
    for (at, said) in window.said().iter().enumerate().take(to).skip(from) {
        let found = said.terms.iter();
        packed.extend(
            found.map(|(term, count)| u64::from(term) << 16 | (at as u64) << 8 | u64::from(count)),
        );
    }
    packed.sort_unstable();
    let unpack = |packed: u64| Mention {
        term: (packed >> 16) as Term,
        at: (packed >> 8 & 0xff) as usize,
        damped: damped(packed as u8),
    };
    packed.into_iter().map(unpack).collect()
}

/// The cosine of the summed vectors of two neighbouring runs of the window's messages: how much
/// two rough blocks are about the same, where no embedder tells.
pub(crate) fn cohesion(window: &Window, from: usize, split: usize, to: usize) -> f32 {
    let (mut dot, mut left, mut right) = (0.0_f32, 0.0_f32, 0.0_f32);
    for same in mentions(window, from, to).chunk_by(|a, b| a.term == b.term) {
        let Some(first) = same.first() else { continue };
        let weight = background(first.term) * window.rarity(first.term);
        let sum = |behind: bool| {
            let counts = same.iter().filter(|mention| (mention.at >= split) == behind);
            weight * counts.map(|mention| mention.damped).sum::<f32>()
        };
        let (a, b) = (sum(false), sum(true));
        dot += a * b;
        left += a * a;
        right += b * b;
    }
    let length = (left * right).sqrt();
    if length > 0.0 { dot / length } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::Terms;

    fn window(texts: &[&str]) -> Window {
        let mut window = Window::default();
        for (i, text) in texts.iter().enumerate() {
            let speaker = if i % 2 == 0 { Speaker::User } else { Speaker::Assistant };
            window.push(Said {
                terms: Terms::of([*text]),
                cues: Cues::of(text),
                speaker,
                may_begin: i > 0,
            });
        }
        window
    }

    #[test]
    fn a_change_of_topic_scores_higher_than_its_neighbours() {
        for texts in [
            [
                "I need a hotel room in Cambridge for two nights",
                "The Gonville hotel in Cambridge has a room for two nights.",
                "Book that room, thanks",
                "Booked. Have a great day!",
                "What is the weather in Boston today?",
                "Boston weather today: rain in the afternoon.",
                "And the weather in Boston tomorrow?",
                "Sunny weather in Boston tomorrow.",
            ],
            [
                "我想订一间北京的酒店房间，住两晚",
                "北京饭店还有房间，两晚一千元。",
                "就订北京饭店的房间吧，谢谢",
                "已订好，祝您入住愉快，再见！",
                "请问上海今天的天气怎么样？",
                "上海今天天气有小雨。",
                "上海明天的天气呢？",
                "上海明天天气晴。",
            ],
            [
                "京都のホテルの部屋を二泊予約してください",
                "京都のホテルに二泊できる部屋があります。",
                "その部屋でお願いします",
                "京都のホテルを予約しました。",
                "ところで、大阪の天気を調べてください",
                "大阪の天気は雨です。",
                "明日の大阪の天気は？",
                "明日の大阪は晴れです。",
            ],
            [
                "부산 호텔 방을 이틀 예약해 주세요",
                "부산 호텔에 이틀 묵을 방이 있습니다.",
                "그 방으로 예약할게요",
                "부산 호텔을 예약했습니다.",
                "그런데 서울 날씨를 알려 주세요",
                "서울 날씨는 흐립니다.",
                "내일 서울 날씨는요?",
                "내일 서울 날씨는 맑습니다.",
            ],
        ] {
            let window = window(&texts);
            let score = |at| topic_score(&window, at).unwrap().total();
            for at in [1, 2, 3, 5, 6, 7] {
                assert!(score(at) < score(4), "{at} in {texts:?}");
            }
            assert!(score(4) > -1.0, "{}", score(4));
            assert!(topic_score(&window, 0).is_none() && topic_score(&window, 8).is_none());
        }
    }

    /// To take up what was said speaks against a change of topic, unless a question about the other
    /// follows it.
    #[test]
    fn who_asks_about_the_other_is_done_with_what_was_said() {
        let score = |says: &str| {
            let window = window(&["I grow beans.", "They are green.", "My roof leaks.", says]);
            topic_score(&window, 3).unwrap().total()
        };
        let asks = score("Awesome. Do you play chess?");
        assert!(asks > score("Awesome. Sue plays chess?") + 1.0);
        assert!((asks - score("Purple. Do you play chess?")).abs() < 0.1);
    }

    #[test]
    fn silence_has_a_finite_score() {
        let window = window(&["", "", ""]);
        assert!(topic_score(&window, 1).unwrap().total().is_finite());
        assert_eq!(cohesion(&window, 0, 1, 3), 0.0);
    }
}
