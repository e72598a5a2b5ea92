//! Telnet options in control connections of FTP: refused, and not relayed (RFC 6384 §5, RFC 854).

use crate::ftp::{ACK, Control, PUSH, heard, numbered, port_of};
use crate::support::super_frame::{described, on_the_wire, unfinished};
use sixway_dataplane::SegmentKind;

/// Octets as the tests' segments show them.
fn shown(octets: &[u8]) -> String {
    octets.iter().map(|octet| char::from(*octet)).collect()
}

#[test]
fn a_clients_telnet_option_is_refused_in_front_of_the_next_reply_and_the_server_does_not_receive_it() {
    for mut control in [Control::nat44(), Control::nat64()] {
        let said = control.client_says(PUSH, 1_001, 5_001, b"\xff\xfd\x01\xff\xfb\x03USER a\r\n");
        assert_eq!((said.sequence, said.text.as_str()), (1_001, "USER a\r\n"));
        let reply = control.server_says(PUSH, 5_001, 1_009, b"331 name?\r\n");
        assert_eq!(reply.text, shown(b"\xff\xfc\x01\xff\xfe\x03331 name?\r\n"));
        assert_eq!((reply.sequence, reply.acknowledgment), (5_001, 1_015));
        // Positions have moved, and nothing is said twice.
        let more = control.client_says(PUSH, 1_015, 5_018, b"PWD\r\n");
        assert_eq!((more.sequence, more.acknowledgment), (1_009, 5_012));
        assert_eq!(control.server_says(PUSH, 5_012, 1_014, b"257 \"/\"\r\n").sequence, 5_018);
    }
}

#[test]
fn a_servers_telnet_option_is_refused_in_front_of_the_next_command() {
    let mut control = Control::nat64();
    let heard = control.server_says(PUSH, 5_001, 1_001, b"\xff\xfb\x01\xff\xfe\x05");
    assert_eq!(heard.text, "");
    // The rewritten command has it as well.
    let said = control.client_says(PUSH, 1_001, 5_001, b"EPSV\r\n");
    assert_eq!((said.text, said.acknowledgment), (shown(b"\xff\xfe\x01PASV\r\n"), 5_007));
    let reply = control.server_says(PUSH, 5_007, 1_010, b"227 Passive (10,9,9,9,237,19)\r\n");
    assert_eq!((reply.sequence, reply.acknowledgment), (5_001, 1_007));
    assert!(reply.text.starts_with("229 "), "{reply:?}");
}

/// Else it would be repeated until the client gives up: the server has nothing to acknowledge.
#[test]
fn a_segment_without_remaining_octets_is_still_acknowledged() {
    let mut control = Control::nat44();
    let heard = control.client_says(PUSH, 1_001, 5_001, b"\xff\xfd\x01");
    // As a keep-alive, which the server answers.
    assert_eq!((heard.sequence, heard.text.as_str()), (1_000, ""));
    assert_eq!(control.server_says(ACK, 5_001, 1_001, b"").acknowledgment, 1_004);
    // A retransmission is cut as well, and the next command follows.
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, b"\xff\xfd\x01").text, "");
    let next = control.client_says(PUSH, 1_004, 5_001, b"NOOP\r\n");
    assert_eq!((next.sequence, next.text.as_str()), (1_001, "NOOP\r\n"));
}

#[test]
fn an_option_in_a_line_and_one_in_two_segments_are_cut_out() {
    let mut control = Control::nat44();
    let said = control.client_says(PUSH, 1_001, 5_001, b"CWD \xff\xfd\x01a\r\n");
    assert_eq!(said.text, "CWD a\r\n");
    // The line was read: commands follow.
    let said = control.client_says(PUSH, 1_011, 5_001, b"PWD\r\n\xff\xfd");
    assert_eq!((said.sequence, said.text.as_str()), (1_008, "PWD\r\n"));
    let said = control.client_says(PUSH, 1_018, 5_001, b"\x01PORT 10,0,0,1,19,137\r\n");
    assert_eq!(said.sequence, 1_013);
    port_of(&said.text);
    let reply = control.server_says(PUSH, 5_001, 1_013, b"250 ok\r\n");
    assert_eq!(reply.text, shown(b"\xff\xfc\x01\xff\xfc\x01250 ok\r\n"));
}

#[test]
fn an_interruption_passes_with_its_urgent_octet() {
    let mut control = Control::nat44();
    for (at, part) in [(1_001, &b"\xff\xf4"[..]), (1_003, b"\xff"), (1_004, b"\xf2ABOR\r\n")] {
        let heard = control.client_says(PUSH | 0x20, at, 5_001, part);
        assert_eq!((heard.sequence, heard.text, heard.flags), (at, shown(part), PUSH | 0x20));
    }
    port_of(&control.client_says(PUSH, 1_011, 5_001, b"PORT 10,0,0,1,19,137\r\n").text);
}

/// From AUTH on octets are copied (RFC 6384 §5).
#[test]
fn in_a_secured_connection_no_octet_is_removed() {
    let mut control = Control::nat44();
    control.client_says(PUSH, 1_001, 5_001, b"AUTH TLS\r\n");
    let early = control.client_says(PUSH, 1_011, 5_001, b"PBSZ \xff\xfd\x01\r\n");
    assert_eq!(early.text, shown(b"PBSZ \xff\xfd\x01\r\n"));
    control.server_says(PUSH, 5_001, 1_021, b"234 go\r\n");
    let said = b"\x16\x03\x01\xff\xfb\x01\n";
    assert_eq!(control.client_says(PUSH, 1_021, 5_009, said).text, shown(said));
    assert_eq!(control.server_says(PUSH, 5_009, 1_028, said).text, shown(said));
}

#[test]
fn a_gso_packet_of_which_little_is_left_is_one_segment() {
    let mut control = Control::nat44();
    let said = [b"\xff\xfe\x01".repeat(100), b"NOOP\r\n".to_vec()].concat();
    let packet = unfinished(numbered(control.segment_of_client(PUSH, &[], &said), 1_001, 5_001));
    control.gateway.receives_with(packet, described(SegmentKind::Tcp, 100));
    let (sent, offload) = control.gateway.sent_with();
    let segments = on_the_wire(&sent, offload);
    assert_eq!(segments.len(), 1);
    assert_eq!(heard(&segments[0]).text, "NOOP\r\n");
}
