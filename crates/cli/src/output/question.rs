//! A question at the terminal that has to be agreed to before something is changed or deleted.

use crate::error::CliError;
use std::io::{self, IsTerminal as _, Write as _};

/// Whether somebody can answer: whether stdin is a terminal.
pub(crate) fn can_be_answered() -> bool {
    io::stdin().is_terminal()
}

/// Asks a question on stderr, which must be a terminal, too. Only `y` and `yes` agree; nothing, and the end of the input,
/// do not.
pub(crate) fn agreed(question: &str) -> Result<bool, CliError> {
    let failed =
        |source| CliError::Io { what: "the question could not be asked".to_owned(), source };
    let mut asked = io::stderr();
    if !asked.is_terminal() {
        let why =
            "the question cannot be shown, because stderr is not a terminal; --yes agrees to it";
        return Err(CliError::Usage(why.to_owned()));
    }
    let question = format!("{question} [y/N] ");
    asked.write_all(question.as_bytes()).and_then(|()| asked.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_yes_agrees() {
        for answer in ["y\n", "Y\r\n", " yes \n", "YES"] {
            assert!(is_yes(answer), "{answer:?}");
        }
        for answer in ["", "\n", "n\n", "no\n", "yy\n", "是\n"] {
            assert!(!is_yes(answer), "{answer:?}");
        }
    }
}
