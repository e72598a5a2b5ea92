//! Clients that look closely: dig before answers that no datagram holds, and delv, which validates what it gets.

use super::{address, asker};
use crate::Interop;
use sixway_lab::dns64::{Flags, Kind, Server, Tree, Trust};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::name_service::{DNS64, RESOLVER, serve};
use sixway_lab::namespace::command;
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("dig_gets_by_tcp_what_no_datagram_holds", &["sixway", "nsd", "taskset", "dig"], dig),
    Interop::new(
        "delv_validates_what_dns64_passes_on_and_is_given_nothing_made",
        &["sixway", "nsd", "taskset", "delv", "dnssec-keygen", "dnssec-signzone"],
        delv,
    ),
];

/// A records of one name: as AAAA records they take more than 1,232 octets.
const MANY: u32 = 60;

fn said_by(network: &Network, program: &'static str, words: &[&str]) -> Result<String> {
    let mut command = command(program)?;
    command.arg(format!("@{RESOLVER}")).args(words);
    let said = network.host("client")?.run(command, Duration::from_secs(30))?.succeeded()?;
    Ok(said.stdout + &said.stderr)
}

fn dig() -> Result<()> {
    let network = client_gateway_server()?;
    let records: String = (0..MANY).map(|number| format!("many A 45.64.0.{number}\n")).collect();
    // As AAAA records these are more than any message holds.
    let most: String =
        (0..2_400).map(|number| format!("most A 45.65.{}.{}\n", number / 256, number % 256)).collect();
    serve(&network, &format!("{records}{most}"))?;
    run_sixway(&network, &format!("{NAT64}{DNS64}"))?;
    let expected: Vec<Ipv6Addr> =
        (0..MANY).map(|number| address(&format!("64:ff9b::2d40:{number:x}"))).collect();
    for words in
        [&["+notcp"][..], &["+bufsize=512"], &["+noedns"], &["+bufsize=4096"], &["+dnssec"], &["+tcp"]]
    {
        let said = said_by(&network, "dig", &[words, &["+short", "many.example", "AAAA"]].concat())?;
        let mut found: Vec<Ipv6Addr> = said.lines().filter_map(|line| line.parse().ok()).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{words:?}: {said}");
    }
    let most = said_by(&network, "dig", &["+tcp", "+short", "most.example", "AAAA"])?;
    let count = most.lines().filter(|line| line.parse::<Ipv6Addr>().is_ok()).count();
    assert!((2_000..=2_400).contains(&count), "{count} AAAA records in a message: {most}");
    let cut = said_by(&network, "dig", &["+ignore", "+notcp", "many.example", "AAAA"])?;
    let flags = cut.lines().find(|line| line.contains("flags:")).unwrap_or_default();
    match flags.contains(" tc") && cut.contains("ANSWER: 0") {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("a datagram is cut, and says so: {cut}"))),
    }
}

/// It sets DO, and CD on request, as who validates behind a DNS64 must (RFC 6147 §3): what DNS64 makes has no signature, and would be bogus for it.
fn delv() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("sixway-lab-delv-{}", std::process::id()));
    std::fs::create_dir(&folder).asking(|| format!("creating {}", folder.display()))?;
    let tree = Tree::of_all_kinds(&folder, 120, 7_050);
    std::fs::remove_dir_all(&folder).ok();
    let mut tree = tree?;
    let anchor = anchor_of(&tree);
    for validates in [true, false] {
        if !validates {
            tree.anchor.clear();
        }
        let running = Server::Sixway.start(&tree)?;
        let file: PathBuf = running.network.file("anchor.delv", &anchor)?;
        let names = tree.samples.iter().filter(|sample| {
            sample.trust == [Trust::Secure; 2]
                && sample.kind == Kind::VersionFour
                && sample.name.ends_with("signed.test")
        });
        let names: Vec<_> = names.take(3).map(|sample| sample.name.clone()).collect();
        assert!(!names.is_empty(), "no such name was generated");
        for name in names {
            let ask = |kind| {
                said_by(
                    &running.network,
                    "delv",
                    &["+cdflag", "-a", &file.display().to_string(), &name, kind],
                )
            };
            let a = ask("A")?;
            assert!(a.contains("; fully validated") && !a.contains("negative"), "{name} A: {a}");
            let six = ask("AAAA")?;
            assert!(six.contains("negative response, fully validated"), "{name} AAAA: {six}");
            // Who does not look gets what is made.
            let made = asker(&running.network)?.ask(&name, "AAAA", Flags::NONE)?;
            assert!(!made.data("AAAA").is_empty(), "{name}: {made:?}");
        }
    }
    Ok(())
}

/// The root's DS record as delv takes it.
fn anchor_of(tree: &Tree) -> String {
    let words: Vec<_> = tree.anchor.lines().next().unwrap_or_default().split_whitespace().skip(3).collect();
    let (numbers, digest) = words.split_at(3.min(words.len()));
    format!("trust-anchors {{ . static-ds {} \"{}\"; }};\n", numbers.join(" "), digest.concat())
}
