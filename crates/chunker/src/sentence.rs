//! One sentence that describes a block: who did what with what.

mod words;

pub(crate) use words::{LONGEST_WORD, word};

use crate::cues::Cues;
use crate::describe::{Described, Names, ends, head};
use crate::frames::{CHINESE, Frame, JAPANESE, KOREAN};
use crate::terms::{each_word, is_cjk, is_stop_word};
use crate::width::folded;
use foldback_core::script::{is_hangul, is_kana};
use foldback_core::{BlockType, CallOutcome, Message, Role, abbreviated, first_chars, last_chars};
use words::{clip, count, listed, name, plain};

/// Returns the sentence: at most 50 characters if the talk is Chinese, Japanese or Korean,
/// otherwise at most 20 words.
pub(crate) fn of(block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    match frame(parts) {
        Some(frame) => cjk(frame, block_type, names, parts),
        None => english(block_type, names, parts),
    }
}

/// The most characters of a CJK sentence.
const CHARACTERS: usize = 50;

/// The most words of any other sentence.
const WORDS: usize = 20;

/// Returns the words of the language that is mostly spoken; `None` for English.
fn frame(parts: &[Described<'_>]) -> Option<&'static Frame> {
    // Instructions are often English whatever is spoken. Tools answer in the language of their
    // programmers.
    let spoken = Letters::of(parts, |role| !role.is_instruction() && *role != Role::Tool);
    let Letters { all, cjk, kana, hangul } =
        if spoken.all > 0 { spoken } else { Letters::of(parts, |_| true) };
    // A CJK character says about as much as four letters. Much of Japanese is kana.
    match () {
        () if cjk * 4 <= all => None,
        () if hangul * 2 > cjk => Some(&KOREAN),
        () if kana * 5 > cjk => Some(&JAPANESE),
        () => Some(&CHINESE),
    }
}

/// Returns how many letters there are, and of which scripts.
#[derive(Default)]
struct Letters {
    all: usize,
    cjk: usize,
    kana: usize,
    hangul: usize,
}

impl Letters {
    fn of(parts: &[Described<'_>], counts: impl Fn(&Role) -> bool) -> Self {
        let mut letters = Self::default();
        for part in parts.iter().filter(|part| counts(part.message.role())) {
            for c in head(part.message).chars().take(500) {
                letters.all += usize::from(c.is_alphabetic());
                letters.cjk += usize::from(is_cjk(c));
                letters.kana += usize::from(is_kana(c));
                letters.hangul += usize::from(is_hangul(c));
            }
        }
        letters
    }
}

fn english(block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    let asked = opening(block_type, parts);
    let said = |words: usize| {
        asked.map(|asked| (who(asked, "User", "Assistant", "Tool"), clip(&telling(asked), words)))
    };
    let sentence = if block_type == BlockType::ToolCall {
        let mut action =
            String::from(if names.tools.is_empty() { "a tool answers" } else { "calls " });
        let more = |more| format!(" and {more} more tool{}", if more == 1 { "" } else { "s" });
        action.push_str(&listed(&names.tools, 2, LONGEST_WORD, " and ", more));
        let failure = names.failure.as_ref();
        let error = failure.and_then(|failure| failure.error.as_ref());
        let reference = names.result.as_ref().filter(|_| error.is_none());
        // A call that failed is named where the words before it speak of another.
        let other = failure.filter(|failure| {
            let is_first = failure.tool.as_ref() == names.tools.first();
            failure.tool.is_some() && !(is_first && failure.target == names.target)
        });
        let other = other.filter(|_| reference.is_none());
        let target = |target: Option<&String>| {
            target.map_or_else(String::new, |target| format!(" on {}", word(target)))
        };
        if let Some(other) = other {
            let tool = other.tool.as_ref().filter(|_| names.tools.len() > 1);
            let which =
                tool.map_or_else(|| "which".to_owned(), |tool| format!("of which {}", word(tool)));
            action.push_str(&format!(", {which} fails{}", target(other.target.as_ref())));
        } else {
            action.push_str(&target(names.target.as_ref()));
            if let Some(reference) = reference {
                action.push_str(&format!(", result at {}", word(reference)));
            } else if failure.is_some() {
                action.push_str(", which fails");
            }
        }
        if let Some(error) = error {
            action.push_str(&format!(" with {}", word(error)));
        }
        let room = WORDS.saturating_sub(count(&action) + 3);
        match said(room).filter(|said| !said.1.is_empty()) {
            Some((who, what)) if asked.is_some_and(is_user) => {
                format!("{who} asks \"{what}\"; assistant {action}.")
            }
            _ if names.tools.is_empty() => format!("{action}."),
            _ => format!("Assistant {action}."),
        }
    } else {
        let verbs = match block_type {
            BlockType::Qa if asked.is_some_and(is_user) => ("asks", "answers"),
            _ => ("says", "says"),
        };
        let reply = asked.and_then(|asked| reply(parts, asked));
        let room = if reply.is_some() { 8 } else { 17 };
        let other = reply.map(|reply| {
            let who = who(reply, "user", "assistant", "tool");
            let what = clip(&telling(reply), room);
            format!("; {who} {} \"{what}\"", verbs.1)
        });
        match said(room).filter(|said| !said.1.is_empty()) {
            Some((who, what)) => {
                let other = other.unwrap_or_default();
                format!("{who} {} \"{what}\"{other}.", verbs.0)
            }
            None => instructions(parts).map_or_else(
                || "Nothing is said.".to_owned(),
                |text| format!("Instructions: \"{}\".", clip(&text, 16)),
            ),
        }
    };
    let mut chars = sentence.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    clip(&format!("{first}{}", chars.as_str()), WORDS)
}

fn cjk(frame: &Frame, block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    let asked = opening(block_type, parts);
    let sentence = match (block_type, asked) {
        (BlockType::ToolCall, _) => called(frame, names, asked),
        (_, Some(asked)) => talked(frame, block_type, parts, asked),
        _ => format!("{}{}", frame.instructions, instructions(parts).unwrap_or_default()),
    };
    abbreviated(&sentence, CHARACTERS).into_owned()
}

/// The number of tools that are named, and the lengths of their names and of what they work on, in
/// characters: the first that fits.
const WIDTHS: [(usize, usize, usize); 6] =
    [(2, LONGEST_WORD, LONGEST_WORD), (2, 16, 24), (1, 12, 24), (1, 12, 14), (1, 6, 14), NARROWEST];
const NARROWEST: (usize, usize, usize) = (1, 4, 13);

/// Returns which tools are called, on what, and with what outcome. The names give way to the
/// outcome.
fn called(frame: &Frame, names: &Names, asked: Option<&Message>) -> String {
    let failure = names.failure.as_ref();
    let outcome = match (failure.map(|failure| &failure.error), &names.result) {
        (Some(Some(error)), _) => {
            frame.fails_with.replace("{}", &abbreviated(error, LONGEST_WORD / 2))
        }
        (_, Some(reference)) => frame.stored.replace("{}", &word(reference)),
        (Some(None), None) => frame.fails.to_owned(),
        (None, None) => String::new(),
    };
    // The call that failed is the one that is named.
    let failed = failure.filter(|failure| failure.tool.is_some());
    let mut tools: Vec<String> =
        failed.and_then(|failure| failure.tool.clone()).into_iter().collect();
    tools.extend(
        names.tools.iter().filter(|tool| !tools.contains(tool)).cloned().collect::<Vec<_>>(),
    );
    let target = failed.map_or(&names.target, |failure| &failure.target);
    let room = CHARACTERS.saturating_sub(outcome.chars().count());
    let action = |(named, tool, width): (usize, usize, usize)| {
        let Some(first) = tools.first() else { return frame.answered.to_owned() };
        let many = |_| frame.many.replace("{}", &tools.len().to_string());
        let tools = listed(&tools, named, tool, "、", many);
        let asked = asked.filter(|asked| is_user(asked));
        let fill = |frame: &str| frame.replace("{tools}", &tools);
        match (target, asked) {
            (Some(found), _) => fill(frame.calls_on)
                .replace("{verb}", frame.verb(first))
                .replace("{target}", &name(found, width)),
            (None, Some(asked)) => {
                let action = fill(frame.calls_for);
                let around = action.chars().count().saturating_sub("{request}".len());
                let room = CHARACTERS.saturating_sub(around + 15).min(room.saturating_sub(around));
                action.replace("{request}", &abbreviated(&telling(asked), room.max(4)))
            }
            _ => fill(frame.calls),
        }
    };
    let fits = |action: &String| action.chars().count() <= room;
    let fitting = WIDTHS.into_iter().map(action).find(fits);
    let action = fitting.unwrap_or_else(|| abbreviated(&action(NARROWEST), room).into_owned());
    action + &outcome
}

/// Returns who says what, and what is answered.
fn talked(
    frame: &Frame,
    block_type: BlockType,
    parts: &[Described<'_>],
    asked: &Message,
) -> String {
    const REPLY: usize = 14;
    let (asks, answers) = match block_type {
        BlockType::Qa if is_user(asked) => (frame.asks, frame.answers),
        _ => (frame.says, frame.says),
    };
    let speaker = |message| {
        let name = who(message, frame.user, frame.assistant, frame.tool);
        abbreviated(&name, 6).into_owned()
    };
    let first = format!("{}{asks}", speaker(asked));
    let Some(reply) = reply(parts, asked) else {
        return format!("{first}{}", abbreviated(&telling(asked), 40));
    };
    let second = format!("{}{}{answers}", frame.between, speaker(reply));
    let around = first.chars().count() + second.chars().count() + REPLY;
    let asked =
        abbreviated(&telling(asked), CHARACTERS.saturating_sub(around).min(18)).into_owned();
    format!("{first}{asked}{second}{}", abbreviated(&telling(reply), REPLY))
}

/// Returns the message that says what the block is about: the first one of the user that is more
/// than a courtesy or, if it is answered, says anything; otherwise the first that says anything and is neither an
/// instruction nor the output of a tool.
fn opening<'a>(block_type: BlockType, parts: &[Described<'a>]) -> Option<&'a Message> {
    let spoken = || {
        parts.iter().map(|part| part.message).filter(|message| {
            !message.role().is_instruction()
                && *message.role() != Role::Tool
                && !message.is_observation()
                && says_something(message)
        })
    };
    let of_users = || spoken().filter(|message| is_user(message));
    let tells = |message: &&Message| {
        let mut words = 0;
        each_word(&head(message), |word| words += usize::from(!is_stop_word(word)));
        words >= 2
    };
    let asks = || of_users().next().filter(|_| block_type == BlockType::Qa);
    of_users()
        .find(tells)
        .or_else(asks)
        .or_else(|| spoken().find(tells))
        .or_else(|| spoken().next())
}

fn is_user(message: &Message) -> bool {
    *message.role() == Role::User
}

/// Returns the first answer of another speaker after `asked`.
fn reply<'a>(parts: &[Described<'a>], asked: &Message) -> Option<&'a Message> {
    let behind = parts.iter().skip_while(|part| !std::ptr::eq(part.message, asked)).skip(1);
    behind.map(|part| part.message).find(|message| {
        *message.role() != Role::Tool
            && !message.role().is_instruction()
            && (message.role() != asked.role() || message.name() != asked.name())
            && says_something(message)
    })
}

fn says_something(message: &Message) -> bool {
    !head(message).trim().is_empty()
}

fn instructions(parts: &[Described<'_>]) -> Option<String> {
    parts.iter().map(|part| plain(&head(part.message))).find(|text| !text.is_empty())
}

/// Returns the speaker: by name, if there is one.
fn who(message: &Message, user: &str, assistant: &str, tool: &str) -> String {
    match (message.role(), message.name()) {
        (Role::User | Role::Assistant | Role::Other(_), Some(name))
            if !ends(name).0.trim().is_empty() =>
        {
            clip(&plain(ends(name).0), 2)
        }
        (Role::Assistant, _) => assistant.to_owned(),
        (Role::Tool, _) => tool.to_owned(),
        _ => user.to_owned(),
    }
}

/// Returns the most informative sentence of a message: its first question or request, otherwise its
/// first sentence with three words of content, otherwise its first.
fn telling(message: &Message) -> String {
    let text = message.text();
    let text = folded(first_chars(&text, 2_000));
    let sentences: Vec<&str> = sentences(&text).take(12).collect();
    let weighs = |sentence: &&&str| {
        let mut words = 0;
        each_word(sentence, |word| words += usize::from(!is_stop_word(word)));
        words >= 3
    };
    let asks = |sentence: &&&str| {
        let cues = Cues::of(sentence);
        let long = sentence.split_whitespace().count() >= 3 || sentence.chars().any(is_cjk);
        long && (cues.has(Cues::ASKS) || (cues.has(Cues::REQUESTS) && weighs(sentence)))
    };
    let by_user = *message.role() == Role::User;
    let best = sentences
        .iter()
        .find(|sentence| by_user && asks(sentence))
        .or_else(|| sentences.iter().find(weighs))
        .or_else(|| sentences.first());
    // A text without a word is used as it is: 👍, "...".
    let told = plain(best.copied().unwrap_or(text.trim()));
    match told.trim_end_matches(['.', '。', '!', '！']) {
        "" => told,
        short => short.to_owned(),
    }
}

/// Cuts a text after its full stops and at line ends; a full stop inside a word does not count.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let mut chars = rest.char_indices().peekable();
            let mut end = rest.len();
            while let Some((at, c)) = chars.next() {
                let next_is_space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
                let ends = matches!(c, '\n' | '。' | '｡' | '．' | '！' | '？')
                    || (matches!(c, '.' | '!' | '?') && next_is_space);
                if ends {
                    end = at + c.len_utf8();
                    break;
                }
            }
            let (sentence, behind) = rest.split_at(end);
            rest = behind;
            if sentence.chars().any(char::is_alphanumeric) {
                return Some(sentence.trim());
            }
        }
        None
    })
}

/// How many characters at the end of a result are searched for the first line of a traceback, which
/// may be long itself.
const TRACEBACK: usize = 12_000;

/// The beginnings of answers of failed tools in Chinese, Japanese and Korean.
const FAILURES: [&str; 8] = ["错误", "錯誤", "失败", "失敗", "エラー", "오류", "에러", "실패"];

/// Returns whether the answer of a tool is an error: what it [states](Message::outcome) counts, whatever its text says.
pub(crate) fn fails(answer: &Message) -> bool {
    if let Some(outcome) = answer.outcome() {
        return outcome == CallOutcome::Failed;
    }
    let text = answer.text();
    let head = folded(first_chars(&text, 200).trim_start()).to_lowercase();
    let traceback = |text: &str| text.contains("Traceback (most recent call last)");
    head.starts_with("error")
        || head.starts_with("traceback")
        || FAILURES.iter().any(|failure| head.starts_with(failure))
        || head.contains("error:")
        || head.contains("exception")
        || traceback(ends(&text).0)
        || traceback(last_chars(&text, TRACEBACK))
}
