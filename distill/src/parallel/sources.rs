//! Which texts are read.

/// A language of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Chinese,
    Japanese,
    Korean,
}

/// Texts in one repository, in one language beside English.
pub(crate) struct Source {
    /// Where the translated texts are, as `owner/name`.
    pub(crate) repository: &'static str,
    /// The commit that was read.
    pub(crate) commit: &'static str,
    /// Under which licence the texts are.
    pub(crate) licence: &'static str,
    pub(crate) language: Language,
    pub(super) format: Format,
}

/// How the two languages stand beside each other.
pub(super) enum Format {
    /// A file with a pair a line.
    Tabbed(&'static str),
    /// Archives of dialogues.
    Dialogues { english: &'static [&'static str], translated: &'static [&'static str] },
    /// Chats by person and day.
    Chats { english: &'static str, translated: &'static str },
    /// Pages of Markdown.
    Pages(Pages),
}

/// Pages in a folder of `repository` and in one of the source's.
pub(super) struct Pages {
    pub(super) repository: &'static str,
    pub(super) english: &'static str,
    pub(super) translated: &'static str,
}

impl Source {
    /// Where the translated texts are in the repository.
    pub(crate) fn place(&self) -> &'static str {
        match &self.format {
            Format::Tabbed(path) | Format::Chats { translated: path, .. } => path,
            Format::Dialogues { translated, .. } => translated.last().copied().unwrap_or_default(),
            Format::Pages(pages) => pages.translated,
        }
    }

    /// The other repository, where the English texts are.
    pub(crate) fn english_repository(&self) -> Option<&'static str> {
        match &self.format {
            Format::Pages(pages) if pages.repository != self.repository => Some(pages.repository),
            _ => None,
        }
    }
}

use Language::{Chinese, Japanese, Korean};

const TATOEBA: &str = "CC-BY 2.0 FR (Tatoeba)";
const APACHE: &str = "Apache-2.0";
const BSD: &str = "BSD-3-Clause (pages: MIT)";
const MIT: &str = "MIT";
const EITHER: &str = "Apache-2.0 or MIT";
const ATTRIBUTION: &str = "CC-BY 4.0";

const fn source(
    at: (&'static str, &'static str),
    licence: &'static str,
    language: Language,
    format: Format,
) -> Source {
    Source { repository: at.0, commit: at.1, licence, language, format }
}

const fn pages(
    repository: &'static str,
    english: &'static str,
    translated: &'static str,
) -> Format {
    Format::Pages(Pages { repository, english, translated })
}

type At = (&'static str, &'static str);

const CMN: At =
    ("13luoyu/Transformer-machine-translation", "aa43963320ccfacebd1d3542deae559bbca58d03");
const JPN: At = ("sezan92/attention_sezan", "f506062ba9ca57cb205deac215083dde38da73e4");
const KOR: At = ("nate-koser/kor-eng-translator", "75021833d3443273567daf7f09372472e48f9843");
const CONVLAB: At = ("thu-coai/ConvLab-2", "b014b81fcb1ff74f54681917eee39c14c87af3e5");
const MEMORYBANK: At =
    ("zhongwanjun/MemoryBank-SiliconFriend", "cf61c4196e4cfdb0f2b7a0316249fa40312dc3a9");
const ANT_DESIGN: At = ("ant-design/ant-design", "2b258157ff20fb8948780e414dc1d74246aede40");
const DOLPHINSCHEDULER: At =
    ("apache/dolphinscheduler", "7e0095dca198bfc50c59bbc10b3be5617d7b3229");
const ELECTRON: At = ("electron/i18n", "b5831481c16a6e46c903c3dae849440f030171ef");
const COURSE: At = ("huggingface/course", "16af5667532d6966f0fe83f44cc848dd7698a215");
const AGENTS: At = ("huggingface/agents-course", "8c0832eae634ebb34541c65265caa6da4c5d2c57");
const AUDIO: At =
    ("huggingface/audio-transformers-course", "55beb9b360e07697ce28de84e74531cead2d9024");
const DIFFUSERS: At = ("huggingface/diffusers", "58eb52c0803ea9af3abec60841c2a093bdf1f951");
const DIFY: At = ("langgenius/dify-docs", "9d8344e72dffb71993ba9874ec762bb5d456ad0f");
const REACT_KO: At = ("reactjs/ko.react.dev", "2e8c873c3cea6703d1c94d01b5d5716259005c8e");
const BOOK_KO: At = ("rust-kr/doc.rust-kr.org", "1d07d28a6338e9f782c627b9763f3d13272379af");
const BOOK_JA: At = ("rust-lang-ja/book-ja", "822ffbb7b5ecf28ff5393e4057c8b9189a5d3fe1");
const VITE_JA: At = ("vitejs/docs-ja", "3237ae23aba865919bc6b2f7e68a784ea64c51ac");
const VITE_KO: At = ("vitejs/docs-ko", "7cec40882780a30be887a9e7bacaa6e936868d6b");

/// The repositories of English pages whose translations are in another one.
pub(crate) const ENGLISH: [(&str, &str, &str); 3] = [
    ("reactjs/react.dev", "12d692da47e77cdc558b928fcfbaf4e71c6d0cec", ATTRIBUTION),
    ("rust-lang/book", "917544888a55e4da7109bdba8c88c893c0da70f4", EITHER),
    ("vitejs/vite", "a98c8d95d552c6fa98ab66fb810f5b39ad5abf49", MIT),
];

/// All that is read. No question with which the product is measured is among them.
pub(crate) static SOURCES: [Source; 27] = [
    source(CMN, TATOEBA, Chinese, Format::Tabbed("cmn.txt")),
    source(JPN, TATOEBA, Japanese, Format::Tabbed("data/jpn.txt")),
    source(KOR, TATOEBA, Korean, Format::Tabbed("kor.txt")),
    source(
        CONVLAB,
        APACHE,
        Chinese,
        Format::Dialogues {
            english: &["data/multiwoz/val.json.zip", "data/multiwoz/test.json.zip"],
            translated: &[
                "data/multiwoz_zh/human_val.json.zip",
                "data/multiwoz_zh/val.json.zip",
                "data/multiwoz_zh/test.json.zip",
            ],
        },
    ),
    source(
        CONVLAB,
        APACHE,
        Chinese,
        Format::Dialogues {
            english: &[
                "data/crosswoz_en/human_val.json.zip",
                "data/crosswoz_en/val.json.zip",
                "data/crosswoz_en/test.json.zip",
            ],
            translated: &["data/crosswoz/val.json.zip", "data/crosswoz/test.json.zip"],
        },
    ),
    source(
        MEMORYBANK,
        MIT,
        Chinese,
        Format::Chats {
            english: "eval_data/en/memory_bank_en.json",
            translated: "eval_data/cn/memory_bank_cn.json",
        },
    ),
    source(ANT_DESIGN, MIT, Chinese, pages(ANT_DESIGN.0, "", "")),
    source(
        DOLPHINSCHEDULER,
        APACHE,
        Chinese,
        pages(DOLPHINSCHEDULER.0, "docs/docs/en", "docs/docs/zh"),
    ),
    source(ELECTRON, BSD, Chinese, pages(ELECTRON.0, "content/en-US/docs", "content/zh-CN/docs")),
    source(ELECTRON, BSD, Japanese, pages(ELECTRON.0, "content/en-US/docs", "content/ja-JP/docs")),
    source(COURSE, APACHE, Chinese, pages(COURSE.0, "chapters/en", "chapters/zh-CN")),
    source(COURSE, APACHE, Chinese, pages(COURSE.0, "chapters/en", "chapters/zh-TW")),
    source(COURSE, APACHE, Japanese, pages(COURSE.0, "chapters/en", "chapters/ja")),
    source(COURSE, APACHE, Korean, pages(COURSE.0, "chapters/en", "chapters/ko")),
    source(AGENTS, APACHE, Chinese, pages(AGENTS.0, "units/en", "units/zh-CN")),
    source(AGENTS, APACHE, Korean, pages(AGENTS.0, "units/en", "units/ko")),
    source(AUDIO, APACHE, Chinese, pages(AUDIO.0, "chapters/en", "chapters/zh-CN")),
    source(AUDIO, APACHE, Korean, pages(AUDIO.0, "chapters/en", "chapters/ko")),
    source(DIFFUSERS, APACHE, Chinese, pages(DIFFUSERS.0, "docs/source/en", "docs/source/zh")),
    source(DIFFUSERS, APACHE, Korean, pages(DIFFUSERS.0, "docs/source/en", "docs/source/ko")),
    source(DIFY, ATTRIBUTION, Chinese, pages(DIFY.0, "en", "zh")),
    source(DIFY, ATTRIBUTION, Japanese, pages(DIFY.0, "en", "ja")),
    source(REACT_KO, ATTRIBUTION, Korean, pages(ENGLISH[0].0, "src/content", "src/content")),
    source(BOOK_KO, EITHER, Korean, pages(ENGLISH[1].0, "src", "src")),
    source(BOOK_JA, EITHER, Japanese, pages(ENGLISH[1].0, "src", "src")),
    source(VITE_JA, MIT, Japanese, pages(ENGLISH[2].0, "docs", "")),
    source(VITE_KO, MIT, Korean, pages(ENGLISH[2].0, "docs", "")),
];
