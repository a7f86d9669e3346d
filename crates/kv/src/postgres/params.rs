//! Numbers that a statement is given.

use tokio_postgres::types::{ToSql, Type};

/// Numbers for a statement, each with the type of its column.
pub(super) type Params = Vec<(i64, Type)>;
pub(super) type Param = (Box<dyn ToSql + Sync + Send>, Type);

/// Returns a number as its column has it.
pub(super) fn number(value: i64, of: &Type) -> Box<dyn ToSql + Sync + Send> {
    match *of {
        Type::INT2 => Box::new(value as i16),
        Type::INT4 => Box::new(value as i32),
        _ => Box::new(value),
    }
}
