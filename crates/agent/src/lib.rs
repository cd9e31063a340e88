//! One trial on the target: require, set up, prove, warm up, measure, undo.
