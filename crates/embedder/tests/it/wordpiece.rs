//! The ids are those of Hugging Face's `tokenizers`: as recorded, and, if the feature `fastembed` provides that crate,
//! as it gives them for any text.

use blake3::Hasher;
use foldback_embedder::WordPiece;

static VOCABULARY: &str = include_str!("../../assets/vocab.txt");

/// Makes texts.
type Texts = fn() -> Vec<String>;

/// Texts that are read alike, by what they are; and the hash of the ids that `tokenizers` gives them.
const RECORDED: [(Texts, &str); 4] = [
    (
        accents_scripts_emoji_and_control_characters,
        "7e23bc3ea2d55fe871b5d037ddec04cff9aa8f4305d0e0b896014cb1dc124d07",
    ),
    (
        words_of_about_a_hundred_characters,
        "758587f879849b7660e99f69b50f0b00e9fa8735e7a14e6831dab7245118c49b",
    ),
    (
        every_character_alone_between_and_after_letters,
        "de125a70965ae48e15e0ebbc6e11b96103d7ba258e97c0ce59ca5c0e82b6ecc9",
    ),
    (
        every_piece_of_the_vocabulary,
        "7e8753a46b5f7d06932da04c1e18869977358338f650ff53293ec0ce2cabb756",
    ),
];

#[test]
fn the_ids_are_those_that_were_recorded() {
    let wordpiece = WordPiece::new();
    let hashes = RECORDED.map(|(texts, _)| hash(&texts(), |text| wordpiece.ids(text)));
    assert_eq!(hashes, RECORDED.map(|(_, recorded)| recorded));
    assert_eq!(wordpiece.ids(&"z".repeat(101)), [100]);
}

/// The hash of the ids of texts, each with its number of ids.
fn hash(texts: &[String], ids: impl Fn(&str) -> Vec<u16>) -> String {
    let mut hasher = Hasher::new();
    for text in texts {
        let ids = ids(text);
        hasher.update(&(ids.len() as u64).to_le_bytes());
        for id in ids {
            hasher.update(&id.to_le_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

fn accents_scripts_emoji_and_control_characters() -> Vec<String> {
    // A written-out marker is one special token for a tokenizer that knows it; the reference was given none, like ours.
    [
        "",
        " \t\r\n",
        "Hello, World! It's 3.14 o'clock -- isn't it?",
        "CAFÉ Café cafe\u{301} naïve Ångström ÅÅ Straße İstanbul ΣΊΣΥΦΟΣ",
        "东京都と大阪 こんにちは カタカナ ガギグ が \u{304b}\u{3099} 한국어 각 힣",
        "\u{f900}\u{2f800}\u{2f81a} \u{2b820}\u{2b920}\u{20000}\u{9fff}\u{a000}",
        "Привет, мир! Ёлка й и\u{306} שָׁלוֹם مُحَمَّد हिन्दी ไทย",
        "👩\u{200d}👩\u{200d}👧 👍🏽 \u{1f1e9}\u{1f1ea} ❤\u{fe0f} 😀text😀",
        "a\u{0}b\u{1}c\u{7f}d\u{85}e\u{ad}f\u{200b}g\u{feff}h\u{fffd}i\u{e000}j\u{b}k\u{c}l",
        "a\u{a0}b\u{2003}c\u{2028}d\u{3000}e\u{1680}f",
        "a\u{301}\u{1}\u{316}b \u{302e}\u{301}\u{302f} \u{1d165}\u{1d16d}\u{301}",
        "“quoted” — … ‹x› ¿qué? §1 ¶ † ‡ • 、。「」!?%",
        "##ing #hash ## # [CLS] is [unused1] text [UNK]",
        "x² ½ ⅷ ①  K Å ﬁ ǆ Ǆ ẞ ŉ",
        "snake_case camelCase HTTP2Server /usr/lib/x86_64-linux-gnu/libc.so.6 a@b.co",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Words of more than a hundred characters are unknown as a whole.
fn words_of_about_a_hundred_characters() -> Vec<String> {
    let mut texts = Vec::new();
    for unit in ["a", "é", "e\u{301}", "я", "𝒳", "\u{304b}\u{3099}", "xq"] {
        for count in [1, 49, 50, 51, 99, 100, 101, 400] {
            let word = unit.repeat(count);
            texts.extend([format!("in {word} out"), format!("in {word}. {word}"), word]);
        }
    }
    texts
}

fn every_character_alone_between_and_after_letters() -> Vec<String> {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    all.chunks(256)
        .map(|block| {
            let around =
                |c: &char| [*c, ' ', 'a', *c, 'b', ' ', 'e', '\u{301}', *c, '\u{316}', 'n', ' '];
            block.iter().flat_map(around).collect()
        })
        .collect()
}

fn every_piece_of_the_vocabulary() -> Vec<String> {
    let pieces = VOCABULARY.lines();
    pieces
        .flat_map(|piece| [piece.to_owned(), format!("un{}", piece.trim_start_matches("##"))])
        .collect()
}

#[cfg(feature = "fastembed")]
mod reference {
    use super::{RECORDED, VOCABULARY, hash};
    use crate::corpus;
    use foldback_embedder::WordPiece;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::sync::LazyLock;
    use tokenizers::TokenizerImpl;
    use tokenizers::models::wordpiece::WordPiece as ReferenceModel;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

    type Reference = TokenizerImpl<
        ReferenceModel,
        BertNormalizer,
        BertPreTokenizer,
        tokenizers::PostProcessorWrapper,
        tokenizers::DecoderWrapper,
    >;

    static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
        let vocabulary = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/vocab.txt");
        let model = ReferenceModel::from_file(vocabulary)
            .unk_token("[UNK]".to_owned())
            .continuing_subword_prefix("##".to_owned())
            .max_input_chars_per_word(100)
            .build()
            .unwrap();
        let mut reference = TokenizerImpl::new(model);
        reference.with_normalizer(Some(BertNormalizer::new(true, true, None, true))).unwrap();
        reference.with_pre_tokenizer(Some(BertPreTokenizer));
        reference
    });

    fn reference(text: &str) -> Vec<u16> {
        let encoding = REFERENCE.encode_fast(text, false).unwrap();
        encoding.get_ids().iter().map(|&id| id as u16).collect()
    }

    #[expect(clippy::panic, reason = "a test fails by panicking")]
    #[track_caller]
    fn check(text: &str) {
        let ours = WordPiece::new().ids(text);
        let theirs = reference(text);
        if ours != theirs {
            let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            let near = |ids: &[u16]| {
                let pieces: Vec<&str> = VOCABULARY.lines().collect();
                let ids = ids.iter().skip(at.saturating_sub(3)).take(8);
                ids.map(|&id| pieces[usize::from(id)]).collect::<Vec<_>>()
            };
            let start: String = text.chars().take(80).collect();
            panic!(
                "{start:?}: piece {at} differs: {:?}, expected {:?}",
                near(&ours),
                near(&theirs)
            );
        }
    }

    #[test]
    fn the_recorded_ids_are_those_of_the_reference() {
        for (texts, _) in RECORDED {
            texts().iter().for_each(|text| check(text));
        }
        let hashes = RECORDED.map(|(texts, _)| hash(&texts(), reference));
        assert_eq!(hashes, RECORDED.map(|(_, recorded)| recorded));
    }

    #[test]
    fn every_text_of_the_recorded_conversations() {
        let Some(folder) = corpus::folder("every_text_of_the_recorded_conversations") else {
            return;
        };
        let mut texts = BTreeSet::new();
        for path in corpus::files(&folder) {
            corpus::documents(&path).iter().for_each(|document| strings(document, &mut texts));
        }
        assert!(texts.len() > 50_000, "only {} texts", texts.len());
        for text in &texts {
            check(text);
        }
    }

    fn strings(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                found.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
            _ => {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn any_text(text in any::<String>()) {
            check(&text);
        }

        /// Letters, accents in any order, marks, ideographs, spaces and control characters close together, for which
        /// the order of the steps matters.
        #[test]
        fn any_mixture_of_what_interacts(text in "[a-eA-E \u{1}\u{b}\t\u{300}-\u{330}\u{301}é\u{ad}\u{200d}\u{302e}\u{3099}\u{304b}\u{4e00}\u{f900}\u{1d165}-\u{1d172}\u{ac00}-\u{ac1f}\u{1100}-\u{1175}.#_\u{2019}\u{0}]{0,60}") {
            check(&text);
        }
    }
}
