//! The graph over a large todo's vectors (HNSW), a cache beside `vectors.i8`.

use super::codes::{CodeGroup, Codes};
use super::{Damage, Folder};
use crate::dot::dot_bytes;
use hnsw_rs::api::AnnT;
use hnsw_rs::hnsw::Hnsw;
use hnsw_rs::hnswio::HnswIo;
use hnsw_rs::prelude::Distance;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::Xxh3;

/// Neighbours of a row; above 256 the library aborts the process.
const NEIGHBOURS: usize = 16;
/// How many candidates are examined when a row is added.
const BUILD_EFFORT: usize = 128;
/// The most layers that the library accepts.
const LAYERS: usize = 16;
/// The prefix of the names of graph files.
const NAME: &str = "graph-";

/// The graph over the first rows of one model that a folder holds. It proposes rows; the others are
/// scanned. A scan answers as well, so nothing waits for a graph: it is loaded alongside searches,
/// from the second one on, and a process that searches once never loads it.
pub(crate) struct Graph {
    folder: Folder,
    head: Head,
    /// How often it was requested before it was loaded.
    asked: AtomicU32,
    /// `None` in it when the files are unusable.
    loaded: OnceLock<Option<Loaded>>,
}

/// A graph in memory.
pub(crate) struct Loaded {
    hnsw: Hnsw<'static, i8, CodeDistance>,
}

/// The description of a graph. It is written last, so that it never names half of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    model_id: String,
    dim: usize,
    rows: usize,
    /// How long `vectors.i8` was, and the hash of that much of it.
    code_bytes: u64,
    codes: u64,
    /// The hashes of the two files.
    files: [u64; 2],
}

const FORMAT: u32 = 2;

impl Graph {
    /// Returns the graph of the folder, if there is one that belongs to these codes; its files are
    /// read when it is [`loaded`](Self::loaded). `known` is reused if it is the same one.
    pub(crate) fn open(
        folder: &Folder,
        codes: &Codes,
        known: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let head: Head = serde_json::from_slice(&std::fs::read(folder.graph()).ok()?).ok()?;
        let group = codes.group(&head.model_id, head.dim)?;
        let fits = head.format == FORMAT
            && head.rows <= group.len()
            && codes.hash_of(head.code_bytes) == Some(head.codes);
        if let Some(known) = known.filter(|known| fits && known.head == head && !known.is_bad()) {
            return Some(known.clone());
        }
        let (asked, loaded) = (AtomicU32::new(0), OnceLock::new());
        fits.then(|| Arc::new(Self { folder: folder.clone(), head, asked, loaded }))
    }

    /// Returns the rows for which a graph is due: of the model with the most, when there are more
    /// than `after` of them, and many more than the graph holds.
    pub(crate) fn due<'a>(
        codes: &'a Codes,
        graph: Option<&Self>,
        after: usize,
    ) -> Option<&'a CodeGroup> {
        let group = codes.groups().iter().max_by_key(|group| group.len())?;
        if group.len() <= after {
            return None;
        }
        let held = graph.filter(|graph| !graph.is_bad()).map_or(0, |graph| graph.rows_of(group));
        (group.len() - held > held / 2).then_some(group)
    }

    /// Builds the graph over all rows of a model and replaces the existing one. One thread adds row
    /// after row, so the same rows give the same graph. When `stop` returns true, it abandons the
    /// work, leaves everything as it was, and returns `false`.
    pub(crate) fn build(
        folder: &Folder,
        codes: &Codes,
        group: &CodeGroup,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Damage> {
        let rows = group.len();
        let hnsw = Hnsw::new(NEIGHBOURS, rows, LAYERS, BUILD_EFFORT, CodeDistance);
        let mut point = Vec::with_capacity(group.dim + 4);
        for row in 0..rows {
            if stop() {
                return Ok(false);
            }
            write_point(group.codes(row), &mut point);
            hnsw.insert_slice((&point, row));
        }
        remove(folder, &name(rows));
        // The library panics when it cannot create a file.
        let dump = AssertUnwindSafe(|| hnsw.file_dump(folder.root(), &name(rows)));
        let written = std::panic::catch_unwind(dump)
            .map_err(|_| "the files of the graph cannot be created".to_owned())?
            .map_err(|error| error.to_string())?;
        if written != name(rows) {
            return Err(format!("the graph was written as {written}"));
        }
        let words = |error: std::io::Error| error.to_string();
        for path in files(folder, rows) {
            File::open(path).and_then(|file| file.sync_all()).map_err(words)?;
        }
        let code_bytes = codes.file_bytes();
        let head = Head {
            format: FORMAT,
            model_id: group.model_id.clone(),
            dim: group.dim,
            rows,
            code_bytes,
            codes: codes.hash_of(code_bytes).ok_or("there are no codes")?,
            files: hash_files(folder, rows).map_err(words)?,
        };
        let text = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
        replace(&folder.graph(), &text).map_err(words)?;
        remove_others(folder, Some(rows));
        Ok(true)
    }

    /// Returns whether a model has more than `after` rows and the graph is of that model, so that
    /// it is used.
    pub(crate) fn is_wanted(&self, codes: &Codes, after: usize) -> bool {
        let group = codes.group(&self.head.model_id, self.head.dim);
        group.is_some_and(|group| group.len() > after)
    }

    /// Compares the graph of the folder, if there is one, with its checksums and with these codes.
    pub(crate) fn verify(folder: &Folder, codes: &Codes) -> Result<(), Damage> {
        loop {
            let Ok(text) = std::fs::read(folder.graph()) else { return Ok(()) };
            let verified = Head::verify(&text, folder, codes);
            // A graph that was replaced while its files were read is examined again.
            if verified.is_ok() || std::fs::read(folder.graph()).is_ok_and(|now| now == text) {
                return verified;
            }
        }
    }

    /// Removes the graph of the folder, whatever is left of it. The caller holds the lock for
    /// building graphs.
    pub(crate) fn remove(folder: &Folder) -> std::io::Result<()> {
        match std::fs::remove_file(folder.graph()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => remove_others(folder, None),
        }
        Ok(())
    }

    /// Returns how many rows of `group` the graph holds.
    pub(crate) fn rows_of(&self, group: &CodeGroup) -> usize {
        let same = self.head.model_id == group.model_id && self.head.dim == group.dim;
        if same { self.head.rows } else { 0 }
    }

    /// Returns the graph if it is in memory. The second request starts to load it.
    pub(crate) fn loaded(self: &Arc<Self>) -> Option<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return loaded.as_ref();
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) == 1 {
            let graph = self.clone();
            let thread = std::thread::Builder::new().name("foldback-graph".to_owned());
            // If no thread is available, rows are scanned as before.
            drop(thread.spawn(move || graph.load().is_some()));
        }
        None
    }

    /// Returns the graph, loading it now if necessary; `None` when its files are unusable.
    pub(crate) fn load(&self) -> Option<&Loaded> {
        self.loaded.get_or_init(|| Loaded::read(&self.folder, &self.head)).as_ref()
    }

    /// Returns whether its files turned out to be unusable.
    fn is_bad(&self) -> bool {
        self.loaded.get().is_some_and(Option::is_none)
    }

    /// Returns about how much memory it uses: nothing before loading begins.
    pub(crate) fn bytes(&self) -> usize {
        let is_loading = self.loaded.get().is_none() && self.asked.load(Ordering::Relaxed) > 1;
        if !is_loading && !self.loaded.get().is_some_and(Option::is_some) {
            return 0;
        }
        // The library keeps a copy of each row, and for each of its links 24 bytes.
        self.head.rows * (self.head.dim + NEIGHBOURS * 2 * 24 + 128)
    }
}

impl Head {
    /// Returns what is wrong with the graph that `text` describes.
    fn verify(text: &[u8], folder: &Folder, codes: &Codes) -> Result<(), Damage> {
        let head: Self = serde_json::from_slice(text)
            .map_err(|error| format!("graph.json cannot be read: {error}"))?;
        if head.format != FORMAT {
            return Err(format!("its format is {}, but {FORMAT} was expected", head.format));
        }
        // A newer one may be of codes that were appended since these were read.
        let is_known = head.code_bytes <= codes.file_bytes();
        if is_known && codes.hash_of(head.code_bytes) != Some(head.codes) {
            return Err("it belongs to other vectors than the index".to_owned());
        }
        match hash_files(folder, head.rows) {
            Ok(files) if files == head.files => Ok(()),
            Ok(_) => Err("the checksum of one of its files does not match".to_owned()),
            Err(error) => Err(format!("one of its files cannot be read: {error}")),
        }
    }
}

impl Loaded {
    fn read(folder: &Folder, head: &Head) -> Option<Self> {
        if head.files != hash_files(folder, head.rows).ok()? {
            return None;
        }
        // A graph borrows from its loader, as the library also loads by mapping files. Nothing is
        // mapped here, so only a path and a few flags are leaked, once for each load.
        let io: &'static HnswIo = Box::leak(Box::new(HnswIo::new(folder.root(), &name(head.rows))));
        // The checksums match, so the files are as the library wrote them; another version of the
        // library may still refuse them, and does so with a panic.
        let load = AssertUnwindSafe(|| io.load_hnsw_with_dist(CodeDistance));
        let loaded = std::panic::catch_unwind(load);
        let mut hnsw: Hnsw<'static, i8, CodeDistance> = loaded.ok()?.ok()?;
        hnsw.set_searching_mode(true);
        (hnsw.get_nb_point() == head.rows).then_some(Self { hnsw })
    }

    /// Returns about `count` of the rows that are nearest to a unit vector.
    pub(crate) fn nearest(&self, vector: &[f32], count: usize) -> Vec<usize> {
        let largest = vector.iter().fold(f32::MIN_POSITIVE, |max, value| max.max(value.abs()));
        let codes: Vec<u8> =
            vector.iter().map(|value| (value / largest * 127.0).round() as i8 as u8).collect();
        let mut point = Vec::with_capacity(codes.len() + 4);
        write_point(&codes, &mut point);
        let found = self.hnsw.search(&point, count, count + count / 2);
        let mut rows: Vec<usize> = found.iter().map(|neighbour| neighbour.d_id).collect();
        rows.sort_unstable();
        rows
    }
}

/// One minus the cosine of two rows. A row is its codes, followed by the inverse of their length in
/// four bytes, so that lengths are not computed again for each pair. The library's own distance for
/// products panics on rounding errors; this one cannot be negative.
#[derive(Clone, Copy, Default)]
struct CodeDistance;

impl Distance<i8> for CodeDistance {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        let (Some((a, a_inverse)), Some((b, b_inverse))) =
            (a.split_last_chunk::<4>(), b.split_last_chunk::<4>())
        else {
            return 1.0;
        };
        let product = dot_bytes(a, b);
        let inverse = |bytes: &[i8; 4]| f32::from_le_bytes(bytes.map(|byte| byte as u8));
        (1.0 - product as f32 * inverse(a_inverse) * inverse(b_inverse)).max(0.0)
    }
}

/// Codes, each a signed byte, as the library takes them.
fn write_point(codes: &[u8], point: &mut Vec<i8>) {
    point.clear();
    point.extend(codes.iter().map(|code| *code as i8));
    let square = dot_bytes(point, point);
    let inverse = if square > 0 { 1.0 / (square as f32).sqrt() } else { 0.0 };
    point.extend(inverse.to_le_bytes().map(|byte| byte as i8));
}

fn name(rows: usize) -> String {
    format!("{NAME}{rows}")
}

fn files(folder: &Folder, rows: usize) -> [PathBuf; 2] {
    ["graph", "data"].map(|part| folder.root().join(format!("{}.hnsw.{part}", name(rows))))
}

fn hash_files(folder: &Folder, rows: usize) -> std::io::Result<[u64; 2]> {
    let [graph, data] = files(folder, rows);
    Ok([hash_file(&graph)?, hash_file(&data)?])
}

fn hash_file(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hash.digest()),
            len => hash.update(part.get(..len).unwrap_or_default()),
        }
    }
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(new, path)
}

fn remove(folder: &Folder, name: &str) {
    for part in ["graph", "data"] {
        // A file that cannot be removed only takes space until the next time.
        drop(std::fs::remove_file(folder.root().join(format!("{name}.hnsw.{part}"))));
    }
}

/// Removes the files of all graphs except the one over this many rows.
fn remove_others(folder: &Folder, rows: Option<usize>) {
    let kept = rows.map(name);
    let Ok(entries) = std::fs::read_dir(folder.root()) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if let Some(stem) = file.strip_suffix(".hnsw.graph").or(file.strip_suffix(".hnsw.data"))
            && stem.starts_with(NAME)
            && kept.as_deref() != Some(stem)
        {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}
