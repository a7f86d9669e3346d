//! Transcripts in a tiny language.
//!
//! One entry is one line, and continues on the lines below that are indented by at least two more
//! spaces; those two are removed. The indentation of the first line is removed from all lines, so a
//! script may be indented in a test. Blank lines between entries are skipped; inside an entry they are
//! part of its text. `//` begins a comment line.
//!
//! ```text
//! system: text              a standing instruction; also `developer: text`
//! user: text                a user's message
//! user Bob: text            the same, with a name
//! assistant: text           a model's message
//! assistant> name(args)     a call. Calls in a row belong to one message, and so does the
//! assistant> name(args) #7  `assistant: text` directly above them. The arguments are taken as
//!                           written, JSON or not. Without `#id` the calls are c1, c2, ...
//! tool: text                the result of the oldest call that waits for one
//! tool #7: text             the result of that call, awaited or not
//! tool !: text              a result that says that the call failed (`"is_error": true`);
//! tool #7 !: text           the same with an id
//! json: {...}               a message, unchanged
//! @2025-01-01T10:00:00Z     from here on messages carry a time: this one, then a second more each
//! @+6m                      the clock advances by a number of s, m, h or d; `@-5s` sets it back
//! @off                      from here on messages carry no time
//! !words                    what happens between two messages and is not one; only [`steps`] returns it
//! ```
//!
//! In a text, `[big 5000]` is replaced by 5,000 bytes of numbered lines of words, always the same;
//! `[big 5000 x]` by different ones, distinguished by the word. `[nothing]` means no text at all, for
//! an empty message.

use foldback_core::{Content, Escape, Message, Role, Timestamp, ToolCall, ToolCallId, escape_into};

/// What a script tells, in its order.
#[derive(Debug)]
pub enum Step {
    /// A message.
    Message(Message),
    /// What happens between two messages: the words after `!`.
    Event(String),
}

/// Returns the messages of a script.
///
/// # Panics
/// When the script is not written in the language, or describes more than messages.
#[must_use]
#[track_caller]
#[expect(clippy::panic, reason = "a script that is not a transcript is a mistake in the test")]
pub fn transcript(script: &str) -> Vec<Message> {
    let message = |step| match step {
        Step::Message(message) => message,
        Step::Event(event) => panic!("!{event} is not a message; `script::steps` returns it"),
    };
    steps(script).into_iter().map(message).collect()
}

/// Returns the messages of a script, and what happens between them.
///
/// # Panics
/// When the script is not written in the language.
#[must_use]
#[track_caller]
pub fn steps(script: &str) -> Vec<Step> {
    let mut reader = Reader::default();
    for (n, entry) in entries(script) {
        if let Err(wrong) = reader.entry(&entry) {
            fail(n, &entry, &wrong);
        }
    }
    reader.finish_calls();
    reader.steps
}

/// Returns `bytes` bytes of numbered lines of words, the same for the same `seed`.
#[must_use]
pub fn big(bytes: usize, seed: &str) -> String {
    const WORDS: [&str; 24] = [
        "worker", "started", "queue", "request", "took", "cache", "miss", "retry", "socket",
        "closed", "by", "peer", "commit", "index", "block", "written", "flush", "timeout", "user",
        "session", "ok", "warn", "error", "done",
    ];
    // A small linear congruential generator (Knuth's MMIX constants): no test needs better.
    let mut state = seed.bytes().fold(0x9e37_79b9_u64, |s, b| s.rotate_left(9) ^ u64::from(b));
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0)
    };
    let mut out = String::with_capacity(bytes + 80);
    let mut line = 1;
    while out.len() < bytes {
        out.push_str(&format!("{line:05}"));
        for _ in 0..4 + next() % 6 {
            out.push(' ');
            out.push_str(WORDS.get(next() % WORDS.len()).copied().unwrap_or("word"));
        }
        out.push_str(&format!(" {}\n", next() % 100_000));
        line += 1;
    }
    out.truncate(bytes);
    out
}

#[expect(clippy::panic, reason = "a script that cannot be read is a mistake in the test")]
#[track_caller]
fn fail(line: usize, entry: &str, wrong: &str) -> ! {
    panic!("line {line} of the script: {wrong}: {entry:?}")
}

/// Returns the entries of a script: the number of the first line, and the lines joined.
fn entries(script: &str) -> Vec<(usize, String)> {
    let mut indent = None;
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut blank = 0;
    for (n, line) in script.lines().enumerate() {
        if line.trim().is_empty() {
            blank += 1;
            continue;
        }
        let here = line.len() - line.trim_start_matches(' ').len();
        let indent = *indent.get_or_insert(here);
        if here >= indent + 2
            && let Some((_, last)) = entries.last_mut()
        {
            last.push_str(&"\n".repeat(blank + 1));
            last.push_str(line.get(indent + 2..).unwrap_or(""));
        } else if !line.trim_start().starts_with("//") {
            entries.push((n + 1, line.trim_start_matches(' ').to_owned()));
        }
        blank = 0;
    }
    entries
}

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    /// The text before calls, once there is one.
    said: Option<String>,
    calls: Vec<ToolCall>,
    /// Calls that wait for a result.
    open: Vec<ToolCallId>,
    numbered: usize,
    clock: Option<i64>,
}

impl Reader {
    fn entry(&mut self, entry: &str) -> Result<(), String> {
        if let Some(call) = entry.strip_prefix("assistant>") {
            return self.call(call.trim());
        }
        self.finish_calls();
        if let Some(time) = entry.strip_prefix('@') {
            return self.time(time.trim());
        }
        if let Some(event) = entry.strip_prefix('!') {
            self.steps.push(Step::Event(event.trim().to_owned()));
            return Ok(());
        }
        // A colon inside an id has no space after it.
        let is_end = |at: usize| {
            entry.get(at + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n']))
        };
        let mut colons = entry.match_indices(':').map(|(at, _)| at);
        let (head, text) = colons
            .find(|at| is_end(*at))
            .and_then(|at| entry.split_at_checked(at))
            .ok_or("there is no colon followed by a space")?;
        let text = text.strip_prefix(':').unwrap_or(text);
        let text = text.strip_prefix(' ').unwrap_or(text);
        let (role, rest) = head.split_once(' ').unwrap_or((head, ""));
        match role {
            "json" => {
                let message = Message::from_json(text).map_err(|e| e.to_string())?;
                self.open.clear();
                self.open.extend(message.tool_calls().iter().map(|call| call.id.clone()));
                self.steps.push(Step::Message(message));
                Ok(())
            }
            "tool" => self.result(rest, &expand(text)?),
            "assistant" => {
                self.said = Some(expand(text)?);
                Ok(())
            }
            "user" | "system" | "developer" => {
                let content = Content::Text(expand(text)?);
                let message = Message::compose(Role::from(role), content, Vec::new(), None);
                self.push(match rest {
                    "" => message,
                    name => {
                        let mut value = String::from("\"");
                        escape_into(name, Escape::Minimal, &mut value);
                        value.push('"');
                        with_key(&message, "name", &value)?
                    }
                });
                Ok(())
            }
            _ => Err("this does not begin with a known word".to_owned()),
        }
    }

    fn call(&mut self, call: &str) -> Result<(), String> {
        let (name, rest) = call.split_once('(').ok_or("a call is name(args)")?;
        let end = rest.rfind(')').ok_or("a call is name(args), and this one does not end")?;
        let (arguments, id) = rest.split_at(end);
        let id = match id.trim_start_matches(')').trim() {
            "" => {
                self.numbered += 1;
                format!("c{}", self.numbered)
            }
            id => id.strip_prefix('#').ok_or("an id begins with #")?.to_owned(),
        };
        self.calls.push(ToolCall::new(&id, name.trim(), &expand(arguments)?));
        Ok(())
    }

    fn result(&mut self, head: &str, text: &str) -> Result<(), String> {
        let (head, failed) = match head.strip_suffix('!') {
            Some(head) => (head.trim(), true),
            None => (head.trim(), false),
        };
        let id = match head {
            "" if self.open.is_empty() => return Err("no call is open; name one by #id".to_owned()),
            "" => self.open.remove(0),
            id => {
                let id = ToolCallId::new(id.strip_prefix('#').ok_or("an id begins with #")?);
                if let Some(at) = self.open.iter().position(|open| *open == id) {
                    self.open.remove(at);
                }
                id
            }
        };
        let result = Message::tool_result(&id, text);
        self.push(if failed { with_key(&result, "is_error", "true")? } else { result });
        Ok(())
    }

    fn time(&mut self, time: &str) -> Result<(), String> {
        let signed = |sign: i64, span: &str| -> Result<i64, String> {
            let unit = match span.chars().last() {
                Some('s') => 1_000,
                Some('m') => 60_000,
                Some('h') => 3_600_000,
                Some('d') => 86_400_000,
                _ => return Err("a span ends with s, m, h or d".to_owned()),
            };
            let count: i64 =
                span.get(..span.len() - 1).unwrap_or("").parse().map_err(|_| "not a number")?;
            Ok(sign * count * unit)
        };
        let now = || self.clock.ok_or_else(|| "no time was set before".to_owned());
        self.clock = match (time, time.strip_prefix('+'), time.strip_prefix('-')) {
            ("off", ..) => None,
            (_, Some(span), _) => Some(now()? + signed(1, span)?),
            (_, _, Some(span)) => Some(now()? + signed(-1, span)?),
            _ => Some(Timestamp::parse(time).ok_or("this is not a time")?.0),
        };
        Ok(())
    }

    /// Makes one message of what the model said and called.
    fn finish_calls(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        match (self.said.take(), calls.is_empty()) {
            (None, true) => {}
            (Some(said), true) => self.push(Message::assistant(&said)),
            (said, false) => {
                let open = calls.iter().map(|call| call.id.clone()).collect();
                self.push(Message::calls(&said.unwrap_or_default(), calls));
                self.open = open;
            }
        }
    }

    fn push(&mut self, message: Message) {
        if *message.role() != Role::Tool {
            // The conversation continues, so no call waits for a result any more.
            self.open.clear();
        }
        self.steps.push(Step::Message(match &mut self.clock {
            Some(clock) => {
                let message = message.at(Timestamp(*clock));
                *clock += 1_000;
                message
            }
            None => message,
        }));
    }
}

fn with_key(message: &Message, key: &str, value: &str) -> Result<Message, String> {
    let open = message.json().strip_suffix('}').unwrap_or_default();
    Message::from_json(&format!("{open},\"{key}\":{value}}}")).map_err(|e| e.to_string())
}

/// Expands `[big ...]` and `[nothing]`.
fn expand(text: &str) -> Result<String, String> {
    if text == "[nothing]" {
        return Ok(String::new());
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[big ") {
        let (inside, after) = after.split_once(']').ok_or("[big has no end")?;
        let (bytes, seed) = inside.split_once(' ').unwrap_or((inside, ""));
        out.push_str(before);
        out.push_str(&big(bytes.parse().map_err(|_| "[big needs a number of bytes")?, seed));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}
