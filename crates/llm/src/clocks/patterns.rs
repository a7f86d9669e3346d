//! The forms in which clocks are written.

use regex::Regex;
use std::sync::LazyLock;

/// Hours, minutes and seconds, with whatever follows them.
const TIME: &str = r"\d{1,2}[:：][0-5]\d[:：][0-5]\d(?:[.,]\d{1,9})?(?:\s?(?:[AaPp][Mm]\b|[AaPp]\.[Mm]\.))?(?:\s?(?:Z\b|UTC\b|GMT\b|CST\b)|\s?[+-]\d{2}:?\d{2})?";
const MONTH: &str = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?";
const DAY: &str = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,?\s+)?";
/// A day of the week after a date.
const WEEKDAY: &str = r"(?:[\s,，]*[(（]?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b|(?:星期|周|週|礼拜|禮拜)[一二三四五六日天])[)）]?)?";
/// A part of the day before a time.
const PERIOD: &str = r"(?:(?:at\b|@|凌晨|清晨|早上|上午|中午|下午|傍晚|晚上)\s*)?";
/// A number as Chinese texts write it.
const NUMBER: &str = r"[\d零〇一二三四五六七八九十廿]{1,4}";
/// Words which say that a time without a date is the time of writing.
const NOW: &str = r"(?i:\bnow|\bcurrent[\s_-]*(?:local|system|utc)?[\s_-]*(?:date[\s_-]*(?:and[\s_-]*)?)?time|\b(?:local|system|utc)[\s_-]+time|\bthe\s+time\s+is|\bclock|(?:现在|現在|当前|當前|目前|此刻)的?(?:时间|時間|时刻|時刻)?|(?:北京|系统|系統|本地)(?:时间|時間))";
/// Words which say so with the day of the week.
const TODAY: &str = r"(?:(?i:\btoday\s+is)|今天是?)(?:[\s,，]*(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*|(?:星期|周|週|礼拜|禮拜)[一二三四五六日天])[\s,，]*)?";
/// What may separate these words from the time.
const IS: &str = r#"(?:[\s:：="'(（]|(?i:\bis\b|\bnow\b)|为|為|是){0,12}"#;

/// Each pattern finds one form. What the groups hold is kept: `date` (and `year`) of a time with a
/// date; `hour` and `half` of a time alone; the day of a Unix time (`epoch`). What `cue` matches is
/// not part of the clock.
pub(super) static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let spoken = format!(r"{NUMBER}\s*[时点時點]\s*{NUMBER}\s*分\s*{NUMBER}\s*秒");
    let forms = [
        // 2025-11-22T03:05:54Z, 2025/11/22 03:05:54, 2025-11-22 星期六 下午 3:05:54
        format!(
            r"(?P<date>\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}{WEEKDAY})(?:T|t|[\s,，]*{PERIOD}){TIME}"
        ),
        // 20251122T030554Z
        r"(?P<date>(?-u:\b)\d{8})T\d{6}(?:\.\d{1,9})?Z?".to_owned(),
        // 20251122030554
        r"(?P<date>(?-u:\b)20\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?P<dense>(?:[01]\d|2[0-3])[0-5]\d[0-5]\d)".to_owned(),
        // 2025年11月22日 星期六 下午3点05分54秒
        format!(
            r"(?P<date>{NUMBER}\s*年\s*{NUMBER}\s*月\s*{NUMBER}\s*[日号號]{WEEKDAY})[\s,，]*{PERIOD}(?:{TIME}|{spoken})"
        ),
        // Sat, 22 Nov 2025 03:05:54 GMT
        format!(
            r"(?P<date>{DAY}\d{{1,2}}\s+{MONTH},?\s+\d{{4}}{WEEKDAY}),?\s+{PERIOD}{TIME}"
        ),
        // Saturday, November 22nd, 2025 at 3:05:54 PM
        format!(
            r"(?P<date>{DAY}{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}{WEEKDAY}),?\s+{PERIOD}{TIME}"
        ),
        // Sat Nov 22 03:05:54 UTC 2025
        format!(
            r"(?P<date>{DAY}{MONTH}\s+\d{{1,2}})\s+{TIME}(?:\s+[A-Z]{{2,5}})?(?P<year>\s+\d{{4}})"
        ),
        // 11/22/2025, 3:05:54 PM; 22-11-2025 03:05:54
        format!(
            r"(?P<date>(?-u:\b)\d{{1,2}}(?:[/.]\d{{1,2}}[/.]\d{{2,4}}|-\d{{1,2}}-\d{{4}}){WEEKDAY}),?\s+{PERIOD}{TIME}"
        ),
        // The current time is 03:05:54 PM
        format!(
            r"(?P<cue>(?:{NOW}|{TODAY}){IS}{PERIOD})(?P<hour>\d{{1,2}})[:：][0-5]\d[:：][0-5]\d(?:[.,]\d{{1,9}})?(?P<half>\s?(?:[AaPp][Mm]\b|[AaPp]\.[Mm]\.))?"
        ),
        // 现在是3点5分54秒
        format!(
            r"(?P<cue>{NOW}{IS}{PERIOD})(?P<hour>{NUMBER})\s*[时点時點]\s*{NUMBER}\s*分\s*{NUMBER}\s*秒"
        ),
        // timestamp: 1763780754, in seconds, milliseconds, microseconds or nanoseconds
        format!(
            r"(?P<cue>(?:{NOW}戳?|(?i:\bunix(?:[\s_-]*time)?(?:stamp)?|\bepoch|\btimestamp)(?-u:\b)|时间戳|時間戳){IS})(?P<epoch>1\d{{9}}(?:\d{{3}}){{0,3}}(?:\.\d{{1,9}})?)"
        ),
    ];
    compiled(&forms)
});

/// Words before a fixed clock, which is an example.
pub(super) static EXAMPLE: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let lead = r#"(?:(?i:\be\.\s?g\.?|\bexamples?|\bsuch as|\blike)|例如|比如|譬如|示例|例|如)[\s,，:：="'`(（]*$"#;
    compiled(&[lead.to_owned()])
});

/// Words before a number that only looks like a time: an order number, say.
pub(super) static NUMBERED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let lead = r#"(?:(?i:order|id|no\.?|number|ticket|invoice|serial|phone|code)|号|號|单|單|编号|碼|码|#)[\s:：#="'(（]*$"#;
    compiled(&[lead.to_owned()])
});

#[expect(clippy::unwrap_used, reason = "the patterns are constants, and every test compiles them")]
fn compiled(forms: &[String]) -> Vec<Regex> {
    forms.iter().map(|form| Regex::new(form).unwrap()).collect()
}
