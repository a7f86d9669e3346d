//! Clocks with seconds, which make every cached prefix useless.

mod patterns;

use crate::ChatRequest;
use patterns::{EXAMPLE, NUMBERED, PATTERNS};
use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// A time with seconds in a text.
#[derive(Debug)]
struct Clock {
    /// Where it is, in bytes.
    range: Range<usize>,
    /// Its text.
    text: String,
    /// The coarser form that a cached prefix tolerates: the day, or the hour of a time without a
    /// day.
    coarse: String,
}

/// A clock in the part of a request that stays the same from call to call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} holds a clock that reads to the second, {text:?}, so no cached prefix is ever read \
     again: write {coarse:?}, or put the time at the end of the request"
)]
pub struct ClockError {
    /// The part, such as `the system prompt`.
    pub place: String,
    /// The text of the clock.
    pub text: String,
    /// What may take its place.
    pub coarse: String,
}

/// Finds the clocks in a text, in order: times with seconds and their date, in the forms of ISO
/// 8601, of mail, of English and of Chinese; times alone and Unix times directly after words for
/// "now". The following are not clocks: dates without a time, times to the minute, versions, durations, order
/// numbers, and what is given as an example.
fn find_clocks(text: &str) -> Vec<Clock> {
    let mut clocks: Vec<Clock> = Vec::new();
    for pattern in PATTERNS.iter() {
        clocks.extend(pattern.captures_iter(text).filter_map(|found| clock(text, &found)));
    }
    // Of two that overlap, the one that begins first is more complete.
    clocks.sort_by_key(|clock| (clock.range.start, std::cmp::Reverse(clock.range.end)));
    let mut end = 0;
    clocks.retain(|clock| {
        let is_apart = clock.range.start >= end;
        end = end.max(clock.range.end);
        is_apart
    });
    clocks
}

/// Makes the clocks in a text coarse: the same all day, or all hour.
///
/// ```
/// let coarse = foldback_llm::coarsen_clocks("当前时间:2025年11月22日 3时5分54秒。版本 1.2.3");
/// assert_eq!(coarse, "当前时间:2025年11月22日。版本 1.2.3");
/// ```
#[must_use]
pub fn coarsen_clocks(text: &str) -> Cow<'_, str> {
    let clocks = find_clocks(text);
    if clocks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for clock in clocks {
        out.push_str(text.get(from..clock.range.start).unwrap_or_default());
        out.push_str(&clock.coarse);
        from = clock.range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Refuses a request whose tools or standing instructions hold a clock. What changes from call to call
/// may hold one, and so may the examples and defaults of a schema, which never change.
///
/// # Errors
/// Names the first clock.
pub fn check_clocks(request: &ChatRequest) -> Result<(), ClockError> {
    let tools = request.tools.iter().flat_map(|tool| {
        let place = format!("the declaration of the tool {:?}", tool.name);
        let schema = schema_texts(&tool.parameters).into_iter().map(Cow::Owned);
        let texts = [Cow::from(&tool.description)].into_iter().chain(schema);
        texts.map(move |text| (place.clone(), text))
    });
    let stays = request.messages.len().saturating_sub(request.volatile);
    let system = request.messages.iter().take(stays);
    let system = system.take_while(|message| message.role().is_instruction());
    let system = system.map(|message| ("the system prompt".to_owned(), message.text()));
    for (place, text) in tools.chain(system) {
        if let Some(Clock { text, coarse, .. }) = find_clocks(&text).into_iter().next() {
            return Err(ClockError { place, text, coarse });
        }
    }
    Ok(())
}

/// Returns the texts of a schema without its examples; all of it if it is not JSON.
fn schema_texts(schema: &str) -> Vec<String> {
    let mut texts = Vec::new();
    match serde_json::from_str(schema) {
        Ok(schema) => push_texts(&schema, false, &mut texts),
        Err(_) => texts.push(schema.to_owned()),
    }
    texts
}

/// Collects the texts. `are_named` if the keys of an object are names that the author chose.
fn push_texts(value: &Value, are_named: bool, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| push_texts(value, false, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_fixed = matches!(key.as_str(), "example" | "examples" | "default");
                if are_named || !is_fixed {
                    push_texts(value, !are_named && key == "properties", texts);
                }
            }
        }
        _ => {}
    }
}

fn clock(text: &str, found: &Captures<'_>) -> Option<Clock> {
    let whole = found.get(0)?;
    // A number that continues is another number.
    if text.get(whole.end()..)?.starts_with(|c: char| c.is_numeric()) {
        return None;
    }
    let before = text.get(..whole.start())?;
    let ends_with = |leads: &[Regex]| leads.iter().any(|lead| lead.is_match(tail(before)));
    if ends_with(&EXAMPLE) || found.name("dense").is_some() && ends_with(&NUMBERED) {
        return None;
    }
    let group = |name: &str| found.name(name).map_or("", |group| group.as_str());
    let cue = found.name("cue").map_or(0, |cue| cue.as_str().len());
    let range = whole.start() + cue..whole.end();
    let coarse = if let Some(epoch) = found.name("epoch") {
        // A coarse clock reads as the beginning of a day.
        day_of(epoch.as_str()).filter(|day| day != epoch.as_str())?
    } else if let Some(hour) = found.name("hour") {
        format!("{}:00{}", hour.as_str(), group("half"))
    } else {
        format!("{}{}", group("date").trim_end(), group("year"))
    };
    Some(Clock { text: text.get(range.clone())?.to_owned(), range, coarse })
}

/// How far before a clock cue words are searched for, in bytes.
const LEAD: usize = 40;

fn tail(text: &str) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(LEAD))..).unwrap_or_default()
}

/// Rounds a Unix time down to its day; its number of digits determines its unit.
fn day_of(epoch: &str) -> Option<String> {
    let digits = epoch.split('.').next()?;
    let second = 10_u64.checked_pow(u32::try_from(digits.len().checked_sub(10)?).ok()?)?;
    let whole: u64 = digits.parse().ok()?;
    let day = 86_400 * second;
    Some((whole / day * day).to_string())
}
