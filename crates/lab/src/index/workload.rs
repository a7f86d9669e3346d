//! The files of workload W1: blocks and questions with their vectors, the same for every contestant.

use foldback_bench::BenchError;
use foldback_core::TodoId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::Path;

/// The number of blocks that are added one by one after those loaded in bulk.
pub(super) const SINGLE_ADDS: usize = 200;

/// Blocks and questions with their vectors, as four files of a folder hold them.
///
/// | file | holds |
/// |---|---|
/// | `meta.json` | `{"n", "dim", "todos", ..}`: blocks to load in bulk, length of a vector, todos |
/// | `blocks.jsonl` | `{"id", "todo", "kind", "text"}` a line: `n` and at least 200 more |
/// | `vectors.f32` | for each of these lines `dim` little-endian numbers in single precision |
/// | `queries.jsonl` | `{"q", "todo", "target", "truth"}` a line: a question, the block it was made from, and the ids of the ten blocks whose vectors are the nearest to its own |
/// | `qvectors.f32` | for each of these lines `dim` numbers |
#[derive(Debug)]
pub struct Workload {
    /// The contents of `meta.json`, for the result.
    pub(super) meta: Meta,
    /// The blocks, in the order in which they are added.
    pub(super) blocks: Vec<Given>,
    vectors: Vec<f32>,
    /// The questions.
    pub(super) questions: Vec<Question>,
    question_vectors: Vec<f32>,
    /// The lines of each todo's blocks: the block `n` of a todo is the `n`-th.
    lines: BTreeMap<TodoId, Vec<usize>>,
}

/// The contents of `meta.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Meta {
    /// The number of blocks that are loaded in bulk.
    pub(super) n: usize,
    /// The length of a vector.
    pub(super) dim: usize,
    /// The number of todos.
    pub(super) todos: usize,
    /// Any further keys: a seed, a version.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A block that is to be added.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) todo: TodoId,
    pub(super) kind: String,
    pub(super) text: String,
}

/// A question to one todo.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) todo: TodoId,
    /// The line of the block from which it was made.
    pub(super) target: usize,
    /// The lines of the blocks that an exact search by meaning finds.
    pub(super) truth: Vec<usize>,
}

#[derive(Deserialize)]
struct BlockLine {
    id: String,
    todo: String,
    kind: String,
    text: String,
}

#[derive(Deserialize)]
struct QuestionLine {
    q: String,
    todo: String,
    target: String,
    truth: Vec<String>,
}

impl Workload {
    /// Reads the workload of a folder.
    ///
    /// # Errors
    /// When a file is missing or not as expected: the error names the file and the line.
    pub fn read(dir: &Path) -> Result<Self, BenchError> {
        let meta_path = dir.join("meta.json");
        let text = std::fs::read_to_string(&meta_path).map_err(unread(&meta_path))?;
        let meta: Meta = serde_json::from_str(&text).map_err(|error| {
            let path = meta_path.display();
            BenchError::Input(format!("{path} is not a description of a workload: {error}"))
        })?;
        if meta.n == 0 || meta.dim == 0 {
            let path = meta_path.display();
            return Err(BenchError::Input(format!("{path}: n and dim must be at least 1")));
        }

        let path = dir.join("blocks.jsonl");
        let (mut blocks, mut ids) = (Vec::new(), BTreeMap::new());
        let mut lines: BTreeMap<TodoId, Vec<usize>> = BTreeMap::new();
        each_line(&path, "a block of id, todo, kind and text", |at, line: BlockLine| {
            let todo = todo(&path, at, &line.todo)?;
            if ids.insert(line.id, at).is_some() {
                return Err(in_line(&path, at, "the id of an earlier line is repeated"));
            }
            lines.entry(todo.clone()).or_default().push(at);
            blocks.push(Given { todo, kind: line.kind, text: line.text });
            Ok(())
        })?;
        let expected = meta.n + SINGLE_ADDS;
        if blocks.len() < expected {
            return Err(BenchError::Input(format!(
                "{} holds {} blocks, but at least {expected} were expected: {} to load in bulk and \
                 {SINGLE_ADDS} to add one by one",
                path.display(),
                blocks.len(),
                meta.n
            )));
        }
        let vectors = vectors(&dir.join("vectors.f32"), blocks.len(), meta.dim)?;

        let path = dir.join("queries.jsonl");
        let mut questions = Vec::new();
        let what = "a question of q, todo, target and truth";
        each_line(&path, what, |at, line: QuestionLine| {
            let known = |id: &String| match ids.get(id) {
                Some(block) if *block < meta.n => Ok(*block),
                _ => {
                    let why = format!("{id:?} is not among the {} blocks loaded in bulk", meta.n);
                    Err(in_line(&path, at, &why))
                }
            };
            if line.truth.is_empty() {
                return Err(in_line(&path, at, "its truth is empty"));
            }
            questions.push(Question {
                todo: todo(&path, at, &line.todo)?,
                target: known(&line.target)?,
                truth: line.truth.iter().map(known).collect::<Result<_, _>>()?,
                text: line.q,
            });
            Ok(())
        })?;
        if questions.is_empty() {
            return Err(BenchError::Input(format!("{} contains no question", path.display())));
        }
        let question_vectors = self::vectors(&dir.join("qvectors.f32"), questions.len(), meta.dim)?;
        Ok(Self { meta, blocks, vectors, questions, question_vectors, lines })
    }

    /// Returns the vector of a block.
    pub(super) fn vector(&self, line: usize) -> &[f32] {
        row(&self.vectors, self.meta.dim, line)
    }

    /// Returns the vector of a question.
    pub(super) fn question_vector(&self, line: usize) -> &[f32] {
        row(&self.question_vectors, self.meta.dim, line)
    }

    /// Returns the line of the block with this number in its todo.
    pub(super) fn line(&self, todo: &TodoId, n: u32) -> Option<usize> {
        self.lines.get(todo)?.get((n as usize).checked_sub(1)?).copied()
    }

    /// Returns the todos of these lines, each with its lines.
    pub(super) fn by_todo(&self, lines: Range<usize>) -> BTreeMap<&TodoId, Vec<usize>> {
        let mut by_todo: BTreeMap<&TodoId, Vec<usize>> = BTreeMap::new();
        for (at, block) in self.blocks.iter().enumerate().take(lines.end).skip(lines.start) {
            by_todo.entry(&block.todo).or_default().push(at);
        }
        by_todo
    }

    /// Returns the bytes of what is loaded in bulk: texts, and vectors in single precision.
    pub(super) fn raw_bytes(&self) -> usize {
        let texts: usize = self.blocks.iter().take(self.meta.n).map(|block| block.text.len()).sum();
        texts + self.meta.n * self.meta.dim * 4
    }
}

fn row(values: &[f32], dim: usize, line: usize) -> &[f32] {
    values.get(line * dim..(line + 1) * dim).unwrap_or_default()
}

/// Passes on the lines of a file, counted from 0.
fn each_line<T: DeserializeOwned>(
    path: &Path,
    what: &str,
    mut take: impl FnMut(usize, T) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let file = std::fs::File::open(path).map_err(unread(path))?;
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| in_line(path, at, &error.to_string()))?;
        let parsed = serde_json::from_str(&line)
            .map_err(|error| in_line(path, at, &format!("{what} was expected: {error}")))?;
        take(at, parsed)?;
    }
    Ok(())
}

/// Reads this many rows of `dim` numbers.
fn vectors(path: &Path, rows: usize, dim: usize) -> Result<Vec<f32>, BenchError> {
    let bytes = std::fs::read(path).map_err(unread(path))?;
    let expected = rows * dim * 4;
    if bytes.len() != expected {
        return Err(BenchError::Input(format!(
            "{} is {} bytes long, but {expected} were expected: {rows} rows of {dim} numbers",
            path.display(),
            bytes.len()
        )));
    }
    let values: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes).collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => {
            let why =
                format!("{} cannot be part of a vector", values.get(at).copied().unwrap_or(0.0));
            Err(BenchError::Input(format!("{}, row {}: {why}", path.display(), at / dim + 1)))
        }
        None => Ok(values),
    }
}

fn todo(path: &Path, at: usize, id: &str) -> Result<TodoId, BenchError> {
    TodoId::new(id).map_err(|error| in_line(path, at, &error.to_string()))
}

fn in_line(path: &Path, at: usize, why: &str) -> BenchError {
    BenchError::Input(format!("{}, line {}: {why}", path.display(), at + 1))
}

fn unread(path: &Path) -> impl Fn(std::io::Error) -> BenchError {
    let what = format!("{} could not be read", path.display());
    move |source| BenchError::Io { what: what.clone(), source }
}
