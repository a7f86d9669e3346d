//! Properties of vectors.

use foldback_core::Embedder;
use foldback_embedder::{StaticEmbedder, WordPiece};
use proptest::prelude::*;

use crate::corpus::cosine;

#[track_caller]
fn nearest(query: &str, texts: &[&str]) -> usize {
    let embedder = StaticEmbedder::new();
    let query = embedder.embed(&[query]).unwrap();
    let texts = embedder.embed(texts).unwrap();
    let score = |row: &[f32]| cosine(query.row(0).unwrap(), row);
    let scores: Vec<f32> = texts.rows().map(score).collect();
    (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap()
}

#[test]
fn the_nearest_text_is_the_one_about_the_same_thing() {
    let texts = [
        "The flight to Boston leaves at nine in the morning.",
        "All unit tests of the parser fail since the last commit.",
        "She adopted a puppy and named it Biscuit.",
        "I want to return the keyboard and get my money back.",
    ];
    assert_eq!(nearest("When does my plane depart?", &texts), 0);
    assert_eq!(nearest("which test is broken?", &texts), 1);
    assert_eq!(nearest("What is her dog called?", &texts), 2);
    assert_eq!(nearest("refund for an order", &texts), 3);
}

#[test]
fn a_text_without_a_known_piece_is_all_zeros() {
    let texts = ["", "   ", "\u{0}\u{200b}", "😀", &"q".repeat(500), "fine"];
    let vectors = StaticEmbedder::new().embed(&texts).unwrap();
    assert_eq!((vectors.len(), vectors.dim()), (6, 256));
    let zero: Vec<bool> = vectors.rows().map(|row| row.iter().all(|v| v.to_bits() == 0)).collect();
    assert_eq!(zero, [true, true, true, true, true, false]);
    assert!(StaticEmbedder::new().embed(&[]).unwrap().is_empty());
}

#[test]
fn the_files_are_those_that_the_recipe_and_the_model_id_name() {
    let table = blake3::hash(include_bytes!("../../assets/static-minilm-256.bin")).to_hex();
    let vocabulary = blake3::hash(include_bytes!("../../assets/vocab.txt")).to_hex();
    let cjk = blake3::hash(foldback_cjk_table::TABLE).to_hex();
    let recipe = include_str!("../../assets/RECIPE.md");
    for hash in [&table, &vocabulary] {
        assert!(recipe.contains(hash.as_str()), "{hash}");
    }
    let expected = format!("static-minilm-256-{}-{}", &table[..8], &cjk[..8]);
    assert_eq!(StaticEmbedder::new().model_id(), expected);
}

/// The sum of a table's rows for the pieces of a text, of length 1, as it was before there were rows
/// for other scripts.
fn sum_of_pieces(text: &str) -> Vec<f32> {
    let (_, rows) = include_bytes!("../../assets/static-minilm-256.bin").split_at(24);
    let mut sum = [0_i32; 256];
    for id in WordPiece::new().ids(text) {
        let row = &rows[usize::from(id) * 256..][..256];
        sum.iter_mut().zip(row).for_each(|(sum, byte)| *sum += i32::from(byte.cast_signed()));
    }
    let square: f64 = sum.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    let length = if square > 0.0 { square.sqrt() } else { 1.0 };
    sum.iter().map(|&v| (f64::from(v) / length) as f32).collect()
}

/// Texts in other letters keep the vectors that they had before there were rows for these scripts.
#[test]
fn texts_in_latin_letters_have_the_vectors_that_they_always_had() {
    let texts = [
        "Why does the scheduler retry? It backs off: 250 ms, then 500 ms.",
        "café Ørsted naïve — Где порт? 😀 🚀 ＡＢＣ １２３ ½ …",
        "fn main() { println!(\"{}\", lease_seconds); }",
        "ไทย ελληνικά עברית हिन्दी",
    ];
    let vectors = StaticEmbedder::new().embed(&texts).unwrap();
    for (row, text) in vectors.rows().zip(texts) {
        assert_eq!(row, sum_of_pieces(text), "{text}");
    }
}

/// When neighbours are compared, these scripts have the vectors that they had before, too.
#[test]
fn topics_are_told_by_word_pieces_alone() {
    let embedder = StaticEmbedder::new();
    let texts = ["数据库连接超时", "The database timed out."];
    let vectors = embedder.embed_for_topics(&texts).unwrap();
    for (row, text) in vectors.rows().zip(texts) {
        assert_eq!(row, sum_of_pieces(text), "{text}");
    }
    assert_ne!(vectors.row(0), embedder.embed(&texts).unwrap().row(0));
    assert_eq!(embedder.embed_for_topics(&texts[1..]), None);
}

/// The first three values and the last, as computed from the same files by a Python program that follows the recipe.
#[test]
fn vectors_in_these_scripts_are_those_of_the_recipe() {
    for (text, expected) in [
        ("数据库连接超时", [0.03825, -0.03492, -0.03492, 0.06153]),
        ("ｻｰﾊﾞｰのAPIを再起動する", [0.05042, -0.04255, 0.09139, 0.07564]),
        ("데이터베이스 연결", [0.01589, -0.03177, -0.10440, 0.02043]),
        ("部署🚀 deploy完成", [-0.02926, -0.07402, -0.02754, 0.10156]),
    ] {
        let vectors = StaticEmbedder::new().embed(&[text]).unwrap();
        let row = vectors.row(0).unwrap();
        for (found, expected) in [0, 1, 2, 255].into_iter().zip(expected) {
            assert!((row[found] - expected).abs() < 2e-5, "{text}: {found}");
        }
    }
}

#[test]
fn what_was_said_in_one_language_is_near_in_another() {
    let texts = [
        "The database connection timed out.",
        "The cake collapsed in the oven.",
        "数据库连接超时了。",
        "蛋糕在烤箱里塌了。",
        "データベースの接続がタイムアウトした。",
        "데이터베이스 연결 시간이 초과되었습니다.",
    ];
    assert_eq!(nearest("数据库为什么连不上？", &texts[..2]), 0);
    assert_eq!(nearest("蛋糕怎么了？", &texts[..2]), 1);
    assert_eq!(nearest("the database does not answer", &texts[2..4]), 0);
    assert_eq!(nearest("데이터베이스", &texts[2..4]), 0);
    assert_eq!(nearest("データベース", &[texts[3], texts[5]]), 1);
}

proptest! {
    #[test]
    fn a_vector_has_length_one_or_is_zero(texts in prop::collection::vec(any::<String>(), 0..5)) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = StaticEmbedder::new().embed(&texts).unwrap();
        prop_assert_eq!(vectors.len(), texts.len());
        for row in vectors.rows() {
            let length = cosine(row, row).sqrt();
            prop_assert!(length == 0.0 || (length - 1.0).abs() < 1e-5, "{}", length);
        }
    }

    #[test]
    fn the_order_of_words_means_nothing(words in prop::collection::vec("[a-zé東😀]{1,9}", 1..30)) {
        let embedder = StaticEmbedder::new();
        let forth = words.join(" ");
        let back = words.iter().rev().map(String::as_str).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(embedder.embed(&[&forth]).unwrap(), embedder.embed(&[&back]).unwrap());
    }
}
