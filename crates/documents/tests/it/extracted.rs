//! PDF and HTML: what a person would read in them is found, and its address leads back to it.

use crate::documents::write;
use foldback_deep_search::{Passage, SearchBackend};
use foldback_documents::{
    DocumentFolder, DocumentSettings, DocumentsError, PassageUrl, SkipReason, Within,
};
use std::path::Path;

/// A PDF whose pages show these lines. Chinese has a font of its own, whose codes are in a table.
fn pdf(pages: &[&[&str]]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /Identity-H /DescendantFonts [5 0 R] \
         /ToUnicode 6 0 R >>"
            .to_owned(),
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Song >>".to_owned(),
    ];
    let stream = |text: &str| format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len());
    let wide: Vec<char> =
        pages.iter().flat_map(|lines| lines.concat().chars().collect::<Vec<_>>()).collect();
    let wide: Vec<char> = wide.into_iter().filter(|c| !c.is_ascii()).collect();
    let codes: String =
        wide.iter().zip(1..).map(|(c, n)| format!("<{n:04X}> <{:04X}>\n", *c as u32)).collect();
    objects.push(stream(&format!(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo << /Registry (Adobe) \
         /Ordering (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
         1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n{} beginbfchar\n{codes}endbfchar\n\
         endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend",
        wide.len()
    )));
    let mut kids = String::new();
    for lines in pages {
        let mut shown = String::from("BT 72 720 Td 14 TL\n");
        for line in *lines {
            if line.is_ascii() {
                shown.push_str(&format!("/F1 12 Tf ({line}) Tj T*\n"));
            } else {
                let place = |c: char| wide.iter().position(|other| *other == c).unwrap() + 1;
                let hex: String = line.chars().map(|c| format!("{:04X}", place(c))).collect();
                shown.push_str(&format!("/F2 12 Tf <{hex}> Tj T*\n"));
            }
        }
        shown.push_str("ET");
        let content = objects.len() + 1;
        objects.push(stream(&shown));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R \
             /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
        ));
        kids.push_str(&format!("{} 0 R ", content + 1));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut file = String::from("%PDF-1.7\n");
    let mut places = Vec::new();
    for (object, n) in objects.iter().zip(1..) {
        places.push(file.len());
        file.push_str(&format!("{n} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    let size = objects.len() + 1;
    file.push_str(&format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"));
    file.into_bytes()
}

fn open(folder: &Path) -> DocumentFolder {
    DocumentFolder::open(folder, DocumentSettings::default()).unwrap()
}

async fn first(documents: &DocumentFolder, query: &str) -> Passage {
    documents.search(query, 3).await.unwrap().remove(0)
}

fn within(passage: &Passage) -> Within {
    passage.url.parse::<PassageUrl>().unwrap().within
}

/// DS9, DS10: a passage of a PDF names its page, in either language, and is read back by its address.
#[tokio::test]
async fn ds9_a_passage_of_a_pdf_names_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages: [&[&str]; 3] = [
        &["Tides at Quay North", "The harbour floor falls dry twice a day."],
        &["The mean tidal range is", "3.2 metres."],
        &["大潮时潮差可达四点七米。"],
    ];
    write(folder.path(), "harbour/tides.pdf", pdf(&pages));
    let documents = open(folder.path());
    assert_eq!(documents.indexed().documents, 1);
    let range = first(&documents, "mean tidal range in metres").await;
    assert_eq!(range.url, "harbour/tides.pdf#page=2&text=0-35");
    assert_eq!((range.title.as_str(), range.bytes.as_ref()), ("tides.pdf", None));
    assert_eq!(range.text, "The mean tidal range is\n3.2 metres.");
    let spring = first(&documents, "大潮时潮差多少").await;
    assert_eq!(
        (within(&spring), spring.text.as_str()),
        (Within::Page(3), "大潮时潮差可达四点七米。")
    );
    for passage in [range, spring] {
        assert_eq!(documents.read(&passage.url).unwrap(), passage);
    }
    // Nothing is quoted from another file with that name until it is read again.
    write(folder.path(), "harbour/tides.pdf", pdf(&[&["The range is 9 metres."]]));
    let why = documents.read("harbour/tides.pdf#page=2&text=0-35").unwrap_err();
    assert!(matches!(why, DocumentsError::Changed(_)), "{why}");
    assert_eq!(first(&documents, "range in metres").await.text, "The range is 9 metres.");
}

/// DS9: in HTML, what a person would read is found, whatever its characters; its first heading is the title.
#[tokio::test]
async fn ds9_html_is_found_as_a_person_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<html><head><title>x</title><style>p{}</style></head><body><h1>Tides</h1>\
                <script>var a = 'tidal range';</script><h2>Range</h2>\
                <p>The mean tidal range is <span>3.2</span> metres.</p></body></html>";
    write(folder.path(), "tides.html", page);
    let gbk = "<meta charset=gbk><h1>潮汐</h1><p>大潮时潮差可达四点七米。";
    write(folder.path(), "潮汐.htm", encoding_rs::GBK.encode(gbk).0);
    let documents = open(folder.path());
    let range = first(&documents, "mean tidal range in metres").await;
    assert_eq!((range.title.as_str(), within(&range)), ("Tides", Within::Text));
    assert!(range.text.ends_with("The mean tidal range is 3.2 metres."), "{}", range.text);
    assert!(!range.text.contains("var a"), "{}", range.text);
    let spring = first(&documents, "大潮时潮差多少").await;
    assert_eq!(spring.title, "潮汐");
    for passage in [range, spring] {
        assert!(passage.url.contains("#text="), "{}", passage.url);
        assert_eq!(documents.read(&passage.url).unwrap(), passage);
    }
}

/// A file that is not a PDF, has no text, is locked, or is malicious is passed over, and the others are read.
#[tokio::test]
async fn ds9_what_cannot_be_read_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let good = pdf(&[&["The crane lifts 12 tonnes."]]);
    write(folder.path(), "good.pdf", &good);
    write(folder.path(), "cut.pdf", &good[..good.len() / 3]);
    write(folder.path(), "scan.pdf", pdf(&[&[]]));
    write(folder.path(), "words.pdf", "%PDF-1.7 and nothing else");
    let locked = String::from_utf8(good.clone()).unwrap();
    let lock = "/Encrypt << /Filter /Standard /V 1 /R 2 /O (00000000000000000000000000000000) \
                /U (00000000000000000000000000000000) /P -4 >> /ID [(a) (a)] /Root 1 0 R";
    write(folder.path(), "locked.pdf", locked.replace("/Root 1 0 R", lock));
    // Endlessly nested objects, and pages that contain themselves.
    write(folder.path(), "deep.pdf", format!("%PDF-1.7\n1 0 obj\n{}", "[".repeat(200_000)));
    let looped = String::from_utf8(good).unwrap().replace("/Kids [8 0 R ]", "/Kids [2 0 R ]");
    write(folder.path(), "looped.pdf", looped);
    let documents = open(folder.path());
    let read = documents.indexed();
    assert_eq!(read.documents, 1, "{read:?}");
    assert_eq!(
        first(&documents, "what does the crane lift").await.url,
        "good.pdf#page=1&text=0-26"
    );
    let why: Vec<SkipReason> = read.skipped.iter().map(|skipped| skipped.why).collect();
    for expected in [SkipReason::Damaged, SkipReason::NoText, SkipReason::Locked] {
        assert!(why.contains(&expected), "{expected}: {read:?}");
    }
}
