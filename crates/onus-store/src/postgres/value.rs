//! Between our values and PostgreSQL's: BIGINT, TEXT and BYTEA.

use crate::error::{Result, StoreError};
use crate::port::Value;
use bytes::{BufMut, BytesMut};
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

/// The type that a parameter is announced with. A NULL has none: the server takes it from where it stands.
pub(super) fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Int(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Blob(_) => Type::BYTEA,
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, ty) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Int(n), &Type::INT8) => out.put_i64(*n),
            (Value::Text(text), &Type::TEXT) => out.put_slice(text.as_bytes()),
            (Value::Blob(bytes), &Type::BYTEA) => out.put_slice(bytes),
            _ => return Err(format!("a parameter is not {ty}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Value<'a>, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Value::Int(i64::from_sql(ty, raw)?),
            // What a statement computes itself: a one or a zero.
            Type::INT4 => Value::Int(i32::from_sql(ty, raw)?.into()),
            Type::BYTEA => Value::Blob(raw.into()),
            _ => Value::Text(<&str>::from_sql(ty, raw)?.into()),
        })
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Value<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Value::Null)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT8 | Type::INT4 | Type::TEXT | Type::BYTEA)
    }
}

/// A row's values, nothing of them copied.
pub(super) fn borrowed(row: &Row) -> Result<Vec<Value<'_>>> {
    let value = |column| row.try_get(column).map_err(|error| StoreError::Corrupt(error.to_string()));
    (0..row.len()).map(value).collect()
}

pub(super) fn owned(row: &Row) -> Result<Vec<Value<'static>>> {
    Ok(borrowed(row)?.into_iter().map(Value::into_owned).collect())
}
