//! A strategy that chooses between one plan and going step by step.

use crate::agent::AgentError;
use crate::one_plan::OnePlan;
use crate::react::React;
use crate::strategy::{Strategy, StrategyName, StrategyRun};
use crate::trajectory::Ending;
use foldback_core::script::{is_compatibility_ideograph, is_ideograph, is_kana, is_thai_or_lao};
use foldback_core::{Budget, ContextManager};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A strategy that works by one plan if one can be made for the request, and step by step otherwise.
#[derive(Clone, Debug, Default)]
pub struct Adaptive {
    one_plan: OnePlan,
}

impl Adaptive {
    /// The name of the strategy.
    pub const NAME: StrategyName = StrategyName::new("adaptive");

    /// Creates the strategy from the one-plan strategy to use; step by step uses the settings with which that would
    /// continue.
    #[must_use]
    pub fn new(one_plan: OnePlan) -> Self {
        Self { one_plan }
    }
}

impl Adaptive {
    /// Returns whether the model's window has room for a plan: half of it for the request, which cannot be
    /// shortened, and half for the results of the steps.
    fn has_room(&self, run: &StrategyRun<'_>) -> bool {
        let room = run.agent().window.budget().tokens;
        room.is_none_or(|room| self.one_plan.request_tokens(run) <= room / 2)
    }
}

/// The kind under which a choice is noted.
const KIND: &str = "strategy";

/// A request of fewer words is self-contained only if nothing was said before it.
const FEW_WORDS: usize = 5;

/// Words that may point back to what was said. A false match does no harm: going step by step is always right.
const BACK: &[&str] = &[
    "it",
    "its",
    "that",
    "this",
    "these",
    "those",
    "they",
    "them",
    "their",
    "he",
    "him",
    "his",
    "she",
    "her",
    "you",
    "your",
    "we",
    "us",
    "our",
    "again",
    "above",
    "previous",
    "previously",
    "earlier",
    "before",
    "same",
    "continue",
    "also",
    "instead",
    "another",
    "other",
    "others",
    "rest",
    "still",
    "already",
    "former",
    "latter",
];

/// The same in languages that are written without spaces, or join words.
const BACK_WITHIN: &[&str] = &[
    "它",
    "这",
    "那",
    "她",
    "他",
    "你",
    "您",
    "我们",
    "咱们",
    "刚才",
    "刚刚",
    "上面",
    "上述",
    "以上",
    "之前",
    "先前",
    "前面",
    "继续",
    "同样",
    "其他",
    "其余",
    "剩下",
    "這",
    "們",
    "剛才",
    "繼續",
    "これ",
    "それ",
    "あれ",
    "この",
    "その",
    "あの",
    "さっき",
    "先ほど",
    "前の",
    "上記",
    "続け",
    "同じ",
    "그것",
    "이것",
    "저것",
    "이전",
    "아까",
    "위의",
    "계속",
    "같은",
];

/// A strategy, and the reason why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    strategy: StrategyName,
    because: String,
    /// Whether a conversation that a planner does not see precedes the request.
    follows: bool,
}

/// The basis of the choice.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    request: &'a str,
    /// The number of the agent's tools.
    tools: usize,
    /// Whether the context holds a conversation.
    follows: bool,
    /// Whether the model's window has room for a plan and its results.
    has_room: bool,
}

/// Chooses the strategy for a request.
///
/// | the agent has tools, and the model room | a conversation precedes | the request points back | |
/// |---|---|---|---|
/// | no | | | step by step |
/// | yes | no | | one plan |
/// | yes | yes | yes, or it asks something | step by step: the planner sees nothing of the conversation |
/// | yes | yes | no | one plan, and the planner may say that it needs the conversation |
///
/// If it turns out that a plan cannot do the task, [one plan](OnePlan) notices that itself.
fn choose(given: Given<'_>) -> Choice {
    let Given { request, tools, follows, has_room } = given;
    let (strategy, because) = if tools == 0 {
        (React::NAME, "there are no tools whose calls could be planned")
    } else if !has_room {
        (React::NAME, "a plan and its results would not fit the model's window")
    } else if !follows {
        (OnePlan::NAME, "nothing was said before: the planner sees all that there is")
    } else if points_back(request) {
        (React::NAME, "the request points back to the conversation, which a planner does not see")
    } else if asks(request) {
        (
            React::NAME,
            "a question in a conversation may be about what was said, which a planner does not see",
        )
    } else {
        (OnePlan::NAME, "the request can be understood without the conversation before it")
    };
    Choice { strategy, because: because.to_owned(), follows }
}

/// Returns whether a request may be unclear without what was said before it.
fn points_back(request: &str) -> bool {
    let request = request.to_lowercase();
    let words = || request.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // In a script without spaces, a whole sentence counts as one word.
    let count: usize =
        words().map(|word| 1 + word.chars().filter(|c| is_dense(*c)).count() / 2).sum();
    count < FEW_WORDS
        || words().any(|word| BACK.contains(&word))
        || BACK_WITHIN.iter().any(|back| request.contains(back))
}

/// Returns whether a request is a question: by its ending, or by its words in a script that needs no sign.
fn asks(request: &str) -> bool {
    let end = request.trim_end_matches(|c: char| c.is_whitespace() || "\"'”’)）」".contains(c));
    let end = end.trim_end_matches(['。', '.', '!', '！']);
    end.ends_with(['?', '？', '؟'])
        || ASKING.iter().any(|word| end.ends_with(word))
        || QUESTIONS.iter().any(|word| begins_with_word(request, word))
}

/// Words that begin a question.
const QUESTIONS: &[&str] = &[
    "what", "which", "who", "whom", "whose", "when", "where", "why", "how", "was", "were", "is",
    "are", "did", "does", "do", "has", "have", "had",
];

/// The endings of a question without a question mark.
const ASKING: &[&str] =
    &["吗", "呢", "嗎", "什么", "什麼", "多少", "ですか", "ますか", "인가요", "나요", "까요"];

fn begins_with_word(request: &str, word: &str) -> bool {
    let request = request.trim_start().to_lowercase();
    let rest = request.strip_prefix(word);
    rest.is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric()))
}

/// Returns whether a letter belongs to a script without spaces between words.
fn is_dense(letter: char) -> bool {
    is_thai_or_lao(letter)
        || is_kana(letter)
        || (is_ideograph(letter) && !is_compatibility_ideograph(letter))
}

impl Strategy for Adaptive {
    fn name(&self) -> StrategyName {
        Self::NAME
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        async move {
            let choice = match run.noted(KIND).pop() {
                Some(choice) => choice,
                None => {
                    let choice = choose(Given {
                        request: &run.task().request,
                        tools: run.agent().executor.toolbox().specs().count(),
                        follows: has_conversation(context),
                        has_room: self.has_room(run),
                    });
                    run.note(KIND, &choice)?;
                    choice
                }
            };
            let Choice { strategy, because, follows } = choice;
            run.choose(strategy.clone(), &because);
            if strategy == OnePlan::NAME {
                self.one_plan.check()?;
                self.one_plan.plan_and_run(run, context, follows).await
            } else {
                self.one_plan.react.run(run, context).await
            }
        }
        .boxed()
    }
}

/// Returns whether a context holds anything besides instructions.
fn has_conversation(context: &dyn ContextManager) -> bool {
    let prompt = context.prompt(&Budget::default());
    prompt.conversation().iter().any(|message| !message.role().is_instruction())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(request: &str, tools: usize, follows: bool) -> String {
        choose(Given { request, tools, follows, has_room: true }).strategy.to_string()
    }

    #[test]
    fn a_window_without_room_for_a_plan_is_worked_in_step_by_step() {
        let given =
            Given { request: "Weigh the harbour.", tools: 3, follows: false, has_room: false };
        assert_eq!(choose(given).strategy, React::NAME);
    }

    /// OP14, OP18: what is planned, and what is not.
    #[test]
    fn op18_a_request_is_planned_where_the_planner_sees_what_it_needs() {
        let long = "Compare the weather in Oslo and Rome, and book the cheaper flight.";
        let chinese = "查询北京和上海明天的天气，并预订更便宜的航班。";
        for (request, tools, follows, expected) in [
            (long, 0, false, "react"),
            (long, 0, true, "react"),
            (long, 3, false, "one-plan"),
            (long, 3, true, "one-plan"),
            (chinese, 3, false, "one-plan"),
            (chinese, 3, true, "one-plan"),
            ("Continue.", 3, false, "one-plan"),
            ("Continue.", 3, true, "react"),
            ("and Rome?", 3, true, "react"),
            ("What did the data.txt we read conclude?", 3, true, "react"),
            ("Write what you found into a file named notes.md, with headings.", 3, true, "react"),
            ("Send IT to Ada, Bo, Cy, Di and Ed by noon.", 3, true, "react"),
            ("把刚才的结果写进文件，然后发给王老师和李老师。", 3, true, "react"),
            ("我们读过的 data.txt 的结论是什么？", 3, true, "react"),
            ("好的，继续", 3, true, "react"),
            ("それをファイルに書いて、田中さんに送ってください。", 3, true, "react"),
            ("그것을 파일에 적어서 김 선생님께 보내 주세요 부탁합니다", 3, true, "react"),
            ("What port does the gateway of the harbour listen on", 3, true, "react"),
            ("Do the tests in the folder of the report pass?", 3, false, "one-plan"),
            ("潮汐报告里杭州湾的高水位是多少", 3, true, "react"),
            ("Name the ports. Which one has the deepest berth?", 3, true, "react"),
            ("", 3, true, "react"),
            ("🧾🧾🧾🧾🧾🧾", 3, true, "react"),
        ] {
            assert_eq!(chosen(request, tools, follows), expected, "{request:?} {tools} {follows}");
        }
    }

    /// A part of a word does not count: `item` is not `it`.
    #[test]
    fn op18_only_whole_words_point_back() {
        assert!(!points_back("List every item with a thesis on tithes under heritage sites."));
        assert!(points_back("List every item of it with a thesis on heritage sites."));
    }
}
