//! Files of recorded plans, distinguished by their contents.

use super::gold::{GoldPlan, PlanSet};
use super::{bfcl, nestful, parallel_qa};
use foldback_bench::BenchError;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The contents of plan files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The plans, in the order of the input.
    pub plans: Vec<GoldPlan>,
    /// What was skipped.
    pub left_out: LeftOut,
}

/// Counts of what was skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Tasks without a plan and without a number of branches.
    pub without_plan: usize,
    /// Turns and plans without a call.
    pub without_calls: usize,
}

/// The maximum number of bytes that are unpacked.
const BYTES_MOST: u64 = 1 << 28;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The endings of the files that are read from a folder.
const ENDINGS: [&str; 4] = [".json", ".jsonl", ".json.zst", ".jsonl.zst"];
const EXPECTED: &str = "a plan of NESTFUL (id, task, gold_calls), turns of BFCL (id, turns), or a task \
                        of LLMCompiler's sets (id, task, answer, parallel_branches)";

impl Recorded {
    /// Adds the plans of a file, plain or packed with zstd; for a folder, those of its files.
    ///
    /// # Errors
    /// When it cannot be read, or contains something other than plans.
    pub fn add_path(&mut self, path: &Path) -> Result<(), BenchError> {
        let failed = |source| BenchError::Io {
            what: format!("{} could not be read", path.display()),
            source,
        };
        if !path.is_dir() {
            return self.add(&path.display().to_string(), File::open(path).map_err(failed)?);
        }
        let mut files = Vec::<PathBuf>::new();
        for entry in path.read_dir().map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let name = file.to_string_lossy();
            if file.is_file() && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                files.push(file);
            }
        }
        if files.is_empty() {
            return Err(BenchError::Input(format!(
                "the folder {} contains no plans; expected files named {}",
                path.display(),
                ENDINGS.map(|ending| format!("*{ending}")).join(", ")
            )));
        }
        files.sort_unstable();
        files.iter().try_for_each(|file| self.add_path(file))
    }

    /// Adds the plans of an input: JSON objects one after the other, or in one array.
    ///
    /// # Errors
    /// When it cannot be read, or contains something other than plans.
    pub fn add(&mut self, name: &str, input: impl Read) -> Result<(), BenchError> {
        let text = unpacked(name, input)?;
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let before = self.plans.len() + self.left_out.without_plan + self.left_out.without_calls;
        loop {
            let start = text.get(documents.byte_offset()..).unwrap_or_default();
            let start = text.len() - start.trim_start().len();
            let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
            let place = |what: &str| BenchError::Input(format!("{name}, line {line}: {what}"));
            match documents.next() {
                None => break,
                Some(Err(error)) => return Err(place(&format!("not JSON: {error}"))),
                Some(Ok(Value::Array(items))) => {
                    for (item, number) in items.into_iter().zip(1..) {
                        self.take(item).map_err(|what| place(&format!("item {number}: {what}")))?;
                    }
                }
                Some(Ok(value)) => self.take(value).map_err(|what| place(&what))?,
            }
        }
        let found = self.plans.len() + self.left_out.without_plan + self.left_out.without_calls;
        match found > before {
            true => Ok(()),
            false => Err(BenchError::Input(format!("{name} is empty; expected {EXPECTED}"))),
        }
    }

    fn take(&mut self, value: Value) -> Result<(), String> {
        let has = |key: &str| value.get(key).is_some();
        let read = |error: serde_json::Error| error.to_string();
        if has("gold_calls") {
            let plan = serde_json::from_value::<nestful::Line>(value).map_err(read)?.plan()?;
            self.push(plan);
        } else if has("turns") {
            let (plans, empty) =
                serde_json::from_value::<bfcl::Line>(value).map_err(read)?.plans()?;
            plans.into_iter().for_each(|plan| self.push(plan));
            self.left_out.without_calls += empty;
        } else if has("task") && has("answer") {
            match serde_json::from_value::<parallel_qa::Line>(value).map_err(read)?.plan()? {
                Some(plan) => self.push(plan),
                None => self.left_out.without_plan += 1,
            }
        } else {
            let keys = value.as_object().map(|object| {
                let keys: Vec<String> =
                    object.keys().take(8).map(|key| format!("{key:?}")).collect();
                format!("an object with the keys {}", keys.join(", "))
            });
            let keys = keys.unwrap_or_else(|| "not an object".to_owned());
            return Err(format!("this is {keys}; expected {EXPECTED}"));
        }
        Ok(())
    }

    fn push(&mut self, plan: GoldPlan) {
        match plan.plan.steps.is_empty() {
            true => self.left_out.without_calls += 1,
            false => self.plans.push(plan),
        }
    }

    /// Returns the plans of a set.
    pub fn of(&self, set: PlanSet) -> impl Iterator<Item = &GoldPlan> {
        self.plans.iter().filter(move |plan| plan.set == set)
    }
}

fn unpacked(name: &str, input: impl Read) -> Result<String, BenchError> {
    let failed = |source| BenchError::Io { what: format!("{name} could not be read"), source };
    let mut input = BufReader::new(input);
    let is_packed = std::io::BufRead::fill_buf(&mut input).map_err(failed)?.starts_with(&ZSTD);
    let mut reader: Box<dyn Read> = match is_packed {
        true => Box::new(zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?),
        false => Box::new(input),
    };
    let mut text = String::new();
    let read = reader.by_ref().take(BYTES_MOST + 1).read_to_string(&mut text).map_err(failed)?;
    match read as u64 > BYTES_MOST {
        true => Err(BenchError::Input(format!("{name} holds over {BYTES_MOST} bytes"))),
        false => Ok(text),
    }
}
