//! The rows of the table, read in place from the program.

use wide::bytemuck::cast;
use wide::i16x16;

/// How many word pieces there are.
pub(crate) const ROWS: usize = 30_522;

/// The length of a row.
pub(crate) const DIM: usize = 256;

/// How many values are added at a time, with explicit vector instructions.
const LANES: usize = 16;

/// How many units of Chinese, Japanese and Korean there are.
pub(crate) const CJK_ROWS: usize = foldback_cjk_table::ROWS;

/// Returns the row of the word piece `id`; zeros for an id that has none.
pub(crate) fn row(id: u16) -> &'static [u8; DIM] {
    ROW_BYTES.get(usize::from(id)).unwrap_or(&NONE)
}

/// Returns the row of a unit of Chinese, Japanese or Korean; zeros for a number that has none.
pub(crate) fn cjk_row(unit: usize) -> &'static [u8; DIM] {
    CJK_ROW_BYTES.get(unit).unwrap_or(&NONE)
}

const NONE: [u8; DIM] = [0; DIM];

/// Adds up rows without loss and without allocating.
///
/// The values are added in 16 bits, twice as many at a time as in 32, and carried over before they
/// can overflow.
pub(crate) struct Sum {
    small: [i16x16; DIM / LANES],
    large: [i32; DIM],
    rows_in_small: u32,
}

impl Sum {
    /// 258 rows of at most 127 stay below 32,767.
    const CARRY_AFTER: u32 = 256;

    pub(crate) fn new() -> Self {
        Self { small: [i16x16::ZERO; DIM / LANES], large: [0; DIM], rows_in_small: 0 }
    }

    pub(crate) fn add(&mut self, row: &[u8; DIM]) {
        const { assert!(DIM.is_multiple_of(LANES)) };
        let (row, _) = row.as_chunks::<LANES>();
        for (sum, bytes) in self.small.iter_mut().zip(row) {
            *sum += i16x16::from_i8x16(cast(*bytes));
        }
        self.rows_in_small += 1;
        if self.rows_in_small == Self::CARRY_AFTER {
            self.carry();
        }
    }

    /// Appends the sum, scaled to length 1, to `values`; zeros when there is nothing in it.
    pub(crate) fn write_unit(mut self, values: &mut Vec<f32>) {
        self.carry();
        let square: f64 = self.large.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
        let length = if square > 0.0 { square.sqrt() } else { 1.0 };
        values.extend(self.large.iter().map(|&v| (f64::from(v) / length) as f32));
    }

    fn carry(&mut self) {
        let small = self.small.iter().flat_map(i16x16::as_array);
        for (large, small) in self.large.iter_mut().zip(small) {
            *large = large.saturating_add(i32::from(*small));
        }
        self.small = [i16x16::ZERO; DIM / LANES];
        self.rows_in_small = 0;
    }
}

/// The format that `distill` writes: 8 bytes magic, u32 version, u32 rows, u32 length of a row, f32
/// scale, all little-endian, then the rows. The scale cancels out when a sum is scaled to length 1.
const HEADER: usize = 24;
static FILE: &[u8; HEADER + ROWS * DIM] = include_bytes!("../assets/static-minilm-256.bin");

static CJK_FILE: &[u8; HEADER + CJK_ROWS * DIM] = foldback_cjk_table::TABLE;

static ROW_BYTES: &[[u8; DIM]] = rows(FILE, ROWS);
static CJK_ROW_BYTES: &[[u8; DIM]] = {
    assert!(field(FILE, 20) == field(CJK_FILE, 20), "the tables have one scale");
    rows(CJK_FILE, CJK_ROWS)
};

const fn rows(file: &'static [u8], count: usize) -> &'static [[u8; DIM]] {
    let (header, rows) = file.split_at(HEADER);
    assert!(field(header, 0) == u32::from_le_bytes(*b"FBST"));
    assert!(field(header, 4) == u32::from_le_bytes(*b"ATIC"));
    assert!(field(header, 8) == 1, "the table has another version");
    assert!(field(header, 12) as usize == count && field(header, 16) as usize == DIM);
    let (rows, rest) = rows.as_chunks();
    assert!(rest.is_empty());
    rows
}

const fn field(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_many_rows_does_not_overflow() {
        // The row with the largest value in it, more often than 16 bits would hold.
        let id = (0..ROWS as u16)
            .max_by_key(|&id| row(id).iter().map(|b| b.cast_signed().unsigned_abs()).max())
            .unwrap();
        let mut once = Sum::new();
        once.add(row(id));
        let mut often = Sum::new();
        for _ in 0..100_000 {
            often.add(row(id));
        }
        let (mut a, mut b) = (Vec::new(), Vec::new());
        once.write_unit(&mut a);
        often.write_unit(&mut b);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn special_and_unused_pieces_have_no_row() {
        for id in (0..=998).chain([u16::MAX]) {
            assert_eq!(row(id), &[0; DIM], "{id}");
        }
        assert!((999..ROWS as u16).all(|id| row(id) != &[0; DIM]));
    }
}
