//! How clients judge that their window is full.

use super::{FILES, OPENCODE, client, forgetting, is_summary, wrapped_with};
use crate::shell::Shell;
use foldback_testkit::upstream::{Answer, Said, Seen};

/// GW17: a client judges how full its window is by what was billed. What was left out is not billed, so it does not sum
/// up a conversation that is larger than the window; with nothing left out it does.
#[test]
fn gw17_clients_do_not_compact_what_is_folded() {
    let claude = [
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_DISABLE_THINKING", "1"),
        // If nobody says how large its window is, it waits for the provider's refusal.
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200k"),
    ];
    let model = "claude-haiku-4-5";
    let named = format!("anthropic/{model}");
    for (name, args, env) in [
        (
            "bin/claude",
            vec!["-p", "Read all files.", "--allowedTools", "Read", "--model", model],
            &claude[..],
        ),
        ("bin/opencode", vec!["run", "-m", &named, "Read all files."], &OPENCODE),
    ] {
        let Some(program) = client(name) else { continue };
        for (options, compacts) in [(&["--recall", "off"][..], true), (&[], false)] {
            let shell = Shell::new();
            shell.folders(&["home", "work"]);
            for n in 0..FILES {
                let line =
                    |m: usize| format!("{n}.{m}: the line {} says nothing of value\n", m * 7);
                shell.write(&format!("work/f{n}.txt"), (0..600).map(line).collect::<String>());
            }
            let reads = forgetting(shell.path("work"));
            let script = move |seen: &Seen| match is_summary(seen) {
                true => Answer::Said(Said::text("<summary>The files say nothing.</summary>")),
                false => reads(seen),
            };
            let (ran, seen) = wrapped_with(&shell, &program, &args, env, options, script);
            assert_eq!(ran.code, 0, "{name}: {ran:?}");
            let sizes: Vec<_> = seen.iter().map(|seen| seen.body.len()).collect();
            assert_eq!(seen.iter().any(is_summary), compacts, "{name} {options:?}: {sizes:?}");
        }
    }
}
