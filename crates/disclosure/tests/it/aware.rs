//! The fold policy `cache-aware`: when blocks leave, what it costs, and what the model sees.

use crate::play::{Play, everything};
use foldback_core::{
    Budget, Estimate, Message, Prices, Prompt, Timestamp, ToolCall, ToolCallId, check_request,
    message_tokens,
};
use foldback_disclosure::{CacheAware, FoldPolicy, LiveView, ViewConfig};
use foldback_testkit::effort;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn aware() -> ViewConfig {
    ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(CacheAware::default()))
}

/// A text of about this many tokens that no other `n` has.
fn text(n: usize, tokens: usize) -> String {
    let words = (0..tokens.max(1)).map(|word| ["red", "green", "blue", "gray"][(n + word) % 4]);
    format!("{n} {}", words.collect::<Vec<_>>().join(" "))
}

/// A call and its result of about this many tokens.
fn unit(play: &mut Play, n: usize, tokens: usize) {
    let id = format!("c{n}");
    let arguments = format!("{{\"path\": \"src/part_{n}.rs\"}}");
    let calls = vec![ToolCall::new(&id, "read", &arguments)];
    play.append(Message::calls(&format!("Now part {n}."), calls), None);
    play.append(Message::tool_result(&ToolCallId::new(&id), &text(n, tokens)), None);
}

/// A provider's bill, by the same estimate for both sides. That a cache keeps whole runs of tokens is
/// ignored: the end of a run may favour one prompt over another.
#[derive(Default)]
struct Bills {
    before: Vec<Arc<Message>>,
    tools: usize,
    cost: f64,
}

impl Bills {
    /// The tokens of the tool in its shortest form, as the chat-completions API takes it, counted with o200k.
    const LOAD: u64 = 35;

    fn call(&mut self, prompt: &Prompt) {
        let stable = prompt.messages.len() - prompt.volatile;
        let tools = if prompt.tools.is_empty() { 0 } else { Self::LOAD };
        let same = prompt.messages.iter().zip(&self.before).take_while(|(a, b)| a == b).count();
        let same = same.min(stable);
        let shared = match prompt.tools.len() == self.tools {
            true => tools + tokens(&prompt.messages[..same]),
            false => 0,
        };
        let all = tools + tokens(&prompt.messages[..stable]);
        let cached = |tokens: u64| if tokens < 1_024 { 0 } else { tokens };
        let (kept, prices) = (cached(all), Prices::default());
        let read = cached(shared).min(kept);
        self.cost += prices.read * read as f64
            + prices.write * (kept - read) as f64
            + prices.plain * (all - kept + tokens(&prompt.messages[stable..])) as f64;
        self.before = prompt.messages[..stable].to_vec();
        self.tools = prompt.tools.len();
    }
}

fn tokens(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(&Estimate, message) as u64).sum()
}

/// Plays a conversation of units, closing a block where `closes` says so, and compares the bill with
/// that of keeping everything, at every call. It may be over 2 % more expensive by the cost of a fold
/// that a high mark forces, and by the cost of the tool if a part that is too large to be shown
/// forces it, in a view of the same size that has no light form: both are necessary at any cost.
/// Returns what was forced.
fn play_out(head: usize, sizes: &[usize], closes: &[bool]) -> Result<f64, String> {
    let (tokens_max, fresh_tokens) = (32_000, 8_000);
    let mut play = Play::new(aware());
    play.append(Message::system(&text(0, head)), None);
    play.append(Message::user("Do it."), None);
    let (mut ours, mut all) = (Bills::default(), Bills::default());
    let (mut moves, mut view, mut forced) = (0, 0, 0.0);
    for (n, size) in sizes.iter().enumerate() {
        let prompt = play.prompt();
        let all_of_it = full(&play).messages;
        let new = &all_of_it[all.before.len()..];
        let each = |messages: &[Arc<Message>]| -> Vec<u64> {
            messages.iter().map(|message| tokens(std::slice::from_ref(message))).collect()
        };
        let is_too_large = each(new).iter().any(|tokens| *tokens >= fresh_tokens);
        // Parts that are stored outside have a light form of less than 60 tokens.
        let results = each(&all_of_it[1..]).into_iter();
        let lightest: u64 = results.map(|tokens| if tokens > 510 { 60 } else { tokens }).sum();
        let is_much = head as u64 + lightest > fresh_tokens;
        let has_to =
            view + tokens(new) > tokens_max || (ours.tools == 0 && is_too_large && is_much);
        let before = (ours.cost, all.cost);
        ours.call(&prompt);
        all.call(&full(&play));
        if has_to && play.view.prefix_moves() > moves {
            forced += ((ours.cost - before.0) - (all.cost - before.1)).max(0.0);
        }
        (moves, view) = (play.view.prefix_moves(), tokens(&prompt.messages[1..]));
        if ours.cost > 1.02 * all.cost + forced + 1.0 {
            return Err(format!(
                "call {n}: {:.0} against {:.0}, {forced:.0} of it forced",
                ours.cost, all.cost
            ));
        }
        unit(&mut play, n + 1, *size);
        if closes[n % closes.len()] {
            play.fold(0);
        }
    }
    Ok(forced)
}

/// LV4: a part that is too large to be shown needs the tool, which precedes everything. It does not
/// have to be expensive, though nothing else has left by then and no block may be closed.
#[test]
fn lv4_a_tool_that_comes_late_is_not_dear() {
    let after_three = [false, false, false, true];
    let sizes = [169, 224, 6_941, 3_685, 1_597, 7_959, 1];
    assert_eq!(play_out(462, &sizes, &after_three), Ok(0.0));
    let sizes = [vec![1_100; 14], vec![9_000, 200, 200]].concat();
    for closes in [[false; 4], [true; 4], after_three] {
        assert_eq!(play_out(1_200, &sizes, &closes), Ok(0.0), "{closes:?}");
    }
}

fn full(play: &Play) -> Prompt {
    let messages = play.shown.iter().map(|shown| Arc::clone(&shown.message)).collect();
    Prompt { messages, ..Prompt::default() }
}

/// LV4: while everything is in view, the prompt is the recorded messages and nothing else.
#[test]
fn lv4_a_short_session_is_sent_as_it_is() {
    let mut play = Play::new(aware());
    play.append(Message::system("Be brief."), None);
    play.append(Message::user("修复 parser.rs 的错误"), None);
    for n in 0..4 {
        unit(&mut play, n, 20);
        if n % 2 == 1 {
            play.fold(0);
        }
    }
    let prompt = play.prompt();
    assert_eq!(prompt.messages, full(&play).messages);
    assert!(prompt.tools.is_empty());
    assert_eq!((prompt.volatile, prompt.window), (0, 9));
}

/// LV4: several blocks fold at once; between folds the prompt only grows; the marks are kept.
#[test]
fn lv4_blocks_fold_together_and_the_view_keeps_its_marks() {
    let mut play = Play::new(aware());
    play.append(Message::system(&text(0, 1_500)), None);
    play.append(Message::user("Fix the parser."), None);
    let (mut moves, mut folded, mut before) = (0, Vec::new(), Vec::new());
    for n in 0..200 {
        let prompt = play.prompt();
        let stable = prompt.messages[..prompt.messages.len() - prompt.volatile].to_vec();
        if play.view.prefix_moves() == moves {
            assert!(stable.starts_with(&before), "call {n}");
        }
        moves = play.view.prefix_moves();
        before = stable;
        assert!(prompt.window <= aware().window_bound());
        assert!(prompt.tokens < 40_000, "call {n}: {}", prompt.tokens);
        unit(&mut play, n, 150);
        if play.view.folds() > folded.last().copied().unwrap_or(0) {
            folded.push(play.view.folds());
        }
        if n % 2 == 1 {
            play.fold(0);
        }
    }
    let blocks = play.blocks.len() as u64;
    let last = folded.last().copied().unwrap_or(0);
    assert!(last > blocks / 2, "{last} of {blocks} blocks folded");
    assert!((folded.len() as u64) < last / 2, "{} folds for {last} blocks", folded.len());
    let shown = everything(&play.prompt());
    assert!(shown.contains("Fix the parser.") && !shown.contains("src/part_3.rs"));
}

/// LV12: what a provider no longer has in its cache is written again in any case, so blocks leave as soon as a pause
/// outlives the cache, and no earlier.
#[test]
fn lv12_a_pause_that_outlives_the_cache_folds() {
    let folded = |life: Option<u64>, pause: i64| {
        let settings = CacheAware::default().with_cache_life(life.map(Duration::from_secs));
        let policy = FoldPolicy::CacheAware(settings);
        let mut play = Play::new(ViewConfig::default().with_fold_policy(policy));
        let at = |seconds: i64| Timestamp(1_700_000_000_000 + 1_000 * seconds);
        play.append(Message::user("修复 parser.rs 的错误").at(at(0)), None);
        for n in 0..30 {
            unit(&mut play, n, 450);
            play.append(Message::assistant("Next.").at(at(10 + 10 * n as i64)), None);
            play.fold(0);
        }
        let before = play.prompt().window;
        play.append(Message::user("And now?").at(at(290 + pause)), None);
        let prompt = play.prompt();
        let restored = play.restored().prompt(&Budget::default(), &Estimate);
        assert_eq!(everything(&restored), everything(&prompt));
        prompt.window < before
    };
    assert!(!folded(Some(300), 299));
    assert!(folded(Some(300), 300));
    assert!(!folded(Some(3_600), 300));
    assert!(!folded(None, 100_000));
}

/// LV4: if nobody answers (a meeting, say), blocks fold as well.
#[test]
fn lv4_people_among_themselves_fold_too() {
    let mut play = Play::new(aware());
    for n in 0..900 {
        play.append(Message::user(&text(n, 12)), None);
        if n % 6 == 5 {
            play.fold(2);
        }
        let prompt = play.prompt();
        assert!(prompt.window <= aware().window_bound(), "{n}: {}", prompt.window);
    }
    assert!(play.view.folds() > 100 && play.view.prefix_moves() < 60, "{:?}", play.view);
}

/// LV4, BS1: a large result is whole in the prompt in which it is new, after the cached part, and
/// light from the next call on.
#[test]
fn lv4_a_large_result_is_seen_once() {
    let mut play = Play::new(aware());
    play.append(Message::system(&text(0, 2_500)), None);
    play.append(Message::user("Read them."), None);
    assert_eq!(play.prompt().tools.len(), 1, "declared before anything is cached");
    unit(&mut play, 1, 3_000);
    let prompt = play.prompt();
    assert_eq!(prompt.volatile, 1);
    assert_eq!(prompt.messages[3].text(), text(1, 3_000));
    unit(&mut play, 2, 30);
    let prompt = play.prompt();
    assert_eq!(prompt.volatile, 0);
    assert!(prompt.messages[3].text().starts_with("[stored at store://1-"));
    assert_eq!(play.view.prefix_moves(), 0);
}

/// LV10: a failure that is folded away is listed in the ledger with the place of its text.
#[test]
fn lv10_a_folded_failure_is_told() {
    let marks = CacheAware::default().with_most(12, 2_000).unwrap();
    let mut play = Play::new(ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(marks)));
    play.append(Message::user("build it"), None);
    let call = ToolCall::new("a", "bash", "{\"command\":\"make\"}");
    play.append(Message::calls("", vec![call]), None);
    play.append(Message::tool_result(&ToolCallId::new("a"), "Error: no rule"), None);
    play.fold(0);
    for n in 0..8 {
        unit(&mut play, n, 10);
        play.fold(0);
    }
    let prompt = play.prompt();
    let told = everything(&prompt);
    assert!(told.contains("bash on make failed: Error: no rule (load b_001)"), "{told}");
    assert!(prompt.window <= 12);
}

/// LV10: calls in blocks that left are listed in the ledger, each once.
#[test]
fn lv10_folded_calls_are_told_once() {
    let marks = CacheAware::default().with_most(12, 2_000).unwrap();
    let mut play = Play::new(ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(marks)));
    play.append(Message::user("修复它"), None);
    for n in 0..40 {
        let arguments = match n % 4 {
            0 => format!(r#"{{"command":"运行 part_{n}.py --all"}}"#),
            _ => r#"{"command":"grep -n \"x\" a.py"}"#.to_owned(),
        };
        let id = format!("c{n}");
        play.append(Message::calls("", vec![ToolCall::new(&id, "bash", &arguments)]), None);
        play.append(Message::tool_result(&ToolCallId::new(&id), "ok"), None);
        play.fold(0);
        let (prompt, again) = (play.prompt(), play.restored());
        let texts: Vec<_> = prompt.messages.iter().map(|message| message.text()).collect();
        let told =
            |line: &str| texts.iter().flat_map(|text| text.lines()).filter(|l| *l == line).count();
        for earlier in (0..n).step_by(4) {
            let called = format!("运行 part_{earlier}.py --all");
            assert!(everything(&prompt).contains(&called), "{n}: {called}");
            assert!(told(&format!("- bash {called}")) <= 1, "{n}: {called}");
        }
        assert!(told(r#"- bash grep -n "x" a.py"#) <= 1, "{n}: {texts:?}");
        assert_eq!(everything(&prompt), everything(&again.prompt(&Default::default(), &Estimate)));
    }
    assert!(play.view.folds() > 20);
}

/// TD3: a todo continues under the other fold policy, and back, with nothing lost from view but by folds.
#[test]
fn td3_fold_policies_are_exchanged() {
    let mut play = Play::new(ViewConfig::default());
    play.say("user: the task\n");
    for n in 0..9 {
        unit(&mut play, n, 30);
        if n % 2 == 1 {
            play.fold(0);
        }
    }
    let others = [aware(), ViewConfig::default(), aware()];
    for (n, config) in (20..).zip(others) {
        play.config = config.clone();
        play.view = play.restored();
        let prompt = play.prompt();
        assert_eq!(check_request(prompt.messages.iter().map(Arc::as_ref)), []);
        let shown = everything(&prompt);
        assert!(shown.contains("the task") && shown.contains("b_t_001"), "{shown}");
        assert_eq!(prompt.tools.len(), 3, "what the history may name stays declared");
        assert!(prompt.window <= config.window_bound());
        unit(&mut play, n, 30);
        play.fold(0);
        let again: LiveView = play.restored();
        assert_eq!(
            everything(&play.prompt()),
            everything(&again.prompt(&Default::default(), &Estimate))
        );
    }
}

#[test]
fn prices_and_marks_out_of_bounds_say_so() {
    let prices = Prices { read: f64::NAN, ..Prices::default() };
    let wrong = CacheAware::default().with_prices(prices).unwrap_err().to_string();
    assert!(wrong.contains("read NaN"), "{wrong}");
    let wrong = CacheAware::default().with_most(3, 9_000).unwrap_err().to_string();
    assert_eq!(wrong, "messages_max is 3, but it has to be at least 12 messages");
    let wrong = CacheAware::default().with_most(30, 9).unwrap_err().to_string();
    assert_eq!(wrong, "tokens_max is 9, but it has to be at least 2,000 tokens");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: effort(96), ..ProptestConfig::default() })]

    /// LV4: at whatever call a conversation ends, it was never over 2 % more expensive than keeping
    /// everything, except for what was forced. Blocks close often or seldom.
    #[test]
    fn lv4_it_never_costs_two_per_cent_more_than_keeping_everything(
        head in 0_usize..3_000,
        sizes in proptest::collection::vec(prop_oneof![
            6 => 1_usize..300,
            3 => 300_usize..2_000,
            1 => 2_000_usize..12_000,
        ], 1..90),
        closes in (0.02..0.5).prop_flat_map(|often| {
            proptest::collection::vec(prop::bool::weighted(often), 90)
        }),
    ) {
        let played = play_out(head, &sizes, &closes);
        prop_assert!(played.is_ok(), "{played:?}");
    }
}
