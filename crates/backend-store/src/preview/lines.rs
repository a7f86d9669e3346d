//! Shows the first and the last lines of a text.

use super::shorten;
use foldback_core::thousands;

/// At most this many bytes of a line are shown.
const WIDTH: usize = 160;

/// Returns `lead`, then as many lines from the beginning and, with `tail`, from the end as fit;
/// twice as many from the beginning.
pub(super) fn head_and_tail(
    lead: &str,
    text: &str,
    tail: bool,
    fits: &dyn Fn(&str) -> bool,
) -> String {
    let all = format!("{lead}{}", text.trim_end_matches(['\n', '\r']));
    // Counting the tokens of a large text would cost more than a preview is worth.
    if all.len() <= 16 << 10 && fits(&all) {
        return all;
    }
    let total = text.lines().count();
    let (mut head, mut end) = (Vec::new(), Vec::new());
    let (mut from_start, mut from_end) = (text.lines(), text.lines());
    let show = |head: &[_], end: &[_]| {
        let left_out = total.saturating_sub(head.len() + end.len());
        let mut out = head.to_vec();
        match left_out {
            0 => {}
            1 => out.push("(1 line left out)".into()),
            more => out.push(format!("({} lines left out)", thousands(more as u64)).into()),
        }
        out.extend(end.iter().rev().cloned());
        format!("{lead}{}", out.join("\n"))
    };
    for turn in 0.. {
        if head.len() + end.len() >= total {
            break;
        }
        let (list, line) = if tail && turn % 3 == 1 {
            (&mut end, from_end.next_back())
        } else {
            (&mut head, from_start.next())
        };
        let Some(line) = line else { break };
        list.push(shorten(line, WIDTH));
        if !fits(&show(&head, &end)) {
            let list = if tail && turn % 3 == 1 { &mut end } else { &mut head };
            // The caller cuts a first line that does not fit, which is better than showing nothing.
            if list.len() > 1 || turn > 0 {
                list.pop();
            }
            break;
        }
    }
    show(&head, &end)
}

/// Returns the first line of a log that reports a failure, with its number.
pub(super) fn first_error(text: &str) -> Option<String> {
    let (i, line) = text.lines().enumerate().find(|(_, line)| says_error(line))?;
    Some(format!("line {}: {}\n", thousands(i as u64 + 1), shorten(line.trim(), WIDTH)))
}

fn says_error(line: &str) -> bool {
    const WORDS: [&str; 14] = [
        "error",
        "Error",
        "ERROR",
        "ERR!",
        "FATAL",
        "Fatal",
        "fatal",
        "CRITICAL",
        "FAILED",
        "Exception",
        "Traceback",
        "panicked",
        "错误",
        "失败",
    ];
    // A run that reports no errors is not an error.
    WORDS.iter().any(|word| line.contains(word))
        && !["0 error", "no error", "0 failed", "errors: 0", "without error"]
            .iter()
            .any(|fine| line.contains(fine))
}
