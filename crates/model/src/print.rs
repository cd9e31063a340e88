//! Figures as programs print them: numbers with their units and signs between digits, and
//! tables of them.

pub mod number;
pub mod table;
pub mod unit;
