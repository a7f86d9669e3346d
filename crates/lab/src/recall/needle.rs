//! Conversations in which a fact is stated once, at the beginning, and asked for at the end.

use crate::index::Random;
use foldback_core::{Estimate, Message, TokenCounter};

/// The statement of a fact, and the question for it. `{}` is replaced by the value.
const ENGLISH: [(&str, &str); 10] = [
    ("The code of the blue locker is {}.", "What is the code of the blue locker?"),
    (
        "My sister's train arrives on platform {}.",
        "On which platform does my sister's train arrive?",
    ),
    ("The licence plate of the van ends in {}.", "What does the licence plate of the van end in?"),
    ("The password of the guest network is {}.", "What is the password of the guest network?"),
    ("The plumber's invoice has the number {}.", "Which number does the plumber's invoice have?"),
    ("The spare key lies behind brick {}.", "Behind which brick does the spare key lie?"),
    ("Our order of tiles was filed as {}.", "As what was our order of tiles filed?"),
    ("The dentist's telephone extension is {}.", "What is the dentist's telephone extension?"),
    (
        "The warranty of the dishwasher has the number {}.",
        "Which number does the warranty of the dishwasher have?",
    ),
    ("The piano tuner charges {} crowns.", "How many crowns does the piano tuner charge?"),
];
const CHINESE: [(&str, &str); 10] = [
    ("仓库钥匙的编号是{}。", "仓库钥匙的编号是多少？"),
    ("张医生的分机号是{}。", "张医生的分机号是多少？"),
    ("会议室的门禁密码是{}。", "会议室的门禁密码是多少？"),
    ("快递的取件码是{}。", "快递的取件码是多少？"),
    ("酒店的房间号是{}。", "酒店的房间号是多少？"),
    ("水表的读数是{}。", "水表的读数是多少？"),
    ("保险单的编号是{}。", "保险单的编号是多少？"),
    ("奶奶家的邮政编码是{}。", "奶奶家的邮政编码是多少？"),
    ("停车位在{}号。", "停车位在几号？"),
    ("钢琴调音师收费{}元。", "钢琴调音师收费多少元？"),
];

/// Other topics of conversation.
const ENGLISH_TOPICS: [&str; 8] = [
    "ferry timetable",
    "vegetable garden",
    "database index",
    "bread recipe",
    "bicycle repair",
    "telescope",
    "lease of the flat",
    "history exam",
];
const CHINESE_TOPICS: [&str; 8] =
    ["渡轮时刻", "菜园", "数据库索引", "面包食谱", "自行车修理", "望远镜", "公寓租约", "历史考试"];

/// A fact that was stated long ago, and the question for it.
pub(super) struct Needle {
    /// The conversation up to the question: two turns with the fact, then others about other things.
    pub(super) said: Vec<Message>,
    pub(super) question: &'static str,
    /// The value that a correct answer names.
    pub(super) value: String,
    pub(super) is_chinese: bool,
}

impl Needle {
    /// Returns the needle with this number, in a conversation of about `tokens` tokens: for an even
    /// number in English, for an odd one in Chinese.
    pub(super) fn new(number: u32, tokens: u64, seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(1_000).wrapping_add(u64::from(number)));
        let is_chinese = !number.is_multiple_of(2);
        let facts = if is_chinese { &CHINESE } else { &ENGLISH };
        let (fact, question) = facts[(number / 2) as usize % facts.len()];
        let value = (1_000 + random.below(9_000)).to_string();
        let (hello, welcome, noted) = match is_chinese {
            true => ("你好。", "你好，有什么可以帮忙？", "好的，我记住了。"),
            false => ("Hello.", "Hello, how can I help?", "Thank you, noted."),
        };
        let fact = fact.replace("{}", &value);
        let mut said = vec![
            Message::user(hello),
            Message::assistant(welcome),
            Message::user(&fact),
            Message::assistant(noted),
        ];
        let mut held: u64 = 0;
        while held < tokens {
            let (asks, answers) = turn(&mut random, is_chinese);
            held += (Estimate.count(&asks) + Estimate.count(&answers)) as u64;
            said.extend([Message::user(&asks), Message::assistant(&answers)]);
        }
        Self { said, question, value, is_chinese }
    }
}

/// Returns a turn about something else.
fn turn(random: &mut Random, is_chinese: bool) -> (String, String) {
    let topics = if is_chinese { &CHINESE_TOPICS } else { &ENGLISH_TOPICS };
    let topic = topics[random.below(topics.len() as u64) as usize];
    let (part, page) = (2 + random.below(97), 100 + random.below(800));
    match is_chinese {
        true => (
            format!("关于{topic}，我还想知道第{part}部分该怎么安排，麻烦说得详细一点。"),
            format!(
                "{topic}的第{part}部分可以先看第{page}页的说明，再一步一步地做，遇到问题再问我。\
                 这样比较稳妥，也不会漏掉什么。"
            ),
        ),
        false => (
            format!(
                "About the {topic}: how would you arrange part {part}, and what should come first?"
            ),
            format!(
                "For the {topic}, begin with page {page}, write down the steps of part {part}, and look at each of \
                 them again before you go on. That keeps things simple, and nothing is left out."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_said_once_and_is_as_far_away_as_it_should_be() {
        for number in 0..40 {
            let needle = Needle::new(number, 3_000, 7);
            let holds = |message: &&Message| message.text().contains(&needle.value);
            assert_eq!(needle.said.iter().filter(holds).count(), 1, "{number}");
            assert_eq!(needle.question.is_ascii(), !needle.is_chinese, "{number}");
            let tokens: usize = needle.said.iter().map(|said| Estimate.count(&said.text())).sum();
            assert!((3_000..3_200).contains(&tokens), "{tokens}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_needle() {
        let (one, same, other) =
            (Needle::new(3, 500, 1), Needle::new(3, 500, 1), Needle::new(3, 500, 2));
        assert_eq!((&one.said, &one.value), (&same.said, &same.value));
        assert_ne!(one.said, other.said);
    }
}
