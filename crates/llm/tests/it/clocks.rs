//! Clocks in the prefix.

use foldback_core::{Message, ToolDefinition};
use foldback_llm::{ChatRequest, check_clocks, coarsen_clocks};
use proptest::prelude::*;
use std::borrow::Cow;

/// MC1: a clock with seconds is found in every form, and reduced to its day.
#[test]
fn mc1_clocks_are_coarsened_to_their_day() {
    let cases = [
        ("Now: 2025-11-22T03:05:54Z.", "Now: 2025-11-22."),
        ("Now: 2025-11-22T03:05:54.123456+08:00!", "Now: 2025-11-22!"),
        ("2025-11-22 03:05:54,123 INFO", "2025-11-22 INFO"),
        ("today 2025/11/22 3:05:54 PM.", "today 2025/11/22."),
        ("at 20251122T030554Z", "at 20251122"),
        ("当前时间:2025年11月22日 03:05:54,请回答", "当前时间:2025年11月22日,请回答"),
        ("现在是2025年11月22日星期六下午3点05分54秒。", "现在是2025年11月22日星期六。"),
        ("现在是二〇二五年十一月二十二日三时五分五十四秒", "现在是二〇二五年十一月二十二日"),
        ("時間:2025年11月22日 15時05分54秒", "時間:2025年11月22日"),
        ("时间2025-11-22 03:05:54开始", "时间2025-11-22开始"),
        ("Date: Sat, 22 Nov 2025 03:05:54 GMT\n", "Date: Sat, 22 Nov 2025\n"),
        ("Saturday, November 22nd, 2025 at 3:05:54 PM", "Saturday, November 22nd, 2025"),
        ("Sat Nov 22 03:05:54 UTC 2025", "Sat Nov 22 2025"),
        ("on 11/22/2025, 3:05:54 PM", "on 11/22/2025"),
        ("The time is 03:05:54 PM now", "The time is 03:00 PM now"),
        ("现在是 15:05:54", "现在是 15:00"),
        ("timestamp: 1763780754", "timestamp: 1763769600"),
        ("\"epoch\": 1763780754123,", "\"epoch\": 1763769600000,"),
        ("时间戳=1763780754.5", "时间戳=1763769600"),
        ("２０２５-11-22 03:05:54", "２０２５-11-22"),
        ("2025-11-22 Saturday 03:05:54", "2025-11-22 Saturday"),
        ("2025-11-22 (Sat), 03:05:54", "2025-11-22 (Sat)"),
        ("2025-11-22 星期六 03:05:54", "2025-11-22 星期六"),
        ("2025-11-22 at 03:05:54", "2025-11-22"),
        ("2025/11/22 上午3:05:54", "2025/11/22"),
        ("2025年11月22日(周六) 下午 3：05：54", "2025年11月22日(周六)"),
        ("22 November 2025, at 3:05:54 pm", "22 November 2025"),
        ("on 22-11-2025 03:05:54", "on 22-11-2025"),
        ("22.11.2025 03:05:54", "22.11.2025"),
        ("at 20251122030554.", "at 20251122."),
        ("时间20251122030554", "时间20251122"),
        ("timestamp: 1763780754123456", "timestamp: 1763769600000000"),
        ("now=1763780754123456789", "now=1763769600000000000"),
        ("{\"current_time\": \"03:05:54\"}", "{\"current_time\": \"03:00\"}"),
        ("The current date and time is: 3:05:54 PM", "The current date and time is: 3:00 PM"),
        ("It is now 03:05:54", "It is now 03:00"),
        ("Today is Saturday, 03:05:54", "Today is Saturday, 03:00"),
        ("今天是星期六 03:05:54", "今天是星期六 03:00"),
        ("当前时间为 下午3:05:54", "当前时间为 下午3:00"),
        ("当前时间戳：1763780754", "当前时间戳：1763769600"),
        ("现在的时间是3点5分54秒", "现在的时间是3:00"),
    ];
    for (text, expected) in cases {
        assert_eq!(coarsen_clocks(text), expected);
        assert!(matches!(coarsen_clocks(expected), Cow::Borrowed(_)), "{expected}");
    }
    let two = "from 2025-11-22 03:05:54 to 2025-11-23 04:05:06 时间";
    assert_eq!(coarsen_clocks(two), "from 2025-11-22 to 2025-11-23 时间");
}

/// MC1: what changes at most once a minute, or never, is not reported.
#[test]
fn mc1_no_false_alarm() {
    for text in [
        "Today is 2025-11-22.",
        "Today is Saturday, November 22nd, 2025.",
        "今天是2025年11月22日,星期六",
        "\"time_range\": \"2025-07-01至2025-09-30\"",
        "2025-11-22 03:05",
        "foldback 1.2.3, Rust 1.95.0, 2025.11.22",
        "listen on 127.0.0.1:8080, mac 00:1A:2B:3C:4D:5E, ::1",
        "the limit of a run is 01:30:00",
        "用时3小时5分54秒",
        "order 1763780754, phone 13800138000",
        "between 10:00 and 12:30",
        "ratio 3:10:59",
        "unknown customer 1763780754",
        "the customer knows 1763780754",
        "a timestamp of the order 1763780754",
        "phone of the lifetime member: 1763780754",
        "call now at our number 1763780754",
        "time 1763780754",
        "timestamp: 17637807541",
        "time limit is 01:30:00",
        "lifetime: 01:30:00",
        "take the time: 01:30:00",
        "The job may take the time of 01:30:00",
        "会议时间:09:00:00-10:00:00",
        "营业时间：09:00:00-18:00:00",
        "用时：3时5分54秒",
        "order 20251122030554",
        "订单号：20251122030554",
        "order_id=20251122030554",
        "202511220305541",
        "20251322030554",
        "written as ISO 8601, e.g. 2024-01-01T00:00:00Z",
        "时间格式如 2024-01-01 00:00:00",
        "格式例如：2024年1月1日 0时0分0秒",
        "for example \"2024-01-01T00:00:00Z\"",
        "",
    ] {
        assert!(matches!(coarsen_clocks(text), Cow::Borrowed(_)), "{text}");
    }
}

/// MC1: a clock in the stable part is refused by name; in a user's message it is not part of the prefix.
#[test]
fn mc1_a_clock_in_the_prefix_is_refused() {
    let clock = "It is 2025-11-22T03:05:54Z.";
    let request = |system: &str, description: &str| {
        ChatRequest::new([Message::system(system), Message::user(clock)]).with_tools(vec![
            ToolDefinition {
                name: "now".to_owned(),
                description: description.to_owned(),
                parameters: "{}".to_owned(),
            },
        ])
    };
    assert_eq!(check_clocks(&request("You help.", "Tells the time.")), Ok(()));
    let error = check_clocks(&request(clock, "Tells the time.")).unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("the system prompt holds"), "{told}");
    assert!(
        told.contains("\"2025-11-22T03:05:54Z\"") && told.contains("write \"2025-11-22\""),
        "{told}"
    );
    let error = check_clocks(&request("You help.", clock)).unwrap_err();
    assert!(error.to_string().starts_with("the declaration of the tool \"now\" holds"), "{error}");
    assert_eq!(check_clocks(&request(&coarsen_clocks(clock), "Tells the time.")), Ok(()));
    // An instruction that changes from call to call is in no cached prefix.
    let mut late = request("You help.", "Tells the time.");
    late.messages.truncate(1);
    late.messages.push(Message::system(clock).into());
    assert!(check_clocks(&late).is_err());
    late.volatile = 1;
    assert_eq!(check_clocks(&late), Ok(()));
    // A schema's examples never change; the rest may.
    let schema = |schema: &str| {
        let mut asked = request("You help.", "Tells the time.");
        asked.tools[0].parameters = schema.to_owned();
        check_clocks(&asked)
    };
    for fixed in [
        r#"{"properties":{"at":{"type":"string","example":"2024-01-01T00:00:00Z"}}}"#,
        r#"{"properties":{"at":{"examples":["2024-01-01T00:00:00Z"],"default":"2024-01-01 00:00:00"}}}"#,
        r#"{"properties":{"at":{"description":"ISO 8601 (e.g. 2024-01-01T00:00:00Z)"}}}"#,
        r#"{"properties":{"at":{"description":"时间，如2024-01-01 00:00:00"}}}"#,
    ] {
        assert_eq!(schema(fixed), Ok(()), "{fixed}");
    }
    for moving in [
        r#"{"description":"It is 2025-11-22T03:05:54Z"}"#,
        r#"{"properties":{"default":{"description":"It is 2025-11-22T03:05:54Z"}}}"#,
        "It is 2025-11-22T03:05:54Z",
    ] {
        assert!(schema(moving).is_err(), "{moving}");
    }
}

proptest! {
    /// MC1: a coarse clock reads the same at any two moments of a day, and holds no clock.
    #[test]
    fn mc1_a_coarse_clock_is_the_same_all_day(
        before in "[a-z 中文,。]{0,12}",
        form in 0..4_usize,
        times in prop::array::uniform2((0..24_u32, 0..60_u32, 0..60_u32)),
    ) {
        let [a, b] = times.map(|(h, m, s)| {
            let clock = match form {
                0 => format!("2025-11-22T{h:02}:{m:02}:{s:02}Z"),
                1 => format!("2025年11月22日{h}时{m}分{s}秒"),
                2 => format!("Sat Nov 22 {h:02}:{m:02}:{s:02} UTC 2025"),
                _ => format!("timestamp {}", 1_763_769_600 + h * 3_600 + m * 60 + s),
            };
            coarsen_clocks(&format!("{before} {clock} 之后")).into_owned()
        });
        prop_assert_eq!(&a, &b);
        prop_assert_eq!(coarsen_clocks(&a), a.as_str());
    }

    /// Any text is read without harm.
    #[test]
    fn mc1_any_text_is_read(text in "\\PC{0,40}|[0-9:年月日时分秒TZ +.-]{0,40}") {
        let coarse = coarsen_clocks(&text);
        prop_assert!(coarse == text || matches!(coarse, Cow::Owned(_)));
    }
}
