//! A zone's keys are followed (RFC 5011): what is learnt outlives the gateway.

use super::signed_keys::{dnskey, reply, tag};
use super::{Running, free_port, hear, needs_root, say};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// An upstream by TCP that knows the zone's keys, by their seeds, and passes signatures on or strips them.
fn upstream(seeds: &'static [u8], signed: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while let Some(query) = hear(&mut stream) {
                    if query[12..].starts_with(b"\x04test\0\0\x30") {
                        say(&mut stream, &reply(&query, seeds, signed));
                    }
                }
            });
        }
    });
    port
}

fn lines(upstreams: &[u16], directory: &Path) -> String {
    let base64 = domain::utils::base64::encode_string(&dnskey(1)[4..]);
    fs::write(directory.join("anchor"), format!("test. DNSKEY 257 3 15 {base64}\n")).unwrap();
    let mut lines = format!(
        "listen = [\"127.0.0.1:{}\"]\nprefix = \"2001:db8:64::/96\"\ntranslated_elsewhere = true\n",
        free_port()
    );
    for port in upstreams {
        lines += &format!("[[dns64.upstream]]\naddress = \"127.0.0.1:{port}\"\ntransport = \"tcp\"\n");
    }
    let (anchor, state) = (directory.join("anchor"), directory.join("state/test.trust-anchor"));
    lines
        + &format!(
            "[dns64.dnssec]\nvalidate = true\ntrust_anchor = {anchor:?}\ntrust_anchor_state = {state:?}\n"
        )
}

/// The states of keys as they are shown, once they are these.
fn shows(gateway: &Running, states: &[(u16, &str)]) {
    let start = Instant::now();
    loop {
        let shown = gateway.prints(&["show", "dns64", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let has = |(tag, state): &(u16, &str)| {
            let anchors = json["anchors"].as_array().unwrap();
            anchors.iter().any(|row| row["tag"] == *tag && row["state"] == **state)
        };
        if states.iter().all(has) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{shown}\n{}", gateway.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_new_key_waits_and_goes_on_waiting_after_a_restart() {
    needs_root();
    let directory = std::env::temp_dir().join(format!("sixway-anchors-live-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let state = directory.join("state/test.trust-anchor");
    let states = [(tag(1), "valid"), (tag(2), "pending")];

    // The first strips DNSSEC records.
    let both = lines(&[upstream(&[1], false), upstream(&[1, 2], true)], &directory);
    let mut gateway = Running::start("anchors", &both);
    shows(&gateway, &states);
    let written = fs::read_to_string(&state).unwrap();
    assert!(gateway.log().contains(&format!("key {} is new", tag(2))), "{}", gateway.log());
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    drop(gateway);

    // No server is asked again so soon, and none would reply.
    let gateway = Running::start("anchors", &lines(&[free_port()], &directory));
    shows(&gateway, &states);
    assert_eq!(fs::read_to_string(&state).unwrap(), written);
    assert!(!gateway.log().contains("trust anchor"), "{}", gateway.log());
    drop(gateway);
    fs::remove_dir_all(directory).unwrap();
}
