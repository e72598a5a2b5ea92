//! RDATA in canonical form (RFC 4034 §6.2, RFC 6840 §5.1): names uncompressed and in lower case.

/// A part of RDATA.
#[derive(Clone, Copy)]
enum Part {
    /// A fixed number of octets.
    Octets(usize),
    /// A character-string (RFC 1035 §3.3).
    Text,
    /// A name that is put in lower case.
    Name,
    /// A name that keeps its case: that of NSEC (RFC 6840 §5.1).
    CasedName,
    /// All that is left.
    Rest,
}

/// What RDATA of a type is made of, as far as there are names in it that are compressed or put in lower case.
fn parts(rtype: u16) -> &'static [Part] {
    use Part::{CasedName, Name, Octets, Rest, Text};
    match rtype {
        // NS, MD, MF, CNAME, MB, MG, MR, PTR, DNAME
        2..=5 | 7..=9 | 12 | 39 => &[Name],
        // SOA
        6 => &[Name, Name, Octets(20)],
        // MINFO, RP
        14 | 17 => &[Name, Name],
        // MX, AFSDB, RT, KX
        15 | 18 | 21 | 36 => &[Octets(2), Name],
        // SIG, RRSIG
        24 | 46 => &[Octets(18), Name, Rest],
        // PX
        26 => &[Octets(2), Name, Name],
        // NXT
        30 => &[Name, Rest],
        // SRV
        33 => &[Octets(6), Name],
        // NAPTR
        35 => &[Octets(4), Text, Text, Text, Name],
        // NSEC
        47 => &[CasedName, Rest],
        _ => &[Rest],
    }
}

/// RDATA that is at `at` and ends before `end`, in canonical form; `None` if it is malformed.
pub(crate) fn canonical(message: &[u8], at: usize, end: usize, rtype: u16) -> Option<Box<[u8]>> {
    let message = message.get(..end)?;
    let mut out = Vec::with_capacity(end - at.min(end));
    let mut at = at;
    for part in parts(rtype) {
        let from = out.len();
        at = match part {
            Part::Octets(length) => copy(message, at, *length, &mut out)?,
            Part::Text => copy(message, at, usize::from(*message.get(at)?) + 1, &mut out)?,
            Part::Rest => copy(message, at, end.checked_sub(at)?, &mut out)?,
            Part::Name | Part::CasedName => name(message, at, &mut out)?,
        };
        if matches!(part, Part::Name) {
            out[from..].make_ascii_lowercase();
        }
    }
    (at == end).then(|| out.into())
}

fn copy(message: &[u8], at: usize, length: usize, out: &mut Vec<u8>) -> Option<usize> {
    let end = at.checked_add(length)?;
    out.extend_from_slice(message.get(at..end)?);
    Some(end)
}

/// Copies the name at `at` uncompressed and returns where it ends. Pointers must lead backwards, so there is no loop.
pub(crate) fn name(message: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    let (mut at, mut lowest, mut end) = (at, at, None);
    loop {
        let length = *message.get(at)?;
        match length >> 6 {
            0 => {
                copy(message, at, usize::from(length) + 1, out)?;
                at += usize::from(length) + 1;
                if out.len() - start > 255 {
                    return None;
                }
                if length == 0 {
                    return Some(end.unwrap_or(at));
                }
            }
            3 => {
                let target = usize::from(u16::from_be_bytes([length & 0x3f, *message.get(at + 1)?]));
                end = end.or(Some(at + 2));
                if target >= lowest {
                    return None;
                }
                (at, lowest) = (target, target);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_rdata_are_uncompressed_and_put_in_lower_case() {
        let message = b"\x01A\x02Bc\0\x00\x05\x01X\xc0\x02";
        assert_eq!(canonical(message, 6, 12, 15).as_deref(), Some(&b"\x00\x05\x01x\x02bc\0"[..]));
    }

    #[test]
    fn the_next_name_of_nsec_keeps_its_case_and_unknown_types_are_opaque() {
        assert_eq!(canonical(b"\x01A\0\x00\x01\x40", 0, 6, 47).as_deref(), Some(&b"\x01A\0\x00\x01\x40"[..]));
        assert_eq!(canonical(b"\xc0\x00AbC", 0, 5, 65280).as_deref(), Some(&b"\xc0\x00AbC"[..]));
    }

    #[test]
    fn a_pointer_forwards_or_to_itself_is_malformed() {
        assert_eq!(canonical(b"\xc0\x00", 0, 2, 5), None);
        assert_eq!(canonical(b"\xc0\x02\0", 0, 2, 5), None);
        assert_eq!(canonical(b"\x01a\xc0\x00", 0, 4, 5), None, "it would never end");
    }

    #[test]
    fn rdata_that_ends_early_or_late_is_malformed() {
        let soa = [&b"\x01a\0\x01b\0"[..], &[7; 20]].concat();
        assert!(canonical(&soa, 0, soa.len(), 6).is_some());
        for end in 0..soa.len() {
            assert_eq!(canonical(&soa, 0, end, 6), None);
        }
        let longer = [&soa[..], &[0]].concat();
        assert_eq!(canonical(&longer, 0, longer.len(), 6), None);
    }
}
