//! What is shown of JSON, and that the same value can be restored from it.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, expected: Option<(&str, bool)>) {
    let compact = compact_json(text);
    let found = compact.as_ref().map(|compact| (compact.text.as_str(), compact.has_rows));
    assert_eq!(found, expected);
}

#[test]
fn white_space_goes_and_spellings_stay() {
    let text = "{\n  \"id\": 7.50,\n  \"name\": \"a  b\\u00e9\",\n  \"of\": [ 1e3, -0, true, null ],\n  \
                \"城市\": \"上海  虹桥\",\n  \"id\": {}\n}\n";
    let shown = "{\"id\":7.50,\"name\":\"a  b\\u00e9\",\"of\":[1e3,-0,true,null],\
                 \"城市\":\"上海  虹桥\",\"id\":{}}\n";
    check(text, Some((shown, false)));
    check(shown, None);
}

#[test]
fn objects_of_the_same_keys_are_rows() {
    let text = r#"[{"origin": "DEN", "destination": "PHL", "price": 537, "at": {"hour": 1, "minute": 5}},
                   {"origin": "PHL", "destination": "DEN", "price": 99.0, "at": {"hour": 2, "minute": 5}}]"#;
    let shown = r#"[("origin","destination","price","at":("hour","minute":5)),["DEN","PHL",537,[1]],["PHL","DEN",99.0,[2]]]"#;
    check(text, Some((shown, true)));
}

#[test]
fn values_of_the_same_keys_are_rows_behind_their_names() {
    let text = r#"{"变体": {"6384525445": {"名称": "相机", "可用": true, "标签": [{"键": "a", "值": 1}]},
                   "3892645120": {"名称": "镜头", "可用": true, "标签": [{"键": "b", "值": 2}, {"键": "c", "值": 3}]},
                   "1804581713": {"名称": "包", "可用": true}}}"#;
    let shown = r#"{"变体":{("名称","可用":true,"标签":[("键","值")]),"6384525445":["相机",[["a",1]]],"3892645120":["镜头",[["b",2],["c",3]]],"1804581713":["包",]}}"#;
    check(text, Some((shown, true)));
}

#[test]
fn what_stands_around_a_value_stays() {
    let text = "Here is the response:\n{\n  \"resourceType\": \"Bundle\",\n  \"total\": 0,\n  \
                \"link\": [ {\n    \"relation\": \"self\"\n  } ],\n  \"note\": \"a } b\"\n}. Call FINISH {now}.";
    let shown = "Here is the response:\n{\"resourceType\":\"Bundle\",\"total\":0,\
                 \"link\":[{\"relation\":\"self\"}],\"note\":\"a } b\"}. Call FINISH {now}.";
    check(text, Some((shown, false)));
}

#[test]
fn what_is_no_json_stays() {
    let log = "[INFO] started\n[WARN] {slow}\n".repeat(20);
    check(&log, None);
    check("{\"a\": 1}", None);
    check(&format!("{{\"a\": \"{}\"", "x".repeat(200)), None);
    let deep = format!("{}{}", "[ ".repeat(200), "] ".repeat(200));
    check(&deep, None);
}

/// Restores the value behind a shown one, without white space.
fn rebuilt(shown: &str) -> String {
    let mut reader = Rebuilding { text: shown, at: 0 };
    let mut out = String::new();
    reader.value(&mut out);
    assert_eq!(reader.at, shown.len(), "{shown}");
    out
}

struct Rebuilding<'t> {
    text: &'t str,
    at: usize,
}

enum Column {
    Free,
    Same(String),
    Object(Vec<(String, Column)>),
    Rows(Vec<(String, Column)>),
}

impl Rebuilding<'_> {
    fn peek(&self) -> char {
        self.text[self.at..].chars().next().unwrap_or('\0')
    }

    fn take(&mut self, c: char) -> bool {
        let is_next = self.peek() == c;
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn string(&mut self) -> String {
        let start = self.at;
        assert!(self.take('"'));
        while !self.take('"') {
            self.at += if self.peek() == '\\' { 2 } else { self.peek().len_utf8() };
        }
        self.text[start..self.at].to_owned()
    }

    fn columns(&mut self) -> Vec<(String, Column)> {
        assert!(self.take('('));
        let mut columns = Vec::new();
        while !self.take(')') {
            let key = self.string();
            let mut column = Column::Free;
            if self.take(':') {
                column = if self.peek() == '(' {
                    Column::Object(self.columns())
                } else if self.text[self.at..].starts_with("[(") {
                    let start = self.at;
                    self.at += 1;
                    let rows = self.columns();
                    if self.take(']') {
                        Column::Rows(rows)
                    } else {
                        self.at = start;
                        self.same()
                    }
                } else {
                    self.same()
                };
            }
            columns.push((key, column));
            self.take(',');
        }
        columns
    }

    fn same(&mut self) -> Column {
        let mut value = String::new();
        self.value(&mut value);
        Column::Same(value)
    }

    fn row(&mut self, columns: &[(String, Column)], out: &mut String) {
        assert!(self.take('['));
        let mut members = Vec::new();
        let mut is_first = true;
        for (key, column) in columns {
            let mut value = String::new();
            if let Column::Same(same) = column {
                value.clone_from(same);
            } else {
                assert!(std::mem::take(&mut is_first) || self.take(','));
                if matches!(self.peek(), ',' | ']') {
                    continue;
                }
                match column {
                    Column::Object(columns) => self.row(columns, &mut value),
                    Column::Rows(columns) => self.rows(columns, &mut value),
                    Column::Free | Column::Same(_) => self.value(&mut value),
                }
            }
            members.push(format!("{key}:{value}"));
        }
        assert!(self.take(']'));
        out.push_str(&format!("{{{}}}", members.join(",")));
    }

    fn rows(&mut self, columns: &[(String, Column)], out: &mut String) {
        assert!(self.take('['));
        let mut rows = Vec::new();
        while !self.take(']') {
            let mut row = String::new();
            self.row(columns, &mut row);
            rows.push(row);
            self.take(',');
        }
        out.push_str(&format!("[{}]", rows.join(",")));
    }

    fn value(&mut self, out: &mut String) {
        let close = match self.peek() {
            '{' => '}',
            '[' => ']',
            '"' => return out.push_str(&self.string()),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.find([',', ']', '}', ')']).unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                self.at += end;
                return;
            }
        };
        out.push(self.peek());
        self.at += 1;
        let columns = (self.peek() == '(').then(|| self.columns());
        let mut parts = Vec::new();
        while !self.take(close) {
            self.take(',');
            let mut part = String::new();
            if close == '}' {
                part = self.string() + ":";
                assert!(self.take(':'));
            }
            match &columns {
                Some(columns) => self.row(columns, &mut part),
                None => self.value(&mut part),
            }
            parts.push(part);
        }
        out.push_str(&parts.join(","));
        out.push(close);
    }
}

/// JSON with white space in odd places, and the same without.
fn json() -> impl Strategy<Value = (String, String)> {
    let scalar = prop_oneof![
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        "\"([a-c ,:()\\[\\]{}中ü]|\\\\[\"\\\\n/]|\\\\u00e9){0,6}\"",
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    let leaf = scalar.prop_map(|text| (text.clone(), text));
    let space = "[ \\n\\t]{0,3}";
    leaf.prop_recursive(5, 80, 6, move |inner| {
        let items = prop::collection::vec((inner.clone(), space), 0..6);
        let array = items.prop_map(|items| {
            let spaced = items.iter().map(|((spaced, _), space)| format!("{space}{spaced}{space}"));
            let plain: Vec<&str> = items.iter().map(|((_, plain), _)| plain.as_str()).collect();
            let spaced: Vec<String> = spaced.collect();
            (format!("[{}]", spaced.join(",")), format!("[{}]", plain.join(",")))
        });
        let members = prop::collection::vec(("\"[a-c]{1,2}\"", inner, space), 0..6);
        let object = members.prop_map(|mut members| {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            let spaced = members.iter().map(|(key, (spaced, _), space)| {
                format!("{space}{key}{space}:{space}{spaced}{space}")
            });
            let plain = members.iter().map(|(key, (_, plain), _)| format!("{key}:{plain}"));
            let (spaced, plain): (Vec<String>, Vec<String>) = (spaced.collect(), plain.collect());
            (format!("{{{}}}", spaced.join(",")), format!("{{{}}}", plain.join(",")))
        });
        prop_oneof![array, object]
    })
}

proptest! {
    /// The same value can be restored from what is shown, with the spelling of every key, string and number.
    #[test]
    fn the_value_can_be_written_again((spaced, plain) in json()) {
        let mut shown = String::new();
        table::write(&Node::read(&spaced).unwrap(), &mut shown);
        prop_assert_eq!(&rebuilt(&shown), &plain);
        let mut again = String::new();
        table::write(&Node::read(&spaced).unwrap(), &mut again);
        prop_assert!(again == shown && shown.len() <= plain.len());
    }
}
