//! Principal directions by Jacobi's method, in one order and with one choice of signs.

/// The directions of largest variance of `rows`, largest first, after their mean was taken off
/// them. `rows` are centred in place. The sign of a direction is such that its largest component
/// (the first of equals) is positive; otherwise it would be left to rounding.
pub(crate) fn principal_directions(rows: &mut [Vec<f64>], count: usize) -> Vec<Vec<f64>> {
    center(rows);
    let width = rows.first().map_or(0, Vec::len);
    let mut covariance = vec![vec![0.0; width]; width];
    for row in rows.iter() {
        for (line, x) in covariance.iter_mut().zip(row) {
            for (cell, y) in line.iter_mut().zip(row) {
                *cell += x * y;
            }
        }
    }

    let (values, vectors) = eigen(covariance);
    let mut order: Vec<usize> = (0..width).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order.into_iter().take(count).map(|i| with_sign(&vectors[i])).collect()
}

/// Takes the mean of all rows off each row.
pub(crate) fn center(rows: &mut [Vec<f64>]) {
    let mut mean = vec![0.0; rows.first().map_or(0, Vec::len)];
    for row in rows.iter() {
        for (sum, value) in mean.iter_mut().zip(row) {
            *sum += value;
        }
    }
    for sum in &mut mean {
        *sum /= rows.len() as f64;
    }
    for row in rows.iter_mut() {
        for (value, mean) in row.iter_mut().zip(&mean) {
            *value -= mean;
        }
    }
}

fn with_sign(direction: &[f64]) -> Vec<f64> {
    let mut largest = 0.0f64;
    for &value in direction {
        if value.abs() > largest.abs() {
            largest = value;
        }
    }
    direction.iter().map(|value| value * largest.signum()).collect()
}

/// The eigenvalues of a symmetric matrix and, row by row, their unit eigenvectors: cyclic Jacobi
/// rotations (Golub and Van Loan, Matrix Computations, 8.5), which are slow, short and exact.
fn eigen(mut a: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = a.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let total: f64 = a.iter().flatten().map(|v| v * v).sum();
    for _sweep in 0..50 {
        let off: f64 = (0..n).map(|i| a[i][..i].iter().map(|v| v * v).sum::<f64>()).sum();
        if off <= total * 1e-26 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                rotate_rows(&mut a, p, q, c, s);
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    row[p] = c * x - s * y;
                    row[q] = s * x + c * y;
                }
                rotate_rows(&mut vectors, p, q, c, s);
            }
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), vectors)
}

fn rotate_rows(m: &mut [Vec<f64>], p: usize, q: usize, c: f64, s: f64) {
    let (head, tail) = m.split_at_mut(q);
    for (x, y) in head[p].iter_mut().zip(tail[0].iter_mut()) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretched_cloud_gives_its_axes() {
        // Points along (3, 4) / 5, with a little spread across.
        let mut rows: Vec<Vec<f64>> = (0..40)
            .map(|i| {
                let (along, across) = (f64::from(i) - 7.0, f64::from(i % 3) * 0.1);
                vec![along * 0.6 - across * 0.8, along * 0.8 + across * 0.6]
            })
            .collect();
        let found = principal_directions(&mut rows, 2);
        assert!((found[0][0] - 0.6).abs() < 1e-3 && (found[0][1] - 0.8).abs() < 1e-3);
        let dot: f64 = found[0].iter().zip(&found[1]).map(|(a, b)| a * b).sum();
        assert!(dot.abs() < 1e-12);
        assert!(rows.iter().map(|row| row[0]).sum::<f64>().abs() < 1e-9);
    }

    #[test]
    fn eigenvectors_satisfy_their_equation() {
        let n = 12;
        let matrix: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                (0..n).map(move |j| 1.0 / (1.0 + (i + j) as f64) + f64::from(u8::from(i == j)))
            })
            .map(Iterator::collect)
            .collect();
        let (values, vectors) = eigen(matrix.clone());
        assert_eq!((values.len(), vectors.len()), (n, n));
        for (value, vector) in values.iter().zip(&vectors) {
            assert_eq!(vector.len(), n);
            for (row, x) in matrix.iter().zip(vector) {
                let product: f64 = row.iter().zip(vector).map(|(a, b)| a * b).sum();
                assert!((product - value * x).abs() < 1e-10);
            }
        }
    }
}
