//! Settings, the inputs and the state of a search, and its next step.

use crate::source::source;
use foldback_core::{Message, ToolCallId};
use foldback_deep_search::{
    DeepSearchSettings, DeepSearchState, Effort, Query, Reflection, ReflectionState, Research,
    Route, Summary, Update, research_topic,
};
use std::sync::Arc;

fn query(id: u32, query: &str) -> Query {
    Query { id, query: query.to_owned() }
}

fn researched(id: u32, words: &str, urls: &[&str]) -> Research {
    let sources = urls.iter().map(|url| source(url, url)).collect();
    let summary = Summary { text: words.to_owned(), sources, ..Summary::default() };
    Research { query: query(id, words), outcome: Ok(summary) }
}

/// DS2: the update of a node is appended; existing entries stay. The number of rounds is counted.
#[test]
fn ds2_lists_are_appended_to() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Queries(vec![query(1, "潮汐"), query(2, "b")]));
    state.apply(Update::Research(vec![
        researched(1, "潮汐", &["u1"]),
        researched(2, "b", &["u1", "u2"]),
    ]));
    state.apply(Update::FollowUps(vec![query(3, "c")]));
    let failed = Research { query: query(3, "c"), outcome: Err("断网".to_owned()) };
    state.apply(Update::Research(vec![failed.clone()]));
    assert_eq!(state.search_query, [query(1, "潮汐"), query(2, "b"), query(3, "c")]);
    assert_eq!(state.web_research_result.len(), 3);
    assert_eq!(state.web_research_result[2], failed);
    let gathered: Vec<&str> = state.sources_gathered.iter().map(|s| s.url.as_str()).collect();
    assert_eq!(gathered, ["u1", "u1", "u2"], "as the queries brought them");
    assert_eq!(state.research_loop_count, 2);
    let reflection =
        Reflection { is_sufficient: true, knowledge_gap: String::new(), follow_up_queries: vec![] };
    let reflected = state.reflected(reflection);
    assert_eq!((reflected.research_loop_count, reflected.number_of_ran_queries), (2, 3));
    state.apply(Update::Answered(Arc::new(Message::assistant("ok")), vec![source("s", "u2")]));
    assert_eq!(state.messages.len(), 1);
    assert_eq!(state.sources_gathered, [source("s", "u2")], "reduced to those that are used");
}

/// DS3: the defaults, the efforts, and what the caller's environment overrides.
#[test]
fn ds3_settings_and_efforts() {
    let settings = DeepSearchSettings::default();
    assert_eq!((settings.number_of_initial_queries, settings.max_research_loops), (3, 2));
    assert_eq!(settings.retries, 2);
    let drawn = settings.temperatures;
    assert_eq!((drawn.queries, drawn.reflection), (Some(1.0), Some(1.0)));
    assert_eq!((drawn.research, drawn.answer), (Some(0.0), Some(0.0)));
    let efforts = Effort::ALL.map(|effort| (effort.name(), effort.queries_and_loops()));
    assert_eq!(efforts, [("low", (1, 1)), ("medium", (3, 3)), ("high", (5, 10))]);
    assert!(Effort::ALL.iter().all(|effort| Effort::from_name(effort.name()) == Some(*effort)));

    let given = |name| (name == "MAX_RESEARCH_LOOPS").then(|| " 7 ".to_owned());
    let settings = settings.with_effort(Effort::High).overridden(given).unwrap();
    assert_eq!((settings.number_of_initial_queries, settings.max_research_loops), (5, 7));
    for value in ["0", "-1", "many", ""] {
        let error = settings.clone().overridden(|_| Some(value.to_owned())).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("NUMBER_OF_INITIAL_QUERIES is"), "{told}");
        assert!(told.ends_with("but a whole number of at least 1 is expected"), "{told}");
    }
    let json = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<DeepSearchSettings>(&json).unwrap(), settings);
    assert!(serde_json::from_str::<DeepSearchSettings>(r#"{"max_loops": 1}"#).is_err());
}

/// DS6: the next step, as a table. Insufficient and nothing to follow: the answer is written.
#[test]
fn ds6_the_router() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Queries(vec![query(1, "Tide tables"), query(2, "c")]));
    state.apply(Update::Research(vec![
        researched(1, "Tide tables", &[]),
        Research { query: query(2, "c"), outcome: Err("x".to_owned()) },
    ]));
    let route = |is_sufficient, loops, follow_ups: &[&str]| {
        let reflection = ReflectionState {
            is_sufficient,
            knowledge_gap: "gap".to_owned(),
            follow_up_queries: follow_ups.iter().map(|q| (*q).to_owned()).collect(),
            research_loop_count: loops,
            number_of_ran_queries: 2,
        };
        state.route(&reflection, 3)
    };
    let ends = |route| matches!(route, Route::FinalizeAnswer(_));
    assert!(ends(route(true, 1, &["a"])), "sufficient");
    assert!(ends(route(false, 2, &["a"])), "the last round");
    assert!(ends(route(false, 9, &["a"])), "beyond it");
    assert!(ends(route(false, 1, &[])), "nothing to follow");
    assert!(ends(route(false, 1, &["  ", ""])), "nothing that is a query");
    assert!(ends(route(false, 1, &["tide  TABLES"])), "answered already");
    // DS7: dense after those before; a query that failed may be asked again; no more than the limit.
    let next = route(false, 1, &["a", "A ", "c", "潮", "e"]);
    assert_eq!(next, Route::WebResearch(vec![query(3, "a"), query(4, "c"), query(5, "潮")]));
}

/// DS11: a question alone is the topic; a conversation is passed on turn by turn, as the original does, without
/// instructions and tools.
#[test]
fn ds11_the_topic() {
    assert_eq!(research_topic(&[], "q1"), "q1");
    let before = [
        Message::system("be brief"),
        Message::user("q1"),
        Message::calls("", vec![]),
        Message::tool_result(&ToolCallId::new("c"), "raw"),
        Message::observation("<tool_results>raw</tool_results>"),
        Message::assistant("r1"),
    ];
    let before = before.map(Arc::new);
    assert_eq!(research_topic(&before, "q2"), "User: q1\nAssistant: r1\nUser: q2\n");
    let long: Vec<Arc<Message>> = (0..400)
        .map(|n| Arc::new(Message::user(&format!("第{n}句：{}", "潮汐".repeat(40)))))
        .collect();
    let topic = research_topic(&long, "now?");
    assert!(topic.len() < 30_000 && topic.contains("第399句") && !topic.contains("第1句"));
}

/// DS11: a turn that is too long is passed on in part, and the conversation is not lost.
#[test]
fn ds11_a_long_turn_is_told_in_part() {
    let before = [Message::user("q1"), Message::assistant(&"潮汐很大。".repeat(20_000))];
    let topic = research_topic(&before.map(Arc::new), "and then?");
    assert!(topic.starts_with("Assistant: 潮汐很大。"), "{topic}");
    assert!(topic.contains("characters left out") && topic.len() < 30_000, "{}", topic.len());
}

/// DS6: a query that does not differ in its letters and numbers is not asked twice, and none is endless.
#[test]
fn ds6_queries_are_alike_but_for_their_dress() {
    let mut state = DeepSearchState { max_research_loops: 2, ..DeepSearchState::default() };
    state.apply(Update::Research(vec![researched(1, "杭州 潮汐表 2024", &[])]));
    let long = "潮".repeat(5_000);
    let follow_ups = ["杭州潮汐表２０２４？", "C++", "C#", "why, then", "Why then?", &long];
    let reflection = ReflectionState {
        is_sufficient: false,
        knowledge_gap: String::new(),
        follow_up_queries: follow_ups.map(str::to_owned).to_vec(),
        research_loop_count: 1,
        number_of_ran_queries: 1,
    };
    let Route::WebResearch(next) = state.route(&reflection, 9) else { panic!("nothing to follow") };
    let words: Vec<&str> = next.iter().map(|query| query.query.as_str()).collect();
    assert_eq!(words, ["C++", "C#", "why, then", &"潮".repeat(300)]);
}
