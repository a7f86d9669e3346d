//! Writes objects of the same keys as rows after their keys.
//!
//! An array of such objects is written `[("id","of":("a","b"),"unit":"mm"),[7,[1,2]],[8,[3,4]]]`: the keys once, in
//! parentheses, then the values of each object in that order. A key whose value is an object of the same keys in each
//! row has these in parentheses; one whose value is an array of such objects has `[(…)]`; one that has the same value
//! in each row has it there, and none in the rows. If an object lacks a key, there is nothing between the commas. An
//! object whose values are such objects has the keys in front of its first: `{("x","y"),"a":[1,2],"b":[3,4]}`. Outside
//! strings, JSON has no parentheses, so rows and arrays are never confused.

use super::tree::Node;

/// The greatest number of bytes around keys, or after one.
const MARKS: usize = 3;

/// What is known about the values of one key.
enum Shape<'n, 't> {
    /// Each is written as it is.
    Free,
    /// All are this one.
    Same(&'n Node<'t>),
    /// All are objects of these keys.
    Object(Columns<'n, 't>),
    /// All are arrays of objects of these keys.
    Rows(Columns<'n, 't>),
}

/// The keys of rows, and what is known about the values of each.
struct Columns<'n, 't> {
    columns: Vec<(&'t str, Shape<'n, 't>)>,
    /// How many bytes of keys the rows save.
    saved: usize,
}

/// Writes a value without white space, with rows where they are shorter. Returns whether there are any.
pub(super) fn write(node: &Node<'_>, out: &mut String) -> bool {
    match node {
        Node::Scalar(text) => {
            out.push_str(text);
            false
        }
        Node::Array(items) => match Columns::of(&items.iter().collect::<Vec<_>>()) {
            Some(columns) => {
                out.push('[');
                columns.head(out);
                for item in items {
                    out.push(',');
                    columns.row(item, out);
                }
                out.push(']');
                true
            }
            None => listed(items, ['[', ']'], out, write),
        },
        Node::Object(members) => {
            let values: Vec<&Node<'_>> = members.iter().map(|(_, value)| value).collect();
            match Columns::of(&values) {
                Some(columns) => {
                    out.push('{');
                    columns.head(out);
                    for (key, value) in members {
                        out.push(',');
                        out.push_str(key);
                        out.push(':');
                        columns.row(value, out);
                    }
                    out.push('}');
                    true
                }
                None => listed(members, ['{', '}'], out, |(key, value), out| {
                    out.push_str(key);
                    out.push(':');
                    write(value, out)
                }),
            }
        }
    }
}

/// Writes parts between commas and brackets. Returns whether one of them has rows.
fn listed<T>(
    parts: impl IntoIterator<Item = T>,
    [open, close]: [char; 2],
    out: &mut String,
    each: impl Fn(T, &mut String) -> bool,
) -> bool {
    let mut has_rows = false;
    out.push(open);
    for (n, part) in parts.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        has_rows |= each(part, out);
    }
    out.push(close);
    has_rows
}

impl<'n, 't> Columns<'n, 't> {
    /// Returns the columns of several objects, if that is shorter: the keys of the object with the most, in their
    /// order, if every other object has a subset of them in the same order.
    fn of(objects: &[&'n Node<'t>]) -> Option<Self> {
        if objects.len() < 2 {
            return None;
        }
        let rows: Option<Vec<_>> = objects.iter().map(|node| node.members()).collect();
        let rows = rows?;
        let keys = rows.iter().max_by_key(|row| row.len())?;
        let mut cells: Vec<Vec<&'n Node<'t>>> = vec![Vec::new(); keys.len()];
        for row in &rows {
            let mut column = 0;
            for (key, value) in *row {
                column += keys.iter().skip(column).position(|(of, _)| of == key)?;
                cells.get_mut(column)?.push(value);
                column += 1;
            }
        }
        let (mut columns, mut saved, mut spent) = (Vec::with_capacity(keys.len()), 0, MARKS);
        for ((key, _), cells) in keys.iter().zip(&cells) {
            let shape = Shape::of(cells, rows.len());
            let length = key.len() + 1;
            saved += length * cells.len() + shape.saved();
            spent += length + MARKS + rows.len() - cells.len();
            columns.push((*key, shape));
        }
        (saved > spent).then(|| Self { columns, saved: saved - spent })
    }

    /// Writes the keys.
    fn head(&self, out: &mut String) {
        listed(&self.columns, ['(', ')'], out, |(key, shape), out| {
            out.push_str(key);
            match shape {
                Shape::Free => {}
                Shape::Same(value) => {
                    out.push(':');
                    write(value, out);
                }
                Shape::Object(columns) => {
                    out.push(':');
                    columns.head(out);
                }
                Shape::Rows(columns) => {
                    out.push_str(":[");
                    columns.head(out);
                    out.push(']');
                }
            }
            true
        });
    }

    /// Writes the values of an object with these columns.
    fn row(&self, object: &Node<'t>, out: &mut String) {
        let mut members = object.members().unwrap_or_default().iter().peekable();
        let cells = self.columns.iter().filter_map(|(key, shape)| {
            let value = members.next_if(|(of, _)| of == key).map(|(_, value)| value);
            (!matches!(shape, Shape::Same(_))).then_some((shape, value))
        });
        listed(cells, ['[', ']'], out, |(shape, value), out| {
            match (shape, value) {
                (_, None) => {}
                (Shape::Object(columns), Some(value)) => columns.row(value, out),
                (Shape::Rows(columns), Some(value)) => {
                    let items = value.items().unwrap_or_default();
                    listed(items, ['[', ']'], out, |item, out| {
                        columns.row(item, out);
                        true
                    });
                }
                (Shape::Free | Shape::Same(_), Some(value)) => drop(write(value, out)),
            }
            true
        });
    }
}

impl<'n, 't> Shape<'n, 't> {
    /// Returns the shape of the values of one key in this many rows, some of which may lack it.
    fn of(values: &[&'n Node<'t>], rows: usize) -> Self {
        if let [first, others @ ..] = values
            && values.len() == rows
            && others.iter().all(|other| other == first)
        {
            return Self::Same(first);
        }
        if let Some(columns) = Columns::of(values) {
            return Self::Object(columns);
        }
        let arrays: Option<Vec<_>> = values.iter().map(|value| value.items()).collect();
        let items: Vec<&Node<'t>> = arrays.into_iter().flatten().flatten().collect();
        Columns::of(&items).map_or(Self::Free, Self::Rows)
    }

    fn saved(&self) -> usize {
        match self {
            Self::Free | Self::Same(_) => 0,
            Self::Object(columns) | Self::Rows(columns) => columns.saved,
        }
    }
}
