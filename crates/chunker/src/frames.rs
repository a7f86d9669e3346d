//! The words around the description of a block, in Chinese, Japanese and Korean.

/// The words of one language. `{tools}`, `{verb}`, `{target}`, `{request}` and `{}` are
/// placeholders.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) user: &'static str,
    pub(crate) assistant: &'static str,
    pub(crate) tool: &'static str,
    /// The words after a speaker, in a question, its answer, and any other talk.
    pub(crate) asks: &'static str,
    pub(crate) answers: &'static str,
    pub(crate) says: &'static str,
    /// Between two speakers.
    pub(crate) between: &'static str,
    pub(crate) calls: &'static str,
    pub(crate) calls_on: &'static str,
    pub(crate) calls_for: &'static str,
    /// After two of several names; `{}` is the number of the others.
    pub(crate) many: &'static str,
    pub(crate) answered: &'static str,
    pub(crate) fails_with: &'static str,
    pub(crate) fails: &'static str,
    pub(crate) stored: &'static str,
    pub(crate) instructions: &'static str,
    /// In the order of [`VERBS`].
    verbs: [&'static str; VERBS.len() + 1],
}

impl Frame {
    /// Returns the action of a tool, derived from its name.
    pub(crate) fn verb(&self, tool: &str) -> &'static str {
        let tool = tool.to_lowercase();
        let is_named = |names: &&str| names.split(' ').any(|name| tool.contains(name));
        let place = VERBS.iter().position(is_named).unwrap_or(VERBS.len());
        self.verbs.get(place).copied().unwrap_or_default()
    }
}

/// The words in names of tools, by action; the last one is for names without any of them.
const VERBS: [&str; 8] = [
    "write save create add",
    "edit replace update modify patch",
    "delete remove cancel",
    "search grep find query lookup",
    "list ls glob",
    "run exec bash shell python test",
    "read cat open view load",
    "get fetch",
];

pub(crate) static CHINESE: Frame = Frame {
    user: "用户",
    assistant: "助手",
    tool: "工具",
    asks: "问：",
    answers: "答：",
    says: "说：",
    between: "；",
    calls: "调用{tools}工具",
    calls_on: "调用{tools}工具{verb}{target}",
    calls_for: "应“{request}”调用{tools}工具",
    many: "等{}个",
    answered: "工具返回结果",
    fails_with: "，报错{}",
    fails: "，失败",
    stored: "，结果存储至{}",
    instructions: "系统说明：",
    verbs: ["写入", "修改", "删除", "查找", "列出", "运行", "读取", "获取", "处理"],
};

pub(crate) static JAPANESE: Frame = Frame {
    user: "ユーザー",
    assistant: "AI",
    tool: "ツール",
    asks: "の質問：",
    answers: "の回答：",
    says: "：",
    between: "；",
    calls: "{tools}を実行",
    calls_on: "{tools}で{target}を{verb}",
    calls_for: "「{request}」に応じ{tools}を実行",
    many: "など{}件",
    answered: "ツールが結果を返答",
    fails_with: "、エラー{}",
    fails: "、失敗",
    stored: "、結果は{}に保存",
    instructions: "指示：",
    verbs: ["書き込み", "修正", "削除", "検索", "一覧", "実行", "読み取り", "取得", "処理"],
};

pub(crate) static KOREAN: Frame = Frame {
    user: "사용자",
    assistant: "AI",
    tool: "도구",
    asks: " 질문: ",
    answers: " 답변: ",
    says: ": ",
    between: "; ",
    calls: "{tools} 실행",
    calls_on: "{tools}: {target} {verb}",
    calls_for: "“{request}” 요청에 {tools} 실행",
    many: " 등 {}개",
    answered: "도구가 결과를 반환",
    fails_with: ", 오류 {}",
    fails: ", 실패",
    stored: ", 결과는 {}에 저장",
    instructions: "지침: ",
    verbs: ["쓰기", "수정", "삭제", "검색", "목록", "실행", "읽기", "가져오기", "처리"],
};
