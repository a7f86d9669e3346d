//! The cost of embedding a message as it arrives, and the part of cutting it into word pieces. A
//! write has about a millisecond for everything; embedding should not be noticeable in it.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use foldback_embedder::{StaticEmbedder, WordPiece};

fn main() {
    divan::main();
}

/// 30 word pieces.
const MESSAGE: &str = "Could you please check whether the second order has already been shipped \
     to my new address in Denver, and if not, change the delivery date to Friday?";

/// 420 bytes, like a block of five short turns.
const BLOCK: &str = "user: hi, my order W2378156 never arrived\nassistant: I am sorry to hear that. \
     Could you give me the email address of your account, or your name and zip code?\nuser: it is \
     yusuf rossi, 19122\nassistant: Thank you, Yusuf. The order holds a mechanical keyboard and a \
     smart thermostat, and was delivered on the 14th. Would you like to exchange or return an \
     item?\nuser: exchange the keyboard for one with clicky switches, please";

const CHINESE: &str = "请帮我查一下订单的物流状态,如果还没有发货,就把收货地址改成上海市浦东新区。";

/// A word that must be tried at every length.
const HARD: &str = "0xdeadbeefcafebabe0123456789abcdefZGVhZGJlZWZjYWZlYmFiZTAxMjM0NTY3ODlhYmNkZWY";

const TEXTS: [(&str, &str); 4] =
    [("message", MESSAGE), ("block", BLOCK), ("chinese", CHINESE), ("hard", HARD)];

fn text(name: &str) -> &'static str {
    TEXTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

#[divan::bench(args = TEXTS.map(|(name, _)| name))]
fn embed(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    let embedder = StaticEmbedder::new();
    let mut values = Vec::with_capacity(256);
    bencher.counter(BytesCount::of_str(text)).counter(ItemsCount::new(1usize)).bench_local(|| {
        values.clear();
        embedder.embed_into(divan::black_box(text), &mut values);
        values.first().copied()
    });
}

#[divan::bench(args = TEXTS.map(|(name, _)| name))]
fn cut_into_pieces(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    let pieces = WordPiece::new();
    bencher.counter(BytesCount::of_str(text)).bench_local(|| {
        let mut sum = 0u64;
        pieces.for_each(divan::black_box(text), |id| sum += u64::from(id));
        sum
    });
}
