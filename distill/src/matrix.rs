//! Products of matrices, row by row, always added in one order.

/// Rows of one width, one after the other.
#[derive(Clone)]
pub(crate) struct Matrix {
    pub(crate) width: usize,
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    pub(crate) fn zeros(rows: usize, width: usize) -> Self {
        Self { width, values: vec![0.0; rows * width] }
    }

    pub(crate) fn from_rows<'r>(width: usize, rows: impl Iterator<Item = &'r [f32]>) -> Self {
        Self { width, values: rows.flatten().copied().collect() }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.values.chunks_exact_mut(self.width)
    }

    pub(crate) fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.width..][..self.width]
    }

    pub(crate) fn row_mut(&mut self, at: usize) -> &mut [f32] {
        &mut self.values[at * self.width..][..self.width]
    }

    pub(crate) fn transposed(&self) -> Self {
        let height = self.values.len() / self.width;
        let mut turned = Self::zeros(self.width, height);
        for (y, row) in self.rows().enumerate() {
            for (x, value) in row.iter().enumerate() {
                turned.values[x * height + y] = *value;
            }
        }
        turned
    }

    /// `self` times `other`.
    pub(crate) fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.values.len() / self.width, other.width);
        // Rows of `other` in groups that stay in the cache.
        const GROUP: usize = 64;
        for (group, others) in other.values.chunks(GROUP * other.width).enumerate() {
            for (row, sums) in self.rows().zip(product.rows_mut()) {
                let factors = &row[group * GROUP..];
                for (factor, other) in factors.iter().zip(others.chunks_exact(other.width)) {
                    add_scaled(sums, *factor, other);
                }
            }
        }
        product
    }
}

/// Adds `factor` times `other` to `sums`.
pub(crate) fn add_scaled(sums: &mut [f32], factor: f32, other: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(other) {
        *sum += factor * value;
    }
}

/// The inner product.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Brings `row` to length 1 and returns the length that it had; zeros stay zeros, and give 1.
pub(crate) fn to_unit(row: &mut [f32]) -> f32 {
    let length = dot(row, row).sqrt();
    let length = if length > 0.0 { length } else { 1.0 };
    row.iter_mut().for_each(|value| *value /= length);
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_rows_by_columns() {
        let a = Matrix { width: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };
        let product = a.times(&a.transposed());
        assert_eq!((product.width, product.values), (2, vec![14.0, 32.0, 32.0, 77.0]));
        // More rows than a group has.
        let column = Matrix { width: 1, values: vec![1.0; 200] };
        assert_eq!(column.transposed().times(&column).values, [200.0]);
    }

    #[test]
    fn a_unit_row_keeps_its_direction() {
        let mut row = [3.0, 4.0];
        assert_eq!(to_unit(&mut row), 5.0);
        assert!((row[0] - 0.6).abs() < 1e-6 && (row[1] - 0.8).abs() < 1e-6);
        assert_eq!(to_unit(&mut [0.0; 2]), 1.0);
    }
}
