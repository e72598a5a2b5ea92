use super::*;
use crate::effects::Effects;
use crate::frame::{Frame, Offload};
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::parse::parse;
use crate::rewrite::{Editing, Pass, Rewriter, Work};
use crate::samples::{header_sealed, icmp, is_sound, seal, tcp, udp, v4, v6};
use crate::tunnel::TunnelPolicy;
use crate::tunnel::identification::Identifications;
use crate::verdict::{Action, Decision, Edit, Next, Outer, PolicyId, WorkerId};
use proptest::prelude::*;
use sixway_wire::Endpoint4;
use sixway_wire::protocol::{ICMPV4, IPV4, TCP, UDP};

/// A host inside, and who it talks to.
const OLD: [&str; 2] = ["10.0.0.7", "198.51.100.9"];
/// What represents the host outside.
const NEW: [&str; 2] = ["192.0.2.1", "198.51.100.9"];
const OLD_PORT: u16 = 4_000;
const NEW_PORT: u16 = 61_000;

fn endpoints(addresses: [&str; 2], ports: [u16; 2]) -> [Endpoint4; 2] {
    [0, 1].map(|side| Endpoint4::new(addresses[side].parse().unwrap(), ports[side]))
}

fn rewriter(mtu4: u16) -> Rewriter {
    let limits = Limits { mtu4, ..Limits::default() };
    let mut rewriter = Rewriter::new(limits, Identifications::new(WorkerId(0), 1, 7), 7);
    let policy = Policy { clamp_mss: false, ..Policy::default() };
    rewriter.set_policies(vec![policy], vec![TunnelPolicy::default()]);
    rewriter
}

/// The decision for a packet from inside; both ports of an ICMP query are its identifier.
fn decision(keep_ports: bool, is_query: bool) -> Decision {
    let ports = if is_query { [NEW_PORT; 2] } else { [NEW_PORT, 80] };
    let [source, destination] = endpoints(NEW, ports);
    Decision::edit(Edit::Renumber4 { source, destination, keep_ports }, PolicyId(0), Next::Leave)
}

fn run(
    octets: &[u8],
    offload: Offload,
    decision: &Decision,
    effects: &mut Effects,
) -> Result<(Executed, Frame, Outbox), DropReason> {
    let mut frame = Frame::holding(octets);
    frame.offload = offload;
    let packet = parse(octets).unwrap();
    let work =
        Work { decision, packet: &packet, inner: None, pass: Pass { decrement: true, reassembled: false } };
    let (mut out, mut rewriter) = (Outbox::new(64), rewriter(1_500));
    let executed = rewriter.execute::<Editing>(&work, &mut frame, &mut out, effects);
    let is_too_big = executed == Err(DropReason::PacketTooBig);
    assert_eq!(rewriter.tunnel_too_small(), is_too_big.then_some(1_500), "the sender is told of IPv4's link");
    if executed.is_err() {
        assert_eq!(frame.bytes(), octets, "what is refused is not changed");
    }
    executed.map(|executed| (executed, frame, out))
}

fn renumbered(octets: &[u8], offload: Offload, keep_ports: bool) -> Vec<u8> {
    let is_query = matches!(parse(octets).unwrap().transport, Transport::IcmpQuery { .. });
    let done = run(octets, offload, &decision(keep_ports, is_query), &mut Effects::default()).unwrap();
    assert_eq!(done.0, Executed::InPlace);
    done.1.bytes().to_vec()
}

/// One hop later, with the identification that the packet got.
fn hop_less(mut octets: Vec<u8>, got: &[u8]) -> Vec<u8> {
    octets[8] -= 1;
    octets[4..6].copy_from_slice(&got[4..6]);
    header_sealed(octets)
}

#[test]
fn addresses_ports_and_identifier_change_and_every_checksum_follows() {
    let whole =
        |addresses: [&str; 2], protocol, body: &[u8]| seal(v4(addresses[0], addresses[1], protocol, body));
    let of_port = |port| {
        [
            (TCP, tcp(port, 80, 33)),
            (UDP, udp(port, 80, 33)),
            (ICMPV4, icmp(8, 0, [(port >> 8) as u8, port as u8, 0, 2], b"ping!")),
        ]
    };
    for ((protocol, old), (_, new)) in of_port(OLD_PORT).into_iter().zip(of_port(NEW_PORT)) {
        let after = renumbered(&whole(OLD, protocol, &old), Offload::default(), false);
        assert!(is_sound(&after), "{protocol}");
        assert_eq!(after, hop_less(whole(NEW, protocol, &new), &after), "{protocol}");
        let kept = renumbered(&whole(OLD, protocol, &old), Offload::default(), true);
        assert_eq!(kept, hop_less(whole(NEW, protocol, &old), &kept), "{protocol}: its ports stay");
    }
}

#[test]
fn a_udp_datagram_without_checksum_has_none_afterwards() {
    let before = v4(OLD[0], OLD[1], UDP, &udp(OLD_PORT, 80, 5));
    let after = renumbered(&before, Offload::default(), false);
    assert_eq!(after, hop_less(v4(NEW[0], NEW[1], UDP, &udp(NEW_PORT, 80, 5)), &after));
}

#[test]
fn an_unfinished_checksum_stays_the_sum_of_the_pseudo_header() {
    let unfinished = |addresses: [&str; 2], port| {
        let mut packet = v4(addresses[0], addresses[1], TCP, &tcp(port, 80, 33));
        let [source, destination] = addresses.map(|address| address.parse().unwrap());
        let sum = checksum::pseudo4(source, destination, TCP, packet.len() as u32 - 20).fold();
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
        packet
    };
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    let after = renumbered(&unfinished(OLD, OLD_PORT), offload, false);
    assert_eq!(after, hop_less(unfinished(NEW, NEW_PORT), &after));
}

#[test]
fn what_may_be_fragmented_has_an_identification_that_no_other_host_behind_the_address_has() {
    // RFC 6864 §5.3.1: two hosts may have chosen the same one.
    let packet = |flags: u8| {
        let mut packet = seal(v4(OLD[0], OLD[1], UDP, &udp(OLD_PORT, 80, 9)));
        packet[6] = flags;
        header_sealed(packet)
    };
    assert_ne!(renumbered(&packet(0), Offload::default(), false)[4..6], [0x12, 0x34]);
    assert_eq!(
        renumbered(&packet(0x40), Offload::default(), false)[4..6],
        [0x12, 0x34],
        "DF: never fragmented"
    );
    // Inbound, the source stays, and the sender's choice with it.
    let [source, destination] = endpoints([OLD[1], OLD[0]], [80, OLD_PORT]);
    let inward =
        Decision::edit(Edit::Renumber4 { source, destination, keep_ports: false }, PolicyId(0), Next::Leave);
    let answer = seal(v4(NEW[1], NEW[0], UDP, &udp(80, NEW_PORT, 9)));
    let (_, frame, _) = run(&answer, Offload::default(), &inward, &mut Effects::default()).unwrap();
    assert_eq!(frame.bytes()[4..6], [0x12, 0x34]);
}

#[test]
fn options_are_kept_and_a_later_fragment_changes_in_its_header_alone() {
    let with_options = |addresses: [&str; 2], port| {
        let mut packet = seal(v4(addresses[0], addresses[1], UDP, &udp(port, 80, 9)));
        packet.splice(20..20, [1, 1, 1, 0]);
        (packet[0], packet[3]) = (0x46, packet[3] + 4);
        header_sealed(packet)
    };
    let after = renumbered(&with_options(OLD, OLD_PORT), Offload::default(), false);
    assert_eq!(after, hop_less(with_options(NEW, NEW_PORT), &after));
    let later = |addresses: [&str; 2]| {
        let mut packet = v4(addresses[0], addresses[1], UDP, &[7; 64]);
        packet[7] = 3;
        header_sealed(packet)
    };
    let before = later(OLD);
    assert_eq!(renumbered(&before, Offload::default(), false), hop_less(later(NEW), &before));
}

#[test]
fn the_packet_that_an_error_quotes_is_rewritten_with_its_checksums() {
    for (protocol, length) in [(UDP, 9), (UDP, 8), (TCP, 40), (ICMPV4, 12)] {
        let body = |port: u16| match protocol {
            UDP => udp(80, port, 9),
            TCP => tcp(80, port, 20),
            _ => icmp(0, 0, [(port >> 8) as u8, port as u8, 0, 1], b"data"),
        };
        // The host inside tells about a packet from outside: what it quotes went the other way.
        let error = |addresses: [&str; 2], port| {
            let quote = seal(v4(addresses[1], addresses[0], protocol, &body(port)));
            seal(v4(addresses[0], addresses[1], ICMPV4, &icmp(3, 3, [0; 4], &quote[..20 + length])))
        };
        let ports = if protocol == ICMPV4 { [NEW_PORT; 2] } else { [NEW_PORT, 80] };
        let [destination, source] = endpoints(NEW, ports);
        let mut effects = Effects::default();
        let quoted = effects.quoted(Quoted::V4 { source, destination, keep_ports: false });
        let decision = Decision { quoted: Some(quoted), ..decision(true, false) };
        let (_, frame, _) = run(&error(OLD, OLD_PORT), Offload::default(), &decision, &mut effects).unwrap();
        assert_eq!(
            frame.bytes(),
            hop_less(error(NEW, NEW_PORT), frame.bytes()),
            "{protocol}, {length} octets of it"
        );
    }
}

#[test]
fn an_error_whose_quote_is_not_known_or_not_usable_is_refused() {
    let quote = seal(v4(OLD[1], OLD[0], UDP, &udp(80, OLD_PORT, 9)));
    let error = |quote: &[u8]| seal(v4(OLD[0], OLD[1], ICMPV4, &icmp(3, 3, [0; 4], quote)));
    let unknown = run(&error(&quote), Offload::default(), &decision(true, false), &mut Effects::default());
    assert_eq!(unknown.err(), Some(DropReason::QuoteUnusable));
    let mut effects = Effects::default();
    let [destination, source] = endpoints(NEW, [NEW_PORT, 80]);
    let quoted = effects.quoted(Quoted::V4 { source, destination, keep_ports: false });
    let decision = Decision { quoted: Some(quoted), ..decision(true, false) };
    let cut = run(&error(&quote[..22]), Offload::default(), &decision, &mut effects);
    assert_eq!(cut.err(), Some(DropReason::QuoteUnusable));
}

#[test]
fn a_packet_that_is_too_large_is_cut_unless_it_has_df() {
    let large = |flags| {
        let mut packet = seal(v4(OLD[0], OLD[1], UDP, &udp(OLD_PORT, 80, 2_000)));
        packet[6] = flags;
        header_sealed(packet)
    };
    let refused = run(&large(0x40), Offload::default(), &decision(false, false), &mut Effects::default());
    assert_eq!(refused.err(), Some(DropReason::PacketTooBig));
    let cut = run(&large(0), Offload::default(), &decision(false, false), &mut Effects::default());
    let (executed, _, mut out) = cut.unwrap();
    assert_eq!(executed, Executed::InPieces);
    let pieces: Vec<&[u8]> = out.frames().iter().map(Frame::bytes).collect();
    assert!(pieces.len() == 2 && pieces.iter().all(|piece| piece.len() <= 1_500));
    let joined: Vec<u8> = pieces.iter().flat_map(|piece| &piece[20..]).copied().collect();
    let expected = seal(v4(NEW[0], NEW[1], UDP, &udp(NEW_PORT, 80, 2_000)));
    assert_eq!(joined, expected[20..]);
    let identification = pieces[0][4..6].to_vec();
    assert_ne!(identification, [0x12, 0x34]);
    for piece in pieces {
        assert_eq!((&piece[4..6], &piece[12..16]), (&identification[..], &[192, 0, 2, 1][..]));
        assert_eq!(header_sealed(piece.to_vec()), piece);
    }
}

#[test]
fn a_tunnels_packet_is_renumbered_in_one_pass_and_enters_another_tunnel() {
    let inner = seal(v4(OLD[0], OLD[1], TCP, &tcp(OLD_PORT, 80, 33)));
    let (outer6, mut effects) = (v6("2001:db8::2", "2001:db8::1", IPV4, &inner), Effects::default());
    let [source, destination] = endpoints(NEW, [NEW_PORT, 80]);
    let edit = Some(Edit::Renumber4 { source, destination, keep_ports: false });
    let ends = Outer::V4 { source: [192, 0, 2, 9].into(), destination: [198, 51, 100, 1].into() };
    let encap = Some(crate::verdict::Encap { outer: effects.outer(ends), policy: PolicyId(0) });
    for encap in [None, encap] {
        let action = Action { decap: Some(PolicyId(0)), edit, policy: PolicyId(0), encap };
        let decision = Decision { action, quoted: None, next: Next::Leave };
        let mut frame = Frame::holding(&outer6);
        let (outer, mut parsed) = (parse(&outer6).unwrap(), crate::parse::Packet::EMPTY);
        crate::rewrite::decap::inner(&frame, &outer, &mut parsed).unwrap();
        let pass = Pass { decrement: true, reassembled: false };
        let work = Work { decision: &decision, packet: &outer, inner: Some(&parsed), pass };
        let done = rewriter(1_500).execute::<Editing>(&work, &mut frame, &mut Outbox::new(1), &mut effects);
        assert_eq!(done, Ok(Executed::InPlace));
        let front = if encap.is_some() { 20 } else { 0 };
        let sent = &frame.bytes()[front..];
        assert_eq!(sent, hop_less(seal(v4(NEW[0], NEW[1], TCP, &tcp(NEW_PORT, 80, 33))), sent));
        assert_eq!(usize::from(frame.offload.transport), front + 20);
    }
}

#[test]
fn of_pieces_that_a_tunnel_refuses_none_leaves() {
    let mut packet = v4(OLD[0], OLD[1], UDP, &udp(OLD_PORT, 80, 3_000));
    packet[6] = 0;
    let (packet, mut effects) = (seal(packet), Effects::default());
    let [source, destination] = endpoints(NEW, [NEW_PORT, 80]);
    let edit = Some(Edit::Renumber4 { source, destination, keep_ports: false });
    let [local, remote] = endpoints(OLD, [OLD_PORT, 3_544]);
    let ends = Outer::Udp4 { source: local, destination: remote };
    // What the tunnel carries has to be cut outside, which is not done to pieces.
    let policy = TunnelPolicy { mtu: crate::tunnel::TunnelMtu::Static(1_480), ..TunnelPolicy::default() };
    let mut rewriter = rewriter(1_500);
    rewriter.set_policies(vec![Policy::default()], vec![policy]);
    let encap = Some(crate::verdict::Encap { outer: effects.outer(ends), policy: PolicyId(0) });
    let action = Action { decap: None, edit, policy: PolicyId(0), encap };
    let decision = Decision { action, quoted: None, next: Next::Leave };
    let (mut frame, parsed) = (Frame::holding(&packet), parse(&packet).unwrap());
    let pass = Pass { decrement: true, reassembled: false };
    let work = Work { decision: &decision, packet: &parsed, inner: None, pass };
    let mut out = Outbox::new(8);
    assert_eq!(
        rewriter.execute::<Editing>(&work, &mut frame, &mut out, &mut effects),
        Err(DropReason::OutboxFull)
    );
    assert_eq!(out.len(), 0);
}

proptest! {
    #[test]
    fn any_packet_is_sound_afterwards(
        source in any::<u32>(), destination in any::<u32>(), ports in any::<(u16, u16)>(),
        is_tcp in any::<bool>(), data in 0_usize..60,
    ) {
        let (protocol, body) =
            if is_tcp { (TCP, tcp(1, 2, data)) } else { (UDP, udp(1, 2, data)) };
        let [source, destination] = [(source, ports.0), (destination, ports.1)]
            .map(|(address, port)| Endpoint4::new(Ipv4Addr::from_bits(address), port));
        let edit = Edit::Renumber4 { source, destination, keep_ports: false };
        let decision = Decision::edit(edit, PolicyId(0), Next::Leave);
        let before = seal(v4(OLD[0], OLD[1], protocol, &body));
        let (_, frame, _) = run(&before, Offload::default(), &decision, &mut Effects::default()).unwrap();
        prop_assert!(is_sound(frame.bytes()));
        prop_assert_eq!(header_sealed(frame.bytes().to_vec()), frame.bytes());
        prop_assert_eq!(&frame.bytes()[12..20], [source.address.octets(), destination.address.octets()].concat());
    }
}
