//! A zone rolls its key (RFC 5011) over some months, while its DNS64 is restarted now and then. The clock is libfaketime's.

use super::signed_keys::{Zone, dnskey, tag};
use super::{Running, SIXWAY, configure, free_port, hear, needs_root, say};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const DAY: u32 = 86_400;

/// The library; where it cannot be loaded into the program, the test is ignored.
fn libfaketime() -> PathBuf {
    let machine = std::env::consts::ARCH;
    let path = PathBuf::from(format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1"));
    if !path.exists() {
        sixway_trial::ignore("needs libfaketime (Debian: faketime)");
    }
    // A static program loads nothing.
    let program = fs::read(SIXWAY).unwrap();
    if !program.windows(11).any(|part| part == b"/ld-linux-x") && machine == "x86_64" {
        sixway_trial::ignore("the program is static: libfaketime cannot be loaded into it");
    }
    path
}

/// An upstream by TCP with a zone that changes.
fn upstream(zone: &Arc<Mutex<Zone>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let zone = Arc::clone(zone);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let zone = Arc::clone(&zone);
            std::thread::spawn(move || {
                while let Some(query) = hear(&mut stream) {
                    let reply = zone.lock().unwrap().reply(&query);
                    say(&mut stream, &reply);
                }
            });
        }
    });
    port
}

/// A DNS64 with the zone's first key as its anchor.
struct World {
    zone: Arc<Mutex<Zone>>,
    directory: PathBuf,
    port: u16,
    library: PathBuf,
    text: String,
}

impl World {
    fn new(name: &str) -> Self {
        needs_root();
        let library = libfaketime();
        let directory = std::env::temp_dir().join(format!("sixway-dns64-{name}-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let zone = Arc::new(Mutex::new(Zone::default()));
        let (port, upstream) = (free_port(), upstream(&zone));
        let base64 = domain::utils::base64::encode_string(&dnskey(1)[4..]);
        let (anchor, state) = (directory.join("anchor"), directory.join("state/test.trust-anchor"));
        fs::write(&anchor, format!("test. DNSKEY 257 3 15 {base64}\n")).unwrap();
        let text = format!(
            "listen = [\"127.0.0.1:{port}\"]\nprefix = \"2001:db8:64::/96\"\ntranslated_elsewhere = true\n\
             [[dns64.upstream]]\naddress = \"127.0.0.1:{upstream}\"\ntransport = \"tcp\"\n\
             [dns64.dnssec]\nvalidate = true\ntrust_anchor = {anchor:?}\ntrust_anchor_state = {state:?}\n"
        );
        Self { zone, directory, port, library, text }
    }

    /// On this day, with the zone like that, the gateway starts; once its anchors are in these states, it is asked: RCODE and AD.
    fn day(&self, day: u32, zone: Zone, states: &[(u16, &str)]) -> (u8, bool) {
        let today = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as u32;
        *self.zone.lock().unwrap() = Zone { now: today + day * DAY, ..zone };
        configure(&self.directory, &self.text);
        let mut command = Command::new(SIXWAY);
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", format!("+{day}d"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
        // Its directory stays from day to day.
        let mut gateway = Running::run(command, self.directory.clone(), "log", &[]).lasting();
        assert!(gateway.said.contains("ready in"), "day {day}: {}", gateway.log());
        shows(&gateway, day, states);
        let answer = secure(self.port);
        assert_eq!(gateway.end(), 0, "day {day}: {}", gateway.log());
        answer
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// RCODE and AD of the answer for the AAAA record of `www.test`, with DO=1.
fn secure(port: u16) -> (u8, bool) {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(6))).unwrap();
    let mut query = b"\0\x07\x01\x20\0\x01\0\0\0\0\0\x01\x03www\x04test\0\0\x1c\0\x01".to_vec();
    query.extend(b"\0\0\x29\x04\xd0\0\0\x80\0\0\0");
    client.send_to(&query, ("127.0.0.1", port)).unwrap();
    let mut room = [0; 2_048];
    client.recv(&mut room).unwrap();
    (room[3] & 0xf, room[3] & 0x20 != 0)
}

fn shows(gateway: &Running, day: u32, states: &[(u16, &str)]) {
    let start = Instant::now();
    loop {
        let shown = gateway.prints(&["show", "dns64", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let anchors = json["anchors"].as_array().unwrap();
        let has = |(tag, state): &(u16, &str)| {
            anchors.iter().any(|row| row["tag"] == *tag && row["state"] == **state)
        };
        if states.iter().all(has) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "day {day}: {shown}\n{}", gateway.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn zone(keys: &[u8], signers: &[u8]) -> Zone {
    Zone { keys: keys.into(), signers: signers.into(), signer: signers[signers.len() - 1], ..Zone::default() }
}

#[test]
fn a_zone_rolls_its_key_over_some_months_and_its_names_stay_secure() {
    let world = World::new("rollover");
    let (old, new) = (tag(1), tag(2));
    const SECURE: (u8, bool) = (0, true);
    assert_eq!(world.day(0, zone(&[1], &[1]), &[(old, "valid")]), SECURE);
    assert_eq!(world.day(1, zone(&[1, 2], &[1]), &[(old, "valid"), (new, "pending")]), SECURE);
    // RFC 5011 §2.4.1: 30 days must pass.
    assert_eq!(world.day(20, zone(&[1, 2], &[1]), &[(old, "valid"), (new, "pending")]), SECURE);
    assert_eq!(world.day(33, zone(&[1, 2], &[1]), &[(old, "valid"), (new, "valid")]), SECURE);
    let revoking = Zone { revoked: Some(1), ..zone(&[1, 2], &[1, 2]) };
    assert_eq!(world.day(34, revoking, &[(new, "valid")]), SECURE);
    assert_eq!(world.day(70, zone(&[2], &[2]), &[(new, "valid")]), SECURE);
    // The old key is no longer trusted, and a stranger's never was.
    assert_eq!(world.day(71, zone(&[1], &[1]), &[(new, "valid")]).0, 2);
    assert_eq!(world.day(72, zone(&[3], &[3]), &[(new, "valid")]).0, 2);
    assert_eq!(world.day(73, zone(&[2], &[2]), &[(new, "valid")]), SECURE);
}

#[test]
fn who_was_away_while_a_zone_rolled_its_key_believes_nobody() {
    let world = World::new("away");
    assert_eq!(world.day(0, zone(&[1], &[1]), &[(tag(1), "valid")]), (0, true));
    assert_eq!(world.day(70, zone(&[2], &[2]), &[(tag(1), "valid")]), (2, false));
    assert!(Path::new(&world.directory).join("state/test.trust-anchor").exists());
}
