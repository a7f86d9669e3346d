//! What is sent and what is kept at hand, on conversations whose figures can be counted by hand.

use foldback::{Conversation, Envelope};
use foldback_bench::savings::{Config, FactCounts, Fate, Figures, Policy, Savings, measure};
use foldback_bench::{Case, Counts, Kind};
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

/// A code is told, much is said, and the code is needed.
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
    // Without tools nobody asks.
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
    // What is asked has nothing in common with where the code stands.
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
    let savings = measured(&script);
    assert_eq!(fates(&figures(&savings, "sliding-window").facts), [0, 0, 0, 1]);
    assert_eq!(fates(&figures(&savings, "foldback").facts), [0, 1, 0, 0]);
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
    let savings = measured(&later("unmoor the Marlin", &between));
    let rival = figures(&savings, "deepagents");
    assert_eq!(rival.side_calls, 1, "one summary, which is a call of its own");
    assert_eq!(fates(&rival.facts), [0, 1, 0, 0]);
    assert_eq!(rival.recalls, 1);
    let vain = measured(&later("release her", &between));
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
    let more = Counts::default().text(tools);
    for (name, figures) in with.policies.iter() {
        let other = without.policies.get(name).unwrap();
        assert_eq!(figures.usage.input_tokens, other.usage.input_tokens + more, "{name}");
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
    // Without an assistant the model is asked behind each user message.
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
    let kinds: Vec<Kind> = savings.kinds.iter().map(|of| of.kind).collect();
    assert_eq!(kinds, [Kind::Agent, Kind::Dialogue]);
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
