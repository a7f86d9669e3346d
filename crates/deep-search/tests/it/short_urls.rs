//! Short URLs, and how the sources' own are restored.

use crate::source::source;
use foldback_deep_search::{ShortUrls, link_safe};

/// DS8: one short URL for each URL of a query, that of its first place, as the original counts them.
#[test]
fn ds8_short_urls() {
    let short = ShortUrls::under("https://vertexaisearch.cloud.google.com/");
    let urls = short.resolve(3, ["https://a/1", "https://b", "https://a/1", "https://c"]);
    let expected = ["3-0", "3-1", "3-0", "3-3"]
        .map(|id| format!("https://vertexaisearch.cloud.google.com/id/{id}"));
    assert_eq!(urls, expected);
    // The short URLs of a run are its own, and are the same when it is resumed.
    let of_run = |run, request| ShortUrls::of_run(run, request).resolve(1, ["u"]).remove(0);
    assert_eq!(of_run("r", "潮汐"), of_run("r", "潮汐"));
    assert_ne!(of_run("r", "潮汐"), of_run("r2", "潮汐"));
    assert_ne!(of_run("r", "潮汐"), of_run("r", "潮"));
}

/// DS10: whole short URLs are restored; the longer one is not affected by the shorter.
#[test]
fn ds10_b11_restoring_keeps_boundaries() {
    let short = ShortUrls::under("https://h");
    let sources = [
        source("https://h/id/1-1", "https://one.com/a"),
        source("https://h/id/1-10", "https://ten.com/潮汐"),
        source("https://h/id/2-0", "https://one.com/a"),
        source("https://h/id/3-0", "https://never.com"),
    ];
    let text =
        "A [x](https://h/id/1-10), b https://h/id/1-1. 见https://h/id/2-0。C **https://h/id/1-1**";
    let restored = short.restore(text, &sources);
    // `str.replace`, in the order of the sources, makes `https://one.com/a0` of the first.
    assert_eq!(
        restored.text,
        "A [x](https://ten.com/潮汐), b https://one.com/a. 见https://one.com/a。C **https://one.com/a**"
    );
    let used: Vec<&str> = restored.used.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(used, ["https://ten.com/潮汐", "https://one.com/a"], "each once, as they are named");
    assert_eq!(restored.invented, Vec::<String>::new());

    let invented = "[x](https://h/id/9-9) https://h/id/1-1/more https://h/id/1-100 https://h/id/ \
                    https://h/id/01-1 xhttps://h/id/1-1 https://h/id/9-9 https://h/id/1-1?q";
    let restored = short.restore(invented, &sources);
    assert_eq!(restored.text, invented, "what was made up is not restored");
    assert_eq!(restored.used, []);
    let told = ["9-9", "1-1/more", "1-100", "", "01-1", "1-1", "1-1?q"];
    assert_eq!(restored.invented, told.map(|id| format!("https://h/id/{id}")));
}

/// DS10: a source's own URL does not end the link that holds it.
#[test]
fn ds10_urls_stay_inside_their_links() {
    assert_eq!(link_safe("https://a/b_(c)?d=潮#e"), "https://a/b_(c)?d=潮#e");
    assert_eq!(link_safe("https://a/b)(c d\n<e>"), "https://a/b%29%28c%20d%0A%3Ce%3E");
    let short = ShortUrls::under("https://h");
    let sources = [source("https://h/id/1-0", "https://a/x) [y](https://evil")];
    let restored = short.restore("[x](https://h/id/1-0)", &sources);
    assert_eq!(restored.text, "[x](https://a/x%29%20[y]%28https://evil)");
}
