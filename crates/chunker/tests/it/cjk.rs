//! BL10: the description of a block in Chinese, Japanese, Korean and other scripts, and how much it holds.

use crate::laws::cut;
use foldback_chunker::{ChunkerConfig, Described, describe};
use foldback_core::{BlockHeader, BlockId, Message, Timestamp, TodoId, ToolCall, ToolCallId};

fn header(messages: &[Message]) -> BlockHeader {
    let id = BlockId::new(TodoId::new("todo001").unwrap(), 1);
    let recorded_at = Timestamp::parse("2025-01-01 10:00:00").unwrap();
    let described = |message| Described::new(message, recorded_at);
    let parts: Vec<Described<'_>> = messages.iter().map(described).collect();
    describe(id, &parts, &|_| true)
}

fn call(name: &str, arguments: &str) -> Message {
    Message::calls("", vec![ToolCall::new("c", name, arguments)])
}

fn result(text: &str) -> Message {
    Message::tool_result(&ToolCallId::new("c"), text)
}

/// BL10: names in Chinese, Japanese and Korean are reported whole, also from escaped JSON.
#[test]
fn bl10_names_of_files_are_whole() {
    for (arguments, target) in [
        (r#"{"path": "报告/会议纪要.docx"}"#, "报告/会议纪要.docx"),
        (r#"{"path": "\u62a5\u544a/\u4f1a\u8bae.docx"}"#, "报告/会议.docx"),
        (r#"{"query": "\u90e8\u7f72 a\"b"}"#, "read"),
        (r#"{"file": "ｄａｔａ．ｔｘｔ"}"#, "data.txt"),
    ] {
        let header = header(&[Message::user("看一下这个"), call("read", arguments)]);
        assert!(header.core_semantic.contains(target), "{}", header.core_semantic);
        assert!(header.keywords.iter().any(|k| k == target), "{:?}", header.keywords);
        assert!(header.keywords.iter().all(|k| !k.contains("u6")), "{:?}", header.keywords);
    }
}

/// BL10: the width of letters changes neither names nor words; 々 is a character of words.
#[test]
fn bl10_width_changes_nothing() {
    let of =
        |asked: &str, answered: &str| header(&[Message::user(asked), Message::assistant(answered)]);
    assert_eq!(
        of("订单ＯＲＤ－４４２０１的ｄａｔａ．ｔｘｔ在哪里？", "在ＡＰＩ服务器上"),
        of("订单ORD-44201的data.txt在哪里？", "在API服务器上"),
    );
    assert_eq!(of("ｻｰﾊﾞｰのﾒﾓﾘは？", "ﾒﾓﾘは足りる"), of("サーバーのメモリは？", "メモリは足りる"));
    let header = of("佐々木さんの予定を教えて", "佐々木さんは明日出張です");
    assert!(header.keywords.contains(&"佐々木".to_owned()), "{:?}", header.keywords);
}

/// BL10: a text without a word is described by its speaker.
#[test]
fn bl10_what_holds_no_word_is_no_instruction() {
    for (said, expected) in [
        ("👍", "User says \"👍\"."),
        ("...", "User says \"...\"."),
        ("??? ", "User says \"???\"."),
        ("？？？", "User says \"？？？\"."),
    ] {
        assert_eq!(header(&[Message::user(said)]).core_semantic, expected);
    }
    let instructed = header(&[Message::system("Be brief.")]).core_semantic;
    assert_eq!(instructed, "Instructions: \"Be brief.\".");
}

/// BL10: a failure is described in the language of the talk, whatever language the tool answers in.
#[test]
fn bl10_failures_are_told_in_each_language() {
    for (answered, asked, expected) in [
        ("错误：找不到文件", "失败了？", "，失败"),
        ("錯誤：找不到檔案", "是不是失敗了？", "，失败"),
        ("エラー：ファイルが見つかりません", "うまくいきましたか？", "、失敗"),
        ("ｴﾗｰ：ありません", "どうですか？", "、失敗"),
        ("오류: 파일이 없습니다", "실행됐나요?", ", 실패"),
        ("실패: 권한이 없습니다", "실행됐나요?", ", 실패"),
    ] {
        let header = header(&[Message::user(asked), call("run", "{}"), result(answered)]);
        assert!(header.core_semantic.ends_with(expected), "{}", header.core_semantic);
    }
}

/// BL10: Japanese and Korean sentences have no Chinese words.
#[test]
fn bl10_sentences_are_of_one_language() {
    let of = |asked: &str, answered: &str| {
        header(&[Message::user(asked), Message::assistant(answered)]).core_semantic
    };
    assert_eq!(
        of("サーバーの応答時間は？", "八十ミリ秒です。"),
        "ユーザーの質問：サーバーの応答時間は？；AIの回答：八十ミリ秒です",
    );
    assert_eq!(
        of("서버는 어디에 있나요?", "서울에 있습니다."),
        "사용자 질문: 서버는 어디에 있나요?; AI 답변: 서울에 있습니다",
    );
    let read = |asked: &str| {
        let call = call("read", r#"{"path": "data.txt"}"#);
        header(&[Message::user(asked), call, result("store://1-k4qd")]).core_semantic
    };
    assert_eq!(
        read("これを読んでください"),
        "readでdata.txtを読み取り、結果はstore://1-k4qdに保存"
    );
    assert_eq!(read("이것을 읽어 주세요"), "read: data.txt 읽기, 결과는 store://1-k4qd에 저장");
}

/// BL10: long names give way to the outcome of the call.
#[test]
fn bl10_the_outcome_stands_behind_long_names() {
    for asked in ["帮我查", "調べてください", "찾아 주세요"] {
        let header = header(&[
            Message::user(asked),
            call(
                "mcp__filesystem__read_multiple_files_extended",
                r#"{"path":"crates/blockstore/src/analysis/unspaced.rs"}"#,
            ),
            call("mcp__filesystem__search_files_with_patterns", "{}"),
            result("store://12-k4qd"),
        ]);
        let sentence = &header.core_semantic;
        assert!(sentence.contains("store://12-k4qd"), "{sentence}");
        assert!(sentence.contains("/unspaced.rs"), "{sentence}");
        assert!(sentence.chars().count() <= 50, "{sentence}");
    }
}

/// BL10: no part of a text in a script without spaces that is not CJK is a keyword; in other scripts marks belong to
/// the words that contain them.
#[test]
fn bl10_keywords_are_no_fragments() {
    let header_of = |asked: &str| header(&[Message::user(asked)]);
    let thai = header_of("ช่วยตรวจสอบคำสั่งซื้อหมายเลข ORD-44201 ให้หน่อยครับ");
    assert_eq!(thai.keywords, ["ORD-44201"]);
    let hindi = header_of("हिन्दी में किताब चाहिए");
    assert!(hindi.keywords.contains(&"हिन्दी".to_owned()), "{:?}", hindi.keywords);
}

/// BL10: a talk about one thing is merged into blocks as large as if it were in English, whatever its script; and into
/// smaller ones if its messages say more.
#[test]
fn bl10_blocks_of_talk_are_as_large_in_every_script() {
    let merged = |sentence: &str, times: usize| {
        let says = |i: usize| match i % 2 {
            0 => Message::user(&sentence.repeat(times)),
            _ => Message::assistant(&sentence.repeat(times)),
        };
        let talk: Vec<Message> = (0..24).map(says).collect();
        let config = ChunkerConfig::default().with_sizes(3, 8).unwrap();
        let blocks = cut(&config, &talk).unwrap();
        blocks.iter().take(3).map(|block| block.range.len()).collect::<Vec<_>>()
    };
    for sentence in [
        "The night train to Chiang Mai leaves at seven with breakfast. ",
        "去清迈的夜间火车早上七点出发，含早餐。",
        "チェンマイへの夜行列車は朝の七時に朝食付きで出発する。",
        "치앙마이행 야간 열차는 조식과 함께 일곱 시에 출발한다. ",
        "รถไฟกลางคืนไปเชียงใหม่ออกเวลาเจ็ดโมงพร้อมอาหารเช้า ",
    ] {
        assert_eq!(
            [merged(sentence, 1), merged(sentence, 4)],
            [[4, 6, 6], [4, 4, 4]],
            "{sentence}"
        );
    }
}
