//! The passages of documents in a memory: each is a message, and a block of its own.

use crate::content::Piece;
use crate::files::Document;
use crate::passage_url::Within;
use crate::passages::{Cut, cut};
use crate::{PassageUrl, SkipReason};
use foldback::core::{Message, SeqNo, TodoId};
use foldback::{
    ChunkerConfig, Close, Error, ErrorKind, Hit, Memory, OffloadPolicy, Options, SearchRequest,
    Session,
};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The passages of one folder's documents.
///
/// The memory is the only storage: a passage's origin is in its message. Messages stay as they are, so
/// a document that changed is recorded anew and its old passages are skipped; once most of them are
/// old, everything is recorded anew.
pub(crate) struct Index {
    memory: Memory,
    todo: TodoId,
    /// The number of the todo: another one has taken its place if it has another number.
    no: u32,
    session: Session,
    /// Every version of a document that is recorded, and its messages.
    versions: BTreeMap<Version, Range<u64>>,
    /// The versions that the folder holds now.
    current: BTreeSet<Version>,
    /// Files that turned out to be no documents, and why: those of this reading, and those of the one before.
    refused: BTreeMap<Version, SkipReason>,
    refused_before: BTreeMap<Version, SkipReason>,
}

/// A document with a certain content, cut by certain rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    path: String,
    hash: String,
}

/// What a passage's message contains beside its text.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    path: String,
    title: String,
    /// The [hash](hash()) of the document.
    hash: String,
    /// The text in which the bytes are counted.
    #[serde(default, skip_serializing_if = "is_file")]
    within: Within,
    /// The passage's place in the document, in bytes.
    bytes: Range<u64>,
    /// How many passages the document has, and the place of this one among them.
    of: u64,
    at: u64,
    /// How many bytes precede the passage in the message.
    skip: usize,
}

/// A passage as it is recorded.
#[derive(Serialize, Deserialize)]
struct Recorded {
    role: String,
    content: String,
    document: Origin,
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedPassage {
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) within: Within,
    pub(crate) bytes: Range<u64>,
    pub(crate) text: String,
    /// The identity of the document.
    pub(crate) hash: String,
}

fn is_file(within: &Within) -> bool {
    *within == Within::File
}

/// A passage below this relevance to a query does not answer it.
const CUTOFF: f32 = 0.2;

/// A passage with no word of the query needs more: an embedder places an unknown word anywhere, and vectors of
/// Chinese, Japanese and Korean spread wider than those of English (a question about entanglement reached 0.52
/// with a passage about tides, and one about the height of tides 0.89).
const WITHOUT_WORDS: f32 = 0.6;

/// Old messages are cleared away if there are more of them than this, and more than new ones.
const MANY_OLD: u64 = 1_000;

/// The version of the rules by which documents are cut: if they or the form of a message change, so does
/// it, and what a store holds from before is recorded anew.
const RULES: u32 = 3;

impl Index {
    /// Returns the required options of the memory: each message is a block, and is stored whole in its record.
    pub(crate) fn options(options: Options) -> Result<Options, Error> {
        let chunker = ChunkerConfig::default().with_sizes(1, 1)?.with_look_ahead(0)?;
        let offload = OffloadPolicy::default().with_tokens(usize::MAX);
        Ok(options.with_chunker(chunker).with_offload(offload))
    }

    pub(crate) fn open(memory: Memory, todo: TodoId) -> Result<Self, Error> {
        let session = memory.session(&todo)?;
        let no = memory.find(&todo)?.no();
        let mut versions = BTreeMap::new();
        let mut seq = 0;
        while seq < session.len() {
            let Some(Recorded { document, .. }) = recorded(&memory, &todo, seq)? else {
                seq += 1;
                continue;
            };
            let first = seq.saturating_sub(document.at);
            let messages = first..first + document.of.max(1);
            seq = messages.end.max(seq + 1);
            versions.insert(Version { path: document.path, hash: document.hash }, messages);
        }
        let current = BTreeSet::new();
        let (refused, refused_before) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { memory, todo, no, session, versions, current, refused, refused_before })
    }

    /// Returns whether another process has cleared the passages away since they were opened.
    pub(crate) fn was_replaced(&self) -> Result<bool, Error> {
        match self.memory.find(&self.todo) {
            Ok(todo) => Ok(todo.no() != self.no),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Opens the passages again, as they are recorded now.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        let new = Self::open(self.memory.clone(), self.todo.clone())?;
        let old = std::mem::replace(self, new);
        (self.refused, self.refused_before) = (old.refused, old.refused_before);
        Ok(())
    }

    /// Begins to take the documents of the folder: those that are not [taken](Self::take) are no longer there.
    pub(crate) fn begin(&mut self) {
        self.current.clear();
        self.refused_before = std::mem::take(&mut self.refused);
    }

    /// Takes a document, and returns whether it had to be recorded; or why it is not one after all.
    pub(crate) fn take(&mut self, document: &Document) -> Result<Result<bool, SkipReason>, Error> {
        let hash = hash_of(document.content.bytes());
        let version = Version { path: document.path.clone(), hash };
        if self.versions.contains_key(&version) {
            self.current.insert(version);
            return Ok(Ok(false));
        }
        // What could not be parsed before cannot be parsed now, and may take long.
        let refused = self
            .refused_before
            .remove(&version)
            .map_or_else(|| messages(document, &version.hash), Err);
        let messages = match refused {
            Ok(messages) => messages,
            Err(why) => {
                self.refused.insert(version, why);
                return Ok(Err(why));
            }
        };
        self.current.insert(version.clone());
        let count = messages.len() as u64;
        let first = if messages.is_empty() {
            self.session.len()
        } else {
            let recorded = self.session.record_all(messages)?;
            self.session.close(Close::Switch)?;
            recorded.first().map_or(0, |recorded| recorded.seq.0)
        };
        self.versions.insert(version, first..first + count);
        Ok(Ok(count > 0))
    }

    /// Returns whether too much of what is recorded is old.
    pub(crate) fn is_mostly_old(&self) -> bool {
        let old = self.session.len().saturating_sub(self.passages());
        old > MANY_OLD && old > self.passages()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        self.memory.maintenance().forget(&self.todo)?;
        self.reopen()
    }

    /// Returns how many documents the folder holds, and how many passages they have.
    pub(crate) fn counts(&self) -> (usize, u64) {
        (self.current.len(), self.passages())
    }

    fn passages(&self) -> u64 {
        let current = self.current.iter().filter_map(|version| self.versions.get(version));
        current.map(|messages| messages.end - messages.start).sum()
    }

    /// Returns the passages of the folder's documents that answer a query best, best first.
    pub(crate) fn search(&self, query: &str, k: usize) -> Result<Vec<IndexedPassage>, Error> {
        let mut wanted = k;
        loop {
            let request = SearchRequest::new(query).k(wanted).cutoff(CUTOFF);
            let hits = self.memory.search(&self.todo, &request)?.hits;
            let is_all = hits.len() < wanted || wanted >= SearchRequest::MAX_K;
            let is_meant = |hit: &Hit| hit.bm25 > 0.0 || hit.relevance >= WITHOUT_WORDS;
            let mut passages = Vec::new();
            for hit in hits.into_iter().filter(is_meant) {
                passages.extend(self.passage(hit.block.range.first())?);
            }
            if passages.len() >= k || is_all {
                passages.truncate(k);
                return Ok(passages);
            }
            wanted = (wanted * 4).min(SearchRequest::MAX_K);
        }
    }

    /// Returns the passage at a place in the folder's documents.
    pub(crate) fn passage_at(&self, place: &PassageUrl) -> Result<Option<IndexedPassage>, Error> {
        let least = Version { path: place.path.clone(), hash: String::new() };
        let version = self.current.range(least..).next();
        let version = version.filter(|version| version.path == place.path);
        let Some(messages) = version.and_then(|version| self.versions.get(version)) else {
            return Ok(None);
        };
        // They are in the order of the document.
        let (mut from, mut to) = (messages.start, messages.end);
        while from < to {
            let middle = from.midpoint(to);
            let Some(passage) = self.passage(SeqNo(middle))? else { return Ok(None) };
            let of = |within: Within, bytes: &Range<u64>| (within, bytes.start);
            match of(passage.within, &passage.bytes).cmp(&of(place.within, &place.bytes)) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok((passage.bytes == place.bytes).then_some(passage)),
            }
        }
        Ok(None)
    }

    /// Returns a recorded passage, if its document is the one that the folder holds.
    fn passage(&self, seq: SeqNo) -> Result<Option<IndexedPassage>, Error> {
        let Some(Recorded { content, document, .. }) = recorded(&self.memory, &self.todo, seq.0)?
        else {
            return Ok(None);
        };
        let Origin { path, title, hash, within, bytes, skip, .. } = document;
        let version = Version { path, hash };
        // Of a version that was recorded twice, by two processes at once, one counts.
        let is_current = self.current.contains(&version)
            && self.versions.get(&version).is_some_and(|messages| messages.contains(&seq.0));
        let text = content.get(skip..).unwrap_or_default().to_owned();
        let Version { path, hash } = version;
        Ok(is_current.then_some(IndexedPassage { path, title, within, bytes, text, hash }))
    }
}

/// Returns the identity of a file with these bytes.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    hash(bytes, RULES)
}

/// Returns the same for a file that was cut by these rules.
fn hash(bytes: &[u8], rules: u32) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&rules.to_le_bytes()).update(bytes);
    hasher.finalize().to_hex().get(..32).unwrap_or_default().to_owned()
}

fn recorded(memory: &Memory, todo: &TodoId, seq: u64) -> Result<Option<Recorded>, Error> {
    let message = memory.messages(todo, seq..seq + 1)?.pop();
    Ok(message.and_then(|message| serde_json::from_str(message.json()).ok()))
}

/// Returns a document's passages as messages: each begins with the title and the headings above it, so
/// that it is found by them.
fn messages(document: &Document, hash: &str) -> Result<Vec<Message>, SkipReason> {
    let pieces = document.content.pieces()?;
    let cuts: Vec<(&Piece<'_>, Cut)> =
        pieces.iter().map(|piece| (piece, cut(&piece.text, piece.is_markdown))).collect();
    let name = document.path.rsplit('/').next().unwrap_or(&document.path);
    let title = cuts.iter().find_map(|(_, cut)| cut.title.clone());
    let title = title.unwrap_or_else(|| name.to_owned());
    let of = cuts.iter().map(|(_, cut)| cut.passages.len() as u64).sum();
    let passages = cuts
        .into_iter()
        .flat_map(|(piece, cut)| cut.passages.into_iter().map(move |passage| (piece, passage)));
    let messages = passages.enumerate().map(|(at, (piece, passage))| {
        let mut headings = passage.headings;
        if headings.first() != Some(&title) {
            headings.insert(0, title.clone());
        }
        let before = format!("{}\n", headings.join(" > "));
        let text = piece.text.get(passage.bytes.clone()).unwrap_or_default();
        let recorded = Recorded {
            role: "user".to_owned(),
            content: format!("{before}{text}"),
            document: Origin {
                path: document.path.clone(),
                title: title.clone(),
                hash: hash.to_owned(),
                within: piece.within,
                bytes: passage.bytes.start as u64..passage.bytes.end as u64,
                of,
                at: at as u64,
                skip: before.len(),
            },
        };
        let json = serde_json::to_string(&recorded).unwrap_or_default();
        Message::from_json(&json).unwrap_or_else(|_| Message::user(text))
    });
    Ok(messages.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::content::Content;

    /// A file that turned out to be no document is parsed once, until it changes.
    #[test]
    fn what_is_no_document_is_parsed_once() {
        let memory = Memory::in_memory(Index::options(Options::default()).unwrap()).unwrap();
        let mut index = Index::open(memory, TodoId::from_foreign("documents")).unwrap();
        let scan = |bytes: &[u8]| Document {
            path: "扫描.pdf".to_owned(),
            content: Content::Pdf(bytes.to_vec()),
        };
        let known =
            |index: &Index| index.refused.keys().map(|v| v.hash.clone()).collect::<Vec<_>>();
        index.begin();
        assert_eq!(index.take(&scan(b"%PDF-1.7 one")).unwrap(), Err(SkipReason::Damaged));
        assert_eq!(known(&index), [hash_of(b"%PDF-1.7 one")]);
        // What is known is believed: it is not parsed.
        index.refused.values_mut().for_each(|why| *why = SkipReason::Slow);
        for _ in 0..2 {
            index.clear().unwrap();
            index.begin();
            assert_eq!(index.take(&scan(b"%PDF-1.7 one")).unwrap(), Err(SkipReason::Slow));
        }
        index.begin();
        assert_eq!(index.take(&scan(b"%PDF-1.7 two")).unwrap(), Err(SkipReason::Damaged));
        assert_eq!(known(&index), [hash_of(b"%PDF-1.7 two")], "nothing is kept of what is gone");
    }

    /// Documents that were cut by older rules are recorded anew, and their old passages are no longer found.
    #[test]
    fn older_cuts_are_recorded_anew() {
        let memory = Memory::in_memory(Index::options(Options::default()).unwrap()).unwrap();
        let todo = TodoId::from_foreign("documents");
        let text = "# 泊位\n\n苍鹭号停在三号泊位。\n".to_owned();
        let content = Content::Text { text, is_markdown: true };
        let document = Document { path: "泊位.md".to_owned(), content };
        let before = messages(&document, &hash(document.content.bytes(), RULES - 1)).unwrap();
        memory.session(&todo).unwrap().record_all(before).unwrap();
        for is_new in [true, false] {
            let mut index = Index::open(memory.clone(), todo.clone()).unwrap();
            index.begin();
            assert_eq!(index.take(&document).unwrap(), Ok(is_new));
            assert_eq!(index.counts(), (1, 1));
            assert_eq!(index.search("苍鹭号停在哪里", 9).unwrap().len(), 1);
        }
    }
}
