//! One module an output format, all over the same table.

pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod text;
