//! Tables as xl prints them: a line of headings, and rows of words.

/// The words of each row below the line that begins with `Name`.
pub fn split_rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .skip_while(|line| !line.starts_with("Name"))
        .skip(1)
        .map(|line| line.split_whitespace().collect())
}
