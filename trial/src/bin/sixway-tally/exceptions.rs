//! The tests that may be ignored in strict mode, each with its reason.

/// The names in a file of lines `NAME: reason`; lines that begin with `#` are remarks.
///
/// # Errors
/// A line without a reason.
pub fn read(text: &str) -> Result<Vec<String>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => Ok(name.trim().to_owned()),
            _ => Err(format!("an exception without a reason: {line}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn an_exception_is_a_name_and_a_reason() {
        assert_eq!(read("# these\n\na::b: needs the moon: full\n"), Ok(vec!["a::b".to_owned()]));
        assert!(read("a::b\n").is_err() && read("a::b: \n").is_err());
    }
}
