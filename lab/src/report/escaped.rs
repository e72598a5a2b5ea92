//! Text of other programs and machines as text of Markdown: it makes no table, picture or HTML of its own. Ordinary text stays as it is.

use crate::terminal::printable;

/// Text in one line: `<` that may begin HTML and `![` of a picture are written as entities, which are safe also behind a backslash.
pub(super) fn line(text: &str) -> String {
    let text = printable(text).replace('\n', " ").replace("![", "!&#91;");
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins = |next: &char| next.is_ascii_alphabetic() || "/!?".contains(*next);
        match character {
            '<' if characters.peek().is_some_and(begins) => escaped.push_str("&lt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text in a cell of a table.
pub(super) fn cell(text: &str) -> String {
    line(text).replace('|', "&#124;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_and_what_is_markup_does_not_act() {
        let ordinary = "1.2 ms (< 3 | > 4), `a`, *b* [c] \u{2013} 5 <6!";
        assert_eq!(line(ordinary), ordinary);
        assert_eq!(line("a\n# b\r\n\u{1b}[31mc\u{9b}\u{7}"), "a # b [31mc");
        assert_eq!(line("\\<img src=x> </p> ![x](y)"), "\\&lt;img src=x> &lt;/p> !&#91;x](y)");
        assert_eq!(cell("a | b\nc\\| <b>"), "a &#124; b c\\&#124; &lt;b>");
    }
}
