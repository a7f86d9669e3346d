//! S11: packed inputs that would fill the memory are refused within bounds.

use foldback_transcript::{Conversations, Error, Limits};
use std::io::Write as _;

/// The rest of an input after its beginning is never unpacked beyond this.
const SLACK: u64 = (1 << 20) + (256 << 10);

/// A zstd frame that holds `content`.
fn packed(content: &[u8], level: i32) -> Vec<u8> {
    zstd::encode_all(content, level).unwrap()
}

/// A frame with these header bytes after the magic number, and no content that could follow them.
fn header(bytes: &[u8]) -> Vec<u8> {
    [&[0x28, 0xb5, 0x2f, 0xfd], bytes].concat()
}

/// Reads everything; returns the last error, and how many bytes of conversations there were.
#[track_caller]
fn refused(name: &str, input: &[u8]) -> (Error, u64) {
    let mut read = match Conversations::from_reader(name, input, Limits::default()) {
        Ok(read) => read,
        Err(error) => return (error, 0),
    };
    let (mut last, mut bytes) = (None, 0);
    for one in &mut read {
        match one {
            Ok(conversation) => bytes += conversation.to_original().len() as u64,
            Err(error) => last = Some(error),
        }
    }
    assert!(read.next().is_none(), "{name}: nothing follows it");
    (last.unwrap_or_else(|| panic!("{name} was read")), bytes)
}

/// S11: inputs that unpack to over 100 times their size are refused once they have done so.
#[test]
fn s11_what_unpacks_to_too_much_is_refused_in_time() {
    let zeros = vec![b' '; 40 << 20];
    let line = "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"好\"}]}\n";
    let many_lines = line.repeat(1 << 19);
    let text = format!("{{\"id\":\"{}", "a".repeat(40 << 20));
    let deep = "[".repeat(40 << 20);
    let frame = packed(&zeros[..1 << 20], 3);
    let honest: String = (0_u64..9_000).map(|n| format!("{:x}", n * n * 7_919)).collect();
    let honest = format!("{{\"id\":\"{honest}\",\"messages\":[]}}\n");
    let hidden = [packed(honest.as_bytes(), 3), packed(&zeros, 3)].concat();
    let mut streamed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for part in zeros.chunks(4_096) {
        streamed.write_all(part).unwrap();
    }
    for (name, input) in [
        ("blanks", packed(&zeros, 3)),
        ("blanks, packed harder", packed(&zeros, 19)),
        ("one endless text", packed(text.as_bytes(), 3)),
        ("brackets", packed(deep.as_bytes(), 3)),
        ("one conversation many times", packed(many_lines.as_bytes(), 19)),
        ("many frames", frame.repeat(64)),
        ("behind something honest", hidden),
        ("of no declared length", streamed.finish().unwrap()),
    ] {
        let (error, read) = refused(name, &input);
        let Error::Bomb { ratio: 100, unpacked, .. } = error else { panic!("{name}: {error}") };
        let allowed = input.len() as u64 * 100 + SLACK;
        assert!(unpacked <= allowed, "{name}: {unpacked} of {} bytes", input.len());
        assert!(read <= unpacked, "{name}: {read}");
        assert!(!error.is_damage(), "{name}: a lenient caller does not skip it");
    }
}

/// S11: what is packed twice is not unpacked twice.
#[test]
fn s11_nested_bombs_stay_packed() {
    let twice = packed(&packed(&vec![b' '; 40 << 20], 3), 3);
    let (error, _) = refused("twice", &twice);
    assert!(error.to_string().contains("packed with zstd more than once"), "{error}");
    // Packed ten times, it is still unpacked only once.
    let ten = (0..8).fold(twice, |inside, _| packed(&inside, 3));
    let (error, _) = refused("ten times", &ten);
    assert!(error.to_string().contains("packed with zstd more than once"), "{error}");
}

/// S11: a length or window that a header declares is not allocated.
#[test]
fn s11_what_a_header_declares_is_not_believed() {
    // A window of 2^41 bytes; of 2^27, which the format recommends as the most.
    for window in [0xf8, 17 << 3] {
        let (error, _) = refused("window", &header(&[0x00, window, 0x01, 0x00, 0x00]));
        assert!(error.to_string().contains("cannot be unpacked"), "{error}");
    }
    // A content of 2^62 bytes in a frame without a window of its own.
    let mut long = vec![0xe0];
    long.extend((1_u64 << 62).to_le_bytes());
    let (error, _) = refused("content", &header(&long));
    assert!(error.to_string().contains("cannot be unpacked"), "{error}");
    // The same with a small window, and a first block that is as it should be.
    let mut long = vec![0xc0, 0x00];
    long.extend((1_u64 << 62).to_le_bytes());
    long.extend([0x20, 0x00, 0x00]);
    long.extend(b"{\"a\"");
    let (error, read) = refused("content", &header(&long));
    assert!(error.to_string().contains("cannot be unpacked") && read == 0, "{error}");
    // A frame that says that it is to be skipped, 4 GiB long.
    let mut skipped = vec![0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff];
    skipped.splice(0..0, packed(b"\n", 3));
    let (error, _) = refused("skipped", &skipped);
    assert!(error.to_string().contains("skipped"), "{error}");
    // Inputs that ask for no more than strong compression does are read.
    let line = b"{\"id\":\"a\",\"messages\":[]}";
    let hard = packed(line, 20);
    assert!(Conversations::from_reader("hard", hard.as_slice(), Limits::default()).is_ok());
}
