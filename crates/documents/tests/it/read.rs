//! What a link in an answer points at, read back by a program; and what a folder holds beside documents.

use crate::documents::{DOCUMENTS, bytes_at, folder, write};
use foldback_deep_search::SearchBackend;
use foldback_documents::{
    DocumentFolder, DocumentSettings, DocumentsError, Indexed, PassageUrl, SkipReason, Skipped,
    Within,
};
use std::fs;
use std::path::Path;

fn open(folder: &Path) -> DocumentFolder {
    DocumentFolder::open(folder, DocumentSettings::default()).unwrap()
}

/// DS10: everything that a search finds is read back by its URL, and is what the file contains.
#[tokio::test]
async fn ds10_what_a_url_names_is_read_back() {
    let folder = folder();
    let long: String =
        (0..300).map(|n| format!("# 第{n}节\n\n苍鹭{n}号停在第{n}号泊位。\n\n")).collect();
    write(folder.path(), "harbour/泊位.md", long);
    let documents = open(folder.path());
    let mut read = 0;
    for query in ["苍鹭号停在哪里", "tidal range at spring tides", "crane permit", "E4417"] {
        for found in documents.search(query, 100).await.unwrap() {
            assert_eq!(documents.read(&found.url).unwrap(), found);
            assert_eq!(bytes_at(folder.path(), &found.url), found.text);
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

/// DS10: the same if links are followed from elsewhere: URLs begin with a prefix, and are read with no
/// other.
#[tokio::test]
async fn ds10_urls_with_a_prefix_are_read_back() {
    let folder = folder();
    let plain = open(folder.path());
    for (prefix, url) in [
        ("docs/", "docs/harbour/"),
        ("文档 (1)/", "文档%20%281%29/harbour/"),
        ("/srv/docs/", "/srv/docs/harbour/"),
        ("", "harbour/"),
    ] {
        let documents = plain.clone().with_prefix(prefix);
        let found = documents.search("mean tidal range in metres", 1).await.unwrap().remove(0);
        assert!(found.url.starts_with(url), "{}", found.url);
        assert_eq!(documents.read(&found.url).unwrap(), found);
        let within = found.url.strip_prefix(url.strip_suffix("harbour/").unwrap()).unwrap();
        assert_eq!(plain.read(within).unwrap().text, found.text);
        if !prefix.is_empty() {
            assert!(documents.read(within).is_err());
            assert!(plain.read(&found.url).is_err());
        }
    }
    let why = plain.with_prefix("docs/").read("docs/../a.md#bytes=0-1").unwrap_err();
    assert!(matches!(why, DocumentsError::Url(_)), "{why}");
}

/// DS9: what is not a passage of the documents is not quoted: another range, another file, one outside.
#[tokio::test]
async fn ds9_other_bytes_are_not_quoted() {
    let folder = folder();
    write(folder.path(), "secret.bin", "heron");
    write(folder.path(), "empty.md", "\n\n");
    let documents = open(folder.path());
    let found = documents.search("mean tidal range", 1).await.unwrap().remove(0);
    let PassageUrl { path, bytes, .. } = found.url.parse().unwrap();
    let place =
        |path: &str, bytes| PassageUrl { path: path.to_owned(), within: Within::File, bytes };
    for wrong in [
        place(&path, bytes.start..bytes.end - 1),
        place(&path, bytes.start + 1..bytes.end),
        place(&path, 0..u64::MAX),
        place("harbour/tides", bytes),
        place("harbour", 0..1),
        place("secret.bin", 0..5),
        place("empty.md", 0..2),
        place("none.md", 0..5),
    ] {
        let wrong = wrong.to_string();
        let error = documents.read(&wrong).unwrap_err();
        assert!(matches!(&error, DocumentsError::NoPassage(told) if *told == wrong), "{error}");
        assert!(error.to_string().starts_with(&format!("{wrong} names no passage")), "{error}");
    }
    for wrong in [place("../outside.md", 0..5), place("/etc/passwd", 0..5), place("", 0..0)] {
        let error = documents.read(&wrong.to_string()).unwrap_err();
        assert!(matches!(&error, DocumentsError::Url(_)), "{error}");
    }
}

/// DS9: a document that changed after it was read is refused, not quoted wrongly; once it is read again,
/// its new text is quoted, and what moved is no longer a passage.
#[tokio::test]
async fn ds9_a_document_that_changed_is_not_quoted() {
    let folder = folder();
    let (path, text) = DOCUMENTS[1];
    let documents = open(folder.path());
    let found = documents.search("大潮时潮差多少", 1).await.unwrap().remove(0);
    assert!(found.text.contains("四点七米"));
    let place = found.url.as_str();

    for changed in [text.replace("四点七", "五点一"), format!("新\n{text}"), "短".to_owned()]
    {
        write(folder.path(), path, changed);
        let error = documents.read(place).unwrap_err();
        assert!(matches!(&error, DocumentsError::Changed(told) if told == place), "{error}");
    }
    fs::remove_file(folder.path().join(path)).unwrap();
    assert!(matches!(documents.read(place), Err(DocumentsError::Changed(_))));

    // In the same place, other words: they are quoted once they are read.
    write(folder.path(), path, text.replace("四点七", "五点一"));
    documents.refresh().unwrap();
    assert!(documents.read(place).unwrap().text.contains("五点一米"));
    write(folder.path(), path, format!("新\n{text}"));
    documents.refresh().unwrap();
    assert!(matches!(documents.read(place), Err(DocumentsError::NoPassage(_))));
    // As it was.
    write(folder.path(), path, text);
    assert!(matches!(documents.read(place), Err(DocumentsError::NoPassage(_))), "not read yet");
    documents.refresh().unwrap();
    assert_eq!(documents.read(place).unwrap(), found);
}

/// Files that are passed over are reported on one line, by name and reason; few names for each reason.
#[test]
fn what_is_passed_over_is_told() {
    let folder = folder();
    assert_eq!(open(folder.path()).indexed().passed_over(), None);
    for n in 1..=5 {
        write(folder.path(), &format!("扫描{n}.png"), "PNG");
    }
    write(folder.path(), "binary.txt", b"heron\0");
    write(folder.path(), "gbk\n\u{1b}[31m.txt", [0xb3, 0xb1]);
    write(folder.path(), "Makefile", "all:\n");
    write(folder.path(), ".hidden.png", "PNG");
    let told = open(folder.path()).indexed().passed_over().unwrap();
    assert_eq!(
        told,
        "binary.txt (binary content); gbk [31m.txt (not UTF-8); \
         Makefile, 扫描1.png, 扫描2.png and 3 more (unsupported file extension)"
    );
    let skipped = (0..9).map(|n| {
        let first = vec![format!("{n}.a"), format!("{n}.b")];
        Skipped { why: SkipReason::Large { most: n }, files: 2, first }
    });
    let many = Indexed { skipped: skipped.collect(), ..Indexed::default() };
    let told = many.passed_over().unwrap();
    assert!(
        told.ends_with("3.a, 3.b (more than 3 bytes); and 10 more for other reasons"),
        "{told}"
    );
}

/// Of many files, only the first are kept.
#[test]
fn what_is_passed_over_is_counted() {
    let folder = folder();
    for n in 0..50 {
        write(folder.path(), &format!("{n:02}.png"), "x");
    }
    let skipped = open(folder.path()).indexed().skipped;
    assert_eq!((skipped.len(), skipped[0].files, skipped[0].first.len()), (1, 50, 20));
    assert_eq!(skipped[0].first[19], "19.png");
}
