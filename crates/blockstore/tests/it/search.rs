//! TL1, TL7: the right block is found, and every hit says why.

use crate::fixture::{Bag, MODEL, Writer, ask, numbers};
use foldback_blockstore::{Hit, Ranking, SearchRequest, VectorSide};
use foldback_core::{BlockType, Embedder, Message, Timestamp, ToolCall};

/// Asks by words and meaning; the best block is expected.
#[track_caller]
fn check(writer: &Writer, question: &str, best: u32) {
    let hits = ask(&writer.store, &writer.todo, question, 3);
    assert_eq!(numbers(&hits).first(), Some(&best), "{question}: {}", shown(&hits));
}

fn shown(hits: &[Hit]) -> String {
    hits.iter().map(|hit| format!("\n  {} {hit}", hit.block.header.block_id)).collect()
}

fn by_words(writer: &Writer, question: &str, k: usize) -> Vec<u32> {
    let request = SearchRequest::new(question).k(k);
    numbers(&writer.store.searcher(&writer.todo).unwrap().search(&request).unwrap())
}

#[test]
fn tl1_the_block_that_says_it_comes_first() {
    let mut writer = Writer::in_memory();
    writer.lines(&[
        "We planned the trip to Lisbon in May, with a rented car.",
        "The dog had to see the vet because of its paw.",
        "Dinner was pasta with basil, and a film afterwards.",
    ]);
    check(&writer, "Where did we plan to travel with the car?", 1);
    check(&writer, "why was the vet needed", 2);
    check(&writer, "what was for DINNER?", 3);
}

#[test]
fn bl10_chinese_questions_find_chinese_blocks() {
    let mut writer = Writer::in_memory();
    writer.embedder = None;
    writer.lines(&[
        "我们把数据库迁移到了新的服务器，耗时三个小时。",
        "用户要求修改登录页面的颜色，改成深蓝色。",
        "测试失败了，因为配置文件里的端口号写错了。",
        "猫把鱼吃完了。",
        "東京タワーの写真を撮りました。",
        "내일 서울에서 회의가 있습니다.",
        "The quarterly report is due on Friday.",
    ]);
    for (question, best) in [
        ("数据库迁移花了多长时间？", 1),
        ("登录页面改成了什么颜色", 2),
        ("为什么测试会失败？", 3),
        ("谁吃了鱼", 4),
        ("東京で何を撮りましたか", 5),
        ("서울 회의는 언제인가요", 6),
        ("report 什么时候交", 7),
    ] {
        assert_eq!(by_words(&writer, question, 1), [best], "{question}");
    }
}

#[test]
fn tl7_an_exact_hit_on_an_id_a_path_or_an_error_wins() {
    let mut writer = Writer::in_memory();
    let call = ToolCall::new("c1", "read_file", r#"{"path":"/srv/src/net/socket_pool.rs"}"#);
    writer.add(Message::calls("", vec![call])).close();
    writer.lines(&[
        "The build failed with error E0502 in the borrow checker.",
        "connect ECONNREFUSED 127.0.0.1:5432 while the database was down",
        "The failed build error was a borrow checker error, said the build.",
        "Order 98214477 was shipped; the order is late, which order we do not know.",
        "An order about orders: please order the order of the files and paths and sources.",
        "commit 7f3a9c2d fixes the socket pool and the network source files",
        "sockets, pools and network sources are read from files in the source path",
    ]);
    check(&writer, "what did we read in src/net/socket_pool.rs?", 1);
    check(&writer, "socket_pool.rs", 1);
    check(&writer, "which build failed with E0502 in the build error checker?", 2);
    check(&writer, "why ECONNREFUSED?", 3);
    check(&writer, "what is the order state of order 98214477?", 5);
    check(&writer, "what does 7f3a9c2d say of sockets, pools and network sources in files", 7);
    let hits = ask(&writer.store, &writer.todo, "E0502", 3);
    assert!(hits[0].exact && hits[0].relevance > 0.5, "{}", shown(&hits));
    assert!(hits.iter().skip(1).all(|hit| !hit.exact), "{}", shown(&hits));
}

#[test]
fn tl7_a_rare_word_that_is_the_question_wins() {
    let mut writer = Writer::in_memory();
    writer.fill(3, 300).lines(&["the zebrafish were moved to tank four"]).fill(4, 300);
    let hits = ask(&writer.store, &writer.todo, "zebrafish", 3);
    assert!(hits[0].exact, "{}", shown(&hits));
    let text = writer.store.messages(&writer.todo, hits[0].block.range.as_u64()).unwrap();
    assert!(text[0].whole().unwrap().contains("zebrafish"));
}

#[test]
fn tl7_a_cutoff_drops_what_has_little_to_do_with_the_question() {
    let mut writer = Writer::in_memory();
    writer.lines(&[
        "the invoice INV-2025-117 was paid in March",
        "the weather in March was mild",
        "completely unrelated gardening advice",
    ]);
    let search = |question: &str, cutoff: f32| {
        let vector = MODEL.embed(&[question]).unwrap();
        let request =
            SearchRequest::new(question).vector(&MODEL, vector.row(0).unwrap()).cutoff(cutoff);
        writer.store.searcher(&writer.todo).unwrap().search(&request).unwrap()
    };
    assert_eq!(numbers(&search("how mild was the weather", 0.775)), [2]);
    assert_eq!(search("quantum chromodynamics lattice", 0.65), []);
    // An exact hit is exempt.
    let hits = search("explain quantum chromodynamics of INV-2025-117", 0.99);
    assert_eq!(numbers(&hits), [1], "{}", shown(&hits));
    assert!(hits[0].relevance < 0.99);
    let all = search("the weather in March was mild", 0.0);
    assert!(all.len() >= 2 && all.iter().all(|hit| (0.0..=1.0).contains(&hit.relevance)));
}

#[test]
fn tl1_filters_leave_out_other_types_and_times() {
    let mut writer = Writer::in_memory();
    for (n, block_type) in
        [BlockType::Chat, BlockType::Qa, BlockType::ToolCall, BlockType::Chat].iter().enumerate()
    {
        writer.say(&format!("the deployment note {n}")).close_as(*block_type, &[]);
    }
    writer.commit();
    let searcher = writer.store.searcher(&writer.todo).unwrap();
    let request = SearchRequest::new("deployment note").k(10);
    let found = |request: SearchRequest<'_>| {
        let mut found = numbers(&searcher.search(&request).unwrap());
        found.sort_unstable();
        found
    };
    assert_eq!(found(request), [1, 2, 3, 4]);
    assert_eq!(found(request.block_type(BlockType::Chat)), [1, 4]);
    assert_eq!(found(request.block_type(BlockType::Qa)), [2]);
    // Block n begins at minute n.
    assert_eq!(found(request.since(Timestamp(180_000))), [3, 4]);
    assert_eq!(found(request.until(Timestamp(120_000))), [1, 2]);
    let middle = request.since(Timestamp(120_000)).until(Timestamp(180_000));
    assert_eq!(found(middle), [2, 3]);
    assert_eq!(found(middle.block_type(BlockType::Chat)), [0; 0]);
}

#[test]
fn keywords_of_the_header_are_searched() {
    let mut writer = Writer::in_memory();
    writer.say("ok").close_as(BlockType::ToolCall, &["store://3-abcd", "TimeoutError"]);
    writer.say("ok").close().commit();
    check(&writer, "which call ended in a TimeoutError", 1);
    check(&writer, "store://3-abcd", 1);
}

#[test]
fn lv6_answers_of_memory_tools_are_never_found() {
    let mut writer = Writer::in_memory();
    writer.say("the unicorn is in block one").close();
    let call = ToolCall::new("c", "search_block", "{}");
    writer.add(Message::calls("", vec![call.clone()]));
    let mut answer =
        crate::fixture::stored(&Message::tool_result(&call.id, "unicorn unicorn unicorn"));
    answer.recall = true;
    writer.commit();
    let head = writer.store.head(&writer.todo).unwrap();
    let message = foldback_blockstore::NewMessage {
        stored: answer,
        vectors: foldback_core::Vectors::default(),
    };
    let range = foldback_core::SeqRange::new(foldback_core::SeqNo(1), foldback_core::SeqNo(2));
    let block = crate::fixture::block(&writer.todo, 2, range.unwrap(), BlockType::ToolCall, &[], 2);
    let commit = foldback_blockstore::Commit {
        todo: &writer.todo,
        head,
        messages: &[message],
        blocks: &[block],
        session: vec![],
        extra: vec![],
        delete: vec![],
    };
    writer.store.commit(commit, "m").unwrap();
    assert_eq!(by_words(&writer, "unicorn", 5), [1]);
    assert_eq!(by_words(&writer, "search_block", 1), [2]);
}

#[test]
fn equal_blocks_come_newest_first() {
    let mut writer = Writer::in_memory();
    let (same, other) = ("the same words", "something other");
    writer.lines(&[other, same, other, same, other, same, other]);
    let hits = ask(&writer.store, &writer.todo, "same words", 3);
    assert_eq!(numbers(&hits), [6, 4, 2], "{}", shown(&hits));
}

/// A todo in which the same was said in each month of 2024.
fn monthly() -> Writer {
    let mut writer = Writer::in_memory();
    for month in 1..=12 {
        let begin = Timestamp::parse(&format!("2024-{month:02}-10T09:00:00Z")).unwrap();
        writer.minute = begin.0 / 60_000;
        writer.say("we looked at the budget, 我们看了预算").close();
    }
    writer.commit();
    writer
}

#[test]
fn tl1_a_question_that_names_a_day_finds_what_was_told_then() {
    let writer = monthly();
    check(&writer, "what did we say about the budget in March 2024?", 3);
    check(&writer, "the budget on May 12th", 5);
    check(&writer, "the budget of 2024-07-10", 7);
    check(&writer, "2024年3月10日的预算", 3);
    check(&writer, "8月の予算について我们看了", 8);
    // Without a day the newest of equals comes first.
    check(&writer, "what may we say about the budget?", 12);
    let hits = ask(&writer.store, &writer.todo, "the budget in March", 2);
    assert!(hits[0].explanation.dated > hits[1].explanation.dated, "{}", shown(&hits));
}

#[test]
fn a_neighbour_of_what_was_asked_for_comes_before_what_is_far_from_it() {
    let mut writer = Writer::in_memory();
    writer
        .fill(31, 40)
        .lines(&["which harbour shall we sail to", "to the one with the blue crane"]);
    writer.fill(32, 40);
    let hits = ask(&writer.store, &writer.todo, "which harbour shall we sail to", 2);
    let n = hits[0].block.header.block_id.n();
    assert!([n - 1, n + 1].contains(&hits[1].block.header.block_id.n()), "{}", shown(&hits));
    assert!(hits[1].explanation.neighbours > 0.0);
}

#[test]
fn a_vague_question_finds_the_latest_work_and_a_clear_one_what_it_asks_for() {
    let mut writer = Writer::in_memory();
    writer.say("the walrus reservation has the id kx4417 and two seats").close();
    writer.say("please go ahead with the first of them").close();
    let mut random = crate::fixture::Random::new(41);
    for _ in 0..12 {
        writer.say(&format!("please {}", random.line(9))).close_as(BlockType::ToolCall, &[]);
    }
    writer.commit();
    let hits = ask(&writer.store, &writer.todo, "yes please go ahead with that", 3);
    assert_eq!(numbers(&hits)[..2], [2, 14], "{}", shown(&hits));
    check(&writer, "which seats has the walrus reservation", 1);
    // Questions about talk may concern any time.
    let mut talk = Writer::in_memory();
    talk.lines(&["please go ahead with that", "please go", "nothing", "go"]);
    let hits = ask(&talk.store, &talk.todo, "please go ahead with that", 4);
    assert!(hits.iter().all(|hit| hit.explanation.recent == 0.0), "{}", shown(&hits));
    assert_eq!(numbers(&hits).first(), Some(&1));
}

/// TL7: however much work followed, an old block that is asked for by its id or in its own words
/// comes first.
#[test]
fn tl7_later_work_does_not_come_before_old_answers() {
    let mut writer = Writer::in_memory();
    writer.say("the walrus reservation has the id kx4417 and two seats").close();
    for i in 0..80 {
        let text = format!("the seats of reservation {i} are booked, its id is in the file");
        writer.say(&text).close_as(BlockType::ToolCall, &[]);
    }
    writer.commit();
    for question in ["kx4417", "the seats of reservation kx4417", "the walrus reservation"] {
        check(&writer, question, 1);
    }
}

/// TL7: a block that may not be returned lends no more than the best that may.
#[test]
fn tl7_what_is_filtered_out_lifts_no_neighbour_above_an_exact_hit() {
    let mut writer = Writer::in_memory();
    let close = |writer: &mut Writer, text: &str, block_type| {
        writer.say(text).close_as(block_type, &[]);
    };
    close(&mut writer, "seen in a long line of other words that say little: kx4417", BlockType::Qa);
    for _ in 0..3 {
        close(&mut writer, "nothing of that kind", BlockType::Chat);
    }
    let full = "tide harbour crane pilot quay anchor buoy lantern";
    close(&mut writer, full, BlockType::Chat);
    close(&mut writer, "and the tide", BlockType::Qa);
    writer.commit();
    let question = format!("kx4417 {full}");
    let request = SearchRequest::new(&question).block_type(BlockType::Qa);
    let hits = writer.store.searcher(&writer.todo).unwrap().search(&request).unwrap();
    assert_eq!(numbers(&hits), [1, 6], "{}", shown(&hits));
    let w = hits[1].explanation.lexical_weight;
    assert!(hits[1].explanation.neighbours <= 0.3 * w + 1e-6, "{}", shown(&hits));
}

/// The parts of the score, each alone.
#[test]
fn a_ranking_by_words_or_by_meaning_is_that_alone() {
    let mut writer = Writer::in_memory();
    writer.lines(&["alpha beta gamma", "beta", "数据库 alpha", "nothing of it"]);
    let vector = MODEL.embed(&["alpha 数据库"]).unwrap();
    let search = |ranking: Ranking, with_vector: bool| {
        let mut request = SearchRequest::new("alpha 数据库").k(9).ranking(ranking);
        if with_vector {
            request = request.vector(&MODEL, vector.row(0).unwrap());
        }
        writer.store.searcher(&writer.todo).unwrap().search(&request).unwrap()
    };
    let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
    let words = search(Ranking::Words, true);
    assert_eq!(numbers(&words), [3, 1]);
    assert_eq!(words, search(Ranking::Words, false));
    assert!(words.iter().all(|hit| near(hit.score, hit.bm25 / words[0].bm25)), "{}", shown(&words));
    let meaning = search(Ranking::Meaning, true);
    assert!(meaning.iter().all(|hit| near(hit.score, hit.cosine.min(1.0))), "{}", shown(&meaning));
    assert_eq!(numbers(&meaning), [3, 1, 2]);
    assert_eq!(search(Ranking::Meaning, false), []);
}

#[test]
fn vectors_of_another_model_are_not_compared() {
    let mut writer = Writer::in_memory();
    writer.lines(&["alpha beta", "gamma delta"]);
    let other = Bag("another-48");
    let vector = other.embed(&["gamma"]).unwrap();
    let searcher = writer.store.searcher(&writer.todo).unwrap();
    let row = vector.row(0).unwrap();
    let hits = searcher.search(&SearchRequest::new("gamma").vector(&other, row)).unwrap();
    assert_eq!(numbers(&hits), [2]);
    let said = VectorSide::OtherModel { asked: "another-48".into(), stored: "bag-48".into() };
    assert_eq!(hits[0].explanation.vectors, said);
    assert!(hits[0].to_string().contains("not of another-48"), "{}", hits[0]);
    for (vector, side) in
        [(vec![0.0; 48], VectorSide::Blank), (vec![f32::NAN; 48], VectorSide::Blank)]
    {
        let hits = searcher.search(&SearchRequest::new("gamma").vector(&MODEL, &vector)).unwrap();
        assert_eq!((numbers(&hits), &hits[0].explanation.vectors), (vec![2], &side));
    }
    // A vector of another length is another model's, whatever it is called.
    let short = [1.0];
    let hits = searcher.search(&SearchRequest::new("gamma").vector(&MODEL, &short)).unwrap();
    assert_eq!(numbers(&hits), [2]);
    assert!(matches!(hits[0].explanation.vectors, VectorSide::OtherModel { .. }));
}

#[test]
fn every_hit_says_how_its_score_came_about() {
    let mut writer = Writer::in_memory();
    writer.lines(&["the parser reads parse_header twice", "a parser", "nothing"]);
    let hits = ask(&writer.store, &writer.todo, "which parser has parse_header?", 3);
    assert!(hits.len() >= 2, "{}", shown(&hits));
    for hit in hits {
        let why = &hit.explanation;
        let bm25: f32 = why.terms.iter().map(|term| term.bm25).sum::<f32>();
        assert!((bm25 - hit.bm25).abs() < 1e-4, "{hit}");
        let fused = why.lexical_weight * hit.bm25 / why.best_bm25
            + (1.0 - why.lexical_weight) * hit.cosine.max(0.0)
            + why.neighbours
            + why.recent
            + why.dated
            + why.bonus;
        assert!((fused - hit.score).abs() < 1e-4, "{hit}");
        assert_eq!(hit.exact, why.terms.iter().any(|term| term.exact));
        assert_eq!(hit.best_seq, Some(hit.block.range.first()));
        assert_eq!(hit.to_string().lines().count(), 1);
    }
}

#[test]
fn a_snapshot_is_not_disturbed_by_what_follows() {
    let mut writer = Writer::in_memory();
    writer.lines(&["needle one"]);
    let before = writer.store.searcher(&writer.todo).unwrap();
    let request = SearchRequest::new("needle").k(9);
    let hits = before.search(&request).unwrap();
    writer.lines(&["needle two", "hay"]);
    let after = writer.store.searcher(&writer.todo).unwrap();
    assert_eq!(after.search(&request).unwrap().len(), 2);
    assert_eq!(before.search(&request).unwrap(), hits);
    assert_eq!((before.blocks(), after.blocks()), (1, 3));
}

#[test]
fn s2_no_search_crosses_todos() {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::memory();
    let config = crate::fixture::eager();
    let mut writers: Vec<Writer> = (0..20)
        .map(|i| Writer::on(kv.clone(), Some(dir.path()), config.clone(), &format!("todo{i}")))
        .collect();
    for (i, writer) in writers.iter_mut().enumerate() {
        writer.fill(i as u64, 20).lines(&[&format!("secret canary{i}xyz of this todo")]);
        if i % 2 == 0 {
            writer.store.maintain(&writer.todo).unwrap();
        }
    }
    let mut own_shown = 0;
    for (i, writer) in writers.iter().enumerate() {
        for other in 0..20 {
            for question in
                [format!("canary{other}xyz"), "secret canary todo".into(), String::new()]
            {
                for hit in ask(&writer.store, &writer.todo, &question, 50) {
                    assert_eq!(hit.block.header.todo_id, *writer.todo.id());
                    let own = writer.store.messages(&writer.todo, hit.block.range.as_u64());
                    let canary = format!("canary{other}xyz");
                    let shows = own.unwrap().iter().any(|m| m.whole().unwrap().contains(&canary));
                    assert!(!shows || other == i);
                    own_shown += usize::from(shows);
                    let named = hit.explanation.terms.iter().any(|t| t.term.contains(&canary));
                    assert!(!named || other == i, "{hit}");
                }
            }
        }
    }
    // Each is found in its own todo, at least by its name.
    assert!(own_shown >= 20, "{own_shown}");
}

#[test]
fn a_todo_that_the_cache_let_go_is_found_again() {
    let kv = foldback_kv::memory();
    let config = foldback_blockstore::IndexConfig::default().with_cache_bytes(50_000);
    let store = foldback_blockstore::BlockStore::open(kv.clone(), None, config.clone()).unwrap();
    let todos: Vec<_> = (0..12)
        .map(|i| {
            let mut writer = Writer::on(kv.clone(), None, config.clone(), &format!("t{i}"));
            writer.fill(i, 40).lines(&[&format!("needle{i}")]);
            writer.todo
        })
        .collect();
    for _ in 0..3 {
        for (i, todo) in todos.iter().enumerate() {
            let hits = ask(&store, todo, &format!("needle{i}"), 1);
            assert!(hits[0].bm25 > 0.0 && hits[0].block.header.todo_id == *todo.id());
        }
    }
}

/// P5: the truth holds half-precision vectors; against exact ones nothing is lost.
#[test]
fn p5_half_precision_finds_what_full_precision_finds() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    let mut random = crate::fixture::Random::new(8);
    let lines: Vec<String> = (0..10_000).map(|_| random.line(12)).collect();
    for line in &lines {
        writer.say(line).close();
    }
    writer.commit();
    let rows: Vec<&str> = lines.iter().map(String::as_str).collect();
    let exact = MODEL.embed(&rows).unwrap();
    let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let check = |writer: &Writer| {
        let searcher = writer.store.searcher(&writer.todo).unwrap();
        let mut random = crate::fixture::Random::new(9);
        for _ in 0..50 {
            let question = random.line(6);
            let vector = MODEL.embed(&[&question]).unwrap();
            let vector = vector.row(0).unwrap();
            let mut by_cosine: Vec<(f32, u32)> =
                exact.rows().map(|row| dot(row, vector)).zip(1..).collect();
            by_cosine.sort_by(|a, b| b.0.total_cmp(&a.0));
            let request = SearchRequest::new("").k(10).ranking(Ranking::Meaning);
            let request = request.vector(&MODEL, vector);
            let found = numbers(&searcher.search(&request).unwrap());
            // Of two that are nearer to each other than half precision can resolve, either may come
            // first.
            let tenth = by_cosine[9].0;
            let surely: Vec<u32> = by_cosine
                .iter()
                .take_while(|(cosine, _)| *cosine > tenth + 0.0005)
                .map(|(_, n)| *n)
                .collect();
            assert!(surely.iter().all(|n| found.contains(n)), "{found:?} {surely:?}");
            assert!(
                found
                    .iter()
                    .all(|n| by_cosine[..20].iter().any(|(c, m)| n == m && *c > tenth - 0.0005))
            );
        }
    };
    check(&writer);
    writer.store.maintain(&writer.todo).unwrap();
    assert!(writer.store.searcher(&writer.todo).unwrap().blocks_on_disk() == 10_000);
    check(&writer);
}
