//! Quantiles of a few numbers.

/// Interpolates between the two nearest of the ascending numbers, in proportion; 0 for none.
#[must_use]
pub fn quantile(ascending: &[f64], q: f64) -> f64 {
    let place = q * ascending.len().saturating_sub(1) as f64;
    let at = place.floor() as usize;
    let low = ascending.get(at).copied().unwrap_or(0.0);
    let high = ascending.get(at + 1).copied().unwrap_or(low);
    low + (high - low) * (place - at as f64)
}
