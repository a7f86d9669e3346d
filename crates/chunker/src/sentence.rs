//! One sentence that says who did what with what.

use crate::cues::Cues;
use crate::describe::{Described, Names, ends, head};
use crate::terms::{each_word, is_cjk, is_stop_word};
use foldback_core::{BlockType, Message, Role};

/// The sentence: at most 50 characters where the talk is Chinese, Japanese or Korean, else at most
/// 20 words.
pub(crate) fn of(block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    if is_mostly_cjk(parts) {
        cjk(block_type, names, parts)
    } else {
        english(block_type, names, parts)
    }
}

/// The most characters of a CJK sentence.
const CHARACTERS: usize = 50;

/// The most words of any other sentence.
const WORDS: usize = 20;

/// The longest word that is shown whole.
pub(crate) const LONGEST_WORD: usize = 48;

fn is_mostly_cjk(parts: &[Described<'_>]) -> bool {
    // Instructions are often English whatever is spoken. Tools answer in the language of their
    // programmers.
    let of = |test: &dyn Fn(&Role) -> bool| {
        let (mut cjk, mut letters) = (0_usize, 0_usize);
        for part in parts.iter().filter(|part| test(part.message.role())) {
            for c in head(part.message).chars().take(500) {
                cjk += usize::from(is_cjk(c));
                letters += usize::from(c.is_alphabetic());
            }
        }
        (cjk, letters)
    };
    let spoken = of(&|role| !role.is_instruction() && *role != Role::Tool);
    let (cjk, letters) = if spoken.1 > 0 { spoken } else { of(&|_| true) };
    // A CJK character says about as much as four letters.
    cjk * 4 > letters
}

fn english(block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    let asked = opening(parts);
    let said = |words: usize| {
        asked.map(|asked| (who(asked, "User", "Assistant", "Tool"), clip(&telling(asked), words)))
    };
    let sentence = if block_type == BlockType::ToolCall {
        let mut action =
            String::from(if names.tools.is_empty() { "a tool answers" } else { "calls " });
        action.push_str(&listed(&names.tools, " and ", |more| format!(" and {more} more tools")));
        if let Some(target) = &names.target {
            action.push_str(" on ");
            action.push_str(&word(target));
        }
        if let Some(error) = names.errors.first().filter(|_| failed(parts)) {
            action.push_str(", which fails with ");
            action.push_str(&word(error));
        } else if let Some(reference) = names.references.first() {
            action.push_str(", result at ");
            action.push_str(&word(reference));
        } else if failed(parts) {
            action.push_str(", which fails");
        }
        let room = WORDS.saturating_sub(count(&action) + 3);
        match said(room).filter(|said| !said.1.is_empty()) {
            Some((who, what)) if asked.is_some_and(|a| *a.role() == Role::User) => {
                format!("{who} asks \"{what}\"; assistant {action}.")
            }
            _ if names.tools.is_empty() => format!("{action}."),
            _ => format!("Assistant {action}."),
        }
    } else {
        let verbs = match block_type {
            BlockType::Qa => ("asks", "answers"),
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

fn cjk(block_type: BlockType, names: &Names, parts: &[Described<'_>]) -> String {
    let asked = opening(parts);
    let mut sentence = String::new();
    if block_type == BlockType::ToolCall {
        if names.tools.is_empty() {
            sentence.push_str("工具返回结果");
        } else {
            let tools = listed(&names.tools, "、", |more| format!("等{}个", more + 2));
            let verb = names.tools.first().map_or("处理", |tool| verb(tool));
            sentence.push_str(&format!("调用{tools}工具"));
            match (&names.target, asked) {
                (Some(target), _) => sentence.push_str(&format!("{verb}{}", word(target))),
                (None, Some(asked)) if *asked.role() == Role::User => {
                    let room = CHARACTERS.saturating_sub(sentence.chars().count() + 20);
                    sentence = format!("应“{}”{sentence}", shorten(&telling(asked), room));
                }
                _ => {}
            }
        }
        let outcome = match (names.errors.first(), names.references.first()) {
            (Some(error), _) if failed(parts) => format!("，报错{}", word(error)),
            (_, Some(reference)) => format!("，结果存储至{}", word(reference)),
            _ if failed(parts) => "，失败".to_owned(),
            _ => String::new(),
        };
        if sentence.chars().count() + outcome.chars().count() <= CHARACTERS {
            sentence.push_str(&outcome);
        }
    } else {
        let (asks, answers) = match block_type {
            BlockType::Qa => ("问", "答"),
            _ => ("说", "说"),
        };
        if let Some(asked) = asked {
            let reply = reply(parts, asked);
            let room = if reply.is_some() { 18 } else { 40 };
            let first = who(asked, "用户", "助手", "工具");
            sentence = format!("{}{asks}：{}", shorten(&first, 6), shorten(&telling(asked), room));
            if let Some(reply) = reply {
                let second = who(reply, "用户", "助手", "工具");
                let what = shorten(&telling(reply), 14);
                sentence.push_str(&format!("；{}{answers}：{what}", shorten(&second, 6)));
            }
        } else {
            let text = instructions(parts).unwrap_or_default();
            sentence = format!("系统说明：{}", shorten(&text, 40));
        }
    }
    shorten(&sentence, CHARACTERS)
}

/// What a tool does, told from its name.
fn verb(tool: &str) -> &'static str {
    let tool = tool.to_lowercase();
    let names = |list: &str| list.split(' ').any(|name| tool.contains(name));
    if names("write save create add") {
        "写入"
    } else if names("edit replace update modify patch") {
        "修改"
    } else if names("delete remove cancel") {
        "删除"
    } else if names("search grep find query lookup") {
        "查找"
    } else if names("list ls glob") {
        "列出"
    } else if names("run exec bash shell python test") {
        "运行"
    } else if names("read cat open view load") {
        "读取"
    } else if names("get fetch") {
        "获取"
    } else {
        "处理"
    }
}

/// The message that says what the block is about: the first one of the user that is more than a
/// courtesy, else the first that says anything and is neither an instruction nor a tool's.
fn opening<'a>(parts: &[Described<'a>]) -> Option<&'a Message> {
    let spoken = || {
        parts.iter().map(|part| part.message).filter(|message| {
            !message.role().is_instruction()
                && *message.role() != Role::Tool
                && says_something(message)
        })
    };
    let of_users = || spoken().filter(|message| *message.role() == Role::User);
    let tells = |message: &&Message| {
        let mut words = 0;
        each_word(&head(message), |word| words += usize::from(!is_stop_word(word)));
        words >= 2
    };
    of_users().find(tells).or_else(|| spoken().find(tells)).or_else(|| spoken().next())
}

/// The first answer of another speaker behind `asked`.
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

/// Who speaks: by name, where there is one.
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

/// The sentence of a message that tells: its first question or request, else its first sentence
/// with three words of content, else its first.
fn telling(message: &Message) -> String {
    let text = message.text();
    let text = text.char_indices().nth(2_000).map_or(text.as_ref(), |(at, _)| &text[..at]);
    let sentences: Vec<&str> = sentences(text).take(12).collect();
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
    plain(best.copied().unwrap_or("")).trim_end_matches(['.', '。', '!', '！']).to_owned()
}

/// Cuts a text behind its full stops and at line ends; a full stop inside a word is none.
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

/// Two names at most, and how many more there are.
fn listed(names: &[String], and: &str, more: impl Fn(usize) -> String) -> String {
    let shown: Vec<String> = names.iter().take(2).map(|name| word(name)).collect();
    let rest = names.len().saturating_sub(2);
    match (shown.as_slice(), rest) {
        ([first, second], 0) => format!("{first}{and}{second}"),
        ([first, second], rest) => format!("{first}, {second}{}", more(rest)),
        (shown, _) => shown.concat(),
    }
}

/// How many characters at the end of a result are searched for the first line of a traceback, which
/// may be long itself.
const TRACEBACK: usize = 12_000;

/// Whether a tool answered with an error.
fn failed(parts: &[Described<'_>]) -> bool {
    parts.iter().filter(|part| *part.message.role() == Role::Tool).any(|part| {
        let text = part.message.text();
        let last = text.char_indices().nth_back(TRACEBACK - 1).map_or(0, |(at, _)| at);
        let head: String = text.chars().take(200).collect();
        let head = head.trim_start().to_lowercase();
        let traceback = |text: &str| text.contains("Traceback (most recent call last)");
        head.starts_with("error")
            || head.starts_with("traceback")
            || head.starts_with("错误")
            || head.contains("error:")
            || head.contains("exception")
            || traceback(ends(&text).0)
            || text.get(last..).is_some_and(traceback)
    })
}

/// One line without control characters or quotation marks that would end the quotation.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.extend(word.chars().map(|c| if c == '"' { '\'' } else { c }));
        }
    }
    out
}

/// A name as one word of bounded length. Of a long path, the end tells more than the beginning.
pub(crate) fn word(name: &str) -> String {
    let name = plain(name).replace(' ', "_");
    let longer = name.chars().count().saturating_sub(LONGEST_WORD - 1);
    if longer > 1 && name.contains('/') {
        let rest: String = name.chars().skip(longer).collect();
        let rest = rest.find('/').and_then(|at| rest.get(at..)).filter(|rest| rest.len() > 8);
        if let Some(rest) = rest {
            return format!("…{rest}");
        }
    }
    shorten(&name, LONGEST_WORD)
}

/// At most `most` words, each of bounded length.
fn clip(text: &str, most: usize) -> String {
    let mut words = text.split_whitespace();
    let mut kept: Vec<String> =
        words.by_ref().take(most).map(|word| shorten(word, LONGEST_WORD)).collect();
    if words.next().is_some()
        && let Some(last) = kept.last_mut()
        && !last.ends_with('…')
    {
        last.truncate(last.trim_end_matches([',', ';', ':', '.']).len());
        last.push('…');
    }
    kept.join(" ")
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// At most `most` characters.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}
