//! An option in what a DHCPv6 client wrote of its lease: a line with only its value, a variable of a hook (dhclient, dhcpcd, odhcp6c), or dhclient's
//! lease file, in which the last lease is the newest.

/// Octets of a file that are read.
pub const LEASE_SIZE: usize = 1 << 20;

/// How an option is written.
pub(crate) struct OptionNames {
    /// How its line in dhclient's lease file begins.
    pub line: &'static str,
    /// Its names in variables, in small letters and without their prefixes.
    pub variables: &'static [&'static str],
    /// Whether a line with only its value may contain spaces.
    pub is_list: bool,
}

impl OptionNames {
    /// The first value that `read` takes, of the newest lease; `None`: the lease does not have the option.
    pub fn find<T>(&self, text: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut found = None;
        for line in text.lines().map(str::trim) {
            if line.starts_with("lease6") && line.ends_with('{') {
                found = None; // A newer lease.
                continue;
            }
            if found.is_none() {
                found = self.written(line).and_then(&read);
            }
        }
        found
    }

    /// What a line says of the option.
    fn written<'a>(&self, line: &'a str) -> Option<&'a str> {
        if let Some(rest) = line.strip_prefix(self.line) {
            return Some(rest.trim_end_matches(';'));
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=') {
            Some((name, value)) => self.is_variable(name).then_some(value),
            None if line.is_empty() || line.starts_with(['#', ';']) || line.contains(['{', '}']) => None,
            None => (self.is_list || !line.contains(' ')).then_some(line),
        }
    }

    fn is_variable(&self, name: &str) -> bool {
        let name = name.trim().to_ascii_lowercase();
        let name = name.strip_prefix("new_").unwrap_or(&name);
        let names = [Some(name), name.strip_prefix("dhcp6_")];
        names.iter().flatten().any(|name| self.variables.contains(name))
    }
}

/// The words of a value.
pub(crate) fn words(value: &str) -> impl Iterator<Item = &str> {
    let words = value.split(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | ','));
    words.filter(|word| !word.is_empty())
}
