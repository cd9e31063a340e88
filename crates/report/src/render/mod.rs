//! One module an output format, all over the same table.

pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod hgrm;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod lkml;
pub(crate) mod markdown;
pub(crate) mod sheet;
pub(crate) mod text;
