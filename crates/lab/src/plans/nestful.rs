//! Plans of NESTFUL: calls named `var1`, `var2`, ..., with references such as `$var1.rates[0].Ask
//! Price$`.

use super::gold::{GoldPlan, PlanSet, lowered};
use foldback_planner::{PathSegment, Piece, Reference, StepId, Template};
use serde::Deserialize;
use serde_json::Value;

/// A line of the data set.
#[derive(Deserialize)]
pub(super) struct Line {
    id: String,
    task: String,
    gold_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Value,
    #[serde(default)]
    depends_on: Vec<String>,
}

/// The name of the entry that collects the answer at the end. It calls nothing.
const RESULT: &str = "var_result";

impl Line {
    /// Returns the plan. Calls are numbered by position: three labels in the data set occur twice,
    /// while the references to them continue counting.
    pub(super) fn plan(self) -> Result<GoldPlan, String> {
        let Self { id, task, gold_calls } = self;
        let calls: Vec<Call> = gold_calls.into_iter().filter(|call| call.name != RESULT).collect();
        let mut steps = Vec::with_capacity(calls.len());
        for (at, call) in calls.into_iter().enumerate() {
            let place = format!("{id}, call {} ({})", at + 1, call.name);
            if !call.arguments.is_object() {
                return Err(format!("{place}: its arguments are not an object"));
            }
            let after: Option<Vec<StepId>> =
                call.depends_on.iter().map(|label| number(label)).collect();
            let after =
                after.ok_or_else(|| format!("{place}: depends_on holds labels such as var1"))?;
            let arguments = lowered(&call.arguments, &text);
            let all = super::gold::references(&arguments);
            let all = all.iter().map(|reference| reference.step).chain(after.iter().copied());
            if let Some(other) = all.into_iter().find(|step| step.0 as usize > at) {
                return Err(format!(
                    "{place}: it waits for var{}, which is not before it",
                    other.0
                ));
            }
            steps.push((call.name, arguments, after));
        }
        Ok(GoldPlan::new(id, PlanSet::Nestful, task, steps))
    }
}

/// Parses `var3`, counted from 1.
fn number(label: &str) -> Option<StepId> {
    let number: u32 = label.strip_prefix("var")?.parse().ok()?;
    (number > 0).then_some(StepId(number))
}

/// Reads a text with its references. Text that only looks like one (`$100-$200`) stays text.
fn text(text: &str) -> Template {
    let mut pieces = Vec::new();
    let (mut rest, mut plain) = (text, String::new());
    while let Some(start) = rest.find('$') {
        plain.push_str(rest.get(..start).unwrap_or_default());
        let behind = rest.get(start + 1..).unwrap_or_default();
        let inside = behind.find('$').and_then(|end| behind.get(..end));
        match inside.and_then(|inside| Some((inside, reference(inside)?))) {
            Some((inside, reference)) => {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Reference(reference));
                rest = behind.get(inside.len() + 1..).unwrap_or_default();
            }
            None => {
                plain.push('$');
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    if pieces.is_empty() {
        return Template::Text(plain);
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Reference(reference)]) => Template::Whole(reference),
        Ok([Piece::Text(text)]) => Template::Text(text),
        Err(pieces) => Template::Mixed(pieces),
    }
}

/// Parses `var1.movies[0].Ask Price`.
fn reference(inside: &str) -> Option<Reference> {
    let mut parts = inside.split('.');
    let mut path = Vec::new();
    let (label, places) = indexed(parts.next()?)?;
    let step = number(label)?;
    path.extend(places.into_iter().map(PathSegment::Index));
    for part in parts {
        let (key, places) = indexed(part)?;
        if key.is_empty() {
            return None;
        }
        path.push(PathSegment::Key(key.to_owned()));
        path.extend(places.into_iter().map(PathSegment::Index));
    }
    Some(Reference { step, path })
}

/// Parses `movies[0][1]`: the name before the brackets, and the numbers in them.
fn indexed(part: &str) -> Option<(&str, Vec<usize>)> {
    let Some((key, rest)) = part.split_once('[') else { return Some((part, Vec::new())) };
    let places = rest.strip_suffix(']')?.split("][").map(|place| place.parse().ok());
    Some((key, places.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(line: &Value) -> Result<GoldPlan, String> {
        serde_json::from_value::<Line>(line.clone()).unwrap().plan()
    }

    fn whole(step: u32, path: &[PathSegment]) -> Reference {
        Reference { step: StepId(step), path: path.to_vec() }
    }

    /// OP4: keys with spaces, indexes in arrays, several references in one text, and money.
    #[test]
    fn op4_references_of_the_data_set_are_read() {
        let key = |key: &str| PathSegment::Key(key.to_owned());
        assert_eq!(text("$var12$"), Template::Whole(whole(12, &[])));
        assert_eq!(
            text("$var1.movies[0].价 格$"),
            Template::Whole(whole(1, &[key("movies"), PathSegment::Index(0), key("价 格")]))
        );
        assert_eq!(
            text("100 * $var1.Exchange Rate$ - $var2.b$ $"),
            Template::Mixed(vec![
                Piece::Text("100 * ".to_owned()),
                Piece::Reference(whole(1, &[key("Exchange Rate")])),
                Piece::Text(" - ".to_owned()),
                Piece::Reference(whole(2, &[key("b")])),
                Piece::Text(" $".to_owned()),
            ])
        );
        assert_eq!(
            text("$5$var1$"),
            Template::Mixed(vec![Piece::Text("$5".to_owned()), Piece::Reference(whole(1, &[])),])
        );
        for money in ["$100-$200", "$", "$$", "$var$", "$var0$", "$var1", "$var1..a$", "$var1[x]$"]
        {
            assert_eq!(text(money), Template::Text(money.to_owned()));
        }
    }

    #[test]
    fn calls_count_by_their_place_and_the_result_is_no_call() {
        let line = json!({ "id": "n1", "task": "票", "gold_calls": [
            { "label": "var1", "name": "find", "arguments": { "q": "茶" }, "depends_on": [] },
            { "label": "var1", "name": "buy", "arguments": { "of": "$var1.id$" }, "depends_on": ["var1"] },
            { "label": "var_result", "name": "var_result", "arguments": { "a": "$var2$" },
              "depends_on": ["var2"] },
        ] });
        let plan = plan(&line).unwrap();
        assert_eq!(plan.waits(), [vec![], vec![0]]);
    }

    #[test]
    fn a_plan_that_waits_for_what_comes_later_is_refused() {
        for (arguments, after) in
            [(json!({ "q": "$var1$" }), json!([])), (json!({}), json!(["var2"]))]
        {
            let line = json!({ "id": "n1", "task": "", "gold_calls": [
                { "label": "var1", "name": "find", "arguments": arguments, "depends_on": after },
            ] });
            let error = plan(&line).unwrap_err();
            assert!(error.contains("n1, call 1 (find): it waits for var"), "{error}");
        }
    }
}
