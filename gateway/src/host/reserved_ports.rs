//! `net.ipv4.ip_local_reserved_ports`: the host's own connections do not use the ports that translators share with it.

use super::forwarding::Setting;
use crate::config::Ports;
use std::path::Path;

/// The setting with these ports added. `None`: nothing to add, or the kernel does not have the setting. `root` is
/// `/proc/sys`.
pub(super) fn reserve(root: &Path, ports: &[Ports]) -> Option<Setting> {
    let path = root.join("net/ipv4/ip_local_reserved_ports");
    let before = std::fs::read_to_string(&path).ok().filter(|_| !ports.is_empty())?;
    Some((path, merged(before.trim(), ports)))
}

/// What the setting is to be so that these ports are reserved, whatever else is; `None`: they are.
pub(super) fn with(now: &str, ports: &[Ports]) -> Option<String> {
    let wanted = merged(now, ports);
    (wanted != merged(now, &[])).then_some(wanted)
}

/// Whether this is the setting.
pub(super) fn is_it(path: &Path) -> bool {
    path.ends_with("net/ipv4/ip_local_reserved_ports")
}

/// As the kernel writes it: ranges in ascending order, which neither overlap nor touch.
fn merged(before: &str, ports: &[Ports]) -> String {
    let mut ranges: Vec<(u16, u16)> = before.split(',').filter_map(range).collect();
    ranges.extend(ports.iter().flat_map(Ports::ranges).map(|range| (*range.start(), *range.end())));
    ranges.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut() {
            Some(before) if u32::from(first) <= u32::from(before.1) + 1 => before.1 = before.1.max(last),
            Some(_) | None => joined.push((first, last)),
        }
    }
    let text = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    joined.iter().map(text).collect::<Vec<_>>().join(",")
}

fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_stays_reserved() {
        let ports = |text: &str| Ports::parse(text).unwrap();
        assert_eq!(merged("", &[ports("61000-65535")]), "61000-65535");
        assert_eq!(merged("8080,61500-62000", &[ports("443,61000-61499")]), "443,8080,61000-62000");
        assert_eq!(merged("1-10,65535", &[ports("5-20"), ports("21")]), "1-21,65535");
    }

    #[test]
    fn what_others_reserve_is_no_reason_to_write() {
        let ports = [Ports::parse("61000-62000").unwrap()];
        assert_eq!(with("8080,61000-62000", &ports), None);
        assert_eq!(with("60999-63000", &ports), None);
        assert_eq!(with("8080,61000-61999", &ports).as_deref(), Some("8080,61000-62000"));
        assert_eq!(with("", &ports).as_deref(), Some("61000-62000"));
        assert_eq!(with("8080", &[]), None);
        assert!(is_it(Path::new("/proc/sys/net/ipv4/ip_local_reserved_ports")));
    }

    #[test]
    fn nothing_is_touched_without_ports_to_reserve() {
        assert_eq!(reserve(Path::new("/proc/sys"), &[]), None);
        let found = reserve(Path::new("/proc/sys"), &[Ports::parse("61000").unwrap()]).unwrap();
        assert!(found.0.exists() && found.1.contains("61000"), "{found:?}");
    }
}
