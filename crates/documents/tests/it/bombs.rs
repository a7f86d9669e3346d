//! S11: small documents that unpack to large ones are read, or passed over, within limits.

use crate::documents::write;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use foldback_documents::{DocumentFolder, DocumentSettings};
use foldback_testkit::memory::{grown, is_weighed, weigh};
use std::io::Write as _;
use std::path::Path;

const MEGABYTE: usize = 1 << 20;

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PDF of one page, whose content is packed this many times, and which begins with a line of text.
fn pdf(content: &[u8], packed: usize) -> Vec<u8> {
    let text = b"BT /F1 12 Tf (The tide at quay 7) Tj ET\n";
    let content = (0..packed).fold([text, content].concat(), |content, _| deflate(&content));
    let filters = "/FlateDecode ".repeat(packed);
    let length = content.len();
    let objects: Vec<Vec<u8>> = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
            .to_vec(),
        [
            format!("<< /Length {length} /Filter [{filters}] >>\nstream\n").as_bytes(),
            &content,
            b"\nendstream",
        ]
        .concat(),
    ];
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (object, n) in objects.iter().zip(1..) {
        places.push(file.len());
        file.extend(format!("{n} 0 obj\n").bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    places.iter().for_each(|place| file.extend(format!("{place:010} 00000 n \n").bytes()));
    let size = objects.len() + 1;
    file.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    file
}

/// Documents of less than 50 KB, by name.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let nested = pdf(&b"0 ".repeat(16 * MEGABYTE), 2);
    vec![
        ("operators.pdf", pdf(&b"q ".repeat(2 * MEGABYTE), 1)),
        ("many-operators.pdf", pdf(&b"q ".repeat(16 * MEGABYTE), 1)),
        ("numbers.pdf", pdf(&[&b"["[..], &b"0 ".repeat(2 * MEGABYTE)].concat(), 1)),
        ("nested.pdf", nested),
        ("brackets.pdf", pdf(&b"[".repeat(4 * MEGABYTE), 1)),
        ("deep.html", "<div><b>".repeat(6_000).into_bytes()),
        ("lists.html", "<ul><li>a".repeat(5_000).into_bytes()),
        ("tables.html", format!("<table>{}", "<tr><td colspan=9999>a".repeat(1_500)).into_bytes()),
    ]
}

fn read(folder: &Path) -> DocumentFolder {
    DocumentFolder::open(folder, DocumentSettings::default()).unwrap()
}

/// S11: a page of operators is read, one that unpacks to over 100 times the file is not, and others are.
#[test]
fn s11_documents_that_unpack_to_much_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in bombs() {
        assert!(bytes.len() < 50_000, "{name} has {} bytes", bytes.len());
        write(folder.path(), name, bytes);
    }
    write(folder.path(), "good.pdf", pdf(b"q Q ", 1));
    let documents = read(folder.path());
    let read = documents.indexed();
    let skipped: Vec<&str> =
        read.skipped.iter().flat_map(|skipped| &skipped.first).map(String::as_str).collect();
    assert!(!skipped.contains(&"good.pdf"), "{skipped:?}");
    for bomb in ["many-operators.pdf", "nested.pdf", "deep.html"] {
        assert!(skipped.contains(&bomb), "{bomb}: {skipped:?}");
    }
}

/// S11: eight of them take less than 64 MB of memory.
#[test]
fn s11_documents_that_unpack_to_much_take_little_memory() {
    if is_weighed() {
        return weigh_bombs();
    }
    let taken = grown("bombs::s11_documents_that_unpack_to_much_take_little_memory");
    // If the system does not report it, they were read all the same.
    assert!(taken.is_none_or(|kilobytes| kilobytes < 64 << 10), "{taken:?} kB");
}

fn weigh_bombs() {
    let folder = tempfile::tempdir().unwrap();
    bombs().into_iter().for_each(|(name, bytes)| write(folder.path(), name, bytes));
    // What is loaded once for all documents is there by then.
    let other = tempfile::tempdir().unwrap();
    write(other.path(), "good.pdf", pdf(b"q Q ", 1));
    drop(read(other.path()));
    weigh(|| drop(read(folder.path())));
}
