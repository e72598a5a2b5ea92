//! A site while other programs and the provider change things: its table of the packet filter returns soon, what failed is tried again, and
//! what changes all the time does not keep it reloading.

use crate::Interop;
use crate::site_network::{HOST4, SERVER4, at, comes, home, socket, tables, up, up_by};
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::process::Command;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "the_sites_filter_returns_while_the_site_waits_for_a_program_that_does_not_end",
        &["sixway", "nft"],
        not_held_up,
    ),
    Interop::new(
        "a_table_that_nft_could_not_make_is_tried_again_with_what_had_changed",
        &["sixway", "nft"],
        tried_again,
    ),
    Interop::new(
        "a_flapping_prefix_is_followed_immediately_and_does_not_cause_continuous_reloads",
        &["sixway", "nft"],
        prefix_flaps,
    ),
    Interop::new(
        "the_sites_filter_follows_another_default_route_without_a_pause",
        &["sixway", "nft"],
        default_in_a_pause,
    ),
    Interop::new(
        "a_flapping_address_is_followed_immediately_and_does_not_cause_continuous_reloads",
        &["sixway", "nft"],
        address_flaps,
    ),
];

/// Another prefix of the LAN, with which the site's configuration is another one.
const PREFIX: &str = "2001:db8:2::1/64";

/// Puts a program of this name in front of the one that is installed, for the box.
fn program(network: &Network, name: &str, script: &str) -> Result<()> {
    let folder = network.folder().join("programs");
    std::fs::create_dir_all(&folder).asking(|| format!("making {}", folder.display()))?;
    let path = network.file(&format!("programs/{name}"), &format!("#!/bin/sh\n{script}\n"))?;
    programs::make_executable(&path)
}

/// `sixway up` with those programs; its process.
fn up_with_programs(network: &Network, options: &[&str]) -> Result<u32> {
    let mut up = Command::new(sixway()?);
    let path = std::env::var("PATH").unwrap_or_default();
    up.env("PATH", format!("{}:{path}", network.folder().join("programs").display()));
    up_by(network, up, options)
}

/// How often the gateway of this process was ready.
fn starts(network: &Network, id: u32) -> Result<usize> {
    network.with_process(id, |process| process.stdout().matches("ready in").count())
}

fn flush(network: &Network) -> Result<()> {
    let mut flush = command("nft")?;
    flush.args(["flush", "ruleset"]);
    network.host("gateway")?.run(flush, Duration::from_secs(5))?.succeeded().map(drop)
}

/// The site ends its DHCP server for another network of the LAN. This one does not end when it is asked to, and is killed after three seconds.
fn not_held_up() -> Result<()> {
    let network = home()?;
    let asked = network.folder().join("asked-to-end");
    let script = format!(
        "[ \"$1\" = --version ] && exit 0\ntrap 'touch {}' TERM\nfor i in $(seq 600); do sleep 0.1; done",
        asked.display()
    );
    program(&network, "dnsmasq", &script)?;
    up_with_programs(&network, &["--dhcp"])?;
    // The gateway's own table is checked once in a second, and later if the reload comes first; it keeps nobody out.
    let table = format!("sixway_filter_{}", network.gateway_name("gateway"));
    assert!(tables(&network)?.contains(&table));
    network.address("gateway", "in0", "192.168.7.1/24")?;
    interrupt::wait_until(Duration::from_secs(15), "the DHCP server's end", || Ok(asked.exists()))?;
    let begun = Instant::now();
    flush(&network)?;
    interrupt::wait_until(Duration::from_secs(10), "the site's table", || {
        Ok(tables(&network)?.contains(&table))
    })?;
    assert!(begun.elapsed() < Duration::from_secs(2), "the LAN was open for {:?}", begun.elapsed());
    Ok(())
}

/// nft fails when it is to change something, as for want of memory.
fn tried_again() -> Result<()> {
    let network = home()?;
    network.link(("gateway", "out1"), ("server", "up1"))?;
    network.address("gateway", "out1", "2001:db8:e::1/64")?;
    network.address("server", "up1", "2001:db8:e::2/64")?;
    let fails = network.folder().join("nft-fails");
    let nft = programs::require("nft")?;
    let script =
        format!("[ -e {} ] && [ \"$1\" = -f ] && exit 1\nexec {} \"$@\"", fails.display(), nft.display());
    program(&network, "nft", &script)?;
    let id = up_with_programs(&network, &["--wan", "out0"])?;
    let failures = || {
        network.with_process(id, |process| {
            let said = process.stdout() + &process.stderr();
            said.matches("the site cannot follow this host").count()
        })
    };
    let fail = || std::fs::write(&fails, "").asking(|| "letting nft fail".to_owned());
    let mend = || std::fs::remove_file(&fails).asking(|| "mending nft".to_owned());
    let waits =
        |what: &str, is: &dyn Fn() -> Result<bool>| interrupt::wait_until(Duration::from_secs(15), what, is);

    // Only the table is another one.
    fail()?;
    network.host("gateway")?.ip("-6 route replace default via 2001:db8:e::2")?;
    waits("nft's first failure", &|| Ok(failures()? >= 1))?;
    mend()?;
    waits("the table with the other interface", &|| {
        let mut nft = command("nft")?;
        nft.args(["list", "ruleset"]);
        let listed = network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?.stdout;
        Ok(listed.contains("\"out1\""))
    })?;
    assert_eq!(starts(&network, id)?, 1, "the configuration is the same");

    // The configuration as well: it is written already, and the gateway must learn of it.
    let before = failures()?;
    fail()?;
    network.address("gateway", "in0", PREFIX)?;
    waits("nft's second failure", &|| Ok(failures()? > before))?;
    assert_eq!(starts(&network, id)?, 1, "without its table, the site does not go on");
    mend()?;
    waits("the reload", &|| Ok(starts(&network, id)? == 2))
}

/// As a router of the provider causes that announces another prefix again and again.
fn prefix_flaps() -> Result<()> {
    let network = home()?;
    let gateway = network.host("gateway")?;
    let id = up(&network, &[])?;
    let begun = Instant::now();
    network.address("gateway", "in0", PREFIX)?;
    interrupt::wait_until(Duration::from_secs(15), "the first reload", || Ok(starts(&network, id)? == 2))?;
    assert!(begun.elapsed() < Duration::from_secs(8), "a first change waited for {:?}", begun.elapsed());
    for round in 0..6 {
        let verb = if round % 2 == 0 { "del" } else { "add" };
        gateway.ip(&format!("address {verb} {PREFIX} dev in0"))?;
        std::thread::sleep(Duration::from_millis(3_500));
    }
    let flapped = starts(&network, id)?;
    assert!((3..=4).contains(&flapped), "{flapped} starts");
    // The last change is not forgotten.
    gateway.ip(&format!("address del {PREFIX} dev in0"))?;
    let file = format!("/run/sixway/{}.toml", network.gateway_name("gateway"));
    interrupt::wait_until(Duration::from_secs(60), "the last prefix", || {
        let text = std::fs::read_to_string(&file).asking(|| file.clone())?;
        Ok(!text.contains("2001:db8:2::/64"))
    })
}

/// The packet filter does not wait for the end of a pause: it keeps strangers out that come by another interface.
fn default_in_a_pause() -> Result<()> {
    let network = home()?;
    network.link(("gateway", "out1"), ("server", "up1"))?;
    network.address("gateway", "out1", "2001:db8:e::1/64")?;
    network.address("server", "up1", "2001:db8:e::2/64")?;
    let gateway = network.host("gateway")?;
    up(&network, &["--wan", "out0"])?;
    let file = format!("/run/sixway/{}.toml", network.gateway_name("gateway"));
    let has = |prefix: &str| -> Result<bool> {
        let text = std::fs::read_to_string(&file).asking(|| file.clone())?;
        Ok(text.contains(prefix))
    };
    // The third reload waits for 10 s.
    for prefix in ["2001:db8:2::", "2001:db8:3::"] {
        network.address("gateway", "in0", &format!("{prefix}1/64"))?;
        interrupt::wait_until(Duration::from_secs(30), "the next prefix", || has(prefix))?;
    }
    network.address("gateway", "in0", "2001:db8:4::1/64")?;
    gateway.ip("-6 route replace default via 2001:db8:e::2")?;
    interrupt::wait_until(Duration::from_secs(7), "the next table", || {
        let mut nft = command("nft")?;
        nft.args(["list", "ruleset"]);
        Ok(gateway.run(nft, Duration::from_secs(5))?.succeeded()?.stdout.contains("\"out1\""))
    })?;
    assert!(!has("2001:db8:4::")?, "the pause is not over");
    interrupt::wait_until(Duration::from_secs(30), "the end of the pause", || has("2001:db8:4::"))
}

/// As a DHCP server of the provider causes that assigns another address again and again.
fn address_flaps() -> Result<()> {
    let network = home()?;
    let gateway = network.host("gateway")?;
    let id = up(&network, &["--wan", "out0"])?;
    let assign = |address: &str| -> Result<()> {
        gateway.ip("-4 address flush dev out0")?;
        network.address("gateway", "out0", &format!("{address}/24"))?;
        network.route("gateway", "default via 203.0.113.2")
    };
    let begun = Instant::now();
    assign("203.0.113.9")?;
    interrupt::wait_until(Duration::from_secs(15), "the first reload", || Ok(starts(&network, id)? == 2))?;
    assert!(begun.elapsed() < Duration::from_secs(8), "a first change waited for {:?}", begun.elapsed());
    for round in 0..7 {
        assign(["203.0.113.1", "203.0.113.9"][round % 2])?;
        std::thread::sleep(Duration::from_secs(3));
    }
    let flapped = starts(&network, id)?;
    assert!((3..=4).contains(&flapped), "{flapped} starts");
    // With the last address, hosts are translated at the end of the pause.
    let (host, server) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    interrupt::wait_until(Duration::from_secs(60), "the last address", || {
        let seen = comes(&host, at(&server)?, &server, false)?;
        Ok(seen.is_some_and(|seen| seen.ip().to_string() == "203.0.113.1"))
    })
}
