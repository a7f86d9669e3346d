//! Strategies for messages and whole conversations.

use foldback_core::{Content, Escape, Message, Part, Role, Timestamp, ToolCall, ToolCallId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The shape of generated conversations.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The number of units: single messages, or calls with their results.
    pub units: std::ops::Range<usize>,
    /// The maximum number of calls in one message.
    pub parallel: usize,
    /// Whether there are orphans, unanswered calls, duplicate ids, empty messages, late instructions
    /// and times that run backwards. Without them a conversation is a valid request.
    pub odd: bool,
    /// Whether messages have times.
    pub times: bool,
    /// The number of repetitions in a long text: 1 for short texts only.
    pub long: usize,
}

impl Default for Shape {
    /// Returns valid conversations of up to 20 units, up to 4 parallel calls, short texts, with times.
    fn default() -> Self {
        Self { units: 1..20, parallel: 4, odd: false, times: true, long: 1 }
    }
}

/// Returns conversations: valid requests (possibly an instruction first, then a user's message) unless
/// the shape is odd.
pub fn conversation(shape: Shape) -> impl Strategy<Value = Vec<Message>> {
    let odd = shape.odd;
    let units = vec(unit(&shape), shape.units.clone());
    let gaps = vec(gap(odd), 64);
    (option::of(text()), text(), units, gaps, 0..12_u8).prop_map(
        move |(system, opening, units, gaps, empty)| {
            if odd && empty == 0 {
                return Vec::new();
            }
            let mut messages: Vec<_> = system.iter().map(|text| Message::system(text)).collect();
            if !odd {
                messages.push(Message::user(&opening));
            }
            let mut ids = 0..;
            for unit in units {
                unit.write(&mut ids, &mut messages);
            }
            if shape.times { stamp(messages, &gaps) } else { messages }
        },
    )
}

/// Returns non-empty texts: short sentences in several scripts, code, JSON, numbers, emoji, and
/// characters that JSON must escape.
pub fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[A-Za-z][a-z]{0,9}( [a-z]{1,8}){0,8}[.?!]",
        2 => "[\u{4e00}-\u{4fff}]{1,20}[。？！]",
        1 => "[ぁ-ん]{1,8}[ァ-ヶ]{0,6}",
        1 => "[가-힣]{1,6}( [가-힣]{1,6}){0,3}",
        1 => "[а-яА-Я]{1,12}( [а-я]{1,9}){0,3}",
        1 => "fn [a-z_]{1,12}\\(\\) -> u32 \\{\n    [a-z]{1,8}[0-9]{1,5}\n\\}",
        1 => "\\{\"[a-z]{1,6}\": [0-9]{1,6}, \"[a-z]{1,6}\": \"[ -~]{0,12}\"\\}",
        1 => "/[a-z]{1,8}/[a-z_]{1,12}\\.(rs|py|json):[0-9]{1,4}",
        1 => "[\u{1f600}-\u{1f64f}]{1,3}",
        1 => "x[\u{0}-\u{1f}\u{7f}\"\\\\/<>&\u{2028}\u{e9}\u{1f44d}]{1,6}",
    ];
    vec(piece, 1..4).prop_map(|pieces| pieces.join(" "))
}

/// Returns single messages of every role and kind of content.
pub fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::System),
        Just(Role::Developer),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Other("critic".to_owned())),
    ];
    let said = (role, content())
        .prop_map(|(role, content)| Message::compose(role, content, Vec::new(), None));
    let called = (prop_oneof![Just(String::new()), text()], vec((id(), name(), arguments()), 1..4))
        .prop_map(|(text, calls)| {
            let calls = calls.iter().map(|(id, name, args)| ToolCall::new(id, name, args));
            Message::calls(&text, calls.collect())
        });
    let answered = (id(), content()).prop_map(|(id, content)| {
        Message::compose(Role::Tool, content, Vec::new(), Some(ToolCallId::new(&id)))
    });
    let message = prop_oneof![3 => said, 1 => called, 1 => answered];
    (message, option::of(0_i64..4_000_000_000_000)).prop_map(|(message, at)| match at {
        Some(at) => message.at(Timestamp(at)),
        None => message,
    })
}

/// Returns the exact text of a conversation in one of the formats that are read, as odd as JSON may be:
/// any order of keys, unknown keys, number forms, escapes, spacing. `lines` keeps it on one line.
pub fn conversation_json(lines: bool) -> impl Strategy<Value = String> {
    let messages = vec((message(), vec(extra(), 0..3), any::<u64>()), 0..6);
    let around = vec(extra(), 0..4);
    (messages, around, option::of(id()), any::<u64>(), any::<bool>()).prop_map(
        move |(messages, around, id, seed, bare)| {
            let mut habit = Habit { state: seed | 1, lines };
            let messages: Vec<_> = messages
                .iter()
                .map(|(message, extra, seed)| {
                    let mut habit = Habit { state: seed | 1, lines };
                    habit.message(message, extra)
                })
                .collect();
            let array = habit.list(&messages);
            if bare {
                return array;
            }
            let mut fields = vec![("messages".to_owned(), array)];
            if let Some(id) = id {
                fields.push(("id".to_owned(), habit.string(&id)));
            }
            fields.extend(around);
            habit.object(fields)
        },
    )
}

/// An event in a conversation.
#[derive(Clone, Debug)]
enum Unit {
    Says(Role, String),
    Calls { text: String, calls: Vec<(String, String, Content)>, order: u64 },
    Unanswered { calls: Vec<(String, String)> },
    Orphan { text: String },
    Repeats { name: String, text: String },
}

fn unit(shape: &Shape) -> BoxedStrategy<Unit> {
    let long = shape.long.max(1);
    let text = || {
        (text(), 1..=long).prop_map(|(text, times)| match times {
            1 => text,
            times => vec![text; times].join("\n"),
        })
    };
    let says = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    let says = (says, text()).prop_map(|(role, text)| Unit::Says(role, text));
    let one =
        (name(), arguments(), prop_oneof![4 => text().prop_map(Content::Text), 1 => content()]);
    let said = prop_oneof![Just(String::new()), text()];
    let calls = (said, vec(one, 1..=shape.parallel.max(1)), any::<u64>())
        .prop_map(|(text, calls, order)| Unit::Calls { text, calls, order });
    if !shape.odd {
        return prop_oneof![3 => says, 2 => calls].boxed();
    }
    let silent = prop_oneof![Just(Role::User), Just(Role::Assistant)]
        .prop_map(|role| Unit::Says(role, String::new()));
    let late = text().prop_map(|text| Unit::Says(Role::System, text));
    let unanswered = vec((name(), arguments()), 1..3).prop_map(|calls| Unit::Unanswered { calls });
    let orphan = text().prop_map(|text| Unit::Orphan { text });
    let repeats = (name(), text()).prop_map(|(name, text)| Unit::Repeats { name, text });
    prop_oneof![4 => says, 3 => calls, 1 => silent, 1 => late, 1 => unanswered, 1 => orphan,
        1 => repeats]
    .boxed()
}

impl Unit {
    fn write(self, ids: &mut std::ops::RangeFrom<u32>, messages: &mut Vec<Message>) {
        let mut fresh = || format!("call_{}", ids.next().unwrap_or(0));
        match self {
            Self::Says(role, text) => {
                messages.push(Message::compose(role, Content::Text(text), Vec::new(), None));
            }
            Self::Calls { text, calls, order } => {
                let calls: Vec<_> = calls
                    .into_iter()
                    .map(|(name, arguments, result)| {
                        (ToolCall::new(&fresh(), &name, &arguments), result)
                    })
                    .collect();
                let asked = calls.iter().map(|(call, _)| call.clone()).collect();
                messages.push(Message::calls(&text, asked));
                // Results come in any order.
                let mut left = calls;
                let mut order = order;
                while !left.is_empty() {
                    let at = usize::try_from(order % left.len() as u64).unwrap_or(0);
                    order /= 5;
                    let (call, result) = left.remove(at);
                    messages.push(Message::compose(Role::Tool, result, Vec::new(), Some(call.id)));
                }
            }
            Self::Unanswered { calls } => {
                let calls = calls.iter().map(|(name, args)| ToolCall::new(&fresh(), name, args));
                messages.push(Message::calls("", calls.collect()));
            }
            Self::Orphan { text } => {
                messages.push(Message::tool_result(&ToolCallId::new(&fresh()), &text));
            }
            Self::Repeats { name, text } => {
                let call = ToolCall::new("call_0", &name, "{}");
                let id = call.id.clone();
                messages.push(Message::calls("", vec![call]));
                messages.push(Message::tool_result(&id, &text));
            }
        }
    }
}

/// Returns the time between two messages, in milliseconds: mostly seconds, sometimes over five minutes.
fn gap(odd: bool) -> BoxedStrategy<i64> {
    let forward = prop_oneof![6 => 0_i64..60_000, 1 => 300_000_i64..90_000_000];
    if odd { prop_oneof![8 => forward, 1 => -60_000_i64..0].boxed() } else { forward.boxed() }
}

fn stamp(messages: Vec<Message>, gaps: &[i64]) -> Vec<Message> {
    let mut clock = 1_735_725_600_000; // 2025-01-01T10:00:00Z
    let gaps = gaps.iter().copied().cycle();
    messages
        .into_iter()
        .zip(gaps)
        .map(|(message, gap)| {
            clock += gap;
            message.at(Timestamp(clock))
        })
        .collect()
}

fn content() -> impl Strategy<Value = Content> {
    let part = prop_oneof![
        3 => text().prop_map(Part::Text),
        1 => Just(Part::Other(
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}"#.into()
        )),
        1 => text().prop_map(|text| {
            let text = format!("{:?}", text.chars().filter(char::is_ascii_alphanumeric).collect::<String>());
            Part::Other(format!(r#"{{"type":"refusal","refusal":{text}}}"#).into())
        }),
    ];
    prop_oneof![4 => text().prop_map(Content::Text), 1 => vec(part, 1..4).prop_map(Content::Parts)]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{2,8}_[a-z]{2,8}", Just("read_file".to_owned()), Just("bash".to_owned())]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof!["call_[A-Za-z0-9]{4,24}", "[ -~]{1,8}", "[\u{4e00}-\u{4e20}]{1,3}"]
}

/// Returns arguments as models write them: mostly objects, sometimes truncated or not JSON at all.
fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "\\{\"path\": \"/[a-z]{1,8}/[a-z]{1,8}\\.rs\", \"line\": [0-9]{1,4}\\}",
        1 => "\\{\"query\":\"[\u{4e00}-\u{4e40}]{1,8}\"\\}",
        1 => Just("{}".to_owned()),
        1 => Just(String::new()),
        1 => Just("{\"cut\": \"of".to_owned()),
        1 => Just("[1, 2]".to_owned()),
    ]
}

/// Returns a key that no format knows, and its value.
fn extra() -> impl Strategy<Value = (String, String)> {
    let value = prop_oneof![
        Just("1.50"),
        Just("1e5"),
        Just("-0"),
        Just("-0.0E+2"),
        Just("12345678901234567890123"),
        Just("null"),
        Just("true"),
        Just("[]"),
        Just("{}"),
        Just("\"\""),
        Just("\"\\u00e9\\/\""),
        Just("\"\\ud83d\""),
        Just("[1,[2,{\"a\":[]}]]"),
        Just("{\"b\":1,\"a\":2,\"b\":3}"),
        Just("\"<script>中文\""),
    ];
    ("x_[a-z]{1,6}", value.prop_map(str::to_owned))
}

/// A JSON writer's style, made up as it goes along.
struct Habit {
    state: u64,
    lines: bool,
}

impl Habit {
    fn next(&mut self, below: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn space(&mut self) -> &'static str {
        let kinds = if self.lines { 5 } else { 8 };
        match self.next(kinds) {
            3 => " ",
            4 => "\t ",
            5 => "\n  ",
            6 => "\r\n",
            7 => "\n\n",
            _ => "",
        }
    }

    fn string(&mut self, text: &str) -> String {
        let mut out = String::from("\"");
        match Escape::ALL.get(usize::try_from(self.next(5)).unwrap_or(4)) {
            Some(escape) => foldback_core::escape_into(text, *escape, &mut out),
            // A writer without fixed habits: some characters are escaped, in either case, some are not.
            None => {
                for c in text.chars() {
                    if c >= ' ' && c != '"' && c != '\\' && self.next(4) > 0 {
                        out.push(c);
                        continue;
                    }
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&match self.next(2) {
                            0 => format!("\\u{unit:04x}"),
                            _ => format!("\\u{unit:04X}"),
                        });
                    }
                }
            }
        }
        out.push('"');
        out
    }

    fn list(&mut self, values: &[String]) -> String {
        let mut out = String::from("[");
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str(self.space());
            out.push_str(value);
            out.push_str(self.space());
        }
        if values.is_empty() {
            out.push_str(self.space());
        }
        out.push(']');
        out
    }

    /// Writes an object with the fields in some order.
    fn object(&mut self, mut fields: Vec<(String, String)>) -> String {
        let mut out = String::from("{");
        let mut first = true;
        while !fields.is_empty() {
            let at = usize::try_from(self.next(fields.len() as u64)).unwrap_or(0);
            let (key, value) = fields.remove(at);
            if !first {
                out.push(',');
            }
            first = false;
            out.push_str(self.space());
            out.push_str(&self.string(&key));
            out.push_str(self.space());
            out.push(':');
            out.push_str(self.space());
            out.push_str(&value);
            out.push_str(self.space());
        }
        out.push('}');
        out
    }

    fn message(&mut self, message: &Message, extra: &[(String, String)]) -> String {
        let mut fields = vec![("role".to_owned(), self.string(message.role().as_str()))];
        for (key, value) in message.fields() {
            if key != "role" {
                let value = match (key.as_ref(), message.content()) {
                    ("content", Content::Text(text)) => self.string(text),
                    _ => value.get().to_owned(),
                };
                fields.push((key.into_owned(), value));
            }
        }
        for (key, value) in extra {
            if !fields.iter().any(|(k, _)| k == key) {
                fields.push((key.clone(), value.clone()));
            }
        }
        self.object(fields)
    }
}
