//! R5: 24 classes of malformed input. Each case is derived at random from a sound artefact, and is
//! answered with a typed error, a finding of the doctor, or the right answer; never with a wrong one, a
//! panic, or much memory.

mod damaged_files;
mod damaged_records;
mod hostile_inputs;

use crate::fuzzing::fuzzed::sound_store::{Readings, SoundStore, sound_store};
use foldback::kv::Kv;
use foldback::{ErrorKind, Memory};
use foldback_testkit::memory::{growth, is_weighed, told};
use foldback_testkit::{Random, effort};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

/// A class of malformed input.
struct Class {
    name: &'static str,
    /// Makes a case and reads it; returns whether it was reported.
    case: fn(&mut Random) -> bool,
    told: Told,
}

/// The number of cases that must be reported.
#[derive(Clone, Copy)]
enum Told {
    /// Every case.
    Always,
    /// At least half: the others change nothing that is read.
    Mostly,
    /// The answer is the right one, or as good.
    Harmless,
}

const fn class(name: &'static str, case: fn(&mut Random) -> bool, told: Told) -> Class {
    Class { name, case, told }
}

const CLASSES: [Class; 24] = [
    class("truncated record", damaged_records::truncated, Told::Mostly),
    class("truncated header", damaged_files::truncated_header, Told::Always),
    class("zero-length file", damaged_files::emptied, Told::Mostly),
    class("wrong magic", damaged_files::wrong_magic, Told::Always),
    class("future version", damaged_files::future_version, Told::Always),
    class("bad checksum", damaged_files::bad_checksum, Told::Always),
    class("length beyond the file", damaged_records::length_beyond, Told::Always),
    class("length of all bits", damaged_records::length_of_all_bits, Told::Always),
    class("negative or overflowing offset", hostile_inputs::offset, Told::Always),
    class("duplicate number", damaged_records::duplicate, Told::Always),
    class("gap in the numbers", damaged_records::gap, Told::Always),
    class("numbers that go back", damaged_records::regress, Told::Always),
    class("dangling reference", damaged_records::dangling, Told::Always),
    class("reference to another todo", hostile_inputs::other_todo, Told::Always),
    class("wrong hash", damaged_records::wrong_hash, Told::Always),
    class("invalid UTF-8", damaged_records::no_text, Told::Always),
    class("vector with a number that is none", damaged_records::no_number, Told::Always),
    class("zero vector", damaged_records::zero_vector, Told::Harmless),
    class("wrong dimension", damaged_records::wrong_dimension, Told::Harmless),
    class("vector of another model", damaged_records::other_model, Told::Harmless),
    class("edge of the graph out of range", damaged_files::wild_edges, Told::Always),
    class("corrupt meta.json", damaged_files::corrupt_meta, Told::Mostly),
    class("compressed bomb", hostile_inputs::bomb, Told::Always),
    class("deep nesting in arguments", hostile_inputs::deep_arguments, Told::Always),
];

/// The number of cases in a class.
const CASES: u32 = 52;

/// The maximum memory of a class, in kilobytes.
const MOST_MEMORY: u64 = 64 << 10;

/// R5: 52 cases of each class in the whole run (13 in a short one), each class within 64 MB.
#[test]
fn r5_malformed_input_is_an_error_within_bounds() {
    each_within_bounds("r5_malformed_input_is_an_error_within_bounds", 0);
}

/// R5: the same for the other half of the classes, so that two cores share the work.
#[test]
fn r5_more_malformed_input_is_an_error_within_bounds() {
    each_within_bounds("r5_more_malformed_input_is_an_error_within_bounds", 1);
}

/// Reads the cases of every second class, from the first or the second on, in a process of its own.
fn each_within_bounds(test: &str, from: usize) {
    if is_weighed() {
        return read_malformed_input(from);
    }
    let said = told(&format!("malformed::{test}"));
    let classes: Vec<&String> = said.iter().filter(|line| line.contains("class ")).collect();
    let is_whole = std::env::var_os("FOLDBACK_MALFORMED").is_none();
    assert!(classes.len() == CLASSES.len() / 2 || !is_whole, "{said:#?}");
    classes.iter().for_each(|line| println!("{line}"));
}

fn read_malformed_input(from: usize) {
    let only = std::env::var("FOLDBACK_MALFORMED").unwrap_or_default();
    assert!(!check(sound_store().kv(&[]), sound_store().dir.path(), &[]), "the store is sound");
    assert!(!damaged_files::sound_is_told(), "the store on disk is sound");
    let mut fell = Vec::new();
    let classes = CLASSES.iter().zip(1..).skip(from).step_by(2);
    for (class, seed) in classes.filter(|(class, _)| class.name.contains(&only)) {
        if catch_unwind(|| run(class, seed)).is_err() {
            fell.push(class.name);
        }
    }
    assert!(fell.is_empty(), "{fell:?}");
}

fn run(class: &Class, seed: u64) {
    let (Class { name, case, told }, cases) = (class, effort(CASES));
    let (mut random, mut told_of) = (Random::new(seed), 0);
    let grown = growth(|| {
        for n in 0..cases {
            let is_told = case(&mut random);
            assert!(is_told || !matches!(told, Told::Always), "{name}, case {n}: nobody is told");
            told_of += u32::from(is_told);
        }
    });
    assert!(!matches!(told, Told::Mostly) || told_of * 2 >= cases, "{name}: {told_of} of {cases}");
    assert!(grown.is_none_or(|grown| grown < MOST_MEMORY), "{name}: {grown:?} kB");
    println!("class {name}: {cases} cases, {told_of} told, {} kB", grown.unwrap_or_default());
}

/// Reads a store in every way; what is read is right except for keys with this beginning. Returns
/// whether anything was refused or found.
#[track_caller]
fn check(kv: Arc<dyn Kv>, dir: &Path, except: &[&str]) -> bool {
    match SoundStore::open_kv(kv, dir) {
        Ok(memory) => is_told(&memory, &sound_store().readings, except),
        Err(error) => is_typed(&error),
    }
}

#[track_caller]
fn is_told(memory: &Memory, sound: &Readings, except: &[&str]) -> bool {
    let read = Readings::of(memory);
    let mut wrong = sound.wrong(&read);
    wrong.retain(|wrong| !except.iter().any(|except| wrong.contains(except)));
    assert!(wrong.is_empty(), "{wrong:#?}");
    match memory.maintenance().doctor() {
        Ok(checkup) => !checkup.is_clean() || !read.errors.is_empty(),
        Err(error) => is_typed(&error),
    }
}

#[track_caller]
fn is_typed(error: &foldback::Error) -> bool {
    assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
    true
}

/// Returns one of these.
fn one_of<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len())]
}
