//! The prefix cache, and where its marks are set.

use foldback_core::{
    Content, Estimate, Message, Part, Prices, ToolCall, ToolCallId, ToolDefinition,
};
use foldback_llm::{
    AllowedTools, CACHE_BREAKPOINT, CacheSettings, CacheUse, ChatModel, ChatRequest, MarkLimits,
    PrefixCache, RequestTokens, ScriptedModel, ToolChoice, place_cache_marks,
};
use foldback_tool::canonical_tools;
use proptest::prelude::*;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new(messages)
}

fn tokens(n: u32) -> Vec<u32> {
    (0..n).collect()
}

fn call(cache: &mut PrefixCache, tokens: &[u32]) -> (u64, u64, u64) {
    let CacheUse { read, written, plain } = cache.call("t", tokens, tokens.len(), NOW);
    (read, written, plain)
}

/// MC5: only full blocks of 16 are kept, and a block counts with everything before it.
#[test]
fn mc5_full_blocks_are_chained() {
    let mut cache = PrefixCache::new(CacheSettings::default());
    assert_eq!(call(&mut cache, &tokens(15)), (0, 0, 15));
    assert_eq!(call(&mut cache, &tokens(33)), (0, 32, 1));
    assert_eq!(call(&mut cache, &tokens(48)), (32, 16, 0));
    // The same tokens after another beginning are other blocks.
    let mut other = tokens(48);
    other[0] = 7;
    assert_eq!(call(&mut cache, &other), (0, 48, 0));
    let mut late = tokens(48);
    late[40] = 7;
    assert_eq!(call(&mut cache, &late), (32, 16, 0));
    // If a prompt is cached whole, the last block is computed again for its last token, and is not written again.
    assert_eq!(call(&mut cache, &tokens(48)), (32, 0, 16));
    assert_eq!(call(&mut cache, &tokens(49)), (48, 0, 1));
    assert_eq!(call(&mut cache, &[]), (0, 0, 0));
}

/// MC5: what one tenant wrote, another does not read.
#[test]
fn mc5_tenants_share_nothing() {
    let mut cache = PrefixCache::new(CacheSettings::default());
    cache.call("一", &tokens(64), 64, NOW);
    assert_eq!(cache.call("二", &tokens(65), 65, NOW).read, 0);
    assert_eq!(cache.call("一", &tokens(65), 65, NOW).read, 64);
}

/// MC5: the least recently used leaves first, and of one prompt its end first.
#[test]
fn mc5_the_least_recently_used_leaves() {
    let mut cache = PrefixCache::new(CacheSettings::server(4));
    let (a, b) = (tokens(65), (1_000..1_033).collect::<Vec<_>>());
    assert_eq!(call(&mut cache, &a), (0, 64, 1));
    assert_eq!(call(&mut cache, &b), (0, 32, 1));
    assert_eq!(cache.blocks(), 4);
    assert_eq!(call(&mut cache, &a), (32, 32, 1), "its first two blocks are still there");
    assert_eq!(call(&mut cache, &b), (0, 32, 1), "pushed out");
    let mut small = PrefixCache::new(CacheSettings::server(2));
    assert_eq!(call(&mut small, &a), (0, 32, 33), "what finds no room is not written");
    assert_eq!(
        (call(&mut small, &a).0, small.blocks()),
        (32, 2),
        "of a long prompt, the beginning"
    );
    let mut none = PrefixCache::new(CacheSettings::server(0));
    assert_eq!(call(&mut none, &a), (0, 0, 65));
    assert_eq!(call(&mut none, &a), (0, 0, 65));
}

/// A request of one message of this many tokens each, marked after some.
fn marked(lengths: &[usize], marks: &[usize], choice: &ToolChoice) -> RequestTokens {
    let messages = lengths.iter().enumerate().map(|(at, n)| match at {
        0 => Message::system(&"rule ".repeat(*n)),
        _ => Message::user(&format!("{at} {}", "word ".repeat(*n))),
    });
    let (cache_marks, tool_choice) = (marks.to_vec(), choice.clone());
    let request =
        request(messages.collect()).with_cache_marks(cache_marks).with_tool_choice(tool_choice);
    RequestTokens::of(&request, &Estimate)
}

/// MC3: a prefix that is unread for five minutes is gone; reading keeps it. The same prompt again is read whole.
#[test]
fn mc3_what_nobody_reads_expires() {
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let mut cache = PrefixCache::new(CacheSettings::anthropic(1_024));
    let prompt = marked(&[2_000, 10], &[0], &ToolChoice::Auto);
    let system = prompt.ends[0] as u64;
    let mut used = |at| {
        let used = cache.request("t", &prompt, at);
        assert_eq!(used.tokens(), prompt.ids.len() as u64);
        (used.read, used.written)
    };
    assert_eq!(used(minutes(0)), (0, system));
    assert_eq!(used(minutes(4)), (system, 0));
    assert_eq!(used(minutes(8)), (system, 0), "each reading begins the five minutes anew");
    assert_eq!(used(minutes(13)), (0, system));
    assert_eq!(used(minutes(13)), (system, 0));
    assert_eq!(cache.request("other", &prompt, minutes(13)).read, 0);
}

/// MC3: what has expired leaves, whether there is a bound or not.
#[test]
fn mc3_what_expired_takes_no_room() {
    let mut cache = PrefixCache::new(CacheSettings::openai());
    for hour in 0..10 {
        let prompt: Vec<u32> = (hour * 10_000..hour * 10_000 + 1_280).collect();
        cache.call("t", &prompt, 1_280, Duration::from_secs(3_600 * u64::from(hour)));
        assert_eq!(cache.blocks(), 10);
    }
}

/// MC3: a prefix of fewer than 1,024 tokens is neither written nor read.
#[test]
fn mc3_short_prefixes_are_not_kept() {
    let mut cache = PrefixCache::new(CacheSettings::openai());
    assert_eq!(call(&mut cache, &tokens(1_023)), (0, 0, 1_023));
    assert_eq!(call(&mut cache, &tokens(1_160)), (0, 1_152, 8), "in steps of 128");
    let mut other = tokens(1_160);
    other[1_000] = 0;
    assert_eq!(call(&mut cache, &other).0, 0, "the common part is too short");
    assert_eq!(call(&mut cache, &tokens(1_200)).0, 1_152);
    let mut cache = PrefixCache::new(CacheSettings::anthropic(1_024));
    let short = marked(&[500, 10], &[0, 1], &ToolChoice::Auto);
    assert_eq!(cache.request("t", &short, NOW).written, 0);
    assert_eq!(cache.request("t", &short, NOW).read, 0);
}

/// MC3: if prefixes end at marks, one is found from a mark within 20 blocks and nowhere else: an
/// unmarked prompt reads nothing, and a fixed mark alone does not follow the conversation.
#[test]
fn mc3_a_prefix_is_found_from_a_mark() {
    let auto = ToolChoice::Auto;
    let lengths = |messages: usize| [vec![2_000], vec![50; messages]].concat();
    let mut cache = PrefixCache::new(CacheSettings::anthropic(1_024));
    let first = marked(&lengths(3), &[0, 3], &auto);
    assert_eq!(cache.request("t", &first, NOW).read, 0);
    let ends = |tokens: &RequestTokens, at: usize| tokens.ends[at] as u64;
    let read = |messages: usize, marks: &[usize]| {
        cache.clone().request("t", &marked(&lengths(messages), marks, &auto), NOW).read
    };
    assert_eq!(read(22, &[22]), ends(&first, 3), "20 blocks from 22 back, its own the first");
    assert_eq!(read(23, &[23]), 0, "one too many");
    assert_eq!(read(23, &[3, 23]), ends(&first, 3));
    assert_eq!(read(23, &[0, 23]), ends(&first, 0));
    assert_eq!(read(4, &[]), 0);
    assert_eq!(read(2, &[2]), ends(&first, 0), "no mark stood behind the first or second message");
}

/// MC3: another choice of tools leaves only the standing instructions in Anthropic's cache; a set
/// of allowed tools, which it is not sent, changes nothing.
#[test]
fn mc3_another_choice_of_tools_is_another_prefix() {
    let ask = |choice: &ToolChoice| marked(&[2_000, 50, 50], &[0, 2], choice);
    let some = |names: &[&str], required| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
    };
    let auto = ask(&ToolChoice::Auto);
    let (standing, whole) = (auto.ends[0] as u64, auto.ends[2] as u64);
    for (choice, read) in [
        (ToolChoice::Auto, whole),
        (some(&["a", "b"], false), whole),
        (ToolChoice::Required, standing),
        (some(&["a", "b"], true), standing),
        (some(&["查"], true), standing),
        (ToolChoice::ReplyOnly, standing),
    ] {
        let mut cache = PrefixCache::new(CacheSettings::anthropic(1_024));
        cache.request("t", &auto, NOW);
        let used = cache.request("t", &ask(&choice), NOW);
        assert_eq!((used.read, used.written), (read, whole - read), "{choice:?}");
        let mut server = PrefixCache::new(CacheSettings::openai());
        server.request("t", &auto, NOW);
        assert_eq!(server.request("t", &ask(&choice), NOW).written, 0, "{choice:?}");
    }
}

/// MC5: the report has the hit rate and the cost by the prices given.
#[test]
fn mc5_the_report_has_rate_and_cost() {
    let mut sum = CacheUse { read: 800, written: 100, plain: 60 };
    sum += CacheUse { read: 0, written: 0, plain: 40 };
    assert!((sum.hit_rate() - 0.8).abs() < 1e-9);
    assert!((sum.cost(Prices::default()) - (80.0 + 125.0 + 100.0)).abs() < 1e-9);
    assert!((sum.uncached_cost(Prices::default()) - 1_000.0).abs() < 1e-9);
    assert!(CacheUse::default().hit_rate().abs() < 1e-9);
    let usage = sum.usage(7);
    assert_eq!((usage.input, usage.output), (1_000, 7));
    assert_eq!((usage.cached_read, usage.cached_write), (800, 100));
}

proptest! {
    /// MC5: against the plain rule: what is read is the longest beginning, in whole blocks, that
    /// some request of the same tenant began with.
    #[test]
    fn mc5_reads_what_a_search_over_all_requests_finds(
        requests in prop::collection::vec((0..2_usize, prop::collection::vec(0..2_u32, 0..40)), 1..20),
        block in 1..6_usize,
    ) {
        let mut cache = PrefixCache::new(CacheSettings::default().with_block(block));
        for (at, (tenant, tokens)) in requests.iter().enumerate() {
            let common = |other: &Vec<u32>| {
                let same = other.iter().zip(tokens).take_while(|(a, b)| a == b).count();
                same / block * block
            };
            let before = requests[..at].iter().filter(|(other, _)| other == tenant);
            let longest = before.map(|(_, other)| common(other)).max().unwrap_or(0);
            let expected = longest.min(tokens.len().saturating_sub(1) / block * block);
            let read = cache.call(["a", "b"][*tenant], tokens, tokens.len(), NOW);
            prop_assert_eq!(read.read, expected as u64);
            prop_assert_eq!(read.tokens(), tokens.len() as u64);
        }
    }

    /// MC5: a full cache never holds more than its capacity, and reads no more than a larger one.
    #[test]
    fn mc5_less_room_reads_no_more(
        requests in prop::collection::vec(prop::collection::vec(0..2_u32, 0..40), 1..30),
        capacity in 0..12_usize,
    ) {
        let settings = CacheSettings::default().with_block(4);
        let mut unbounded = PrefixCache::new(settings);
        let mut bounded = PrefixCache::new(settings.with_capacity(capacity));
        for tokens in &requests {
            let most = unbounded.call("t", tokens, tokens.len(), NOW).read;
            prop_assert!(bounded.call("t", tokens, tokens.len(), NOW).read <= most);
            prop_assert!(bounded.blocks() <= capacity);
        }
    }
}

fn tool(name: &str) -> ToolDefinition {
    let parameters = r#"{"type":"object","properties":{"order_id":{"type":"string"}}}"#.to_owned();
    ToolDefinition { name: name.to_owned(), description: "查询。".repeat(40), parameters }
}

/// MC2: tools in another order each time leave a cache almost nothing; in one order, everything.
#[test]
fn mc2_shuffled_tools_are_what_caches_die_of() {
    let tools: Vec<_> = (0..30).map(|n| tool(&format!("browser_{n}"))).collect();
    let mut hit_rates = Vec::new();
    for in_order in [false, true] {
        let mut cache = PrefixCache::new(CacheSettings::openai());
        let mut sum = CacheUse::default();
        let mut messages = vec![Message::system(&"rule ".repeat(500))];
        for turn in 0..20 {
            messages.push(Message::user(&format!("turn {turn}: {}", "words ".repeat(20))));
            // As an unordered map returns them: another one is first each time.
            let mut tools = tools.clone();
            tools.rotate_left(turn * 7 % 30);
            let tools = if in_order { canonical_tools(&tools) } else { tools };
            let request = request(messages.clone()).with_tools(tools);
            let tokens = RequestTokens::of(&request, &Estimate);
            sum += cache.call("t", &tokens.ids, tokens.kept, NOW);
        }
        hit_rates.push(sum.hit_rate());
    }
    assert!(hit_rates[0] < 0.01, "{hit_rates:?}");
    assert!(hit_rates[1] > 0.93, "{hit_rates:?}");
}

/// A conversation of `turns` turns, each a call with `results` results.
fn conversation(turns: usize, results: usize) -> Vec<Message> {
    let mut messages = vec![Message::system("rules"), Message::user("go")];
    for turn in 0..turns {
        let ids: Vec<_> = (0..results).map(|n| ToolCallId::new(&format!("c{turn}_{n}"))).collect();
        let calls = ids.iter().map(|id| ToolCall::new(id.as_str(), "t", "{}")).collect();
        messages.push(Message::calls("", calls));
        messages.extend(ids.iter().map(|id| Message::tool_result(id, "done")));
    }
    messages
}

/// MC3: always one at the end of the system prompt and one at the tail, before the volatile suffix.
#[test]
fn mc3_marks_stand_at_the_end_of_the_system_prompt_and_roll_at_the_tail() {
    let mut messages = conversation(1, 1);
    let placed = place_cache_marks(request(messages.clone()), MarkLimits::ANTHROPIC);
    assert_eq!(placed.cache_marks, [0, 3]);
    messages.extend(conversation(2, 1).drain(4..));
    messages.push(Message::user("todo: 1. 查询 2. 退款"));
    let longer = request(messages).with_volatile(1);
    let placed = place_cache_marks(longer, MarkLimits::ANTHROPIC);
    assert_eq!((placed.cache_marks.as_slice(), placed.volatile), (&[0, 5][..], 1));
    assert_eq!(placed.messages.len(), 7, "nothing is added");
    let again = place_cache_marks(placed.clone(), MarkLimits::ANTHROPIC);
    assert_eq!(again.cache_marks, placed.cache_marks);
    let nothing = place_cache_marks(ChatRequest::default(), MarkLimits::ANTHROPIC);
    assert!(nothing.cache_marks.is_empty());
    let only_volatile = request(vec![Message::user("u")]).with_volatile(5);
    assert!(place_cache_marks(only_volatile, MarkLimits::ANTHROPIC).cache_marks.is_empty());
}

/// MC3: the marker of the design document, after its lead-in, becomes a mark and is not sent; in
/// any other message it is text.
#[test]
fn mc3_the_marker_becomes_a_mark() {
    let system = format!(
        "你是一个数据分析智能体。\n# 固定引导语\n以下是当前任务的动态上下文:\n{CACHE_BREAKPOINT}\n用户需求:计算华东地区Q3销售额"
    );
    let said = format!("what does {CACHE_BREAKPOINT} mean?");
    let messages = vec![Message::system(&system), Message::user(&said)];
    let placed = place_cache_marks(request(messages), MarkLimits::ANTHROPIC);
    let texts: Vec<_> = placed.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(
        texts,
        [
            "你是一个数据分析智能体。\n# 固定引导语\n以下是当前任务的动态上下文:",
            "用户需求:计算华东地区Q3销售额",
            &said,
        ]
    );
    assert_eq!(placed.cache_marks, [0, 1, 2]);
}

/// MC3: markers at the edges, several of them, and beside parts that are not text.
#[test]
fn mc3_markers_may_stand_anywhere_in_instructions() {
    let place = |messages| {
        let placed = place_cache_marks(request(messages), MarkLimits { most: 9, reach: 20 });
        let texts: Vec<_> = placed.messages.iter().map(|m| m.text().into_owned()).collect();
        (texts, placed.cache_marks)
    };
    let mark = CACHE_BREAKPOINT;
    let (texts, marks) = place(vec![
        Message::system(&format!("{mark}a {mark}\n{mark} b{mark}")),
        Message::user("u"),
    ]);
    assert_eq!((texts.join("|").as_str(), marks.as_slice()), ("a|b|u", &[0, 1, 2][..]));
    let code = format!("rules:\n  {mark}  \n\n    - 缩进\n    - two");
    assert_eq!(place(vec![Message::system(&code)]).0, ["rules:", "    - 缩进\n    - two"]);
    let alone = vec![Message::system("a"), Message::system(mark), Message::system("b")];
    let (texts, marks) = place(alone);
    assert_eq!((texts.join("|").as_str(), marks.as_slice()), ("a|b", &[0, 1][..]));
    let image = Part::Other(r#"{"type":"image_url","image_url":{"url":"data:,"}}"#.into());
    let parts = vec![Part::Text("a".to_owned()), image, Part::Text(format!("{mark}b"))];
    let role = foldback_core::Role::System;
    let message = Message::compose(role, Content::Parts(parts), Vec::new(), None);
    let (texts, marks) = place(vec![message, Message::user("u")]);
    assert_eq!((texts.join("|").as_str(), marks.as_slice()), ("a|b|u", &[0, 1, 2][..]));
}

/// MC3: no provider gets more marks than it accepts, and the end of the system prompt and the tail
/// are never among those that are left out.
#[test]
fn mc3_limits_are_kept() {
    let system = ["a", "b", "c", "d", "e"].join(CACHE_BREAKPOINT);
    let mut messages = vec![Message::system(&system)];
    messages.extend(conversation(40, 1).drain(1..));
    let asked = request(messages).with_cache_marks(vec![3, 7, 9, 200]);
    let placed = place_cache_marks(asked, MarkLimits::ANTHROPIC);
    let tail = placed.messages.len() - 1;
    assert_eq!(placed.cache_marks, [2, 3, 4, tail], "the later markers first");
    for most in 0..4 {
        let fewer = place_cache_marks(placed.clone(), MarkLimits { most, reach: 20 });
        let mut expected = [4, tail, 3, 2][..most].to_vec();
        expected.sort_unstable();
        assert_eq!(fewer.cache_marks, expected);
    }
}

/// MC3: a turn of many results leaves a mark within reach of the tail of the previous call.
#[test]
fn mc3_a_wide_turn_stays_within_reach() {
    let messages = conversation(2, 30);
    // After the results of the first turn, where the tail of the previous call was.
    let placed = place_cache_marks(request(messages), MarkLimits::ANTHROPIC);
    assert_eq!(placed.cache_marks, [0, 32, 63]);
    // If a prefix is found only at a mark, that one keeps its mark in every turn.
    let narrow = place_cache_marks(request(conversation(2, 1)), MarkLimits::OPENAI);
    assert_eq!(narrow.cache_marks, [0, 3, 5]);
}

/// MC3, MC5: what a scripted model reports as read is what the previous calls had kept.
#[tokio::test(start_paused = true)]
async fn mc5_a_scripted_model_tells_what_its_cache_served() {
    let model = ScriptedModel::answering(|_| "ok".into())
        .with_cache(PrefixCache::new(CacheSettings::anthropic(1_024)));
    let mut messages = vec![Message::system(&"standing rule ".repeat(800))];
    let mut last = 0;
    for turn in 0..5 {
        messages.push(Message::user(&format!("第{turn}轮 {}", "words ".repeat(100))));
        let todo = Message::user(&format!("todo {turn}"));
        let all = messages.iter().cloned().chain([todo]).collect();
        let asked = request(all).with_volatile(1);
        let asked = place_cache_marks(asked, MarkLimits::ANTHROPIC);
        let usage = model.complete(&asked).await.unwrap().usage;
        assert_eq!(usage.cached_read, last, "turn {turn}: {usage:?}");
        last = usage.cached_read + usage.cached_write;
        assert!(last > 1_500 && usage.input > last);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    tokio::time::sleep(Duration::from_secs(240)).await;
    let asked = place_cache_marks(request(messages), MarkLimits::ANTHROPIC);
    let usage = model.complete(&asked).await.unwrap().usage;
    assert_eq!(usage.cached_read, 0, "five minutes after the last call");
    assert!(usage.cached_write > 1_500);
}
