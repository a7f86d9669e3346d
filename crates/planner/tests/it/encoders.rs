//! Values in code, proven by running it.

#![expect(clippy::disallowed_types, reason = "the proof is to run the code")]

use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, BindError, Catalog, FindingKind, Form, Limits, Piece, Plan, Reference, Refusal, Step,
    StepId, StepResult, Template, Validator,
};
use foldback_tool::{Data, Language, ToolSpec};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What a page may say to the code that inserts it.
const HOSTILE: [&str; 27] = [
    "54",
    "54; import os",
    "__import__('os')._exit(7)",
    "'; rm -rf /",
    "\"; exit 7; \"",
    "$(exit 7)",
    "(exit 7)",
    "{PATH}",
    "HOME",
    "`exit 7`",
    "${HOME}",
    "'; DROP TABLE users; --",
    "' OR '1'='1",
    "]]>",
    "</execute_python>",
    "$$step1.result$$",
    "{results[0].data}",
    "a\u{2028}b\u{2029}c",
    "line\nexit 7\n#",
    "\r\n\t\u{b}\u{c}\u{1b}[31m",
    "\\",
    "\\'; exit(7) #",
    "''' + exit(7) + '''",
    "{exit(7)}",
    "%s %d {0} {{}} !r",
    "杭州 👍🏽 e\u{301} \u{202e}abc",
    "",
];

fn tool(language: Option<Language>) -> ToolSpec {
    let definition = ToolDefinition {
        name: "run".to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    };
    let spec = ToolSpec::new(definition);
    match language {
        Some(language) => spec.with_language("code", language),
        None => spec,
    }
}

/// Code with `@` in place of the result of step 1, and `%` in place of that of step 2.
fn template(code: &str) -> Template {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    for c in code.chars() {
        let step = match c {
            '@' => StepId(1),
            '%' => StepId(2),
            _ => {
                plain.push(c);
                continue;
            }
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Reference(Reference { step, path: vec![] }));
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    let code = match pieces.as_slice() {
        [Piece::Reference(reference)] => Template::Whole(reference.clone()),
        _ => Template::Mixed(pieces),
    };
    Template::Object(vec![("code".to_owned(), code)])
}

/// The code with a result in its place.
fn encoded(code: &str, language: Option<Language>, data: Data) -> Result<String, BindError> {
    let results = BTreeMap::from([
        (StepId(1), StepResult::Success { data }),
        (StepId(2), StepResult::Success { data: text("second") }),
    ]);
    let catalog: Catalog = [tool(language)].into_iter().collect();
    let bound = catalog.bind("run", &template(code), &results, Limits::default().bound_bytes)?;
    let bound: serde_json::Value = serde_json::from_str(&bound).expect("JSON");
    Ok(bound["code"].as_str().expect("a text").to_owned())
}

fn text(text: &str) -> Data {
    Data { text: text.to_owned(), structured: None }
}

fn json(json: &str) -> Data {
    Data { text: String::new(), structured: Some(json.to_owned()) }
}

#[track_caller]
fn is(code: &str, language: Language, data: Data, expected: &str) {
    assert_eq!(encoded(code, Some(language), data).as_deref(), Ok(expected), "{code}");
}

#[track_caller]
fn refused(code: &str, language: Language) -> Refusal {
    let error = encoded(code, Some(language), text("54")).expect_err(code);
    // A position that no value can fill is found before anything runs.
    let action = Action::Call { function: "run".to_owned(), arguments: template(code) };
    let step = Step { id: StepId(3), action, after: vec![], on_failure: Default::default() };
    let mut plan = Plan { form: Form::OnePlan, steps: vec![step] };
    let catalog: Catalog = [tool(Some(language))].into_iter().collect();
    let findings = Validator::new(&catalog).plan(&mut plan);
    let of_arguments = findings.errors().filter(|found| found.kind == FindingKind::Arguments);
    let messages: Vec<&str> = of_arguments.map(|found| found.message.as_str()).collect();
    assert_eq!(messages, [format!("step3: {error}")], "{code}");
    let BindError::Refused { refusal, argument, .. } = error else { panic!("{error:?}") };
    assert_eq!(argument, "code");
    refusal
}

/// The output of a program that reads its code from standard input. `None` where it is not installed.
fn run(program: &str, arguments: &[&str], code: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("SKIPPED: {program} cannot be run: {error}");
            return None;
        }
    };
    child.stdin.take().expect("a pipe").write_all(code.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {errors}\n{code}", output.status);
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Each text in hexadecimal digits, one per line: what the programs below print.
fn hexadecimal(texts: &[&str]) -> String {
    texts
        .iter()
        .map(|text| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect()
}

/// ET4, ET15: without a declared language a value is inserted unchanged.
#[test]
fn et15_raw_is_the_default_without_a_language() {
    for language in [None, Some(Language::Raw)] {
        let code = encoded("age = @; print(age)", language, text("54; import os"));
        assert_eq!(code.as_deref(), Ok("age = 54; import os; print(age)"));
    }
    let whole = encoded("@", Some(Language::Raw), json("{\"a\": 1}"));
    assert_eq!(whole.as_deref(), Ok("{\"a\":1}"));
}

/// ET6: values of every type as Python writes them.
#[test]
fn et6_python_values_are_literals() {
    for (value, expected) in [
        (text("54"), "age = '54'; print(age)"),
        (text("it's \"杭州\"\n"), "age = 'it\\'s \\\"杭州\\\"\\n'; print(age)"),
        (json("54"), "age = 54; print(age)"),
        (json("-5"), "age = (-5); print(age)"),
        (json("1e400"), "age = 1e400; print(age)"),
        (json("null"), "age = None; print(age)"),
        (
            json(r#"{"t": true, "f": [false, null, "true"], "nul": "\u0000\ud83d\udc4d"}"#),
            "age = {'t':True,'f':[False,None,'true'],'nul':'\\x00👍'}; print(age)",
        ),
    ] {
        is("age = @; print(age)", Language::Python, value, expected);
    }
    is("x = @.real", Language::Python, json("54"), "x = (54).real");
}

/// ET6: inside a string the value becomes characters of it.
#[test]
fn et6_python_strings_take_characters() {
    is("age = '@'", Language::Python, text("'; exit(7) #\n"), "age = '\\'; exit(7) #\\n'");
    is("s = \"a @ b\"", Language::Python, json("[\"x\"]"), "s = \"a [\\\"x\\\"] b\"");
    is("s = '''a\n@'''", Language::Python, text("'''"), "s = '''a\n\\'\\'\\''''");
    is("s = f'{1} @'", Language::Python, text("{exit(7)}"), "s = f'{1} {{exit(7)}}'");
    is(
        "s = f'{d[\"k\"]:>{w}} {{x}} @'",
        Language::Python,
        text("}"),
        "s = f'{d[\"k\"]:>{w}} {{x}} }}'",
    );
    is("s = r'C:@'", Language::Python, text("54"), "s = r'C:54'");
    is("s = 'it\\'s' + @", Language::Python, text("x"), "s = 'it\\'s' + 'x'");
    is("# it's\ns = @", Language::Python, text("x"), "# it's\ns = 'x'");
    is("s = '' + @", Language::Python, text("x"), "s = '' + 'x'");
    is("s = 'open\nt = @", Language::Python, text("x"), "s = 'open\nt = 'x'");
    is("s = '@'", Language::Python, text(""), "s = ''");
    for code in ["s = '@''f'", "s = '@@''f'"] {
        let error = encoded(code, Some(Language::Python), text("")).expect_err("three quotes");
        assert!(matches!(error, BindError::Refused { refusal: Refusal::Value { .. }, .. }));
    }
    let error = encoded("s = r'@'", Some(Language::Python), text("\\")).expect_err("raw");
    assert!(matches!(error, BindError::Refused { refusal: Refusal::Value { .. }, .. }));
}

/// ET6, N4: if it is not certain what a value would become, it is refused, before anything runs.
#[test]
fn et6_uncertain_places_are_refused() {
    for code in [
        "f@",
        "x = r@",
        "x = 'a'@",
        "x = @'a'",
        "x = @y",
        "x = 1\\@",
        "x = 1 # @",
        "# @",
        "\n# c\x0c@",
        "# coding: utf-7\nx = @",
        "\r\n# vim: set fileencoding=GBK :\r\nx = '@'",
        "x = '\\@'",
        "x = f'{@}'",
        "x = f'{d['k']} @'",
        "x = '''''''@",
    ] {
        assert!(matches!(refused(code, Language::Python), Refusal::Place { .. }), "{code}");
    }
    for code in [
        "@ --help",
        "ls; @",
        "ls | @ x",
        "x=$(@)",
        "if @; then :; fi",
        "X=1 @",
        "eval @",
        "eval x @",
        "\\eval @",
        "\"eval\" @",
        "$x @",
        "[[ 1 -eq @ ]]",
        "echo $[@]",
        "x=(a @)",
        "sudo @",
        "echo `echo @`",
        "echo \"$(echo @)\"",
        "echo $((1 + @))",
        "((x = @))",
        "echo ${x:-@}",
        "cat <<X\n@\nX",
        "echo # @",
        "echo \\@",
        "echo $@",
        "echo $'@'",
        "case x in @) :;; esac",
        "r'm' ; \"@\"",
        "echo \"It costs $@\"",
        "echo \"a$HOME@\"",
        "echo \"$\\\n@\"",
        "echo \"$[1+@]\"",
        "ls\r@",
        "bash -c '@'",
        "sh -c \"echo @\"",
        "/bin/sh -ec @",
        "dash -c'@'",
        "zsh -@",
        "sudo -u root \"ba\"'sh' '-'c 'ls @'",
        "su - user --command @",
        "find . -exec sh -c 'rm @' \\;",
        "find . -exec @ \\;",
        "ls | xargs -n1 sh -c 'rm @'",
        "ssh host ls @",
    ] {
        assert!(matches!(refused(code, Language::Shell), Refusal::Place { .. }), "{code}");
    }
    for code in [
        "SELECT x@",
        "SELECT 'a'@",
        "SELECT @'a'",
        "SELECT 1 -- @",
        "SELECT /* @ */ 1",
        "SELECT /*/ @ */ 1",
        "SELECT /* /* */ , @ */ 1",
        "SELECT `a` = @",
        "SELECT $$ @",
        "SELECT E'\\'' , @",
        "SELECT 'a\\' , @",
        "SELECT [a'b] = @",
        "SELECT 1 -- a\r'\n, @",
    ] {
        refused(code, Language::Sql);
    }
    for language in [Language::Python, Language::Shell, Language::Sql] {
        assert_eq!(refused("@", language), Refusal::Whole);
    }
    for language in [Language::Shell, Language::Sql] {
        let error = encoded("SELECT @", Some(language), text("a\0b")).expect_err("NUL");
        assert!(matches!(error, BindError::Refused { refusal: Refusal::Value { .. }, .. }));
    }
}

/// ET6: a refused position beside one that is not.
#[test]
fn et6_shell_words_stay_words() {
    for (code, value, expected) in [
        ("echo \"a\\$@\"", "(id)", "echo \"a\\$(id)\""),
        ("echo \"5$ @\"", "(id)", "echo \"5$ (id)\""),
        ("echo $HOME@", "x", "echo $HOME'x'"),
        ("echo \"$?@\"", "x", "echo \"$?x\""),
        ("echo \"@$(date)\"", "a$", "echo \"a\\$$(date)\""),
        ("bash x.sh @; grep -c @ f", "it's", "bash x.sh 'it'\\''s'; grep -c 'it'\\''s' f"),
        ("find . -name @ -exec grep @ {} +", "*", "find . -name '*' -exec grep '*' {} +"),
        ("sh -x @", "杭州.sh", "sh -x '杭州.sh'"),
    ] {
        is(code, Language::Shell, text(value), expected);
    }
    // A shell option may turn the next word into code.
    let error = encoded("bash @ x", Some(Language::Shell), text("-c")).expect_err("an option");
    assert!(matches!(error, BindError::Refused { refusal: Refusal::Value { .. }, .. }));
}

/// ET6: values as SQL and JSON write them.
#[test]
fn et6_sql_and_json_values_are_literals() {
    is("SELECT @, 1", Language::Sql, text("it's"), "SELECT 'it''s', 1");
    is("SELECT @", Language::Sql, json("1.50"), "SELECT 1.50");
    is("SELECT 1 -@", Language::Sql, json("-1"), "SELECT 1 -(-1)");
    is("SELECT @", Language::Sql, json("null"), "SELECT NULL");
    is("SELECT @", Language::Sql, json("[1, \"it's\"]"), "SELECT '[1,\"it''s\"]'");
    is("SELECT '@' -- it's\n, @", Language::Sql, text("'"), "SELECT '''' -- it's\n, ''''");
    is("SELECT 'it''s @'", Language::Sql, text("'"), "SELECT 'it''s '''");
    is("SELECT \"@\"", Language::Sql, text("a\"b"), "SELECT \"a\"\"b\"");
    is(
        "{\"a\": @, \"b\": \"@\"}",
        Language::Json,
        text("\"</a>\n"),
        "{\"a\": \"\\\"\\u003c/a\\u003e\\n\", \"b\": \"\\\"\\u003c/a\\u003e\\n\"}",
    );
    is("[@]", Language::Json, json("{\"a\": [1.50, \"&\"]}"), "[{\"a\":[1.50,\"\\u0026\"]}]");
    is("@", Language::Json, json("{\"a\": 1}"), "{\"a\":1}");
    is("{\"b\": \"\\\"@\"}", Language::Json, text("x"), "{\"b\": \"\\\"x\"}");
}

/// ET6, N4: Python gets each hostile text as data, as a literal and inside strings of every kind.
#[test]
fn et6_python_runs_hostile_values_as_data() {
    let mut code = String::new();
    let mut expected = Vec::new();
    for hostile in HOSTILE.into_iter().chain(["\0"]) {
        for place in [
            "s = @",
            "s = '@'",
            "s = \"@\"",
            "s = '''@'''",
            "s = \"\"\"@\"\"\"",
            "s = f'@'",
            "s = f\"\"\"@\"\"\"",
            "s = ( @ )",
            "s = [@][0]",
            "s = u'@'",
            "s = \"\"\"\r\n@\"\"\"[1:] # it's\r\n",
            "s = 'a\\\r\n@'[1:] # it's\rt = ''",
        ] {
            let line = encoded(place, Some(Language::Python), text(hostile)).expect(place);
            code.push_str(&line);
            code.push_str("\nprint(s.encode().hex())\n");
            expected.push(hostile);
        }
        let quoted = serde_json::to_string(&vec![hostile]).expect("JSON");
        let line = encoded("s = @", Some(Language::Python), json(&quoted)).expect("a list");
        code.push_str(&line);
        code.push_str("\nprint(s[0].encode().hex())\n");
        expected.push(hostile);
    }
    let Some(output) = run("python3", &["-"], &code) else { return };
    assert_eq!(output, hexadecimal(&expected));
}

/// ET6: a Python file stays the same code: no value becomes a separate line or declares the file's
/// encoding, whatever ends the lines.
#[test]
fn et6_a_python_file_holds_hostile_values_as_data() {
    let values = HOSTILE.into_iter().chain([
        "coding: utf-7 +AAo-print(chr(80))+AAo-#",
        "+ACc-+ADs-exit(7)+ACM-",
        ";exit(7)#",
    ]);
    let (mut code, mut expected) = (String::from("# coding: utf-8\r# it's\r\n"), Vec::new());
    for hostile in values {
        for place in ["s = @\r", "s = '@'\r\n", "s = 'a\\\r\n@'[1:]\n", "s = \x0c @ # c\rt = 0\n"] {
            code += &encoded(place, Some(Language::Python), text(hostile)).expect(place);
            code.push_str("print(s.encode().hex())\n");
            expected.push(hostile);
        }
    }
    let Some(output) = run("python3", &["/dev/stdin"], &code) else { return };
    assert_eq!(output, hexadecimal(&expected));
}

/// ET6: a shell gets each hostile text as data, too.
#[test]
fn et6_a_shell_runs_hostile_values_as_data() {
    let mut code = String::from(
        "set -f\nshow() { printf %s \"$1\" | od -An -v -tx1 | tr -d ' \\n'; echo; }\n",
    );
    let mut expected = Vec::new();
    for hostile in HOSTILE {
        for place in [
            "show @",
            "show '@'",
            "show \"@\"",
            "X=@; show \"$X\"",
            "true && show @ # it's",
            "x=1; show \"\\$@\" | sed s/^24//",
            "show \"it's \"\"\" >/dev/null; show @",
        ] {
            let line = encoded(place, Some(Language::Shell), text(hostile)).expect(place);
            code.push_str(&line);
            code.push('\n');
            expected.push(hostile);
        }
    }
    for shell in ["sh", "bash"] {
        let Some(output) = run(shell, &["-s"], &code) else { continue };
        assert_eq!(output, hexadecimal(&expected), "{shell}");
    }
}

/// ET6: SQLite gets each hostile text as data, too.
#[test]
fn et6_a_database_takes_hostile_values_as_data() {
    let mut statements = Vec::new();
    let mut expected = Vec::new();
    for hostile in HOSTILE {
        for place in [
            "SELECT @",
            "SELECT '@'",
            "SELECT x FROM (SELECT @ AS x)",
            "SELECT @ AS \"it's\"",
            "SELECT 'it''s' = '', @",
        ] {
            let statement = encoded(place, Some(Language::Sql), text(hostile)).expect(place);
            statements.push(statement);
            expected.push(hostile);
        }
    }
    let list = serde_json::to_string(&statements).expect("JSON");
    let list = serde_json::to_string(&list).expect("JSON");
    let code = format!(
        "import json, sqlite3\nconnection = sqlite3.connect(':memory:')\n\
         for statement in json.loads({list}):\n    \
         rows = connection.execute(statement).fetchall()\n    \
         assert len(rows) == 1, rows\n    print(rows[0][-1].encode().hex())\n"
    );
    let Some(output) = run("python3", &["-"], &code) else { return };
    assert_eq!(output, hexadecimal(&expected));
}

/// ET6: a JSON argument contains each hostile text as a string.
#[test]
fn et6_json_holds_hostile_values_as_data() {
    for hostile in HOSTILE.into_iter().chain(["\0", "</script>"]) {
        let code = encoded("{\"a\": @, \"b\": \"@\"}", Some(Language::Json), text(hostile));
        let code = code.expect("JSON takes anything");
        let read: serde_json::Value = serde_json::from_str(&code).expect("JSON");
        assert_eq!((read["a"].as_str(), read["b"].as_str()), (Some(hostile), Some(hostile)));
        assert!(!code.contains("</script>"));
    }
}
