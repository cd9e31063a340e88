//! Pure mathematics on numbers: safe tests, intervals, verdicts.
