//! BS2: a large payload is streamed in and out, and a part of it is read, in a few megabytes.

use crate::world::{Random, World};
use foldback_testkit::memory::{grown, is_weighed, weigh};
use std::io::{self, Read, Write};

#[test]
fn bs2_256_megabytes_stream_in_under_8_of_memory() {
    check("memory::bs2_256_megabytes_stream_in_under_8_of_memory", 256);
}

/// `cargo test --release -p foldback-backend-store --test it -- --ignored 1_gigabyte`
#[test]
#[ignore = "takes a while and a gigabyte of disk; the command stands above"]
fn bs2_1_gigabyte_streams_in_under_8_of_memory() {
    check("memory::bs2_1_gigabyte_streams_in_under_8_of_memory", 1024);
}

/// The test of this name streams in a process of its own, so that the peak of its memory is that of the streaming.
fn check(test: &str, megabytes: u64) {
    if is_weighed() {
        return stream(megabytes << 20);
    }
    let grown = grown(test);
    // If the peak cannot be measured, the streaming was at least run.
    assert!(grown.is_none_or(|kilobytes| kilobytes < 8 << 10), "{grown:?} kB");
}

fn stream(bytes: u64) {
    let world = World::new();
    world.put(b"warm");
    weigh(|| {
        let mut pending = world.store.begin(&world.todo).unwrap();
        let prepared = world.store.prepare_stream(&mut pending, Source::new(bytes)).unwrap();
        let batch = foldback_kv::Batch { put: pending.into_puts(), ..Default::default() };
        world.kv.commit(batch).unwrap();

        let mut sink = Compare(Source::new(bytes));
        assert_eq!(world.store.write_to(&world.todo, 2, &mut sink).unwrap(), bytes);
        assert_eq!(sink.0.read(&mut [0]).unwrap(), 0);

        let middle = bytes / 2 + 12_345;
        let range = middle..middle + (64 << 10);
        assert_eq!(world.store.read_range(&world.todo, 2, range).unwrap().len(), 64 << 10);
        let line = prepared.meta.lines / 2;
        let excerpt = world.store.lines(&world.todo, 2, line, line + 10, 2000).unwrap();
        assert_eq!((excerpt.first_line(), excerpt.last_line()), (line, line + 10));
    });
}

/// Lines of a log that compress about as well as real logs, without ever being in memory as a whole.
struct Source {
    left: u64,
    block: Vec<u8>,
    at: usize,
    random: Random,
}

impl Source {
    fn new(left: u64) -> Self {
        let mut random = Random(1);
        let block = (0..2000)
            .flat_map(|i| format!("{i} GET /item/{} {:x}\n", i * 7, random.next()).into_bytes())
            .collect();
        Self { left, block, at: 0, random }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            // Another block, a little different.
            for _ in 0..200 {
                let at = self.random.below(self.block.len());
                if self.block[at] != b'\n' {
                    self.block[at] = b'a' + (self.random.next() % 26) as u8;
                }
            }
            self.at = 0;
        }
        let count = out.len().min(self.block.len() - self.at).min(self.left as usize);
        out[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        self.left -= count as u64;
        Ok(count)
    }
}

/// A writer that compares the output with the source.
struct Compare(Source);

impl Write for Compare {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; bytes.len()];
        self.0.read_exact(&mut expected)?;
        assert!(expected == bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
