//! Generated conversations with a subject: each todo has one, and its words recur in it.

use super::words::Random;
use foldback_core::Message;

/// Subjects of a few words each, in English and in Chinese.
const ENGLISH: [&str; 12] = [
    "ferry harbor timetable ticket tide captain passenger island",
    "garden beans tomato compost watering seedling greenhouse soil",
    "database index query migration table lock transaction column",
    "invoice payment customer refund account balance bank receipt",
    "recipe oven flour butter dough sugar kitchen baking",
    "server deployment container cluster certificate proxy latency outage",
    "novel chapter character plot editor manuscript publisher scene",
    "bicycle gear chain brake wheel tire repair route",
    "telescope planet orbit camera exposure comet galaxy observation",
    "lesson student exam grammar vocabulary teacher essay grade",
    "apartment lease landlord heating window furniture neighbour rent",
    "orchestra violin rehearsal concert composer melody audience tempo",
];
const CHINESE: [&str; 12] = [
    "渡轮 港口 时刻 船票 潮水 船长 乘客 海岛",
    "花园 豆角 番茄 堆肥 浇水 幼苗 温室 土壤",
    "数据 索引 查询 迁移 表格 锁定 事务 字段",
    "发票 付款 客户 退款 账户 余额 银行 收据",
    "食谱 烤箱 面粉 黄油 面团 白糖 厨房 烘焙",
    "服务 部署 容器 集群 证书 代理 延迟 故障",
    "小说 章节 人物 情节 编辑 手稿 出版 场景",
    "单车 齿轮 链条 刹车 车轮 轮胎 修理 路线",
    "望远 行星 轨道 相机 曝光 彗星 星系 观测",
    "课程 学生 考试 语法 词汇 老师 作文 成绩",
    "公寓 租约 房东 暖气 窗户 家具 邻居 租金",
    "乐团 提琴 排练 音乐 作曲 旋律 观众 节拍",
];
const ENGLISH_WORDS: &str = "we should look at this again tomorrow because it was not clear why \
    somebody changed that yesterday and nobody could say when please check whether everything works \
    then tell me what you found first second later maybe before after more less new old right wrong";
const CHINESE_WORDS: &str = "我们 应该 明天 再看 一下 因为 昨天 没有 说清 为什么 有人 改了 这个 请你 \
    检查 是否 正常 然后 告诉 我 结果 第一 第二 以后 也许 之前 之后 更多 更少 新的 旧的 对的 错的";

/// The conversation of one todo, the same on every run.
pub(super) struct Talk {
    random: Random,
    subject: Vec<&'static str>,
    common: Vec<&'static str>,
    is_chinese: bool,
}

impl Talk {
    /// Returns the conversation with this seed: for an even seed in English, for an odd one in Chinese.
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_chinese = !seed.is_multiple_of(2);
        let (subjects, common) = match is_chinese {
            true => (CHINESE, CHINESE_WORDS),
            false => (ENGLISH, ENGLISH_WORDS),
        };
        let subject = random.below(subjects.len() as u64) as usize;
        let subject = subjects.get(subject).copied().unwrap_or_default();
        let (subject, common) = (subject.split_whitespace(), common.split_whitespace());
        Self { random, subject: subject.collect(), common: common.collect(), is_chinese }
    }

    /// Returns the message at this index: the user asks, the assistant answers.
    pub(super) fn message(&mut self, before: u64) -> Message {
        let words = 10 + self.random.below(40);
        let text = self.text(words);
        match before.is_multiple_of(2) {
            true => Message::user(&text),
            false => Message::assistant(&text),
        }
    }

    /// Returns six consecutive words of one of the first `messages` messages.
    pub(super) fn question(mut self, seed: u64, messages: u64) -> String {
        let mut random = Random::new(seed);
        let wanted = random.below(messages);
        let said = (0..=wanted).map(|at| self.message(at)).last();
        let said = said.map(|message| message.text().into_owned()).unwrap_or_default();
        if self.is_chinese {
            let from = random.below(8) as usize;
            return said.chars().skip(from).take(12).collect();
        }
        let words: Vec<&str> = said.split(' ').collect();
        let from = random.below(words.len().saturating_sub(6) as u64) as usize;
        words.iter().skip(from).take(6).copied().collect::<Vec<_>>().join(" ")
    }

    fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for at in 0..words {
            if at > 0 && !self.is_chinese {
                text.push(' ');
            }
            match self.random.below(20) {
                // A name that hardly any other conversation contains.
                0 => text.push_str(&format!(" ORD-{} ", self.random.below(1 << 20))),
                1 => text.push_str(&self.random.text(1)),
                2..10 => text.push_str(pick(&mut self.random, &self.subject)),
                _ => text.push_str(pick(&mut self.random, &self.common)),
            }
            if self.is_chinese && at % 12 == 11 {
                text.push('，');
            }
        }
        text
    }
}

fn pick(random: &mut Random, words: &[&'static str]) -> &'static str {
    words.get(random.below(words.len() as u64) as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_stands_in_its_conversation() {
        for seed in 1..9 {
            let question = Talk::of(seed).question(7, 30);
            let mut talk = Talk::of(seed);
            let mut said = (0..30).map(|at| talk.message(at));
            assert!(said.any(|message| message.text().contains(&question)), "{seed}: {question}");
            assert_eq!(question.is_ascii(), seed % 2 == 0, "{question}");
        }
    }
}
