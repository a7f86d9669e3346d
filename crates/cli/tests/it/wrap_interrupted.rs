//! A wrapped program is interrupted once, from its terminal or by a signal to the command.

use crate::gateway::{provider, wrapping};
use crate::shell::Shell;
use crate::terminal::{has_terminal, on_a_terminal};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

/// Reports each interrupt; a moment after the first, ends with an exit code of its own. `wait` hears a signal at once.
const PROGRAM: &str = "trap 'echo interrupted; is_over=1' INT; echo ready; \
    while [ -z \"$is_over\" ]; do sleep 1 & wait $!; done; sleep 1 & wait $!; exit 7";

/// No stream is the terminal's.
const PIPED: &str = " </dev/null 2>&1 | (trap '' INT; cat)";

/// Starts the command, interrupts it once its program is ready, and returns its exit code and the number of interrupts
/// that the program had.
fn interrupts(
    mut command: Command,
    interrupt: impl FnOnce(&mut std::process::Child),
) -> (i32, usize) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert!(shown.read_line(&mut line).unwrap() > 0, "it ended");
    }
    interrupt(&mut child);
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    (child.wait().unwrap().code().unwrap(), rest.matches("interrupted").count())
}

/// GW17: Ctrl-C reaches the program from its terminal, wherever its input comes from and its output goes.
#[test]
fn gw17_ctrl_c_interrupts_a_program_once() {
    if !has_terminal() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    // The code of a pipe is that of its shell, which is interrupted, too.
    for (streams, code) in [("", Some(7)), (" </dev/null", Some(7)), (PIPED, None)] {
        let mut command = wrapping(&shell, &provider);
        command.args(["sh", "-c", PROGRAM]);
        let mut terminal = on_a_terminal(&command, streams);
        terminal.stdin(Stdio::piped());
        let found = interrupts(terminal, |child| {
            // What is typed at the terminal. It stays open until the command has ended.
            child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        });
        assert_eq!(found, (code.unwrap_or(found.0), 1), "{streams}");
    }
}

/// GW17: an interrupt that only the command gets is passed on.
#[test]
fn gw17_an_interrupt_of_the_command_is_passed_on_once() {
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let mut command = wrapping(&shell, &provider);
    command.args(["sh", "-c", PROGRAM]).stderr(Stdio::null());
    let found = interrupts(command, |child| {
        let id = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    });
    assert_eq!(found, (7, 1));
}
