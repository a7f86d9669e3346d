//! The score of a change of topic before a message: linear over the [`signals`], with one
//! threshold. It needs no embedding.

use crate::cohesion::Words;
use crate::signals::{self, BIAS, TERMS};
use crate::window::{Said, Window};

/// The score of one possible change of topic, and its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    total: f32,
    /// In the order of the table.
    terms: [f32; TERMS],
}

impl Score {
    /// Returns the score of a cut before the message at `at` of the window, from the available
    /// data. `None` when the topic may not change there.
    pub(crate) fn of(window: &Window, at: usize) -> Option<Self> {
        let said = window.said();
        let here = said.get(at).filter(|here| here.may_begin)?;
        let before = said.get(at.checked_sub(1)?)?;
        let gap = Gap { words: Words::around(window, at), before, here };
        let mut terms = [0.0; TERMS];
        for (value, (signal, term)) in terms.iter_mut().zip(signals::terms()) {
            *value = signal.adds(term, &gap);
        }
        Some(Self { total: BIAS + terms.iter().sum::<f32>(), terms })
    }

    /// Returns the whole score.
    #[must_use]
    pub fn total(&self) -> f32 {
        self.total
    }

    /// Returns the contribution of each signal, without those that contribute nothing. Together
    /// with the bias, they sum to the total.
    pub fn terms(&self) -> impl Iterator<Item = (&'static str, f32)> {
        std::iter::once(("bias", BIAS))
            .chain(signals::terms().map(|(signal, term)| signal.name_of(term)).zip(self.terms))
            .filter(|(_, term)| *term != 0.0)
    }
}

/// The gap between two messages, in which the topic may change.
pub(crate) struct Gap<'a> {
    /// The cohesion of the words on both sides.
    pub(crate) words: Words,
    /// The message before it.
    pub(crate) before: &'a Said,
    /// The message after it.
    pub(crate) here: &'a Said,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohesion::cohesion;
    use crate::cues::Cues;
    use crate::terms::Terms;
    use crate::window::Speaker;

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
            let score = |at| Score::of(&window, at).unwrap().total();
            for at in [1, 2, 3, 5, 6, 7] {
                assert!(score(at) < score(4), "{at} in {texts:?}");
            }
            assert!(score(4) > -1.0, "{}", score(4));
            assert!(Score::of(&window, 0).is_none() && Score::of(&window, 8).is_none());
        }
    }

    /// Taking up what was said speaks against a change of topic, unless a question about the other
    /// speaker follows it.
    #[test]
    fn who_asks_about_the_other_is_done_with_what_was_said() {
        let score = |says: &str| {
            let window = window(&["I grow beans.", "They are green.", "My roof leaks.", says]);
            Score::of(&window, 3).unwrap().total()
        };
        let asks = score("Awesome. Do you play chess?");
        assert!(asks > score("Awesome. Sue plays chess?") + 1.0);
        assert!((asks - score("Purple. Do you play chess?")).abs() < 0.1);
    }

    #[test]
    fn silence_has_a_finite_score() {
        let window = window(&["", "", ""]);
        assert!(Score::of(&window, 1).unwrap().total().is_finite());
        assert_eq!(cohesion(&window, 0, 1, 3), 0.0);
    }
}
