//! Text for a person or a program, without what a terminal would obey.
