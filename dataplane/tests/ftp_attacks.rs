//! What those do who want more of the gateway for FTP than is theirs, and what the others lose by it: nothing.

use crate::ftp::{ACK, Control, FIN, GREETING, POOL, PUSH, SERVER, SYN, numbered, port_of};
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::Verdict;
use sixway_dataplane::nat::Filtering;
use std::time::Duration;

const PORT: &str = "PORT 10,0,0,1,19,137\r\n";

/// The client says this in segments with these ends; what follows is read or not.
fn reads_port_after(said: &[u8], ends: &[usize]) -> bool {
    let mut control = Control::nat44();
    let mut at = 0;
    for end in ends.iter().copied().chain([said.len()]).filter(|end| *end > 0) {
        if end > at {
            let part = control.client_says(PUSH, 1_001 + at as u32, 5_001, &said[at..end]);
            assert!(part.text.chars().eq(said[at..end].iter().map(|octet| char::from(*octet))));
            at = end;
        }
    }
    let line = control.client_says(PUSH, 1_001 + said.len() as u32, 5_001, PORT.as_bytes()).text;
    let made = control.gateway.engine.counters().ftp_mappings_made;
    assert_eq!(made, u64::from(line != PORT));
    line != PORT
}

/// A page makes the browser send a form to port 21 of the page's own server, with a line that looks like a command.
#[test]
fn after_a_line_of_http_no_mapping_is_made_wherever_segments_end() {
    let post = b"POST / HTTP/1.1\r\n";
    assert!(!reads_port_after(post, &[]));
    for first in 1..post.len() {
        assert!(!reads_port_after(post, &[first]), "{first}");
        // A server with a small window chooses where they end.
        let each: Vec<usize> = (first..post.len()).collect();
        assert!(!reads_port_after(post, &each), "{first}");
    }
    for other in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"\x16\x03\x01\x00\n",
        b"\r\n",
        b"USER / HTTP/1.1\r\nHost: a\r\n",
    ] {
        assert!(!reads_port_after(other, &[]), "{other:?}");
    }
    // Commands in parts are commands.
    for first in 1..8 {
        assert!(reads_port_after(b"USER a\r\n", &[first]), "{first}");
    }
    assert!(reads_port_after(b"\xff\xf4\xff\xf2ABOR\r\n", &[4]));
    assert!(reads_port_after(b"STOR \xe4\xf6\xfc\r\n", &[]));
}

#[test]
fn the_line_after_http_in_the_same_segment_is_not_read() {
    let mut control = Control::nat44();
    let said = format!("POST / HTTP/1.1\r\n{PORT}");
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, said.as_bytes()).text, said);
    control.gateway.counted_before();
    assert_eq!(control.client_says(PUSH, 1_001 + said.len() as u32, 5_001, PORT.as_bytes()).text, PORT);
    control.gateway.counted([("nat44.to_outside", 1)]);
    assert_eq!(control.gateway.engine.counters().ftp_connections_unread, 1);
}

/// What is lost on its way to the gateway could have been a line of HTTP.
#[test]
fn after_a_gap_in_the_clients_octets_no_mapping_is_made() {
    let mut control = Control::nat44();
    control.client_says(PUSH, 1_018, 5_001, b"x\r\n");
    control.client_says(PUSH, 1_001, 5_001, b"POST / HTTP/1.1\r\n");
    assert_eq!(control.client_says(PUSH, 1_021, 5_001, PORT.as_bytes()).text, PORT);
}

#[test]
fn before_the_greeting_no_mapping_is_made_and_afterwards_commands_have_their_own_replies() {
    let mut control = Control::nat64();
    control.port = 40_001;
    control.connects();
    control.gateway.counted_before();
    let eprt = "EPRT |2|2001:db8:1::1|5001|\r\n";
    assert_eq!(control.client_says(PUSH, 1_001, 4_990, eprt.as_bytes()).text, eprt);
    control.gateway.counted([("ftp.mappings.refused", 1), ("nat64.v6_to_v4", 1)]);
    // The greeting, in parts and in several lines.
    let end = 1_001 + eprt.len() as u32;
    let mut at = 4_990;
    for part in [&b"220-wel"[..], b"come\r\n22", b"0 ready\r\n"] {
        control.server_says(PUSH, at, end, part);
        at += part.len() as u32;
    }
    // The reply to what came before.
    control.server_says(PUSH, at, end, b"500 what?\r\n");
    at += 11;
    assert_eq!(control.client_says(PUSH, end, at, b"EPSV\r\n").text, "PASV\r\n");
    let reply = control.server_says(PUSH, at, end + 6, b"227 Passive (10,9,9,9,237,19)\r\n");
    assert!(reply.text.starts_with("229 "), "{reply:?}");
    let line = control.client_says(PUSH, end + 6, at + 48, eprt.as_bytes()).text;
    port_of(&line);
}

#[test]
fn a_server_that_does_not_greet_gets_no_connection() {
    for greeting in
        ["421 busy\r\n", "230 come in\r\n", "HTTP/1.1 400 Bad\r\n", "120 wait\r\n", "220-not yet\r\n"]
    {
        let mut control = Control::nat44();
        control.port = 40_001;
        control.connects();
        control.server_says(PUSH, 4_990, 1_001, greeting.as_bytes());
        let after = 4_990 + greeting.len() as u32;
        assert_eq!(control.client_says(PUSH, 1_001, after, PORT.as_bytes()).text, PORT, "{greeting}");
        assert_eq!(control.gateway.engine.counters().ftp_mappings_made, 0, "{greeting}");
    }
}

/// The client is secured from AUTH on: what follows is TLS, which looks like no command.
#[test]
fn after_auth_octets_pass_unchanged_even_if_the_server_refuses_too_late() {
    let mut control = Control::nat44();
    control.client_says(PUSH, 1_001, 5_001, b"AUTH TLS\r\n\x16\x03\x01\xff\xfb\x01");
    control.client_says(PUSH, 1_017, 5_001, b"\x02\r\n");
    control.server_says(PUSH, 5_001, 1_020, b"530 no\r\n");
    assert_eq!(control.client_says(PUSH, 1_020, 5_009, PORT.as_bytes()).text, PORT);
    // A client that waits is read again.
    control.is_now("10.0.0.1", 40_002);
    control.client_says(PUSH, 1_001, 5_001, b"AUTH TLS\r\n");
    control.server_says(PUSH, 5_001, 1_011, b"530 no\r\n");
    port_of(&control.client_says(PUSH, 1_011, 5_009, PORT.as_bytes()).text);
}

#[test]
fn a_syn_that_answers_another_one_begins_no_connection() {
    for acknowledgment in [0, 1_000, 1_002, 5_000] {
        let mut control = Control::nat44();
        control.port = 40_001;
        control.begins();
        control.server_says(SYN | ACK, 4_989, acknowledgment, b"");
        assert_eq!(control.gateway.engine.counters().ftp_connections_made, 1);
        control.server_says(PUSH, 4_990, 1_001, GREETING);
        assert_eq!(control.client_says(PUSH, 1_001, 5_001, PORT.as_bytes()).text, PORT);
        // The right one comes later, with its own number.
        control.server_says(SYN | ACK, 7_989, 1_001, b"");
        control.server_says(PUSH, 7_990, 1_001, GREETING);
        port_of(&control.client_says(PUSH, 1_001, 8_001, PORT.as_bytes()).text);
    }
}

/// Nobody answers these SYNs.
#[test]
fn a_flood_of_syns_does_not_affect_control_connections() {
    let mut control = Control::nat44();
    for port in 1_024..1_824 {
        assert!(control.gateway.passes(v4("10.0.0.9", SERVER).tcp(port, 21, SYN, b"")));
    }
    let counters = control.gateway.engine.counters();
    assert_eq!((counters.ftp_connections_made, counters.ftp_connections_refused), (1, 0));
    control.is_now("10.0.0.2", 40_000);
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,2,19,137\r\n").text);
    // Nor from the flood's own source.
    control.is_now("10.0.0.9", 40_000);
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,9,19,137\r\n").text);
}

#[test]
fn a_subscriber_with_many_control_connections_has_a_share_that_is_read() {
    let mut control = Control::nat44();
    for port in 1_024..1_224 {
        control.is_now("10.0.0.9", port);
    }
    let counters = control.gateway.engine.counters();
    assert_eq!((counters.ftp_connections_made, counters.ftp_connections_refused), (1 + 64, 136));
    control.is_now("10.0.0.2", 40_000);
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,2,19,137\r\n").text);
}

/// Both sides have closed them, or their sessions have ended without a FIN.
#[test]
fn connections_that_have_ended_are_no_longer_of_the_share() {
    for (is_closed, after) in [(true, Duration::from_secs(11)), (false, Duration::from_secs(7_500))] {
        let mut control = Control::nat44();
        for port in 1_024..1_088 {
            control.is_now("10.0.0.9", port);
            if is_closed {
                control.client_says(ACK | FIN, 1_001, 5_001, b"");
                control.server_says(ACK | FIN, 5_001, 1_002, b"");
                control.client_says(ACK, 1_002, 5_002, b"");
            }
        }
        control.gateway.waits(after);
        control.is_now("10.0.0.9", 40_001);
        assert_eq!(control.gateway.engine.counters().ftp_connections_refused, 0, "{is_closed}");
    }
}

/// RFC 7413: the server may have the client's octets before its own greeting.
#[test]
fn a_connection_with_octets_in_its_syn_is_not_read() {
    let mut control = Control::nat44();
    control.port = 40_001;
    let syn = numbered(control.segment_of_client(SYN, &[], b"U"), 1_000, 0);
    control.gateway.receives(syn);
    let sent = control.gateway.sent();
    control.outside = u16::from_be_bytes([sent[20], sent[21]]);
    control.server_says(SYN | ACK, 4_989, 1_001, b"");
    control.server_says(PUSH, 4_990, 1_001, GREETING);
    assert_eq!(control.client_says(PUSH, 1_001, 5_001, PORT.as_bytes()).text, PORT);
    assert_eq!(control.gateway.engine.counters().ftp_connections_made, 1);
}

/// A host has as many addresses of its /64 as it likes.
#[test]
fn the_addresses_of_a_subscriber_share_what_it_may_have() {
    let mut gateway = Control::nat64().gateway;
    for host in 0..128_u16 {
        opens6(&mut gateway, &format!("2001:db8:9::{host:x}"));
    }
    let counters = gateway.engine.counters();
    assert_eq!((counters.ftp_connections_made, counters.ftp_connections_refused), (1 + 64, 64));
    opens6(&mut gateway, "2001:db8:9:1::1");
    assert_eq!(gateway.engine.counters().ftp_connections_made, 1 + 64 + 1);
}

/// A client behind the NAT64 and the server shake hands.
fn opens6(gateway: &mut Gateway, client: &str) {
    gateway.receives(numbered(v6(client, "64:ff9b::cb00:7101").tcp(40_000, 21, SYN, b""), 1_000, 0));
    let sent = gateway.sent();
    let outside = u16::from_be_bytes([sent[20], sent[21]]);
    gateway.receives(numbered(v4(SERVER, POOL).tcp(21, outside, SYN | ACK, b""), 4_989, 1_001));
    assert_eq!(gateway.last, Verdict::Forward);
    gateway.sent();
}

/// A has as many control connections as are read, and says PORT in all of them as fast as it can. B loses neither its ports nor its mappings nor its rate, and
/// no port of the pool is in quarantine afterwards.
#[test]
fn a_subscriber_that_requests_mappings_endlessly_does_not_exhaust_the_table() {
    let mut control = Control::begin(false, Filtering::EndpointIndependent, true);
    let mut clients = Vec::new();
    for port in 1_024..1_024 + 70 {
        control.is_now("10.0.0.9", port);
        clients.push((port, control.outside, 1_001_u32));
    }
    let before = control.gateway.engine.counters().ftp_mappings_made;
    let bindings = |control: &mut Control| {
        let counters = control.gateway.engine.counters();
        counters.bindings_made - counters.bindings_ended
    };
    let few = bindings(&mut control);
    control.client = "10.0.0.9";
    let mut asked = 0_u64;
    for round in 0..100_u32 {
        for (number, (port, outside, at)) in clients.iter_mut().enumerate() {
            (control.port, control.outside) = (*port, *outside);
            let announced = 2_000 + round * 100 + number as u32;
            let line = format!("PORT 10,0,0,9,{},{}\r\n", announced >> 8, announced & 0xff);
            let heard = control.client_says(PUSH, *at, 5_001, line.as_bytes());
            *at += line.len() as u32;
            // The server acknowledges, so that there is room for the next line.
            control.server_says(ACK, 5_001, heard.sequence + heard.text.len() as u32, b"");
            asked += 1;
        }
        control.gateway.waits(Duration::from_millis(100));
    }
    let made = control.gateway.engine.counters().ftp_mappings_made - before;
    // 32 a second for ten seconds, and 128 at the beginning.
    assert!((128..=128 + 330).contains(&made), "{made} of {asked}");
    assert!(bindings(&mut control) <= few + 64);
    // B is not in A's way at any moment.
    control.is_now("10.0.0.2", 40_000);
    let line = control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,2,19,137\r\n").text;
    let port = port_of(&line);
    assert!(control.comes_in(SERVER, port));
    assert_eq!(control.gateway.flows("10.0.0.2", SERVER, 3_000..3_200), 200);
    // All of A's mappings end with the wait for their data connections, and leave nothing.
    control.gateway.waits(Duration::from_secs(61));
    assert_eq!(control.gateway.engine.counters().quarantines_cut_short, 0);
    assert_eq!(control.gateway.engine.stateful_at(0).unwrap().0.quarantined(), 0);
}

/// One control connection after the other, so that a mapping of each is waited for.
#[test]
fn mappings_of_closed_connections_count_to_their_subscriber() {
    let mut control = Control::nat44();
    let mut made = 0;
    for round in 0..100_u16 {
        control.is_now("10.0.0.9", 1_024 + round);
        let line = format!("PORT 10,0,0,9,20,{round}\r\n");
        let heard = control.client_says(PUSH | 1, 1_001, 5_001, line.as_bytes());
        made += u32::from(heard.text != line);
        let end = heard.sequence + heard.text.len() as u32 + 1;
        control.server_says(ACK | 1, 5_001, end, b"");
        control.client_says(ACK, 1_001 + line.len() as u32 + 1, 5_002, b"");
        // Closed connections are forgotten after ten seconds, mappings after sixty.
        control.gateway.waits(Duration::from_millis(500));
    }
    assert_eq!(made, 64);
    control.is_now("10.0.0.2", 40_000);
    port_of(&control.client_says(PUSH, 1_001, 5_001, b"PORT 10,0,0,2,19,137\r\n").text);
}
