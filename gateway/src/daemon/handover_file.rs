//! The file with sessions for the process that takes over. It is read once.
//!
//! ```text
//!     "6way", version, when it was written (ns since the machine's start), then for each session, little end first:
//!     mechanism 8  protocol 1  state 1  from outside 1  inside 16+2  outside 4+2  remote 4+2  age 8  idle 8  packets 2 × 8  octets 2 × 8
//! ```
//!
//! The mechanism is its identity. In version 3 the remote and the local end of the session's softwire follow, 16 octets each, :: for none; it is written if
//! any session has one, so that others can be read by a process that knows version 2 alone. Version 1 had its place in the configuration instead, in 2 octets: its reader has to know that
//! configuration.

use nix::time::ClockId;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, SavedSession, SessionState};
use sixway_wire::{Endpoint4, Endpoint6, protocol};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

const MAGIC: [u8; 8] = *b"6way\x02\0\0\0";
const HEADER: usize = 16;
const RECORD: usize = 89;
/// Version 3: with softwires.
const MAGIC_3: [u8; 8] = *b"6way\x03\0\0\0";
/// Version 3.
const RECORD_3: usize = RECORD + 32;
/// Version 1.
const MAGIC_1: [u8; 8] = *b"6way\x01\0\0\0";
/// Version 1.
const RECORD_1: usize = 83;

/// The states by their number in the file.
const STATES: [SessionState; 9] = [
    SessionState::Udp,
    SessionState::Icmp,
    SessionState::OutsideInit,
    SessionState::InsideInit,
    SessionState::Established,
    SessionState::FinFromOutside,
    SessionState::FinFromInside,
    SessionState::FinFromBoth,
    SessionState::Trans,
];

/// A session, and its mechanism.
pub(super) type Handed = (Identity, SavedSession);

/// What is in the file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    pub sessions: Vec<Handed>,
    /// Sessions whose translator is unknown.
    pub nobodys: usize,
}

/// Rewrites the file.
///
/// # Errors
/// The kernel's.
pub(super) fn write(path: &Path, sessions: &[Handed]) -> io::Result<()> {
    // An existing file may be open in another process.
    let _ = fs::remove_file(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut out = BufWriter::new(file);
    let any_softwire = sessions.iter().any(|(_, session)| session.softwire.is_some());
    out.write_all(if any_softwire { &MAGIC_3 } else { &MAGIC })?;
    out.write_all(&now().to_le_bytes())?;
    for handed in sessions {
        if let Some(record) = record(handed) {
            out.write_all(&record)?;
            if any_softwire {
                for end in [handed.1.softwire, handed.1.local] {
                    out.write_all(&end.unwrap_or(Ipv6Addr::UNSPECIFIED).octets())?;
                }
            }
        }
    }
    out.flush()
}

/// Reads the file; sessions are as much older as time has passed. Unreadable parts are skipped. `places`: the mechanisms of the process that
/// wrote it, in the order of its configuration, as far as they are known.
///
/// # Errors
/// It does not exist, or was written by another version.
pub(super) fn read(path: &Path, places: &[Option<Identity>]) -> io::Result<Found> {
    let octets = fs::read(path)?;
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "written by an incompatible version");
    let (header, records) = octets.split_first_chunk::<HEADER>().ok_or_else(strange)?;
    let written = u64::from_le_bytes(*header.last_chunk().ok_or_else(strange)?);
    let passed = Duration::from_nanos(now().saturating_sub(written));
    let older = |mut session: SavedSession| {
        session.age += passed;
        session.idle += passed;
        session
    };
    let whose = |rest: &mut &[u8]| Identity::from_number(u64::from_le_bytes(take(rest)?));
    let at_place = |rest: &mut &[u8]| {
        let place = u16::from_le_bytes(take(rest)?);
        places.get(usize::from(place)).copied().flatten()
    };
    let mut found = Found::default();
    let mut read = |mechanism: Option<Identity>, rest: &[u8]| match (mechanism, session(rest)) {
        (Some(mechanism), Some(session)) => found.sessions.push((mechanism, older(session))),
        (None, Some(_)) => found.nobodys += 1,
        (_, None) => {}
    };
    match header.first_chunk() {
        Some(&MAGIC) => records.chunks_exact(RECORD).for_each(|mut rest| read(whose(&mut rest), rest)),
        Some(&MAGIC_3) => records.chunks_exact(RECORD_3).for_each(|mut rest| read(whose(&mut rest), rest)),
        Some(&MAGIC_1) => records.chunks_exact(RECORD_1).for_each(|mut rest| read(at_place(&mut rest), rest)),
        _ => return Err(strange()),
    }
    Ok(found)
}

fn now() -> u64 {
    let now = ClockId::CLOCK_BOOTTIME.now().map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn record((mechanism, session): &Handed) -> Option<Vec<u8>> {
    let state = STATES.iter().position(|state| *state == session.state)? as u8;
    let number = match session.protocol {
        NatProtocol::Tcp => protocol::TCP,
        NatProtocol::Udp => protocol::UDP,
        NatProtocol::Icmp => protocol::ICMPV4,
    };
    let (Inside(inside), Outside(outside)) = (session.inside, session.outside);
    let mut octets = Vec::with_capacity(RECORD);
    octets.extend(mechanism.number().to_le_bytes());
    octets.extend([number, state, u8::from(session.from_outside)]);
    octets.extend(inside.address.octets());
    octets.extend(inside.port.to_le_bytes());
    for endpoint in [outside, session.remote] {
        octets.extend(endpoint.address.octets());
        octets.extend(endpoint.port.to_le_bytes());
    }
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = [nanoseconds(session.age), nanoseconds(session.idle)];
    let numbers = times.into_iter().chain(session.packets).chain(session.octets);
    octets.extend(numbers.flat_map(u64::to_le_bytes));
    Some(octets)
}

/// What follows the mechanism.
fn session(mut rest: &[u8]) -> Option<SavedSession> {
    let [number, state, from_outside] = take(&mut rest)?;
    let inside = Endpoint6::new(Ipv6Addr::from(take::<16>(&mut rest)?), u16::from_le_bytes(take(&mut rest)?));
    let mut endpoint = || {
        let address = Ipv4Addr::from(take::<4>(&mut rest)?);
        Some(Endpoint4::new(address, u16::from_le_bytes(take(&mut rest)?)))
    };
    let (outside, remote) = (endpoint()?, endpoint()?);
    let mut number64 = || take(&mut rest).map(u64::from_le_bytes);
    let (age, idle) = (Duration::from_nanos(number64()?), Duration::from_nanos(number64()?));
    let (packets, octets) = ([number64()?, number64()?], [number64()?, number64()?]);
    let mut end = || take::<16>(&mut rest).map(Ipv6Addr::from).filter(|end| !end.is_unspecified());
    let (softwire, local) = (end(), end());
    Some(SavedSession {
        protocol: NatProtocol::of(number)?,
        state: *STATES.get(usize::from(state))?,
        softwire,
        local,
        inside: Inside(inside),
        outside: Outside(outside),
        remote,
        age,
        idle,
        packets,
        octets,
        from_outside: from_outside != 0,
    })
}

fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = octets.split_first_chunk()?;
    *octets = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint4 {
        let socket: std::net::SocketAddrV4 = text.parse().unwrap();
        Endpoint4::new(*socket.ip(), socket.port())
    }

    fn handed(protocol: NatProtocol, state: SessionState, number: u64) -> Handed {
        let inside = Endpoint6::new("2001:db8:1::2".parse().unwrap(), 50_122);
        let session = SavedSession {
            softwire: None,
            local: None,
            protocol,
            state,
            inside: Inside(inside),
            outside: Outside(endpoint("192.0.2.3:41022")),
            remote: endpoint("203.0.113.2:443"),
            age: Duration::from_secs(100 + number),
            idle: Duration::from_secs(number),
            packets: [number, 1 << 40],
            octets: [1 << 50, number],
            from_outside: number % 2 == 1,
        };
        (nat64(number), session)
    }

    fn nat64(number: u64) -> Identity {
        Identity::of_nat64(format!("2001:db8:{number:x}::/96").parse().unwrap())
    }

    fn sessions(path: &Path) -> Vec<Handed> {
        read(path, &[]).unwrap().sessions
    }

    #[test]
    fn sessions_come_out_as_they_went_in_and_a_little_older() {
        let path = std::env::temp_dir().join(format!("sixway-handover-{}", std::process::id()));
        let sent: Vec<Handed> = STATES
            .into_iter()
            .zip(0..)
            .zip([NatProtocol::Tcp, NatProtocol::Udp, NatProtocol::Icmp].into_iter().cycle())
            .map(|((state, number), protocol)| handed(protocol, state, number))
            .collect();
        write(&path, &sent).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), (HEADER + 9 * RECORD) as u64);
        let received = sessions(&path);
        assert_eq!(received.len(), sent.len());
        for (received, sent) in received.iter().zip(&sent) {
            let passed = received.1.age.checked_sub(sent.1.age).unwrap();
            assert!(passed < Duration::from_secs(60), "{passed:?}");
            let (age, idle) = (sent.1.age + passed, sent.1.idle + passed);
            assert_eq!(*received, (sent.0, SavedSession { age, idle, ..sent.1 }));
        }
        let whole = fs::read(&path).unwrap();
        for length in 0..HEADER {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&path, &[]).unwrap_err().kind(), io::ErrorKind::InvalidData, "{length}");
        }
        fs::write(&path, &whole[..HEADER + 3 * RECORD + 5]).unwrap();
        assert_eq!(sessions(&path).len(), 3, "what was cut is left out");
        write(&path, &[handed(NatProtocol::Tcp, SessionState::OutsideInitStored, 1)]).unwrap();
        assert_eq!(sessions(&path), [], "a stored SYN stays behind");
        fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, &[]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_session_keeps_its_softwire_and_without_any_the_file_is_that_of_version_2() {
        let path = std::env::temp_dir().join(format!("sixway-handover-3-{}", std::process::id()));
        let plain = handed(NatProtocol::Udp, SessionState::Udp, 1);
        let mut behind = handed(NatProtocol::Tcp, SessionState::Established, 2);
        behind.1.softwire = Some("2001:db8:b4::1".parse().unwrap());
        behind.1.local = Some("2001:db8:a::2".parse().unwrap());
        write(&path, &[plain, behind]).unwrap();
        assert_eq!(fs::read(&path).unwrap()[..8], MAGIC_3);
        let ends = |(_, session): Handed| (session.softwire, session.local);
        let softwires: Vec<_> = sessions(&path).into_iter().map(ends).collect();
        assert_eq!(softwires, [(None, None), (behind.1.softwire, behind.1.local)]);
        write(&path, &[plain]).unwrap();
        assert_eq!(fs::read(&path).unwrap()[..8], MAGIC);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn of_version_1_the_configuration_says_whose_a_session_is() {
        let path = std::env::temp_dir().join(format!("sixway-handover-1-{}", std::process::id()));
        let sent: Vec<Handed> =
            (0..3).map(|number| handed(NatProtocol::Udp, SessionState::Udp, number)).collect();
        let mut octets = [&MAGIC_1[..], &now().to_le_bytes()].concat();
        for (place, handed) in sent.iter().enumerate() {
            octets.extend((place as u16).to_le_bytes());
            octets.extend(&record(handed).unwrap()[8..]);
        }
        assert_eq!(octets.len(), HEADER + 3 * RECORD_1);
        fs::write(&path, octets).unwrap();
        let found = read(&path, &[Some(nat64(7)), None, Some(nat64(8))]).unwrap();
        let seen: Vec<_> = found.sessions.iter().map(|(mechanism, it)| (*mechanism, it.packets)).collect();
        let wanted = [(nat64(7), sent[0].1.packets), (nat64(8), sent[2].1.packets)];
        assert_eq!((&seen[..], found.nobodys), (&wanted[..], 1));
        assert_eq!(read(&path, &[]).unwrap(), Found { sessions: Vec::new(), nobodys: 3 });
        fs::remove_file(&path).unwrap();
    }
}
