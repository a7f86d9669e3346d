//! BS6: bytes are verified on every read; damage is reported for that payload, and nothing else
//! stops working.

use crate::world::{Random, World, noise};
use foldback_backend_store::Error;
use foldback_kv::{Batch, Delete, Key, Space};
use std::{fs, path::Path};

/// Reads in every way; whatever is returned must be right.
#[track_caller]
fn never_wrong(world: &World, n: u64, bytes: &[u8]) -> usize {
    let mut errors = 0;
    let mut is_damage = |error: Error| {
        assert!(matches!(error, Error::Corrupt { n: found, .. } if found == n), "{error}");
        errors += 1;
    };
    match world.get(n) {
        Ok(found) => assert!(found == bytes),
        Err(error) => is_damage(error),
    }
    let size = bytes.len() as u64;
    for (start, end) in [(0, 1), (size / 2, size / 2 + 10), (size - 1, size), (0, size)] {
        match world.store.read_range(&world.todo, n, start..end) {
            Ok(found) => assert!(found == bytes[start as usize..end as usize]),
            Err(error) => is_damage(error),
        }
    }
    let total = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    for line in [1, total / 2 + 1, total.max(1)] {
        match world.store.lines(&world.todo, n, line, line, 500) {
            Ok(found) => {
                for run in found.runs {
                    let range = run.bytes.start as usize..run.bytes.end as usize;
                    assert!(run.content == bytes[range]);
                }
            }
            Err(error) => is_damage(error),
        }
    }
    match world.store.matching(&world.todo, n, "7", 0, 100, 1) {
        Ok(found) => {
            for run in found.runs {
                let range = run.bytes.start as usize..run.bytes.end as usize;
                assert!(run.content == bytes[range]);
            }
        }
        Err(error) => is_damage(error),
    }
    errors
}

#[test]
fn bs6_no_flipped_bit_of_a_file_goes_unseen() {
    let world = World::new();
    let text: String = (0..40_000).map(|i| format!("row {i} of the table\n")).collect();
    let payloads = [noise(600_000, 1), text.into_bytes()];
    let metas: Vec<_> = payloads.iter().map(|bytes| world.put(bytes)).collect();
    let mut random = Random(7);
    for round in 0..300 {
        let which = round % 2;
        let (meta, bytes) = (&metas[which], &payloads[which]);
        let path = path_of(&world, &meta.hash);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        // A third each at the front, at the end where the table is, and anywhere.
        let at = match round % 3 {
            0 => random.below(64),
            1 => bad.len() - 1 - random.below(200),
            _ => random.below(bad.len()),
        };
        bad[at] ^= 1 << random.below(8);
        fs::write(&path, &bad).unwrap();

        assert!(never_wrong(&world, meta.n, bytes) > 0, "byte {at}");
        assert!(world.get(meta.n).is_err(), "byte {at}");
        let findings = world.store.verify(&world.todo).unwrap();
        assert_eq!(findings.iter().map(|found| found.n).collect::<Vec<_>>(), [meta.n]);
        let other = 1 - which;
        assert!(world.get(metas[other].n).unwrap() == payloads[other]);
        fs::write(&path, &good).unwrap();
    }
    assert_eq!(world.store.verify(&world.todo).unwrap(), []);
}

#[test]
fn bs6_cut_swapped_and_foreign_files_are_damage() {
    let world = World::new();
    let (a, b) = (noise(300_000, 1), noise(300_000, 2));
    let (first, second) = (world.put(&a), world.put(&b));
    let path = path_of(&world, &first.hash);
    let good = fs::read(&path).unwrap();
    let other = fs::read(path_of(&world, &second.hash)).unwrap();
    let mut version = good.clone();
    version[7] = 2;
    let mut huge = good.clone();
    let at = huge.len() - 96;
    huge[at..at + 8].fill(0xff);
    for (what, bad) in [
        ("empty", &[][..]),
        ("header only", &good[..16]),
        ("half", &good[..good.len() / 2]),
        ("one byte short", &good[..good.len() - 1]),
        ("one byte long", &[&good[..], b"x"].concat()),
        ("another payload", &other),
        ("other version", &version),
        ("huge table", &huge),
        ("zeros", &vec![0; good.len()]),
        ("text", b"Something else altogether, of no format at all."),
    ] {
        fs::write(&path, bad).unwrap();
        let error = world.get(1).unwrap_err();
        assert!(matches!(error, Error::Corrupt { n: 1, .. }), "{what}: {error}");
        assert!(world.store.read_range(&world.todo, 1, 0..1).is_err(), "{what}");
        assert_eq!(world.store.verify(&world.todo).unwrap().len(), 1, "{what}");
        assert!(world.get(2).unwrap() == b, "{what}");
    }
    fs::write(&path, &version).unwrap();
    assert!(world.get(1).unwrap_err().to_string().contains("format version 2"));
    fs::remove_file(&path).unwrap();
    assert_eq!(world.get(1).unwrap_err().to_string(), "payload 1 is damaged: its file is missing");
}

#[test]
fn bs6_a_file_that_was_sealed_anew_is_refused() {
    // An attacker who knows the format writes a file whose own checks all match, under the name and
    // with the hash of another payload.
    let world = World::new();
    let meta = world.put(&[b'a'; 100_000]);
    let path = path_of(&world, &meta.hash);
    let mut file = fs::read(&path).unwrap();
    let table = file.len() - 96 - 24;
    let packed = zstd::bulk::compress(&[b'b'; 100_000], 3).unwrap();
    let mut forged = file[..16].to_vec();
    forged.extend(&packed);
    forged.extend((packed.len() as u32 | 1 << 31).to_le_bytes());
    forged.extend(0_u32.to_le_bytes());
    forged.extend(&blake3::hash(&packed).as_bytes()[..16]);
    forged.extend(file.drain(table + 24..table + 24 + 64));
    let mut hasher = blake3::Hasher::new();
    hasher.update(&forged[..16]).update(&forged[16 + packed.len()..]);
    forged.extend(hasher.finalize().as_bytes());
    fs::write(&path, &forged).unwrap();
    for error in [
        world.get(meta.n).unwrap_err(),
        world.store.read_range(&world.todo, meta.n, 0..10).unwrap_err(),
    ] {
        assert!(error.to_string().contains("not the one that was written"), "{error}");
    }
}

#[test]
fn bs6_damaged_records_are_damage_of_their_payload() {
    let world = World::new();
    let payloads = [b"one ".repeat(200), b"two".to_vec(), b"three".to_vec()];
    for bytes in &payloads {
        world.put(bytes);
    }
    let no = world.todo.no();
    let bytes_key = |n| Key { space: Space::PayloadBytes, todo: no, n };
    let meta_key = |n| Key { space: Space::Payload, todo: no, n };
    let bomb = zstd::bulk::compress(&vec![0; 50 << 20], 19).unwrap();
    for bad in [
        vec![],
        vec![0],
        vec![9, 1],
        b"\0onf".to_vec(),
        b"\x01zz".to_vec(),
        [&[1], &bomb[..]].concat(),
    ] {
        write(&world, bytes_key(1), Some(bad));
        let error = world.get(1).unwrap_err();
        assert!(matches!(error, Error::Corrupt { n: 1, .. }), "{error}");
        assert_eq!(world.get(2).unwrap(), payloads[1]);
    }
    write(&world, bytes_key(1), None);
    assert!(matches!(world.get(1), Err(Error::Corrupt { n: 1, .. })));
    for bad in [vec![], b"nonsense".to_vec(), vec![0x96; 40], vec![0xdd, 0xff, 0xff, 0xff, 0xff]] {
        write(&world, meta_key(2), Some(bad));
        assert!(matches!(world.get(2), Err(Error::Corrupt { n: 2, .. })));
        let metas = world.store.metas(&world.todo, 0, 10).unwrap();
        assert_eq!(metas.iter().map(|meta| meta.n).collect::<Vec<_>>(), [1, 3]);
    }
    assert_eq!(world.get(3).unwrap(), payloads[2]);
    let findings = world.store.verify(&world.todo).unwrap();
    assert_eq!(findings.iter().map(|found| found.n).collect::<Vec<_>>(), [1, 2]);
    write(&world, meta_key(2), None);
    let findings = world.store.verify(&world.todo).unwrap();
    assert_eq!(findings[1].to_string(), "payload 2: it is missing");
}

#[test]
fn bs6_the_same_bytes_again_make_a_payload_whole() {
    let world = World::new();
    let (large, small) = (noise(100_000, 3), b"small".to_vec());
    world.put(&large);
    world.put(&small);
    fs::remove_file(path_of(&world, blake3::hash(&large).as_bytes())).unwrap();
    write(&world, Key { space: Space::PayloadBytes, todo: world.todo.no(), n: 2 }, None);
    for (n, bytes) in [(1, &large), (2, &small)] {
        assert!(world.get(n).is_err());
        let again = world.put_in(&world.todo, bytes);
        assert_eq!((again.meta.n, again.new), (n, false));
        assert!(world.get(n).unwrap() == *bytes);
    }
    assert_eq!(world.put(b"next").n, 3);
    // A record that cannot be read is no reason to lose the bytes: they get a new number.
    write(&world, Key { space: Space::Payload, todo: world.todo.no(), n: 2 }, Some(vec![1]));
    assert_eq!(world.put(&small).n, 4);
    assert_eq!(world.get(4).unwrap(), small);
}

#[test]
fn bs6_a_bit_flipped_in_a_record_is_damage_of_its_payload() {
    let payloads =
        [b"one of them".to_vec(), noise(100_000, 5), "第三个，也是最后一个".as_bytes().to_vec()];
    // (space, number, the number of the same bytes when they are recorded again)
    for (space, n, again) in [
        (Space::Payload, 1, 4),
        (Space::Payload, 2, 4),
        (Space::Payload, 3, 4),
        (Space::PayloadBytes, 1, 1),
        (Space::PayloadBytes, 3, 3),
    ] {
        let world = World::on_disk();
        let metas: Vec<_> = payloads.iter().map(|bytes| world.put(bytes)).collect();
        let key = Key { space, todo: world.todo.no(), n };
        let world = world.with_flipped(key);
        let what = format!("{space} {n}");

        let damage =
            |error: &Error| matches!(error, Error::Corrupt { n: found, .. } if *found == n);
        for (meta, bytes) in metas.iter().zip(&payloads) {
            match world.get(meta.n) {
                Ok(found) => assert!(meta.n != n && found == *bytes, "{what}"),
                Err(error) => assert!(damage(&error), "{what}: {error}"),
            }
            match world.store.resolve(&world.todo, &meta.reference()) {
                Ok(found) => assert_eq!(found, *meta, "{what}"),
                Err(error) => assert!(space == Space::Payload && damage(&error), "{what}: {error}"),
            }
        }
        let findings = world.store.verify(&world.todo).unwrap();
        assert_eq!(findings.iter().map(|found| found.n).collect::<Vec<_>>(), [n], "{what}");

        // The same bytes are not refused.
        let bytes = &payloads[n as usize - 1];
        assert_eq!(world.put(bytes).n, again, "{what}");
        assert!(world.get(again).unwrap() == *bytes, "{what}");
        let left = usize::from(again != n);
        assert_eq!(world.store.verify(&world.todo).unwrap().len(), left, "{what}");
    }
}

#[test]
fn bs6_files_that_cannot_be_read_do_not_end_a_check() {
    let world = World::new();
    world.put(&noise(100_000, 1));
    world.put(b"a record");
    world.put(&noise(100_000, 2));
    // A plain file where the todo's folder was: nothing below it can be reached.
    let folder = world.dir.path().join("payloads").join(world.todo.no().to_string());
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    assert!(matches!(world.get(1), Err(Error::Io { .. })));
    let findings = world.store.verify(&world.todo).unwrap();
    assert_eq!(findings.iter().map(|found| found.n).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn bs6_an_orphan_with_wrong_bytes_is_not_used() {
    let world = World::new();
    let bytes = noise(400_000, 4);
    let mut pending = world.store.begin(&world.todo).unwrap();
    world.store.prepare(&mut pending, &bytes).unwrap();
    drop(pending);
    let path = world.files().remove(0);
    let mut bad = fs::read(&path).unwrap();
    bad[1000] ^= 1;
    fs::write(&path, bad).unwrap();
    world.put(&bytes);
    assert!(world.get(1).unwrap() == bytes);
}

fn path_of(world: &World, hash: &[u8; 32]) -> std::path::PathBuf {
    let name = blake3::Hash::from_bytes(*hash).to_hex().to_string();
    let found: Vec<_> = world
        .files()
        .into_iter()
        .filter(|path| path.file_name() == Some(Path::new(&name).as_os_str()))
        .collect();
    assert_eq!(found.len(), 1);
    found.into_iter().next().unwrap()
}

fn write(world: &World, key: Key, value: Option<Vec<u8>>) {
    let batch = match value {
        Some(value) => Batch { put: vec![(key, value)], ..Batch::default() },
        None => Batch { delete: vec![Delete::one(key)], ..Batch::default() },
    };
    world.kv.commit(batch).unwrap();
}
