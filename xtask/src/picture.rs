//! The pictures of the README and of `docs/start.md`: the report of the example, as Chromium draws it.

use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The conversation that is shown.
const EXAMPLE: &str = "examples/coding-session.jsonl";

/// The call at which the report is opened.
const CALL: u32 = 22;

/// Width and height of a picture, in pixels.
const SIZE: (u32, u32) = (1280, 1104);

/// A larger picture does not belong in a repository.
const BYTES_MOST: u64 = 400_000;

/// The names of Chromium on different systems.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Writes `docs/report-light.png` and `docs/report-dark.png`, and returns their paths.
///
/// # Errors
/// When the command cannot be built, there is no Chromium, or a picture is too large.
pub(crate) fn draw(root: &Path) -> io::Result<Vec<PathBuf>> {
    let root = root.canonicalize()?;
    let scratch = std::env::temp_dir().join(format!("foldback-picture-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let drawn = draw_in(&root, &scratch);
    std::fs::remove_dir_all(&scratch)?;
    drawn
}

fn draw_in(root: &Path, scratch: &Path) -> io::Result<Vec<PathBuf>> {
    let page = scratch.join("report.html");
    let mut replay = Command::new(env!("CARGO"));
    replay.current_dir(root).args(["run", "-q", "-p", "foldback-cli", "--", "replay", "-q"]);
    replay.arg("--report").arg(&page).arg(EXAMPLE).stdout(Stdio::null());
    finished(&mut replay)?;
    let browser = browser()?;
    std::fs::create_dir_all(root.join("docs"))?;
    let mut pictures = Vec::new();
    for theme in ["light", "dark"] {
        let picture = root.join(format!("docs/report-{theme}.png"));
        finished(&mut shot(&browser, &page, theme, scratch, &picture))?;
        let bytes = std::fs::metadata(&picture)?.len();
        if bytes > BYTES_MOST {
            let what = format!("{} has {bytes} bytes, over {BYTES_MOST}", picture.display());
            return Err(Error::other(what));
        }
        pictures.push(picture);
    }
    Ok(pictures)
}

/// Returns a command with which Chromium draws the page, without network access.
fn shot(browser: &str, page: &Path, theme: &str, scratch: &Path, picture: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        "--virtual-time-budget=3000",
    ]);
    command.arg(format!("--user-data-dir={}", scratch.join(theme).display()));
    command.arg(format!("--window-size={},{}", SIZE.0, SIZE.1));
    command.arg(format!("--screenshot={}", picture.display()));
    command.arg(format!("file://{}?theme={theme}#call={CALL}", page.display()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn browser() -> io::Result<String> {
    let answers = |name: &&&str| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = BROWSERS.iter().find(answers).map(|name| (*name).to_owned());
    found.ok_or_else(|| {
        Error::other(format!("no Chromium is installed; looked for {}", BROWSERS.join(", ")))
    })
}

fn finished(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    let program = command.get_program().to_string_lossy().into_owned();
    Err(Error::other(format!("{program} ended with {status}")))
}
