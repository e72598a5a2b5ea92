//! The application-level gateway for FTP: lines that change, positions that follow, and data connections that come in.

use crate::explicit_bindings::{keep, wanted};
use crate::support;
use crate::support::fast_path::MemoryFastPath;
use crate::support::super_frame::{described, on_the_wire, unfinished};
use crate::support::{Gateway, checksum_is_right, v4, v6};
use sixway_dataplane::nat::{Filtering, NatProtocol};
use sixway_dataplane::{Checksum, DropReason, Offload, SegmentKind, Verdict};
use std::time::Duration;

pub const ACK: u8 = 0x10;
pub const PUSH: u8 = 0x18;
pub const SYN: u8 = 2;
pub const FIN: u8 = 1;
pub const SERVER: &str = "203.0.113.1";
/// What the pool's first address looks like.
pub const POOL: &str = "192.0.2.1";

/// It takes the octets up to 5001.
pub const GREETING: &[u8] = b"220 ready\r\n";

/// A client behind one kind of translator, and its server.
pub struct Control {
    pub gateway: Gateway,
    is_nat64: bool,
    pub client: &'static str,
    pub port: u16,
    pub outside: u16,
}

/// What a segment says, and its place. Each octet is a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    options: Vec<u8>,
    pub text: String,
    ports: (u16, u16),
}

pub fn heard(packet: &[u8]) -> Heard {
    assert!(checksum_is_right(packet));
    let at = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let length = if at == 20 {
        u16::from_be_bytes([packet[2], packet[3]])
    } else {
        u16::from_be_bytes([packet[4], packet[5]]) + 40
    };
    assert_eq!(usize::from(length), packet.len());
    let tcp = &packet[at..];
    let long = |from: usize| u32::from_be_bytes(tcp[from..from + 4].try_into().unwrap());
    let header = usize::from(tcp[12] >> 4) * 4;
    Heard {
        sequence: long(4),
        acknowledgment: long(8),
        flags: tcp[13],
        options: tcp[20..header].to_vec(),
        text: tcp[header..].iter().map(|octet| char::from(*octet)).collect(),
        ports: (u16::from_be_bytes([tcp[0], tcp[1]]), u16::from_be_bytes([tcp[2], tcp[3]])),
    }
}

/// Sequence and acknowledgment number of a built packet, whose checksum follows.
pub fn numbered(packet: support::Build, sequence: u32, acknowledgment: u32) -> Vec<u8> {
    let mut octets = packet.octets();
    let at = if octets[0] >> 4 == 4 { 20 } else { 40 };
    octets[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
    octets[at + 8..at + 12].copy_from_slice(&acknowledgment.to_be_bytes());
    // The builder's numbers are 1 and 2.
    let field = u16::from_be_bytes([octets[at + 16], octets[at + 17]]);
    let words = [sequence >> 16, sequence & 0xffff, acknowledgment >> 16, acknowledgment & 0xffff];
    let mut sum = u32::from(!field) + (0xffff - 1) + (0xffff - 2) + words.iter().sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    octets[at + 16..at + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    octets
}

impl Control {
    pub fn nat44() -> Self {
        Self::begin(false, Filtering::AddressAndPortDependent, true)
    }

    pub fn nat64() -> Self {
        Self::begin(true, Filtering::AddressAndPortDependent, true)
    }

    /// After the handshake and the greeting: the client's next octet is 1001, the server's 5001.
    pub fn begin(is_nat64: bool, filtering: Filtering, is_on: bool) -> Self {
        let addresses = vec!["192.0.2.1/32".parse().unwrap()];
        let gateway = support::gateway(|config| {
            if is_nat64 {
                let mut nat64 = support::nat64();
                (nat64.pool.addresses, nat64.filtering, nat64.ftp_alg) = (addresses, filtering, is_on);
                config.nat64.push(nat64);
            } else {
                let mut nat44 = support::nat44();
                (nat44.pool.addresses, nat44.filtering, nat44.ftp_alg) = (addresses, filtering, is_on);
                config.nat44.push(nat44);
            }
        });
        let client = if is_nat64 { "2001:db8:1::1" } else { "10.0.0.1" };
        let mut control = Self { gateway, is_nat64, client, port: 40_000, outside: 0 };
        control.shakes_hands();
        control
    }

    /// The client has another address, or port, and a new connection.
    pub fn is_now(&mut self, client: &'static str, port: u16) {
        (self.client, self.port) = (client, port);
        self.shakes_hands();
    }

    fn shakes_hands(&mut self) {
        self.connects();
        self.server_says(PUSH, 4_990, 1_001, GREETING);
        self.client_says(ACK, 1_001, 5_001, b"");
    }

    /// Without a greeting.
    pub fn connects(&mut self) {
        self.begins();
        self.server_says(SYN | ACK, 4_989, 1_001, b"");
        self.client_says(ACK, 1_001, 4_990, b"");
    }

    /// A SYN alone.
    pub fn begins(&mut self) {
        self.outside = self.client_says(SYN, 1_000, 0, b"").ports.0;
    }

    pub fn segment_of_client(&self, flags: u8, options: &[u8], text: &[u8]) -> support::Build {
        let packet =
            if self.is_nat64 { v6(self.client, "64:ff9b::cb00:7101") } else { v4(self.client, SERVER) };
        packet.tcp_with(self.port, 21, flags, options, text)
    }

    /// What the server receives of what the client sends.
    #[track_caller]
    pub fn client_says(&mut self, flags: u8, sequence: u32, acknowledgment: u32, text: &[u8]) -> Heard {
        self.client_says_with(flags, (sequence, acknowledgment), &[], text)
    }

    #[track_caller]
    fn client_says_with(&mut self, flags: u8, numbers: (u32, u32), options: &[u8], text: &[u8]) -> Heard {
        let packet = numbered(self.segment_of_client(flags, options, text), numbers.0, numbers.1);
        self.gateway.receives(packet);
        heard(&self.gateway.sent())
    }

    /// What the client receives of what the server sends.
    #[track_caller]
    pub fn server_says(&mut self, flags: u8, sequence: u32, acknowledgment: u32, text: &[u8]) -> Heard {
        self.server_says_with(flags, (sequence, acknowledgment), &[], text)
    }

    #[track_caller]
    fn server_says_with(&mut self, flags: u8, numbers: (u32, u32), options: &[u8], text: &[u8]) -> Heard {
        let packet = v4(SERVER, POOL).tcp_with(21, self.outside, flags, options, text);
        self.gateway.receives(numbered(packet, numbers.0, numbers.1));
        heard(&self.gateway.sent())
    }

    /// Whether a SYN from this address to this outside port comes in.
    pub fn comes_in(&mut self, from: &str, port: u16) -> bool {
        self.gateway.passes(v4(from, POOL).tcp(30_000, port, SYN, b""))
    }
}

/// The port in a PORT command.
pub fn port_of(line: &str) -> u16 {
    let numbers: Vec<u16> =
        line.trim_end()["PORT ".len()..].split(',').map(|one| one.parse().unwrap()).collect();
    assert_eq!(numbers[..4], [192, 0, 2, 1], "{line}");
    numbers[4] * 256 + numbers[5]
}

#[test]
fn port_names_the_pool_and_what_follows_moves_with_it() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    let changed = control.client_says(PUSH, 1_001, 5_001, line);
    let port = port_of(&changed.text);
    assert_eq!((changed.sequence, changed.acknowledgment), (1_001, 5_001));
    let growth = changed.text.len() as u32 - line.len() as u32;
    let end = 1_001 + line.len() as u32;
    // The server acknowledges the new line, and the client gets an acknowledgment of its own.
    assert_eq!(control.server_says(PUSH, 5_001, end + growth, b"200 ok\r\n").acknowledgment, end);
    let next = control.client_says(PUSH, end, 5_009, b"LIST\r\n");
    assert_eq!((next.sequence, next.text.as_str()), (end + growth, "LIST\r\n"));
    // A part of the new line does not acknowledge the old one.
    assert_eq!(control.server_says(ACK, 5_009, 1_010, b"").acknowledgment, 1_001);
    // The server alone may connect, from any port.
    assert!(!control.comes_in("203.0.113.2", port));
    assert!(control.comes_in(SERVER, port));
    control.gateway.receives(v4("10.0.0.1", SERVER).tcp(5_001, 30_000, SYN | ACK, b""));
    assert_eq!(heard(&control.gateway.sent()).ports, (port, 30_000));
}

#[test]
fn a_retransmission_and_one_cut_differently_say_the_same() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    let first = control.client_says(PUSH, 1_001, 5_001, line);
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, line), first);
    // Half of it, and the other half with a further line.
    let half = control.client_says(PUSH, 1_001, 5_001, &line[..9]);
    assert_eq!((half.sequence, half.text.as_str()), (1_001, ""));
    let rest = control.client_says(PUSH, 1_010, 5_001, &[&line[9..], b"LIST\r\n"].concat());
    assert_eq!((rest.sequence, rest.text), (1_001, first.text.clone() + "LIST\r\n"));
    assert_eq!(control.gateway.engine.counters().ftp_mappings_made, 1);
}

#[test]
fn selective_acknowledgments_move_and_timestamps_stay() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    let changed = control.client_says(PUSH, 1_001, 5_001, line);
    let growth = changed.text.len() as u32 - line.len() as u32;
    let end = 1_001 + line.len() as u32;
    control.client_says(PUSH, end + 6, 5_001, b"LIST\r\n");
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let blocks = |from: u32| [&[1, 1, 5, 10][..], &from.to_be_bytes(), &(from + 6).to_be_bytes()].concat();
    let options = [&timestamps[..], &blocks(end + 6 + growth)].concat();
    let answer = control.server_says_with(ACK, (5_001, end + growth), &options, b"");
    assert_eq!(answer.acknowledgment, end);
    assert_eq!(answer.options, [&timestamps[..], &blocks(end + 6)].concat());
}

/// Packets of the handshake may be repeated, or come late. They do not begin another connection.
#[test]
fn a_handshake_that_is_repeated_does_not_move_positions_back() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    let changed = control.client_says(PUSH, 1_001, 5_001, line);
    let growth = changed.text.len() as u32 - line.len() as u32;
    assert_ne!(growth, 0);
    control.client_says(SYN, 1_000, 0, b"");
    control.server_says(SYN | ACK, 4_989, 1_001, b"");
    let end = 1_001 + line.len() as u32;
    assert_eq!(control.client_says(PUSH, end, 5_001, b"LIST\r\n").sequence, end + growth);
    assert_eq!(control.gateway.engine.counters().ftp_connections_made, 1);
}

#[test]
fn a_fin_behind_a_changed_line_and_several_lines_in_a_segment() {
    let mut control = Control::nat44();
    let lines = b"NOOP\r\nPORT 10,0,0,1,19,137\r\nEPRT |1|10.0.0.1|5001|\r\nQUIT\r\n";
    let changed = control.client_says(PUSH | FIN, 1_001, 5_001, lines);
    assert_eq!(changed.flags, PUSH | FIN);
    let parts: Vec<&str> = changed.text.split_inclusive('\n').collect();
    let port = port_of(parts[1]);
    assert_eq!((parts[0], parts[3]), ("NOOP\r\n", "QUIT\r\n"));
    assert_eq!(parts[2], format!("EPRT |1|192.0.2.1|{port}|\r\n"));
    let end = 1_001 + changed.text.len() as u32 + 1;
    let all = 1_001 + lines.len() as u32 + 1;
    assert_eq!(control.server_says(FIN | ACK, 5_001, end, b"").acknowledgment, all);
    assert_eq!(control.client_says(ACK, all, 5_002, b"").sequence, end);
}

#[test]
fn a_line_in_two_segments_passes_and_is_counted() {
    let mut control = Control::nat44();
    control.gateway.counted_before();
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,").text, "PORT 10,0,0,");
    assert_eq!(control.client_says(PUSH, 1_013, 5_001, b"1,19,137\r\n").text, "1,19,137\r\n");
    control.gateway.counted([("ftp.lines.unread", 1), ("nat44.to_outside", 2)]);
    // The next line is read again.
    port_of(&control.client_says(PUSH, 1_023, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
}

#[test]
fn behind_a_gap_nothing_is_changed_that_was_forwarded_already() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    let end = 1_001 + line.len() as u32;
    assert_eq!(control.client_says(PUSH, end, 5_001, b"NOOP\r\n").sequence, end);
    let late = control.client_says(PUSH, 1_001, 5_001, line);
    assert_eq!((late.sequence, late.text.as_bytes()), (1_001, &line[..]));
    // Nothing is read from then on: what came too late could have said that the client does not speak FTP.
    assert_eq!(control.client_says(PUSH, end + 6, 5_001, line).text.as_bytes(), line);
    assert_eq!(control.gateway.engine.counters().ftp_connections_unread, 1);
}

#[test]
fn another_hosts_address_and_ports_of_services_have_no_mapping() {
    for (is_nat64, line) in [
        (false, "PORT 10,0,0,2,19,137\r\n"),
        (false, "PORT 203,0,113,9,19,137\r\n"),
        (false, "PORT 10,0,0,1,0,25\r\n"),
        (false, "EPRT |1|10.0.0.2|5001|\r\n"),
        (true, "EPRT |2|2001:db8:1::2|5001|\r\n"),
        (true, "EPRT |1|198.51.100.1|5001|\r\n"),
        (true, "EPRT |2|2001:db8:1::1|25|\r\n"),
    ] {
        let mut control = if is_nat64 { Control::nat64() } else { Control::nat44() };
        assert_eq!(control.client_says(PUSH, 1_001, 5_001, line.as_bytes()).text, line);
        let counters = control.gateway.engine.counters();
        assert_eq!((counters.ftp_mappings_refused, counters.ftp_mappings_made), (1, 0), "{line}");
        assert_eq!(counters.bindings_made, 1);
    }
}

#[test]
fn a_mapping_that_is_not_used_ends_after_a_minute() {
    let mut control = Control::nat44();
    let port = port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
    control.gateway.waits(Duration::from_secs(59));
    assert_eq!(control.gateway.engine.counters().bindings_ended, 0);
    control.gateway.waits(Duration::from_secs(2));
    assert_eq!(control.gateway.engine.counters().bindings_ended, 1);
    assert!(!control.comes_in(SERVER, port));
}

/// By PCP, for example: the gateway for FTP does not end what is kept for somebody else.
#[test]
fn a_mapping_that_is_requested_meanwhile_is_kept() {
    let mut control = Control::nat44();
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
    let wanted = wanted(NatProtocol::Tcp, "10.0.0.1", 5_001, 0);
    keep(&mut control.gateway, &wanted).unwrap();
    control.gateway.waits(Duration::from_secs(61));
    assert_eq!(control.gateway.engine.counters().bindings_ended, 0);
}

/// It has no timeout, and other hosts than the server may use it.
#[test]
fn a_mapping_that_the_host_has_already_is_used_and_stays_as_it_is() {
    let mut control = Control::nat44();
    keep(&mut control.gateway, &wanted(NatProtocol::Tcp, "10.0.0.1", 5_001, 8_080)).unwrap();
    let line = control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text;
    assert_eq!(port_of(&line), 8_080);
    assert_eq!(control.gateway.engine.counters().ftp_mappings_made, 0);
    control.gateway.waits(Duration::from_secs(61));
    assert!(control.comes_in("203.0.113.9", 8_080));
}

/// The host has the endpoint for itself now, by PCP for example: the connection's next mapping does not replace it.
#[test]
fn a_mapping_that_has_ended_is_not_the_connections_any_more() {
    let mut control = Control::nat44();
    let line = b"PORT 10,0,0,1,19,137\r\n";
    port_of(&control.client_says(PUSH, 1_001, 5_001, line).text);
    control.gateway.waits(Duration::from_secs(61));
    keep(&mut control.gateway, &wanted(NatProtocol::Tcp, "10.0.0.1", 5_001, 8_080)).unwrap();
    let next = control.client_says(PUSH, 1_001 + line.len() as u32, 5_001, b"PORT 10,0,0,1,19,138\r\n");
    assert_ne!(port_of(&next.text), 8_080);
    control.gateway.waits(Duration::from_secs(61));
    assert!(control.comes_in("203.0.113.9", 8_080));
}

/// What is requested for the same port of the other protocol, or in vain, does not make it the host's: nobody would ever end it.
#[test]
fn a_mapping_that_is_not_requested_itself_ends_after_a_minute() {
    let mut in_vain = wanted(NatProtocol::Tcp, "10.0.0.1", 5_001, 1_024);
    in_vain.wanted.exactly = true;
    for (other, is_kept) in [(wanted(NatProtocol::Udp, "10.0.0.1", 5_001, 0), true), (in_vain, false)] {
        let mut control = Control::nat44();
        let port = port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
        assert_eq!(keep(&mut control.gateway, &other).is_ok(), is_kept);
        control.gateway.waits(Duration::from_secs(61));
        assert_eq!(control.gateway.engine.counters().bindings_ended, 1, "{other:?}");
        assert!(!control.comes_in(SERVER, port), "{other:?}");
    }
}

#[test]
fn a_data_connection_keeps_its_mapping() {
    let mut control = Control::nat44();
    let port = port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
    assert!(control.comes_in(SERVER, port));
    assert!(control.gateway.passes(v4("10.0.0.1", SERVER).tcp(5_001, 30_000, SYN | ACK, b"")));
    control.gateway.waits(Duration::from_secs(300));
    assert!(control.gateway.passes(v4(SERVER, POOL).tcp(30_000, port, ACK, b"data")));
    // A further connection from there is a matter of filtering again.
    assert!(!control.gateway.passes(v4(SERVER, POOL).tcp(30_001, port, SYN, b"")));
}

#[test]
fn behind_nat64_eprt_becomes_port() {
    let mut control = Control::nat64();
    let line = b"EPRT |2|2001:db8:1::1|5001|\r\n";
    let changed = control.client_says(PUSH, 1_001, 5_001, line);
    let port = port_of(&changed.text);
    let end = 1_001 + line.len() as u32;
    let shorter = line.len() as u32 - changed.text.len() as u32;
    assert_eq!(control.server_says(PUSH, 5_001, end - shorter, b"200 ok\r\n").acknowledgment, end);
    control.gateway.receives(v4(SERVER, POOL).tcp(20, port, SYN, b""));
    assert_eq!(heard(&control.gateway.sent()).ports, (20, 5_001));
}

#[test]
fn behind_nat64_epsv_becomes_pasv_and_the_reply_becomes_its_own() {
    let mut control = Control::nat64();
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, b"EPSV\r\n").text, "PASV\r\n");
    let reply = b"227 Entering Passive Mode (10,9,9,9,237,19)\r\n";
    let own = "229 Entering Extended Passive Mode (|||60691|)\r\n";
    let changed = control.server_says(PUSH, 5_001, 1_007, reply);
    assert_eq!(changed.text, own);
    let growth = own.len() as u32 - reply.len() as u32;
    let end = 5_001 + reply.len() as u32;
    assert_eq!(control.client_says(ACK, 1_007, end + growth, b"").acknowledgment, end);
    let more = control.server_says(PUSH, end, 1_007, b"226 done\r\n");
    assert_eq!(more.sequence, end + growth);
}

#[test]
fn algs_is_answered_for_the_server() {
    let mut control = Control::nat64();
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, b"ALGS STATUS64\r\n").text, "NOOP\r\n");
    assert_eq!(control.server_says(PUSH, 5_001, 1_007, b"200 NOOP ok.\r\n").text, "216 EPSVEPRT\r\n");
}

#[test]
fn after_auth_lines_pass_and_positions_move_on() {
    let mut control = Control::nat64();
    control.client_says(PUSH, 1_001, 5_001, b"ALGS STATUS64\r\n");
    control.server_says(PUSH, 5_001, 1_007, b"200 NOOP ok.\r\n");
    assert_eq!(control.client_says(PUSH, 1_016, 5_015, b"AUTH TLS\r\n").text, "AUTH TLS\r\n");
    control.server_says(PUSH, 5_015, 1_017, b"234 Proceed\r\n");
    let after = control.client_says(PUSH, 1_026, 5_028, b"EPSV\r\n");
    assert_eq!((after.sequence, after.text.as_str()), (1_017, "EPSV\r\n"));
    // The server's line had kept its length.
    assert_eq!(after.acknowledgment, 5_028);
}

#[test]
fn a_gso_packet_and_an_unfinished_checksum_are_rewritten() {
    let mut control = Control::nat44();
    let mut lines = b"NOOP\r\n".repeat(50);
    lines.extend(b"PORT 10,0,0,1,19,137\r\n");
    let packet = unfinished(numbered(control.segment_of_client(PUSH, &[], &lines), 1_001, 5_001));
    control.gateway.receives_with(packet.clone(), described(SegmentKind::Tcp, 100));
    let (sent, offload) = control.gateway.sent_with();
    let mut text = String::new();
    for segment in on_the_wire(&sent, offload) {
        let part = heard(&segment);
        assert_eq!(part.sequence, 1_001 + text.len() as u32);
        text += &part.text;
    }
    port_of(&text["NOOP\r\n".len() * 50..]);
    // One segment whose checksum the kernel finishes.
    let end = 1_001 + lines.len() as u32;
    let single =
        unfinished(numbered(control.segment_of_client(PUSH, &[], b"PORT 10,0,0,1,19,138\r\n"), end, 5_001));
    control.gateway.receives_with(single, Offload { checksum: Checksum::Partial, ..Offload::default() });
    let (sent, offload) = control.gateway.sent_with();
    port_of(&heard(&on_the_wire(&sent, offload)[0]).text);
}

#[test]
fn what_grows_over_the_mtu_is_cut_into_segments() {
    let mut control = Control::nat44();
    let mut lines = b"NOOP\r\n".repeat(239);
    lines.extend(b"PORT 10,0,0,1,19,137\r\n");
    lines.extend(b"LIST\r\n");
    lines.truncate(1_460);
    assert_eq!(lines.len(), 1_460);
    control.gateway.receives(numbered(control.segment_of_client(PUSH, &[], &lines), 1_001, 5_001));
    let mut text = String::new();
    let (sent, offload) = control.gateway.sent_with();
    for segment in on_the_wire(&sent, offload) {
        let part = heard(&segment);
        assert!(segment.len() <= 1_500);
        assert_eq!(part.sequence, 1_001 + text.len() as u32);
        text += &part.text;
    }
    port_of(text["NOOP\r\n".len() * 239..].split_inclusive('\n').next().unwrap());
}

#[test]
fn a_segment_with_a_wrong_checksum_is_not_read() {
    let mut control = Control::nat44();
    let mut packet =
        numbered(control.segment_of_client(PUSH, &[], b"PORT 10,0,0,1,19,137\r\n"), 1_001, 5_001);
    packet[37] ^= 1;
    assert!(control.gateway.passes(packet));
    assert_eq!(control.gateway.engine.counters().ftp_lines_changed, 0);
    // What comes right later is.
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
}

#[test]
fn without_it_and_on_other_ports_nothing_is_changed() {
    let mut control = Control::begin(false, Filtering::EndpointIndependent, false);
    let line = "PORT 10,0,0,1,19,137\r\n";
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, line.as_bytes()).text, line);
    let mut control = Control::nat44();
    control.gateway.receives(v4("10.0.0.1", SERVER).tcp(40_001, 2_121, SYN, b""));
    control.gateway.sent();
    control.gateway.receives(v4("10.0.0.1", SERVER).tcp(40_001, 2_121, PUSH, line.as_bytes()));
    assert_eq!(heard(&control.gateway.sent()).text, line);
}

#[test]
fn a_control_connection_stays_out_of_the_fast_path() {
    let mut control = Control::nat44();
    let path = MemoryFastPath::new(16);
    control.gateway.engine.stateful_at(0).unwrap().0.set_fast_path(Some(Box::new(path.clone())), 4);
    for number in 0..64 {
        control.client_says(PUSH, 1_001 + number * 6, 5_001, b"NOOP\r\n");
    }
    assert_eq!(control.gateway.engine.counters().flows_offloaded, 0);
    control.gateway.receives(v4("10.0.0.1", SERVER).tcp(40_001, 80, SYN, b""));
    let outside = heard(&control.gateway.sent()).ports.0;
    assert!(control.gateway.passes(v4(SERVER, POOL).tcp(80, outside, SYN | ACK, b"")));
    (0..64).for_each(|_| assert!(control.gateway.passes(v4("10.0.0.1", SERVER).tcp(40_001, 80, ACK, b"x"))));
    assert_eq!(control.gateway.engine.counters().flows_offloaded, 1);
}

#[test]
fn a_stray_segment_before_the_handshake_is_over_is_not_read() {
    let mut control = Control::nat44();
    control.port = 40_009;
    control.client_says(SYN, 1_000, 0, b"");
    let line = "PORT 10,0,0,1,19,137\r\n";
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, line.as_bytes()).text, line);
    assert_eq!(control.gateway.last, Verdict::Forward);
    assert_ne!(control.gateway.last, Verdict::Dropped(DropReason::NoSession));
}

#[test]
fn an_urgent_pointer_leads_nowhere_in_a_changed_payload() {
    let mut control = Control::nat44();
    let urgent = 0x20;
    let changed = control.client_says(PUSH | urgent, 1_001, 5_001, b"PORT 10,0,0,1,19,137\r\n");
    assert_eq!(changed.flags, PUSH);
    let kept = control.client_says(PUSH | urgent, 1_023, 5_001, b"ABOR\r\n");
    assert_eq!(kept.flags, PUSH | urgent);
}

/// Four changed lines are remembered for retransmissions. An acknowledged one is forgotten when there is another one.
#[test]
fn lines_are_changed_without_end_if_they_are_acknowledged() {
    for is_acknowledged in [true, false] {
        let mut control = Control::nat44();
        let mut sequence = 1_001;
        for number in 0..10_u8 {
            let line = format!("PORT 10,0,0,1,19,10{number}\r\n");
            let heard = control.client_says(PUSH, sequence, 5_001, line.as_bytes());
            assert_eq!(heard.text != line, is_acknowledged || number < 4, "{number}");
            sequence += line.len() as u32;
            if is_acknowledged {
                let end = heard.sequence + heard.text.len() as u32;
                assert_eq!(control.server_says(ACK, 5_001, end, b"").acknowledgment, sequence);
            }
        }
    }
}

#[test]
fn a_connection_has_one_mapping_at_a_time() {
    let mut control = Control::nat44();
    let mut sequence = 1_001;
    for port in 0..3_u8 {
        let line = format!("PORT 10,0,0,1,19,10{port}\r\n");
        port_of(&control.client_says(PUSH, sequence, 5_001, line.as_bytes()).text);
        sequence += line.len() as u32;
    }
    let counters = control.gateway.engine.counters();
    assert_eq!((counters.ftp_mappings_made, counters.bindings_made, counters.bindings_ended), (3, 4, 2));
}
