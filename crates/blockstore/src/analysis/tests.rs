//! Texts and their terms.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let mut terms = Vec::new();
    Analyzer::new().terms(text, &mut |term| terms.push(term.to_owned()));
    assert_eq!(terms.join(" "), expected, "{text}");
}

#[track_caller]
fn check_names(question: &str, expected: &[&str]) {
    let terms = Analyzer::new().question(question, 100);
    let names: Vec<_> = terms.iter().filter(|t| t.1 == Form::Name).map(|t| t.0.as_str()).collect();
    assert_eq!(names, expected, "{question}");
}

#[test]
fn words_are_lower_case_stems() {
    check("The runners were running, Alice's dogs don't!", "the runner were run alic dog don't");
    check("", "");
    check(" \n\t -- ... ", "");
}

#[test]
fn accents_give_a_second_form() {
    check("Café Müller", "café cafe müller muller");
    check("cafe\u{301}", "café cafe");
    check("ＡＢＣ ｄｅｆ", "abc def");
    check("Привет Größe", "привет größe gross");
}

#[test]
fn tokens_of_code_are_found_whole_and_in_parts() {
    check("snake_case_name", "snake_case_name snake case name");
    check("parseHTTPHeader", "parsehttpheader pars http header");
    check("std::io::Error", "std::io::error io::error std io error");
    check(
        "/srv/src/foo/main_loop.rs:42",
        "srv/src/foo/main_loop.rs:42 src/foo/main_loop.rs:42 foo/main_loop.rs:42 \
         main_loop.rs:42 srv src foo main_loop.rs main loop rs 42",
    );
    check("C:\\tmp\\a.txt", "c:/tmp/a.txt tmp/a.txt c tmp a.txt a txt");
    check("E0502", "e0502 0502");
    check("v1.2.3", "v1.2.3 v1 2 3");
    check("1,000 items, 2", "1000 item 2");
    check("-1,000,000.50", "1000000.50");
    check("98214477,98214478", "98214477 98214478");
    check("1,000,98214478", "1000 98214478");
    check("1234,567", "1234 567");
    check("C++ and C#", "c++ c and c# c");
    check("end.Next", "end.next end next");
    check("a@b.org", "a@b.org a b.org b org");
}

/// BS7: a word is the same word in JSON, where line ends and characters may be escaped.
#[test]
fn bs7_escapes_of_json_are_read() {
    let json =
        r#"{"title":"\u4f1a\u8bae","owner":"M\u00fcller","body":"Agenda\ndeadline\tmoved\r\n"}"#;
    check(json, "titl 会 议 会议 owner müller muller bodi agenda deadlin move");
    check(r#"[{"a": "\ud55c\uad6d \\u4f1a C:\\new"}]"#, "a 한국 会 c://new c new");
    check(r"{'a': 'one\ntwo'}", "a one two");
    check(r#""one\ntwo", "#, "one two");
    check(r#""one\n\"two\"""#, "one two");
    check(r"x = '\u00e9t\u00e9'", "x été ete");
    // A backslash of a path is none of an escape.
    check(r"C:\new\temp", "c:/new/temp new/temp c new temp");
    check(r"[INFO] \new", "info new");
    check(r#""C:\new" \ud800 is"#, "c:/new c new ud800 ud 800 is");
}

/// BS7: terminal colours are not part of the words that they colour.
#[test]
fn bs7_colours_are_no_words() {
    check("\u{1b}[31mpanicked\u{1b}[0m at", "panick at");
    check("\u{1b}[1;38;5;196mE0502\u{1b}[K租约\u{1b}[m", "e0502 0502 租 约 租约");
    // Anything else is text.
    check("\u{1b}[31\u{1b} x [31m", "31 x 31m 31");
}

/// BL10: numbers of three digits in a list are found one by one.
#[test]
fn bl10_numbers_in_a_list_are_found() {
    check("[100,200,300]", "100200300 100 200 300");
    check("状态码200,404,500,503", "状 态 码 状态 态码 200404500503 200 404 500 503");
    check("1,234 or 0,100", "1234 1 234 or 0100 0 100");
    check("1,000 a,200 b,300 c,400 d,500", "1000 a 200 b 300 c 400 d 500");
    check("price:1,000 2,500.75", "price 1000 2500.75 2 500.75");
    check("100,101,102,103,104,105", "100 101102103104105 101 102 103 104 105");
}

/// BL10: each number of a long list costs the same, however long the list is.
#[test]
fn bl10_a_list_of_numbers_costs_what_its_numbers_cost() {
    let numbers: Vec<String> = (0..40_000).map(|n| (100 + n % 900).to_string()).collect();
    let (mut terms, mut bytes) = (0, 0);
    Analyzer::new().terms(&numbers.join(","), &mut |term| {
        terms += 1;
        bytes += term.len();
    });
    assert_eq!((terms, bytes), (numbers.len() + 1, 3 * numbers.len() + 15));
}

/// BL10: a character that only chooses how another looks is not a term, and does not split a word.
#[test]
fn bl10_what_is_not_seen_is_no_term() {
    check("❤\u{fe0f} 1\u{fe0f}\u{20e3} 👩\u{200d}👧", "1");
    check("con\u{ad}nect 葛\u{e0100}飾区", "connect 葛 饰 区 葛饰 饰区");
    check("می\u{200c}خواهم", "میخواهم");
    check("\u{301} \u{301}a b-\u{301}", "a b");
}

#[test]
fn bl10_text_without_spaces_gives_characters_and_pairs() {
    check("读取data.txt文件", "读 取 读取 data.txt data txt 文 件 文件");
    check("データ", "でー ーた でーた");
    check("ﾃﾞｰﾀ", "でー ーた でーた");
    check("데이터를 분석", "데이터 데이 이터 분석");
}

#[test]
fn names_are_told_from_words() {
    check_names("what happened in src/main.rs at 10:30?", &["src/main.rs", "main.rs"]);
    check_names("Why E0502, ECONNREFUSED or 7f3a9c2d?", &["e0502", "econnrefus", "7f3a9c2d"]);
    check_names("the snake_case of parseArgs", &["snake_case", "parseargs"]);
    check_names("order 4711942 from 2023", &["4711942"]);
    check_names("tickets 98214477,98214478", &["98214477", "98214478"]);
    check_names("WHY DOES THE DATABASE FAIL WITH E0502?", &["e0502"]);
    check_names("ECONNREFUSED", &["econnrefus"]);
    check_names("ECONNREFUSED 是什么原因", &["econnrefus"]);
    check_names("API 网关报 ECONNREFUSED，HTTP 超时", &["econnrefus", "http"]);
    check_names("self-driving and/or the 3pm 20th McDonald don't e.g.", &[]);
    check_names("文件 data.txt 在哪里", &["data.txt"]);
}

#[test]
fn function_words_are_taken_out_of_questions_that_hold_others() {
    assert!(COMMON.is_sorted());
    let question = |text| {
        let terms = Analyzer::new().question(text, 100);
        terms.into_iter().map(|term| term.0).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(question("What DID the dog do to my_bone?"), "dog my_bone my bone");
    assert_eq!(question("What did they do?"), "what did they do");
    assert_eq!(question("The Who"), "the who");
    assert_eq!(question("那是什么 is it"), "那 是 什 么 那是 是什 什么 is it");
    assert_eq!(question("为什么超时？"), "超 时 超时");
    assert_eq!(question("いつ届きますか"), "届 届き");
    assert_eq!(question("오류가 왜 났어"), "오류 났어");
}

#[test]
fn s12_a_token_is_cut() {
    let long = "x".repeat(100_000);
    let mut terms = Vec::new();
    Analyzer::new().terms(&long, &mut |term| terms.push(term.to_owned()));
    assert_eq!(terms.iter().map(String::len).collect::<Vec<_>>(), [MAX_TOKEN_BYTES]);
}

#[test]
fn the_file_of_a_long_path_is_found_by_its_name() {
    let path = format!("/srv/{}/src/main_loop.rs", "deep/".repeat(60));
    let mut terms = Vec::new();
    Analyzer::new().terms(&path, &mut |term| terms.push(term.to_owned()));
    assert!(terms.iter().any(|term| term == "main_loop.rs"), "{terms:?}");
    let question = Analyzer::new().question(&path, 100);
    assert!(question.contains(&("main_loop.rs".to_owned(), Form::Name)), "{question:?}");
}

proptest! {
    #[test]
    fn s12_any_text_gives_bounded_terms(text in any::<String>()) {
        Analyzer::new().terms(&text, &mut |term| {
            assert!(!term.is_empty() && term.len() <= 4 * MAX_TOKEN_BYTES);
        });
    }

    #[test]
    fn a_question_in_the_words_of_a_text_asks_for_its_terms(
        text in "[a-zA-Z0-9_./ :é文件-]{0,60}",
    ) {
        let mut terms = std::collections::BTreeSet::new();
        Analyzer::new().terms(&text, &mut |term| {
            terms.insert(term.to_owned());
        });
        let question = Analyzer::new().question(&text, usize::MAX);
        prop_assert!(question.iter().all(|(term, _)| terms.contains(term)));
        prop_assert_eq!(question.is_empty(), terms.is_empty());
    }
}
