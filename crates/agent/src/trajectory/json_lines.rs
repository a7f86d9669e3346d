//! Records as JSON Lines: one run per line.

use super::{TRAJECTORY_VERSION, Trajectory};
use serde::Deserialize;
use std::io::{self, BufRead, Write};

/// Writes a record as one line.
///
/// # Errors
/// When the line cannot be written.
pub fn write_trajectory(record: &Trajectory, mut out: impl Write) -> io::Result<()> {
    let line = serde_json::to_string(record)?;
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")
}

/// Reads records, one per line; empty lines are skipped.
pub fn read_trajectories(
    lines: impl BufRead,
) -> impl Iterator<Item = Result<Trajectory, TrajectoryError>> {
    let numbered = lines.lines().zip(1..);
    numbered.filter_map(|(line, number)| match line {
        Ok(line) if line.trim().is_empty() => None,
        Ok(line) => Some(read(&line, number)),
        Err(source) => Some(Err(TrajectoryError::Read { line: number, source })),
    })
}

fn read(text: &str, line: usize) -> Result<Trajectory, TrajectoryError> {
    // Of an unknown version, only the version number is certain to be readable.
    let version = serde_json::from_str::<Version>(text)
        .map_err(|source| TrajectoryError::Shape { line, source })?
        .situation
        .version;
    if version > TRAJECTORY_VERSION {
        return Err(TrajectoryError::Version { line, version });
    }
    serde_json::from_str(text).map_err(|source| TrajectoryError::Shape { line, source })
}

#[derive(Deserialize)]
struct Version {
    situation: VersionOf,
}

#[derive(Deserialize)]
struct VersionOf {
    version: u32,
}

/// The error for a line that is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrajectoryError {
    /// The line cannot be read.
    #[error("line {line} of the trajectories cannot be read: {source}")]
    Read {
        /// Its number, counted from 1.
        line: usize,
        /// The cause.
        source: io::Error,
    },
    /// The line is not a trajectory.
    #[error("line {line} is not a trajectory: {source}")]
    Shape {
        /// Its number, counted from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// The record is newer than this reader.
    #[error(
        "line {line} is a trajectory of version {version}; this reader knows versions up to {TRAJECTORY_VERSION}"
    )]
    Version {
        /// Its number, counted from 1.
        line: usize,
        /// The version it states.
        version: u32,
    },
}
