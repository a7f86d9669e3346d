//! The time to find the secrets in a KiB of text: `cargo bench -p foldback-redaction`.

use divan::Bencher;
use divan::counter::BytesCount;
use foldback_redaction::find;

fn main() {
    divan::main();
}

const PROSE: &str = "The lease is renewed every ten seconds; a worker that misses two renewals is dropped, and \
    its tasks go back to the queue. 租约每十秒续订一次，错过两次的节点会被移除。";
const CODE: &str = "fn next_token(&mut self) -> Option<Token> {\n    let password = self.config.password()?;\n    \
    self.tokens.get(self.at).map(|token| token.clone())\n}\nchecksum = \"9f86d081884c7d659a2feaa0c55ad015\"\n";
const NAMED: &str =
    "password: postgres token=tokens[0] secret: Secret api_key=api_key(\"a\") Bearer $TOKEN ";
const FOUND: &str = "AWS_ACCESS_KEY_ID=AKIAZ7Q2MXK4N5P6R3TB curl -H 'Authorization: Bearer k2J9xQ4vL7pZ1sW8nT3m' \
    postgres://app:t4Zq9LmXw2@db/main ";

/// A KiB of a text.
fn kib(of: &str) -> String {
    let mut text = of.repeat(1_024 / of.len() + 1);
    text.truncate(text.floor_char_boundary(1_024));
    text
}

#[divan::bench(args = ["prose", "code", "named", "found", "escaped", "base64"])]
fn one_kib(bencher: Bencher<'_, '_>, kind: &str) {
    let text = match kind {
        "prose" => kib(PROSE),
        "code" => kib(CODE),
        "named" => kib(NAMED),
        "found" => kib(FOUND),
        "escaped" => kib(&CODE.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")),
        _ => kib("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"),
    };
    bencher.counter(BytesCount::of_str(&text)).bench(|| find(divan::black_box(&text)));
}
