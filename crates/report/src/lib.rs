//! Comparison tables from a results directory: text, lkml, csv, json, html, markdown.
