//! The commands of FTP, by their names. A web page can make a browser send chosen text to port 21, but a line of HTTP comes first, which is not a
//! command.

/// Octets of a line's beginning by which its command is known: four letters and what follows them, behind the Telnet commands of ABOR
/// (RFC 959 §4.1.3).
pub(crate) const HEAD: usize = 16;

/// The octet before a command of Telnet, and the first such command (RFC 854).
const IAC: u8 = 255;
const SE: u8 = 240;
/// The last one: 255 behind IAC is the octet 255.
const DONT: u8 = 254;

/// The registry of RFC 5797, later RFCs, and commands of clients that are in no RFC.
#[rustfmt::skip]
const VERBS: [[u8; 4]; 73] = [
    // RFC 959
    *b"ABOR", *b"ACCT", *b"ALLO", *b"APPE", *b"CDUP", *b"CWD ", *b"DELE", *b"HELP", *b"LIST", *b"MKD ", *b"MODE",
    *b"NLST", *b"NOOP", *b"PASS", *b"PASV", *b"PORT", *b"PWD ", *b"QUIT", *b"REIN", *b"REST", *b"RETR", *b"RMD ",
    *b"RNFR", *b"RNTO", *b"SITE", *b"SMNT", *b"STAT", *b"STOR", *b"STOU", *b"STRU", *b"SYST", *b"TYPE", *b"USER",
    // RFC 775
    *b"XCUP", *b"XCWD", *b"XMKD", *b"XPWD", *b"XRMD",
    // RFC 1639
    *b"LPRT", *b"LPSV",
    // RFC 2228 and RFC 4217
    *b"ADAT", *b"AUTH", *b"CCC ", *b"CONF", *b"ENC ", *b"MIC ", *b"PBSZ", *b"PROT",
    // RFC 2389, RFC 2428, RFC 2640, RFC 3659, RFC 6384, RFC 7151
    *b"FEAT", *b"OPTS", *b"EPRT", *b"EPSV", *b"LANG", *b"MDTM", *b"MLSD", *b"MLST", *b"SIZE", *b"ALGS", *b"HOST",
    // No RFC's
    *b"MFMT", *b"MFCT", *b"MFF ", *b"CLNT", *b"HASH", *b"RANG", *b"XCRC", *b"XMD5", *b"XSHA", *b"CSID", *b"AVBL",
    *b"DSIZ", *b"MD5 ", *b"SPSV",
];

/// The command that a line begins with, in capitals, filled up with a space; `None`: it is not a command of FTP.
pub(super) fn verb(line: &[u8]) -> Option<[u8; 4]> {
    let mut line = line;
    while let [IAC, SE..=DONT, rest @ ..] = line {
        line = rest;
    }
    let length = line.iter().position(|octet| matches!(octet, b' ' | b'\r' | b'\n'))?;
    let word = line.get(..length).filter(|word| (3..=4).contains(&word.len()))?;
    let mut verb = [b' '; 4];
    verb.iter_mut().zip(word).for_each(|(place, octet)| *place = octet.to_ascii_uppercase());
    VERBS.contains(&verb).then_some(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_in_any_case_and_behind_telnets_interruption() {
        assert_eq!(verb(b"port 1,2\r\n"), Some(*b"PORT"));
        assert_eq!(verb(b"Pwd\n"), Some(*b"PWD "));
        assert_eq!(verb(b"\xff\xf4\xff\xf2ABOR\r\n"), Some(*b"ABOR"));
        assert_eq!(verb(b"STOR \xe4\xf6\xfc"), Some(*b"STOR"));
        // Octets that are kept of a line that came in parts.
        assert_eq!(verb(&b"\xff\xf4\xff\xf2RETR a-long-name"[..HEAD]), Some(*b"RETR"));
    }

    #[test]
    fn the_lines_of_other_protocols_are_no_commands() {
        for line in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PUT / HTTP/1.1\r\n",
            b"POST / HTTP/1.1\r\n",
            b"HEAD / HTTP/1.1\r\n",
            b"DELETE / HTTP/1.1\r\n",
            b"OPTIONS / HTTP/1.1\r\n",
            b"CONNECT 203.0.113.1:21 HTTP/1.1\r\n",
            // A page can choose a browser's method, but not the next line.
            b"Host: 203.0.113.1:21\r\n",
            b"User-Agent: USER\r\n",
            b"INVITE sip:a@203.0.113.1 SIP/2.0\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\n",
            b"\r\n",
            b"\n",
            b"",
            b" PORT 1,2\r\n",
            b"PORT",
            b"PORTS 1\r\n",
            b"PORT:1\r\n",
            b"\xff\xff\xf2ABOR\r\n",
        ] {
            assert_eq!(verb(line), None, "{line:?}");
        }
    }

    #[test]
    fn no_command_is_in_the_list_twice() {
        let all: std::collections::BTreeSet<_> = VERBS.iter().collect();
        assert_eq!(all.len(), VERBS.len());
    }
}
