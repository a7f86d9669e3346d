//! What a vector is.

use foldback_core::Embedder;
use foldback_embedder::StaticEmbedder;
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
    let recipe = include_str!("../../assets/RECIPE.md");
    assert!(recipe.contains(table.as_str()) && recipe.contains(vocabulary.as_str()));
    assert_eq!(StaticEmbedder::new().model_id(), format!("static-minilm-256-{}", &table[..8]));
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
