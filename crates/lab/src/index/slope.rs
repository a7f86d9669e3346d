//! How fast something grows, and how certain that is.

use serde::Serialize;

/// The slope of the straight line through some points, by ordinary least squares, and the bounds of its
/// 95 % confidence interval.
///
/// With the residuals `e`: `slope ± t(n - 2) · sqrt(Σe² / (n - 2)) / sqrt(Σ(x - mean)²)` (Draper and
/// Smith, Applied Regression Analysis, 3rd edition, section 1.4). It assumes that the points are
/// independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Slope {
    pub(super) slope: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of
/// Statistical Methods, section 1.3.6.7.2). It falls with their number, so the last is used for all
/// higher ones.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Slope {
    /// Returns `None` for fewer than three points, and if all points have the same x.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let freedom = points.len().checked_sub(2)?;
        let t = STUDENT.get(freedom.checked_sub(1)?.min(STUDENT.len() - 1))?;
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let both: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let slope = (spread > 0.0).then(|| both / spread)?;
        let residual = |(x, y): &(f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
        let residuals: f64 = points.iter().map(residual).sum();
        let half = t * (residuals / freedom as f64 / spread).sqrt();
        Some(Self { slope, low: slope - half, high: slope + half })
    }

    /// Returns the slope of the logarithms, over the points that have them: 0 is no growth, 1 is growth
    /// in proportion.
    pub(super) fn of_logs(points: &[(f64, f64)]) -> Option<Self> {
        let positive = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
        Self::of(&positive.map(|(x, y)| (x.ln(), y.ln())).collect::<Vec<_>>())
    }
}

/// Returns the slope and its bounds as cells of a table.
pub(super) fn cells(slope: Option<Slope>) -> [String; 3] {
    slope.map_or_else(
        || [(); 3].map(|()| "-".to_owned()),
        |slope| [slope.slope, slope.low, slope.high].map(|value| format!("{value:.3}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: the sums of squares are 10, 6 (of x with y) and 6, so that 2.4 are left over three
    /// degrees of freedom.
    #[test]
    fn c1_a_slope_has_the_bounds_of_the_textbook() {
        let points = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 4.0), (5.0, 5.0)];
        let Slope { slope, low, high } = Slope::of(&points).unwrap();
        let half = 3.182 * (2.4_f64 / 3.0 / 10.0).sqrt();
        assert!((slope - 0.6).abs() < 1e-12 && (high - slope - half).abs() < 1e-12, "{high}");
        assert!((slope - low - half).abs() < 1e-12, "{low}");
        assert_eq!(Slope::of(&points[..2]), None);
        assert_eq!(Slope::of(&[(1.0, 1.0); 5]), None);
        let many: Vec<_> = (0..200).map(|x| (f64::from(x), f64::from(x % 2))).collect();
        assert!(Slope::of(&many).is_some_and(|slope| slope.low < 0.0 && slope.high > 0.0));
    }

    #[test]
    fn c1_a_power_is_a_slope_among_logarithms() {
        let cubes: Vec<_> =
            [0.0, 1.0, 10.0, 100.0, 1e3].iter().map(|x| (*x, 7.0 * x * x * x)).collect();
        let Slope { slope, low, high } = Slope::of_logs(&cubes).unwrap();
        assert!((slope - 3.0).abs() < 1e-9 && high - low < 1e-6, "{low} {high}");
    }
}
