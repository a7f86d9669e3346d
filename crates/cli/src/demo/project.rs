//! The project that the demo works on: small, invented, and written anew for each run.

use crate::error::CliError;
use std::fmt::Write as _;
use std::path::Path;

/// Its files, except the readings.
const FILES: [(&str, &str); 7] = [
    ("README.md", include_str!("project/README.md")),
    ("report.awk", include_str!("project/report.awk")),
    ("report.sh", include_str!("project/report.sh")),
    ("check.sh", include_str!("project/check.sh")),
    ("docs/format.md", include_str!("project/docs/format.md")),
    ("docs/stations.md", include_str!("project/docs/stations.md")),
    ("notes/calibration.md", include_str!("project/notes/calibration.md")),
];

/// The stations, and how far the tide of each is above that of the first, in millimetres and hours.
const STATIONS: [(&str, i32, i32); 4] =
    [("Holm", 0, 0), ("Ness", 110, 1), ("Skarv", -60, 2), ("Vik", 240, 5)];

/// The number of days with readings.
const DAYS: i32 = 30;

/// The level at each hour of half a tide, in millimetres.
const TIDE: [i32; 12] = [0, 140, 540, 1_080, 1_620, 2_010, 2_160, 2_020, 1_620, 1_080, 540, 140];

/// Writes the project into a new folder.
pub(crate) fn write_project(dir: &Path) -> Result<(), CliError> {
    let readings = readings();
    let data = ("data/readings.csv", readings.as_str());
    for (name, content) in FILES.into_iter().chain([data]) {
        let path = dir.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        written.and_then(|()| std::fs::write(&path, content)).map_err(|source| CliError::Io {
            what: format!("{} could not be written", path.display()),
            source,
        })?;
    }
    Ok(())
}

/// The readings as CSV, the same each time. Now and then a gauge cannot be reached.
fn readings() -> String {
    let mut csv = "station,day,hour,level_mm\n".to_owned();
    for day in 1..=DAYS {
        for hour in 0..24 {
            for (n, (station, above, later)) in (0..).zip(STATIONS) {
                let at = (day * 24 + hour - later).rem_euclid(12);
                let wave = (day * 37 + hour * 23 + n * 11).rem_euclid(29) - 14;
                let level = TIDE.get(at.unsigned_abs() as usize).copied().unwrap_or_default();
                let is_lost = match station {
                    "Skarv" => (day * 24 + hour) % 31 == 7,
                    "Ness" => (day * 24 + hour) % 97 == 50,
                    _ => false,
                };
                let level = if is_lost { -9_999 } else { level + above + wave };
                // Writing to a string does not fail.
                let _ = writeln!(csv, "{station},{day},{hour},{level}");
            }
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readings_hold_levels_and_hours_without() {
        let readings = readings();
        let levels = readings.lines().skip(1).filter_map(|line| line.rsplit(',').next());
        let levels: Vec<i32> = levels.map(|level| level.parse().unwrap()).collect();
        assert_eq!(levels.len(), 4 * 24 * DAYS as usize);
        let lost = levels.iter().filter(|level| **level == -9_999).count();
        let possible = levels.iter().filter(|level| (-500..3_000).contains(*level)).count();
        assert!(lost >= 5 && lost + possible == levels.len(), "{lost}, {possible}");
    }
}
