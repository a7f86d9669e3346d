//! The graph over a large todo's vectors (HNSW), a cache beside `vectors.i8`.

use super::codes::{CodeGroup, Codes};
use super::{Damage, Folder};
use hnsw_rs::api::AnnT;
use hnsw_rs::hnsw::Hnsw;
use hnsw_rs::hnswio::HnswIo;
use hnsw_rs::prelude::Distance;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Neighbours of a row; above 256 the library ends the process.
const NEIGHBOURS: usize = 16;
/// How many candidates are looked at when a row is added.
const BUILD_EFFORT: usize = 128;
/// The most layers that the library takes.
const LAYERS: usize = 16;
/// The name under which the files of graphs begin.
const NAME: &str = "graph-";

/// A graph over the first rows of one model. It proposes rows; what it leaves out is scanned.
pub(crate) struct Graph {
    head: Head,
    hnsw: Hnsw<'static, i8, CodeDistance>,
}

/// What says which graph there is. It is written last, so that it never names half of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    model_id: String,
    dim: usize,
    rows: usize,
    /// The hash of the rows' codes.
    codes: u64,
    /// The hashes of the two files.
    files: [u64; 2],
}

const FORMAT: u32 = 1;

impl Graph {
    /// The graph of the folder, if there is a whole one that belongs to these codes.
    /// `loaded` is used again when it is that one.
    pub(crate) fn open(
        folder: &Folder,
        codes: &Codes,
        loaded: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let head: Head = serde_json::from_slice(&std::fs::read(folder.graph()).ok()?).ok()?;
        let group = codes.group(&head.model_id, head.dim)?;
        let fits = head.format == FORMAT
            && head.rows <= group.len()
            && head.codes == group.hash_of(head.rows);
        if let Some(loaded) = loaded.filter(|loaded| fits && loaded.head == head) {
            return Some(loaded.clone());
        }
        if !fits || head.files != hash_files(folder, head.rows).ok()? {
            return None;
        }
        // A graph borrows from what loaded it, as the library also loads by mapping files. Nothing
        // is mapped here, so what stays behind is a path and a few flags, once for each load.
        let io: &'static HnswIo = Box::leak(Box::new(HnswIo::new(folder.root(), &name(head.rows))));
        // The checksums hold, so the files are as the library wrote them; a library of another
        // version may still give up on them, and does so with a panic.
        let load = AssertUnwindSafe(|| io.load_hnsw_with_dist(CodeDistance));
        let loaded = std::panic::catch_unwind(load);
        let mut hnsw: Hnsw<'static, i8, CodeDistance> = loaded.ok()?.ok()?;
        hnsw.set_searching_mode(true);
        (hnsw.get_nb_point() == head.rows).then(|| Arc::new(Self { head, hnsw }))
    }

    /// Builds the graph over all rows and writes it in place of the one that is there. One thread
    /// adds row after row, so the same rows give the same graph.
    pub(crate) fn build(folder: &Folder, group: &CodeGroup) -> Result<(), Damage> {
        let rows = group.len();
        let hnsw = Hnsw::new(NEIGHBOURS, rows, LAYERS, BUILD_EFFORT, CodeDistance);
        let mut point = Vec::with_capacity(group.dim + 4);
        for row in 0..rows {
            write_point(group.codes(row), &mut point);
            hnsw.insert_slice((&point, row));
        }
        remove(folder, &name(rows));
        let written = hnsw.file_dump(folder.root(), &name(rows)).map_err(|e| e.to_string())?;
        if written != name(rows) {
            return Err(format!("the graph was written as {written}"));
        }
        let words = |error: std::io::Error| error.to_string();
        for path in files(folder, rows) {
            File::open(path).and_then(|file| file.sync_all()).map_err(words)?;
        }
        let head = Head {
            format: FORMAT,
            model_id: group.model_id.clone(),
            dim: group.dim,
            rows,
            codes: group.hash_of(rows),
            files: hash_files(folder, rows).map_err(words)?,
        };
        let text = serde_json::to_vec(&head).map_err(|error| error.to_string())?;
        replace(&folder.graph(), &text).map_err(words)?;
        remove_others(folder, rows);
        Ok(())
    }

    /// How many rows of `group` the graph holds.
    pub(crate) fn rows_of(&self, group: &CodeGroup) -> usize {
        let same = self.head.model_id == group.model_id && self.head.dim == group.dim;
        if same { self.head.rows } else { 0 }
    }

    /// About the `count` rows that are nearest to a unit vector.
    pub(crate) fn nearest(&self, vector: &[f32], count: usize) -> Vec<usize> {
        let largest = vector.iter().fold(f32::MIN_POSITIVE, |max, value| max.max(value.abs()));
        let codes: Vec<i8> =
            vector.iter().map(|value| (value / largest * 127.0).round() as i8).collect();
        let mut point = Vec::with_capacity(codes.len() + 4);
        write_point(&codes, &mut point);
        let found = self.hnsw.search(&point, count, count + count / 2);
        let mut rows: Vec<usize> = found.iter().map(|neighbour| neighbour.d_id).collect();
        rows.sort_unstable();
        rows
    }

    pub(crate) fn bytes(&self) -> usize {
        // The library keeps a copy of each row, and for each of its links 24 bytes.
        self.head.rows * (self.head.dim + NEIGHBOURS * 2 * 24 + 128)
    }
}

/// One less the cosine of two rows. A row is its codes, and behind them the inverse of their
/// length in four bytes, so that lengths are not computed again for each pair. The library's own
/// distance for products gives up on rounding errors; this one cannot be negative.
#[derive(Clone, Copy, Default)]
struct CodeDistance;

impl Distance<i8> for CodeDistance {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        let (Some((a, a_inverse)), Some((b, b_inverse))) =
            (a.split_last_chunk::<4>(), b.split_last_chunk::<4>())
        else {
            return 1.0;
        };
        let product: i32 = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        let inverse = |bytes: &[i8; 4]| f32::from_le_bytes(bytes.map(|byte| byte as u8));
        (1.0 - product as f32 * inverse(a_inverse) * inverse(b_inverse)).max(0.0)
    }
}

fn write_point(codes: &[i8], point: &mut Vec<i8>) {
    let square: i32 = codes.iter().map(|code| i32::from(*code).pow(2)).sum();
    let inverse = if square > 0 { 1.0 / (square as f32).sqrt() } else { 0.0 };
    point.clear();
    point.extend_from_slice(codes);
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
    Ok([xxh3_64(&std::fs::read(graph)?), xxh3_64(&std::fs::read(data)?)])
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
        // What cannot be removed only takes space until the next time.
        drop(std::fs::remove_file(folder.root().join(format!("{name}.hnsw.{part}"))));
    }
}

/// Removes the files of older graphs.
fn remove_others(folder: &Folder, rows: usize) {
    let Ok(entries) = std::fs::read_dir(folder.root()) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if let Some(stem) = file.strip_suffix(".hnsw.graph").or(file.strip_suffix(".hnsw.data"))
            && stem.starts_with(NAME)
            && stem != name(rows)
        {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}
