//! Folders of documents: what is found is in its file, byte for byte.

use foldback_deep_search::{Passage, SearchBackend};
use foldback_documents::{
    DocumentFolder, DocumentSettings, Indexed, PassageUrl, SkipReason, Within,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A few documents about a ferry and a harbour, in two languages.
pub(crate) const DOCUMENTS: [(&str, &str); 6] = [
    (
        "harbour/tides.md",
        "# Tides at Quay North\n\nThe harbour floor falls dry twice a day.\n\n## Range\n\nThe mean tidal \
         range is 3.2 metres; at spring tides it reaches 4.7 metres.\n\n## Tables\n\nTide tables are printed \
         every December by the pilot office.\n",
    ),
    (
        "harbour/潮汐.md",
        "# 北码头的潮汐\n\n港池每天露底两次。\n\n## 潮差\n\n平均潮差为三点二米，大潮时可达四点七米。\n\n## 引航\n\n\
         引航站每年十二月印发潮汐表，并在高潮前一小时开放闸门。\n",
    ),
    (
        "ferry/timetable.txt",
        "The ferry Heron leaves at 07:10 and 18:40.\nOn Sundays only the evening boat runs.\n\nBicycles \
         travel free of charge; dogs pay half.\n",
    ),
    (
        "ferry/渡轮 (新).md",
        "# 渡轮“苍鹭”号\n\n每天七点十分和十八点四十分开船。\n周日只有晚班。👩‍👩‍👧 家庭票九折。\n\n自行车免费，狗半价。\n",
    ),
    (
        "code/lease.rs",
        "/// Renews the lease every ten seconds.\nfn renew_lease() {\n    // Lease error E4417 is retried.\n}\n",
    ),
    ("notes.rst", "Crane\n=====\n\nThe crane lifts 12 tonnes. Its permit expires in March.\n"),
];

pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in DOCUMENTS {
        write(folder.path(), path, text);
    }
    folder
}

pub(crate) fn write(folder: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn open(folder: &Path) -> DocumentFolder {
    DocumentFolder::open(folder, DocumentSettings::default()).unwrap()
}

async fn search(documents: &DocumentFolder, query: &str) -> Vec<Passage> {
    documents.search(query, 3).await.unwrap()
}

/// The bytes that a URL points at.
pub(crate) fn bytes_at(folder: &Path, url: &str) -> String {
    let PassageUrl { path, bytes, .. } = url.parse().unwrap();
    let file = fs::read(folder.join(path)).unwrap();
    String::from_utf8(file[bytes.start as usize..bytes.end as usize].to_vec()).unwrap()
}

/// DS9: in either language, the best passage is the one that answers, and its URL leads to its bytes.
#[tokio::test]
async fn ds9_passages_stand_in_their_files() {
    let folder = folder();
    let documents = open(folder.path());
    let Indexed { documents: count, recorded, skipped, .. } = documents.indexed();
    assert_eq!((count, recorded, skipped.len()), (6, 6, 0));
    for (query, title, words) in [
        ("mean tidal range in metres", "Tides at Quay North", "3.2 metres"),
        ("大潮时潮差多少", "北码头的潮汐", "四点七米"),
        ("谁印发潮汐表", "北码头的潮汐", "引航站"),
        ("do dogs pay on the ferry", "timetable.txt", "dogs pay half"),
        ("苍鹭号几点开船", "渡轮“苍鹭”号", "七点十分"),
        ("E4417", "lease.rs", "E4417 is retried"),
        ("renew_lease", "lease.rs", "fn renew_lease()"),
        ("crane permit", "notes.rst", "expires in March"),
        ("ferry/渡轮 dogs 狗半价", "渡轮“苍鹭”号", "狗半价"),
    ] {
        let found = search(&documents, query).await;
        let best = found.first().unwrap_or_else(|| panic!("nothing for {query}"));
        assert_eq!(best.title, title, "{query}");
        assert!(best.text.contains(words), "{query}: {}", best.text);
        for found in found {
            assert_eq!(bytes_at(folder.path(), &found.url), found.text);
            let PassageUrl { bytes, .. } = found.url.parse().unwrap();
            assert_eq!(found.bytes, Some(bytes));
        }
    }
    assert_eq!(search(&documents, "量子纠缠").await, []);
    assert_eq!(search(&documents, "").await, []);
}

/// What is not a document is passed over and reported, except what is hidden or ignored.
#[tokio::test]
async fn hidden_and_broken_files_are_no_documents() {
    let folder = folder();
    let path = folder.path();
    write(path, ".git/config.md", "secret heron");
    write(path, ".env.txt", "secret heron");
    write(path, ".gitignore", "*.log\n/private/\n");
    write(path, "today.log", "secret heron");
    write(path, "private/plan.md", "secret heron");
    write(path, "picture.png", "secret heron");
    write(path, "binary.txt", b"secret\0heron");
    write(path, "latin.txt", b"secret caf\xe9 heron");
    write(path, "gbk.txt", [0xb3, 0xb1, 0xcf, 0xab]);
    write(path, "large.txt", "heron ".repeat(1_000));
    write(path, "empty.md", "\n \n");
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "outside.md", "secret heron");
    std::os::unix::fs::symlink(outside.path(), path.join("linked")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("outside.md"), path.join("link.md")).unwrap();
    let settings = DocumentSettings { max_file_bytes: 5_000, ..DocumentSettings::default() };
    let documents = DocumentFolder::open(path, settings).unwrap();
    let indexed = documents.indexed();
    let skipped = indexed.skipped.iter().map(|skipped| (skipped.why, skipped.first.as_slice()));
    let skipped: Vec<(SkipReason, &[String])> = skipped.collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        skipped,
        [
            (SkipReason::Binary, &*names(&["binary.txt"])),
            (SkipReason::Large { most: 5_000 }, &*names(&["large.txt"])),
            (SkipReason::Ending, &*names(&["picture.png"])),
            (SkipReason::NoUtf8, &*names(&["gbk.txt", "latin.txt"])),
            (SkipReason::Link, &*names(&["link.md", "linked"])),
        ]
    );
    assert_eq!(documents.indexed().documents, 7, "the empty one is a document without passages");
    for found in documents.search("secret heron", 50).await.unwrap() {
        assert!(!found.text.contains("secret"), "{found:?}");
    }
    let few = DocumentSettings { max_files: 2, ..DocumentSettings::default() };
    let documents = DocumentFolder::open(path, few).unwrap();
    assert_eq!(documents.indexed().documents, 2);
    let told = documents.indexed().skipped;
    let behind = told.iter().find(|told| told.why == SkipReason::Behind { documents: 2 }).unwrap();
    assert_eq!(behind.files, 8, "{behind:?}");
    let missing =
        DocumentFolder::open(&path.join("none"), DocumentSettings::default()).unwrap_err();
    assert!(missing.to_string().contains("none cannot be read"), "{missing}");
}

/// With a store, what did not change is not recorded again; what did is found as it is now, even without
/// a refresh.
#[tokio::test]
async fn only_what_changed_is_recorded() {
    let (folder, store) = (folder(), tempfile::tempdir().unwrap());
    let open = || {
        let settings = DocumentSettings::default();
        DocumentFolder::open_with_store(folder.path(), settings, store.path()).unwrap()
    };
    let documents = open();
    let first = documents.indexed();
    assert_eq!(first.recorded, 6);
    drop(documents);
    let documents = open();
    assert_eq!(documents.indexed(), Indexed { recorded: 0, ..first.clone() });
    assert!(search(&documents, "大潮时潮差多少").await[0].text.contains("四点七米"));

    // Changed behind its back: passages that have moved are found at their new place.
    let text = DOCUMENTS[1].1.replace("四点七", "五点一");
    write(folder.path(), DOCUMENTS[1].0, format!("<!-- 新版 -->\n\n{text}"));
    fs::remove_file(folder.path().join("notes.rst")).unwrap();
    let found = search(&documents, "大潮时潮差多少").await;
    assert!(found[0].text.contains("五点一米"), "{found:?}");
    for found in &found {
        assert_eq!(bytes_at(folder.path(), &found.url), found.text);
        assert!(!found.text.contains("四点七"));
    }
    assert!(search(&documents, "crane permit").await.iter().all(|f| f.title != "notes.rst"));
    drop(documents);
    let documents = open();
    assert_eq!((documents.indexed().recorded, documents.indexed().documents), (0, 5));
    // What comes back is recognised.
    write(folder.path(), "notes.rst", DOCUMENTS[5].1);
    assert_eq!(
        documents.refresh().unwrap(),
        Indexed { documents: 6, recorded: 0, ..documents.indexed() }
    );
    assert!(search(&documents, "crane permit").await[0].text.contains("March"));

    // Another folder in the same store is another matter.
    let other = tempfile::tempdir().unwrap();
    write(other.path(), "a.md", "The heron of another folder.");
    let settings = DocumentSettings::default();
    let other = DocumentFolder::open_with_store(other.path(), settings, store.path()).unwrap();
    let found = search(&other, "heron ferry tides").await;
    assert_eq!(found.iter().map(|f| f.url.as_str()).collect::<Vec<_>>(), ["a.md#bytes=0-28"]);
}

/// An endless heading is kept in part, and so is the title.
#[tokio::test]
async fn titles_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.md",
        format!("# {}\n\n苍鹭\n\n## C#\n\nA heron.\n", "长".repeat(20_000)),
    );
    let documents = open(folder.path());
    let found = search(&documents, "苍鹭 heron").await;
    assert!(!found.is_empty());
    for found in found {
        assert_eq!(found.title.chars().count(), 120);
        assert!(found.text.len() <= 1_200);
    }
}

/// A name may contain what separates paths elsewhere.
#[cfg(unix)]
#[tokio::test]
async fn a_name_with_a_backslash_is_found() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a\\b.md", "The heron.");
    let found = search(&open(folder.path()), "heron").await;
    assert_eq!(found[0].url, "a%5Cb.md#bytes=0-10");
    assert_eq!(bytes_at(folder.path(), &found[0].url), "The heron.");
}

/// A file's name is not the scheme of a URL.
#[test]
fn urls_run_nothing() {
    let place =
        PassageUrl { path: "javascript:alert(1).md".to_owned(), within: Within::File, bytes: 0..1 };
    assert_eq!(place.to_string(), "javascript%3Aalert%281%29.md#bytes=0-1");
    assert_eq!(place.to_string().parse(), Ok(place));
}

/// A folder whose documents change again and again does not fill its store with what they were.
#[tokio::test]
async fn old_passages_are_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let body = |n: u32| -> String {
        (0..600).map(|i| format!("# 第{i}节\n\n版本{n}：苍鹭{i}号停在第{i}号泊位。\n\n")).collect()
    };
    write(folder.path(), "log.md", body(0));
    let documents = open(folder.path());
    for n in 1..4 {
        write(folder.path(), "log.md", body(n));
        let indexed = documents.refresh().unwrap();
        assert_eq!((indexed.documents, indexed.passages), (1, 600), "{n}");
        let found = search(&documents, "苍鹭417号停在哪里").await;
        assert!(found[0].text.contains(&format!("版本{n}：苍鹭417号")), "{n}: {}", found[0].text);
    }
}

proptest! {
    /// A URL of a passage is read back as it was written, and ends no link.
    #[test]
    fn urls_come_back(path in "[a-zé中][a-zé中 ()\\[\\]#%?<>\"'`.&=+_-]{0,24}", start in 0u64..1_000_000, len in 0u64..5_000) {
        let place = PassageUrl { path, within: Within::File, bytes: start..start + len };
        let url = place.to_string();
        prop_assert!(!url.contains(|c: char| c.is_whitespace() || "()[]<>\"`".contains(c)), "{}", url);
        prop_assert_eq!(url.parse(), Ok(place));
    }
}

/// What is not the URL of a passage is refused with an example of one.
#[test]
fn other_urls_are_refused() {
    for wrong in [
        "",
        "a.md",
        "a.md#bytes=1",
        "a.md#bytes=9-1",
        "#bytes=0-1",
        "a%zz#bytes=0-1",
        "a%f#bytes=0-1",
        "a%ff#bytes=0-1",
        "a#bytes=-1-2",
        "a#bytes=+1-2",
        "a#bytes=1-+2",
        "/etc/passwd#bytes=0-1",
        "../a.md#bytes=0-1",
        "a/%2E%2E/b.md#bytes=0-1",
    ] {
        let error = wrong.parse::<PassageUrl>().unwrap_err().to_string();
        assert!(error.ends_with("expected one like notes/lease.md#bytes=120-480"), "{error}");
    }
}
