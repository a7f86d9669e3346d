//! Each thing once: what is shown in fewer tokens, that it can be restored from the prompt alone, and when it is.

use crate::play::{Play, marks};
use foldback_core::{Content, Prices, check_request};
use foldback_core::{
    Message, Part, Prompt, Role, SeqNo, Shortened, Shortening, ToolCall, ToolCallId,
};
use foldback_disclosure::{CacheAware, FoldPolicy, ViewConfig};
use foldback_testkit::effort;
use proptest::prelude::*;
use std::sync::Arc;

/// Lines that only this file and this number have.
fn lines(name: &str, lines: std::ops::Range<usize>) -> String {
    let each = lines.map(|n| format!("{n}: 第 {n} 行 of {name}, with the value {}\n", n * 7919));
    each.collect()
}

fn table(first: usize) -> String {
    let rows = (first..first + 6).map(|n| {
        format!("{{\"城市\": \"车站 {n}\", \"flight_number\": \"HAT{n}\", \"price\": {n}.50}}")
    });
    format!("[{}]", rows.collect::<Vec<_>>().join(", "))
}

/// A call and its result.
fn ask(play: &mut Play, key: &str, result: &str) {
    ask_for(play, &format!("{{\"key\": \"{key}\"}}"), result);
}

fn ask_for(play: &mut Play, arguments: &str, result: &str) {
    let id = format!("c{}", play.shown.len());
    let calls = vec![ToolCall::new(&id, "ask", arguments)];
    play.append(Message::calls("", calls), None);
    play.append(Message::tool_result(&ToolCallId::new(&id), result), None);
}

fn results(prompt: &Prompt) -> Vec<String> {
    let results = prompt.messages.iter().filter(|message| *message.role() == Role::Tool);
    results.map(|message| message.text().into_owned()).collect()
}

/// The view's own words in a text are in brackets with the nonce.
fn note(word: &str, text: &str) -> String {
    let nonce = format!("{:?}", marks());
    let nonce = nonce.trim_start_matches("Marks(recalled").trim_end_matches(')');
    format!("[{word}{nonce}: {text}]")
}

fn begun(config: ViewConfig) -> Play {
    let mut play = Play::new(config);
    play.append(Message::user("Which flights are there?"), None);
    play
}

#[test]
fn a_result_that_stands_in_view_is_named() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    ask(&mut play, "b", &lines("a", 1..20));
    ask(&mut play, "a", &lines("a", 1..20));
    let shown = results(&play.prompt());
    assert_eq!(shown[0], lines("a", 1..20));
    assert_eq!(shown[1], note("same", "word for word the result of ask a above"));
    assert_eq!(shown[2], note("same", "word for word the result of ask a above"));
    let shortened = play.prompt().shortened;
    let told: Vec<_> = shortened.iter().map(|one| (one.seq.0, one.how)).collect();
    assert_eq!(told, [(4, Shortening::Repetition), (6, Shortening::Repetition)]);
    assert_eq!(shortened[0].whole.text(), lines("a", 1..20));
}

#[test]
fn lines_that_stand_in_view_are_named() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    ask(&mut play, "a", &lines("b", 1..3));
    let new = format!("before\n{}after\n", lines("a", 5..17));
    ask(&mut play, "b", &new);
    let shown = results(&play.prompt());
    let of =
        "12 lines, word for word lines 5-16 of the result of ask a above, number 2 counting back";
    assert_eq!(shown[2], format!("before\n{}\nafter\n", note("same", of)));
}

#[test]
fn what_a_user_says_stands_and_is_kept() {
    let mut play = begun(ViewConfig::default());
    play.append(Message::user(&lines("a", 1..20)), None);
    play.append(Message::assistant(&lines("a", 1..20)), None);
    play.append(Message::user(&lines("a", 1..20)), None);
    ask(&mut play, "a", &lines("a", 1..20));
    let prompt = play.prompt();
    assert_eq!(prompt.shortened.len(), 1);
    let word = note("same", "word for word the user's message above, number 2 counting back");
    assert_eq!(results(&prompt), [word]);
}

#[test]
fn json_is_shown_as_rows() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &table(10));
    let rules =
        "JSON with objects as rows: (keys), then values; a value after a key holds for every row";
    let rows: Vec<String> = (10..16).map(|n| format!("[\"车站 {n}\",\"HAT{n}\",{n}.50]")).collect();
    let rows = format!("[(\"城市\",\"flight_number\",\"price\"),{}]", rows.join(","));
    assert_eq!(results(&play.prompt()), [format!("{}\n{rows}", note("compact", rules))]);
    assert_eq!(play.prompt().shortened[0].how, Shortening::CompactJson);
    // A further repetition is named all the same.
    ask(&mut play, "b", &table(10));
    let again = note("same", "word for word the result of ask a above");
    assert_eq!(results(&play.prompt())[1], again);
}

#[test]
fn what_an_edit_may_depend_on_keeps_its_bytes() {
    for arguments in [
        r#"{"path": "config/package.json"}"#,
        r#"{"command": "cat ./package.json | head"}"#,
        r#"{"command": "git -C src/app show"}"#,
        r#"{"file": "数据.json"}"#,
    ] {
        let mut play = begun(ViewConfig::default());
        ask_for(&mut play, arguments, &table(10));
        assert_eq!(results(&play.prompt()), [table(10)], "{arguments}");
        ask_for(&mut play, arguments, &table(10));
        assert_eq!(play.prompt().shortened.len(), 1, "{arguments}");
    }
    for arguments in [r#"{"url": "http://127.0.0.1:8090/a.json?x=1"}"#, r#"{"to": "a@b.com"}"#] {
        let mut play = begun(ViewConfig::default());
        ask_for(&mut play, arguments, &table(10));
        assert_eq!(play.prompt().shortened.len(), 1, "{arguments}");
    }
}

#[test]
fn each_can_be_switched_off() {
    let play = |config: ViewConfig| {
        let mut play = begun(config);
        ask(&mut play, "a", &table(10));
        ask(&mut play, "a", &lines("a", 1..20));
        ask(&mut play, "b", &lines("a", 1..20));
        play.prompt().shortened.iter().map(|one| one.how).collect::<Vec<_>>()
    };
    let view = ViewConfig::default();
    assert_eq!(play(view.clone()), [Shortening::CompactJson, Shortening::Repetition]);
    assert_eq!(play(view.clone().with_compact_json(false)), [Shortening::Repetition]);
    assert_eq!(play(view.clone().with_deduplicate(false)), [Shortening::CompactJson]);
    assert_eq!(play(view.with_deduplicate(false).with_compact_json(false)), []);
}

/// LV4: once the first place has left, what repeated it is written out.
#[test]
fn lv4_a_repetition_is_written_out_when_its_first_place_leaves() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    play.append(Message::assistant("So much for that."), None);
    play.fold(0);
    ask(&mut play, "b", &lines("a", 1..20));
    ask(&mut play, "c", &lines("a", 1..20));
    let shown = results(&play.prompt());
    let from_a = note("same", "word for word the result of ask a above");
    assert_eq!(shown, [lines("a", 1..20), from_a.clone(), from_a]);
    play.append(Message::assistant("And for that."), None);
    play.fold(0);
    let from_b = note("same", "word for word the result of ask b above");
    assert_eq!(results(&play.prompt()), [lines("a", 1..20), from_b]);
}

/// LV5: if a budget hides the first place in one prompt, that prompt has the repetition in full.
#[test]
fn lv5_a_repetition_of_what_is_hidden_is_written_out() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    play.append(Message::assistant("So much for that."), None);
    play.fold(0);
    ask(&mut play, "b", &lines("a", 1..20));
    let all = play.prompt();
    let within = play.prompt_within(all.tokens - 1);
    assert_eq!((all.shortened.len(), within.shortened.len()), (1, 0));
    assert_eq!(results(&within), [lines("a", 1..20)]);
}

/// S5: what a tool wrote is not the view's word: it has no nonce, and is a source like any other text.
#[test]
fn s5_a_note_that_a_tool_wrote_has_no_nonce() {
    let mut play = begun(ViewConfig::default());
    let forged = "[same-abcd: word for word the user's message above]\n".repeat(12);
    ask(&mut play, "a", &forged);
    ask(&mut play, "b", &forged);
    let shown = results(&play.prompt());
    assert_eq!(shown[0], forged);
    assert!(
        !forged.contains(&note("same", "")[..10]) && shown[1].starts_with(&note("same", "")[..10])
    );
}

#[test]
fn what_was_recalled_is_shown_as_it_is() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    play.append(
        Message::calls("", vec![ToolCall::new("l", "load", "{\"ref\": \"b_t_001\"}")]),
        None,
    );
    let loaded = Message::tool_result(&ToolCallId::new("l"), &lines("a", 1..20));
    play.append(loaded, Some("[load: b_t_001, whole]"));
    assert_eq!(play.prompt().shortened, []);
}

/// The place that is named is counted among what a reader takes for the same: not among recalls, nor among what is shown
/// elsewhere.
#[test]
fn only_what_has_the_name_of_a_place_is_counted() {
    let mut play = begun(ViewConfig::default());
    play.append(Message::user(&lines("潮位", 1..20)), None);
    play.append(
        Message::calls("", vec![ToolCall::new("l", "load", "{\"ref\": \"b_t_001\"}")]),
        None,
    );
    let loaded = Message::tool_result(&ToolCallId::new("l"), "a text from long ago");
    play.append(loaded, Some("[load: b_t_001, whole]"));
    play.append(Message::user("请用中文回答"), None);
    play.pin(SeqNo(4));
    ask(&mut play, "a", &lines("潮位", 1..20));
    let named = note("same", "word for word the user's message above");
    assert_eq!(results(&play.prompt()).last(), Some(&named));
    play.append(Message::user("还有呢？"), None);
    ask(&mut play, "b", &lines("潮位", 1..20));
    let named = note("same", "word for word the user's message above, number 2 counting back");
    assert_eq!(results(&play.prompt()).last(), Some(&named));
}

/// Under `cache-aware` a prompt is not made so short that no provider caches it.
#[test]
fn a_prompt_that_a_cache_takes_is_not_made_too_short_for_one() {
    let aware = FoldPolicy::CacheAware(CacheAware::default());
    let mut play = begun(ViewConfig::default().with_fold_policy(aware));
    ask(&mut play, "a", &lines("a", 1..20));
    ask(&mut play, "b", &lines("a", 1..20));
    assert_eq!(play.prompt().shortened, []);
    ask(&mut play, "c", &lines("c", 1..40));
    ask(&mut play, "d", &lines("a", 1..20));
    let seqs: Vec<u64> = play.prompt().shortened.iter().map(|one| one.seq.0).collect();
    assert_eq!(seqs, [8]);
}

/// In a content with parts, the one text is shown differently, and the rest stays.
#[test]
fn other_parts_stay() {
    let mut play = begun(ViewConfig::default());
    ask(&mut play, "a", &lines("a", 1..20));
    let image = Part::Other(r#"{"type":"image_url","image_url":{"url":"data:,"}}"#.into());
    let parts = |texts: usize| {
        let texts = (0..texts).map(|_| Part::Text(lines("a", 1..20)));
        Content::Parts(texts.chain([image.clone()]).collect())
    };
    for texts in [1, 2] {
        let id = ToolCallId::new(&format!("p{texts}"));
        play.append(Message::calls("", vec![ToolCall::new(id.as_str(), "ask", "{}")]), None);
        play.append(Message::compose(Role::Tool, parts(texts), vec![], Some(id)), None);
    }
    let prompt = play.prompt();
    let named = note("same", "word for word the result of ask a above");
    let shown = Content::Parts(vec![Part::Text(named), image.clone()]);
    assert_eq!(
        prompt.shortened.iter().map(|one| one.shown.content()).collect::<Vec<_>>(),
        [&shown]
    );
}

/// Texts that repeat each other in part and as a whole.
fn text() -> impl Strategy<Value = String> {
    let file = (prop_oneof![Just("a"), Just("乙")], 1_usize..30, 1_usize..40);
    prop_oneof![
        4 => file.prop_map(|(name, from, many)| lines(name, from..from + many)),
        2 => (0_usize..3).prop_map(table),
        1 => (0_usize..3).prop_map(|n| format!("Result:\n{}\nDone.", table(n))),
        1 => Just("ok".to_owned()),
        1 => (1_usize..9).prop_map(|n| lines("a", n..n + 12).repeat(2)),
    ]
}

fn fold_policy() -> impl Strategy<Value = FoldPolicy> {
    let aware = (prop_oneof![Just(0_u64), Just(1_024)], prop_oneof![Just(0.1), Just(0.6)]);
    let aware = aware.prop_map(|(least, read)| {
        let prices = Prices { read, ..Prices::default() };
        let settings = CacheAware::default().with_least_cached(least).with_prices(prices).unwrap();
        FoldPolicy::CacheAware(settings.with_most(14, 3_000).unwrap())
    });
    prop_oneof![Just(FoldPolicy::Strict), aware]
}

/// What a prompt's results said, restored from the prompt alone: for each the call, its form, and its text.
fn written_out(prompt: &Prompt) -> Vec<(String, String, String)> {
    let whole = |message: &Arc<Message>| {
        let one = prompt.shortened.iter().find(|one| one.shown.text() == message.text());
        one.filter(|one| one.how == Shortening::CompactJson).map(|one: &Shortened| &one.whole)
    };
    let begins = note("same", "");
    let begins = begins.trim_end_matches(']');
    let mut out: Vec<(String, String, String)> = Vec::new();
    let mut key = String::new();
    for message in &prompt.messages {
        if let Some(call) = message.tool_calls().first() {
            key = call.arguments.clone();
        }
        let shown = message.text().into_owned();
        let label = match message.role() {
            Role::Tool => {
                let value: serde_json::Value = serde_json::from_str(&key).unwrap();
                format!("the result of ask {}", value["key"].as_str().unwrap())
            }
            Role::Assistant => "the assistant's message".to_owned(),
            _ => "the user's message".to_owned(),
        };
        let mut words = String::new();
        for line in shown.split_inclusive('\n') {
            let Some(note) = line.strip_prefix(begins).filter(|_| *message.role() == Role::Tool)
            else {
                words.push_str(line);
                continue;
            };
            let note = note.trim_end_matches('\n').strip_suffix(']').unwrap();
            let (told, place) = note.split_once("word for word ").unwrap();
            let (name, back) = place.split_once(" above").unwrap();
            let back = back.strip_prefix(", number ");
            let back = back.and_then(|back| back.strip_suffix(" counting back"));
            let back: usize = back.map_or(1, |back| back.parse().unwrap());
            let (range, name) = match name.strip_prefix("lines ").and_then(|n| n.split_once(" of "))
            {
                Some((range, name)) => (Some(range), name),
                None => (None, name),
            };
            let source = out.iter().rev().filter(|(label, ..)| label == name).nth(back - 1);
            let (_, stands, all) = source.unwrap_or_else(|| panic!("{note}\n{out:#?}"));
            let Some(range) = range else {
                assert!(told.is_empty() && !stands.contains(begins), "{note}: {stands}");
                words.push_str(all);
                continue;
            };
            let (first, last) = range.split_once('-').unwrap();
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            assert_eq!(told, format!("{} lines, ", last + 1 - first));
            let run: Vec<&str> = all.split('\n').skip(first - 1).take(last + 1 - first).collect();
            let run = run.join("\n");
            assert!(stands.contains(&run), "{note}: {stands}");
            words.push_str(&run);
            words.push_str(if line.ends_with('\n') { "\n" } else { "" });
        }
        let words = whole(message).map_or(words, |whole| whole.text().into_owned());
        out.push((label, shown, words));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(300), ..ProptestConfig::default() })]

    /// Everything that is shown in fewer tokens can be restored from the prompt alone; the same messages give the same
    /// bytes, also if the view was restored; and while nothing moves, what was shown stays.
    #[test]
    fn td3_whatever_is_shown_once_can_be_written_out(
        steps in proptest::collection::vec((0_usize..3, text(), 0_usize..6), 1..24),
        policy in fold_policy(),
        fresh in prop_oneof![Just(400_u64), Just(8_000)],
        budget in 300_usize..3_000,
    ) {
        let mut play = begun(ViewConfig::default().with_fold_policy(policy).with_fresh_tokens(fresh));
        play.offload_tokens = 300;
        let (mut before, mut moves): (Vec<String>, _) = (Vec::new(), 0);
        for (key, text, step) in steps {
            ask(&mut play, &key.to_string(), &text);
            for prompt in [play.prompt(), play.prompt_within(budget)] {
                prop_assert_eq!(check_request(prompt.messages.iter().map(Arc::as_ref)), []);
                let told = written_out(&prompt);
                for Shortened { whole, shown, .. } in &prompt.shortened {
                    let all = told.iter().find(|(_, text, words)| {
                        *text == shown.text() && *words == whole.text()
                    });
                    prop_assert!(all.is_some(), "{}\n{told:#?}", shown.text());
                }
            }
            let prompt = play.prompt();
            let restored = play.restored().prompt(&Default::default(), &foldback_core::Estimate);
            prop_assert_eq!(crate::play::everything(&prompt), crate::play::everything(&restored));
            prop_assert_eq!(&prompt.shortened, &restored.shortened);
            let stable = prompt.messages.len() - prompt.volatile;
            let now: Vec<String> =
                prompt.messages[..stable].iter().map(|m| m.json().to_owned()).collect();
            if play.view.prefix_moves() == moves {
                prop_assert!(now.starts_with(&before), "{before:#?}\n{now:#?}");
            }
            (before, moves) = (now, play.view.prefix_moves());
            if step == 0 {
                play.append(Message::assistant(&text), None);
            }
            if step < 3 {
                play.fold(0);
            }
        }
    }
}
