//! What is sent and what is kept available, on conversations whose figures can be counted by hand.

use foldback::{Conversation, Envelope};
use foldback_bench::savings::{
    Config, FactCounts, Fate, Figures, Group, PRICE_MOST, Savings, measure,
};
use foldback_bench::{Case, Counts, Kind};
use foldback_policies::Policy;
use foldback_testkit::transcript;
use std::fmt::Write as _;

fn case(id: &str, script: &str) -> Case {
    let messages = transcript(script);
    let conversation = Conversation::from_parts(Some(id.to_owned()), messages, Envelope::default());
    Case::new(id.to_owned(), "a/file.jsonl".to_owned(), conversation)
}

fn measured(script: &str) -> Savings {
    measure(&[case("one", script)], &Config::default(), &|_| {}).unwrap()
}

/// The means of a model that has to ask for everything.
fn measured_without_hints(script: &str) -> Savings {
    let view = foldback::ViewConfig::default().with_hints(false);
    let options = Config::default().options.with_view(view);
    measure(&[case("one", script)], &Config { options, ..Config::default() }, &|_| {}).unwrap()
}

#[track_caller]
fn figures<'a>(savings: &'a Savings, policy: &str) -> &'a Figures {
    savings.policies.get(policy).unwrap_or_else(|| panic!("there is no policy {policy}"))
}

/// Visible, recalled, reachable, lost.
fn fates(facts: &FactCounts) -> [u64; 4] {
    assert_eq!(facts.facts, facts.visible + facts.recalled + facts.reachable + facts.lost);
    [facts.visible, facts.recalled, facts.reachable, facts.lost]
}

/// `n` exchanges about nothing in particular.
fn talk(n: usize) -> String {
    let mut script = String::new();
    for i in 0..n {
        writeln!(script, "user: tell me about island number {i}").unwrap();
        writeln!(script, "assistant: island {i} has a beach, a hill and some goats").unwrap();
    }
    script
}

/// A code is mentioned, much is said, and the code is needed.
fn later(asked: &str, between: &str) -> String {
    format!(
        "user: you keep the harbour book\n\
         assistant: I do\n\
         user: the boat Marlin is moored. Its code is QX-7781-K\n\
         assistant: the Marlin, at the code you gave, is noted\n\
         {between}\
         user: {asked}\n\
         assistant> unmoor({{\"code\": \"QX-7781-K\"}})\n\
         tool: done\n\
         assistant: done\n"
    )
}

#[test]
fn what_the_prompt_holds_is_visible_to_every_policy() {
    let savings = measured(&later("now unmoor the boat Marlin", ""));
    assert_eq!(savings.conversations[0].kind, Kind::Agent);
    for (name, figures) in savings.policies.iter() {
        assert_eq!(fates(&figures.facts), [1, 0, 0, 0], "{name}");
        assert_eq!((figures.usage.calls, figures.recalls), (4, 0), "{name}");
    }
    assert!(savings.misses.is_empty());
}

#[test]
fn a_policy_that_drops_messages_loses_what_they_said() {
    let savings = measured(&later("now unmoor the boat Marlin", &talk(60)));
    assert_eq!(fates(&figures(&savings, "full").facts), [1, 0, 0, 0]);
    let sliding = figures(&savings, "sliding-window");
    assert_eq!(fates(&sliding.facts), [0, 0, 0, 1]);
    // Without tools nothing is asked.
    assert_eq!((sliding.recalls, sliding.usage), (0, sliding.without_recalls));
    let missed: Vec<_> = savings.misses.iter().filter(|m| m.policy == "sliding-window").collect();
    assert_eq!(missed.len(), 1);
    assert_eq!((missed[0].value.as_str(), missed[0].fate), ("QX-7781-K", Fate::Lost));
    assert!(!missed[0].asked.contains("7781"), "{}", missed[0].asked);
}

#[test]
fn what_one_search_brings_is_recalled_and_paid_for() {
    let savings = measured(&later("now unmoor the boat Marlin", &talk(60)));
    let foldback = figures(&savings, "foldback");
    assert_eq!(fates(&foldback.facts), [0, 1, 0, 0]);
    assert_eq!((foldback.recalls, foldback.facts.ceiling), (1, 1));
    let more = foldback.usage.calls - foldback.without_recalls.calls;
    assert_eq!(more, 1);
    // The prompt again, and what was asked and answered: at most the answer's bound more.
    let tokens = foldback.usage.input_tokens - foldback.without_recalls.input_tokens;
    let curve = savings.curves[0].policies.get("foldback").unwrap();
    let prompt = curve[curve.len() - 2];
    assert!(tokens > prompt && tokens <= prompt + 2_200, "{tokens} for a prompt of {prompt}");
    assert_eq!(foldback.without_recalls.input_tokens, curve.iter().sum::<u64>());
}

#[test]
fn what_no_search_finds_is_reached_by_reading_on() {
    // The question has nothing in common with the place of the code.
    let between: String = (0..40)
        .map(|i| {
            format!(
                "user: release the vessel number {i}, release it\n\
                 assistant: vessel {i} is released, release noted\n"
            )
        })
        .collect();
    let script = later("release the vessel", &between).replace("unmoor({\"code\"", "free({\"at\"");
    let savings = measured(&script);
    let foldback = figures(&savings, "foldback");
    assert_eq!(fates(&foldback.facts), [0, 0, 1, 0]);
    assert_eq!(foldback.facts.ceiling, 1, "the right block is small enough for a look");
    assert!(foldback.usage.calls > foldback.without_recalls.calls, "a vain search costs as well");
}

#[test]
fn what_stands_in_a_large_result_alone_is_a_class_of_its_own() {
    let script = format!(
        "user: read the log of the pump\n\
         assistant> read({{\"path\": \"pump.log\"}})\n\
         tool: [big 30000 a] valve VL-3302-X stuck [big 30000 b]\n\
         assistant: the pump log is long\n\
         {}\
         user: open the stuck valve of the pump log\n\
         assistant> open({{\"valve\": \"VL-3302-X\", \"log\": \"pump.log\"}})\n\
         tool: open\n\
         assistant: it is open\n",
        talk(30)
    );
    let savings = measured(&script);
    for (name, figures) in savings.policies.iter() {
        assert_eq!((figures.facts.facts, figures.payload.facts), (2, 1), "{name}");
    }
    assert_eq!(fates(&figures(&savings, "full").payload), [1, 0, 0, 0]);
    let foldback = figures(&savings, "foldback");
    assert_eq!((foldback.payload.visible, foldback.payload.lost), (0, 0));
    assert_eq!(foldback.facts.lost, 0);
}

#[test]
fn a_number_is_no_part_of_another_and_other_scripts_are_found() {
    let script = "
        user: 订单在大阪城公园，号码 12345，另一个是 998877
        assistant: 好的
        user: 去吧
        assistant> 前往({\"城市\": \"大阪城公园\", \"a\": 1234, \"b\": 12345, \"c\": \"９９８８\", \"d\": 2345})
        tool: 到了
        assistant: 到了
        ";
    let savings = measured(script);
    // The city, and one of the numbers.
    assert_eq!(fates(&figures(&savings, "full").facts), [2, 0, 0, 0]);
}

#[test]
fn other_scripts_are_recalled() {
    let mut script = String::from(
        "user: 你好\nassistant: 你好\nuser: 大阪城的门票编号是甲乙丙丁戊\nassistant: 记下了大阪城门票\n",
    );
    script.push_str(&talk(60));
    script.push_str(
        "user: 请用大阪城的门票\nassistant> use({\"编号\": \"甲乙丙丁戊\"})\ntool: ok\nassistant: 好\n",
    );
    let savings = measured_without_hints(&script);
    assert_eq!(fates(&figures(&savings, "sliding-window").facts), [0, 0, 0, 1]);
    assert_eq!(fates(&figures(&savings, "foldback").facts), [0, 1, 0, 0]);
    let with_hints = measured(&script.replace("请用大阪城的门票", "大阪城的门票编号是多少？"));
    let shown = fates(&figures(&with_hints, "foldback").facts);
    assert_eq!(shown, [1, 0, 0, 0], "the user's own words bring the passage into view");
}

#[test]
fn a_file_of_history_is_searched_by_pattern_and_read_on() {
    // 170,000 tokens and more, so that deepagents sums up.
    let mut between = String::new();
    for i in 0..12 {
        writeln!(between, "user: read part {i}\nassistant> read({{\"part\": {i}}})").unwrap();
        writeln!(between, "tool: [big 60000 {i}]\nassistant: read").unwrap();
    }
    between.push_str(&talk(4));
    // No summary contains the middle of a long text.
    let told = |asked: &str| {
        let place = "[big 4000 a] the boat Marlin is moored. Its code is QX-7781-K [big 4000 b]";
        let short = "the boat Marlin is moored. Its code is QX-7781-K";
        measured(&later(asked, &between).replace(short, place))
    };
    let savings = told("unmoor the Marlin");
    let rival = figures(&savings, "deepagents");
    assert_eq!(rival.side_calls, 1, "one summary, which is a call of its own");
    assert_eq!(fates(&rival.facts), [0, 1, 0, 0]);
    assert_eq!(rival.recalls, 1);
    let vain = told("release her");
    let rival = figures(&vain, "deepagents");
    assert_eq!(rival.facts.lost, 0);
    assert_eq!(rival.facts.visible, 0);
    assert_eq!(rival.facts.facts, 1);
}

#[test]
fn the_tools_of_the_recording_count_for_all_alike() {
    let line = |tools: &str| {
        format!(
            r#"{{"id":"x",{tools}"messages":[{{"role":"user","content":"hello"}},{{"role":"assistant","content":"hi"}}]}}"#
        )
    };
    let read = |line: String| {
        let conversation = foldback_transcript::read_bytes(line.as_bytes()).unwrap();
        let conversation = conversation.into_iter().next().unwrap().unwrap();
        let case = Case::new("x".to_owned(), "f".to_owned(), conversation);
        measure(&[case], &Config::default(), &|_| {}).unwrap()
    };
    let tools = r#"[{"type":"function","function":{"name":"open_gate","parameters":{}}}]"#;
    let (with, without) = (read(line(&format!("\"tools\":{tools},"))), read(line("")));
    let more = Counts::default().recorded_tools(tools);
    for (name, figures) in with.policies.iter() {
        let other = without.policies.get(name).unwrap();
        assert_eq!(figures.usage.input_tokens, other.usage.input_tokens + more, "{name}");
    }
}

#[test]
fn tools_that_are_taken_for_granted_count_for_all_alike() {
    let cases = [case("one", &later("now unmoor the boat Marlin", ""))];
    let with = |agent_tools| {
        let config = Config { agent_tools, ..Config::default() };
        measure(&cases, &config, &|_| {}).unwrap()
    };
    let (without, with) = (with(0), with(3_000));
    for (name, figures) in with.policies.iter() {
        let other = without.policies.get(name).unwrap();
        let more = figures.usage.input_tokens - other.usage.input_tokens;
        // This one decides by cost, so it also sends other tokens.
        let is_alike = name != "foldback-cache-aware";
        assert!(!is_alike || more == 3_000 * figures.usage.calls, "{name}: {more}");
        assert!(more.abs_diff(3_000 * figures.usage.calls) < 300, "{name}: {more}");
        // They never change, so a cache serves them from the second call on.
        assert!(figures.usage.cached_tokens >= 3_000 / 16 * 16 * (figures.usage.calls - 1));
    }
}

#[test]
fn prices_beyond_all_sums_are_refused() {
    let cases = [case("one", "user: hello\nassistant: hi\n")];
    for plain in [0.0, f64::NAN, 1e300, PRICE_MOST * 2.0] {
        let prices = foldback_core::Prices { plain, ..foldback_core::Prices::default() };
        let config = Config { prices, ..Config::default() };
        let error = measure(&cases, &config, &|_| {}).unwrap_err();
        assert!(error.to_string().contains("from 0 to 1000000000"), "{error}");
    }
}

/// A search quotes its question; what the question happens to contain does not count as recalled.
#[test]
fn a_question_brings_nothing_by_being_quoted() {
    let value = "zzqq North Quay 17";
    let mut script = format!("user: you keep the book\nassistant: I do\nuser: key {value} omega\n");
    script.push_str("assistant: ok\n");
    for i in 0..60 {
        let words = "unmoor code 17 Quay North zzqq";
        writeln!(script, "user: go on now with {words} number {i}; please {words}").unwrap();
        writeln!(script, "assistant: {words} {i}, go on now").unwrap();
    }
    for asked in ["zzqq  North Quay   17", "ZZQQ north quay 17", "zzqq North Quay 17"] {
        let script = format!(
            "{script}user: please go on with {asked} now\n\
             assistant> unmoor({{\"code\": \"{value}\"}})\ntool: done\nassistant: done\n"
        );
        let savings = measured(&script);
        for name in ["foldback", "foldback-cache-aware"] {
            let missed: Vec<_> = savings.misses.iter().filter(|m| m.policy == name).collect();
            let asked = missed.iter().map(|miss| miss.asked.to_lowercase());
            assert!(asked.clone().all(|asked| !asked.contains("north quay")), "{asked:?}");
        }
        let foldback = figures(&savings, "foldback");
        if asked != value {
            assert_eq!(fates(&foldback.facts), [0, 0, 1, 0], "{asked}");
        }
    }
}

#[test]
fn recalls_of_the_models_own_words_are_told_apart() {
    let script = format!(
        "user: you keep the pump book\n\
         assistant: I do\n\
         user: mend the pump Marlin\n\
         assistant: the pump Marlin is mended, all of its valves are open, it has run for a while, \
         and my own name for the mended valve of the pump is QX-7781-K\n\
         {}\
         user: check the mended valve of the pump Marlin\n\
         assistant> check({{\"valve\": \"QX-7781-K\"}})\n\
         tool: ok\n\
         assistant: done\n",
        talk(60)
    );
    let savings = measured_without_hints(&script);
    let own = figures(&savings, "foldback");
    assert_eq!((own.facts.facts, own.own), (1, own.facts));
    assert_eq!((own.recalls_of_own.calls, own.recalls), (own.recalls + own.looks, 1));
    let more = own.usage.input_tokens - own.without_recalls.input_tokens;
    assert_eq!(own.recalls_of_own.input_tokens, more);
    // Had someone else said it, none of it would be the model's own.
    let given =
        measured_without_hints(&script.replace("the pump book", "the pump book of QX-7781-K"));
    let given = figures(&given, "foldback");
    assert_eq!((given.facts.facts, given.own.facts, given.recalls_of_own.calls), (1, 0, 0));
}

/// A value that is too long for any answer counts towards no ceiling, wherever it occurs.
#[test]
fn a_value_that_no_answer_can_hold_is_over_the_ceiling() {
    let long: String = (0..900).map(|n| format!("{n} of the list, ")).collect();
    let script = |value: &str| {
        format!(
            "user: you keep the harbour book\nassistant: I do\nuser: keep this: {value}\n\
             assistant: kept\n{}user: write it down\nassistant> write({{\"text\": \"{value}\"}})\n\
             tool: done\nassistant: done\n",
            talk(60)
        )
    };
    let found = measured(&script(long.trim_end()));
    let foldback = figures(&found, "foldback");
    assert_eq!((fates(&foldback.facts), foldback.facts.ceiling), ([0, 0, 1, 0], 0));
    let found = measured(&script("the short list of nothing"));
    assert_eq!(figures(&found, "foldback").facts.ceiling, 1);
}

#[test]
fn dialogues_without_a_model_are_summed_up_apart() {
    let cases = [
        case("meeting", "user: 你好\nuser: again\n"),
        case("chat", "user: hello\nassistant: hi\n"),
    ];
    let savings = measure(&cases, &Config::default(), &|_| {}).unwrap();
    let kinds: Vec<Group> = savings.kinds.iter().map(|of| of.kind).collect();
    assert_eq!(kinds, [Group::Dialogue, Group::UsersOnly]);
    let json = serde_json::to_value(&savings).unwrap();
    let told = |key: &str| {
        [&json["conversations"][0][key], &json["conversations"][1][key]]
            .map(|v| v.as_str().unwrap().to_owned())
    };
    assert_eq!(told("kind"), ["dialogue", "dialogue"]);
    assert_eq!(told("group"), ["dialogue, users only", "dialogue"]);
    assert!(savings.comparisons.iter().any(|one| one.kind == Group::UsersOnly));
}

#[test]
fn an_agents_run_is_a_composite_where_topics_are_given() {
    for (boundaries, expected) in [
        ("null", Kind::Agent),
        ("[ ]", Kind::Agent),
        ("[0]", Kind::Agent),
        ("[99]", Kind::Agent),
        ("\"2\"", Kind::Agent),
        ("[0, 2]", Kind::Composite),
    ] {
        let line = format!(
            r#"{{"id":"x","boundaries":{boundaries},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":"ok"}}]}}"#
        );
        let found = foldback_transcript::read_bytes(line.as_bytes()).unwrap();
        let conversation = found.into_iter().next().unwrap().unwrap();
        assert_eq!(Kind::of(&conversation), expected, "{boundaries}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_in_the_order_of_the_input() {
    let cases = [
        case("second", &later("now unmoor the boat Marlin", &talk(30))),
        case("first", "user: 你好\nuser: again\n"),
        case("third", &later("release her", &talk(9))),
    ];
    let json = || {
        let savings = measure(&cases, &Config::default(), &|_| {}).unwrap();
        serde_json::to_string(&savings).unwrap()
    };
    let first = json();
    assert_eq!(first, json());
    let read: serde_json::Value = serde_json::from_str(&first).unwrap();
    let ids: Vec<_> = read["conversations"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, ["second", "first", "third"]);
    assert_eq!(read["conversations"][1]["kind"], "dialogue");
    // Without an assistant the model is asked after each user message.
    assert_eq!(read["conversations"][1]["policies"]["full"]["calls"], 2);
    assert_eq!(
        read["conversations"][1]["policies"]["full"]["in_out_ratio"],
        serde_json::Value::Null
    );
}

#[test]
fn sums_are_those_of_the_conversations() {
    let cases = [case("a", &later("unmoor the Marlin", &talk(30))), case("b", &talk(20))];
    let savings = measure(&cases, &Config::default(), &|_| {}).unwrap();
    for (name, sum) in savings.policies.iter() {
        let each: Vec<_> =
            savings.conversations.iter().map(|c| c.policies.get(name).unwrap()).collect();
        let tokens: u64 = each.iter().map(|figures| figures.usage.input_tokens).sum();
        assert_eq!(sum.usage.input_tokens, tokens, "{name}");
        assert_eq!(
            sum.usage.peak_tokens,
            each.iter().map(|figures| figures.usage.peak_tokens).max().unwrap()
        );
    }
    let kinds: Vec<Group> = savings.kinds.iter().map(|of| of.kind).collect();
    assert_eq!(kinds, [Group::Agent, Group::Dialogue]);
    // A table has a row for each conversation and policy, and cells for each column.
    let rows = savings.rows();
    assert_eq!(rows.rows.len(), 2 * Policy::all().len());
    assert!(
        savings
            .sheets()
            .iter()
            .chain([&rows, &savings.missed()])
            .all(|sheet| { sheet.rows.iter().all(|row| row.len() == sheet.columns.len()) })
    );
}

/// What is shown in fewer tokens is counted separately, and a value in a part that was not repeated is
/// visible where it first occurs.
#[test]
fn what_is_shown_once_is_counted_apart() {
    let lines: String =
        (1..30).map(|n| format!("  gauge {n} 港口: level-{}\n", n * 7919)).collect();
    let rows = (1..9).map(|n| format!("{{\"gauge\": \"pier {n}\", \"opened\": \"19{n}0-04-01\"}}"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    let script = format!(
        "user: what do the gauges say\n\
         assistant> read({{\"day\": \"monday\"}})\n\
         tool: they say\n{lines}\
         assistant> read({{\"day\": \"tuesday\"}})\n\
         tool: they say\n{lines}\
         assistant> list({{\"of\": \"all\"}})\n\
         tool: [{rows}]\n\
         assistant> note({{\"value\": \"level-{}\"}})\n\
         tool: noted\n\
         assistant: done\n",
        17 * 7919
    );
    let savings = measured(&script);
    let foldback = figures(&savings, "foldback");
    assert_eq!((foldback.compact_json.results, foldback.repetitions.results), (1, 1));
    assert!(foldback.compact_json.tokens > 50 && foldback.repetitions.tokens > 300);
    assert_eq!(fates(&foldback.facts), [1, 0, 0, 0]);
    let full = figures(&savings, "full");
    assert_eq!((full.compact_json, full.repetitions), Default::default());
    let sheets = savings.sheets();
    let told = sheets.iter().find(|sheet| sheet.title.ends_with("results shown in fewer tokens"));
    assert_eq!(told.unwrap().rows.len(), 1);
    // Without them the prompts are longer by what was saved.
    let view = foldback::ViewConfig::default().with_compact_json(false).with_deduplicate(false);
    let options = Config::default().options.with_view(view);
    let whole = Config { options, ..Config::default() };
    let whole = measure(&[case("one", &script)], &whole, &|_| {}).unwrap();
    let tokens = figures(&whole, "foldback").without_recalls.input_tokens;
    let saved = foldback.compact_json.tokens + foldback.repetitions.tokens;
    assert_eq!(tokens, foldback.without_recalls.input_tokens + saved);
}

/// A block that is named before the model asks is counted, and so is the value in it, if that is needed
/// and not visible.
#[test]
fn blocks_that_are_named_are_counted() {
    let script = format!(
        "user: you keep the pump book\n\
         assistant: I do\n\
         user: mend the pump 泵-MRL-4471\n\
         assistant: the pump 泵-MRL-4471 is mended, and its valve is QX-7781-K\n\
         {}\
         user: what is due\n\
         assistant> due({{\"on\": \"monday\"}})\n\
         tool: the valve of MRL-4471\n\
         assistant> check({{\"valve\": \"QX-7781-K\"}})\n\
         tool: ok\n\
         assistant: done\n",
        talk(60)
    );
    let savings = measured(&script);
    let Figures { pointers, facts, .. } = figures(&savings, "foldback");
    assert_eq!((pointers.needed, pointers.facts), (1, 1), "{pointers:?} {facts:?}");
    assert!(pointers.blocks >= 1);
    assert_eq!(figures(&savings, "full").pointers, Default::default());
    let sheets = savings.sheets();
    let named = |sheet: &&foldback_bench::Sheet| sheet.title.ends_with("before the model asks");
    assert!(!sheets.iter().find(named).unwrap().rows.is_empty());
    // Without them nothing is named but the blocks of calls that left.
    let savings = measured_without_hints(&script);
    assert_eq!(figures(&savings, "foldback").pointers.needed, 0);
}
