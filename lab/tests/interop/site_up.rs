//! `sixway up`: a box that knows nothing of gateways becomes one, and is afterwards as it was.

use crate::Interop;
use crate::site_network::{
    HOST4, HOST6, PUBLIC4, SERVER4, SERVER6, STRANGER4, STRANGER6, at, home, is_kept_out, passes, site,
    socket, state, tables, up,
};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::process::Process;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "site_up_lets_hosts_out_by_both_families_and_nothing_unsolicited_in",
        &["sixway", "nft", "ping"],
        || out_and_in(&[]),
    ),
    Interop::new(
        "site_up_keeps_strangers_out_with_the_fast_path_as_well",
        &["sixway", "nft", "ping"],
        || out_and_in(&["--fast-path"]),
    ),
    Interop::new("site_up_drops_forged_sources_on_both_sides", &["sixway", "nft"], forged),
    Interop::new(
        "site_up_keeps_strangers_out_that_come_by_another_default_route_of_ipv6",
        &["sixway", "nft"],
        other_default,
    ),
    Interop::new(
        "site_up_hears_a_router_with_the_boxs_own_link_local_address",
        &["sixway", "nft"],
        same_link_local,
    ),
    Interop::new("site_up_takes_everything_back_at_its_end", &["sixway", "nft"], taken_back),
    Interop::new("site_up_lets_in_what_the_hosts_own_rules_forward", &["sixway", "nft"], own_rule),
    Interop::new("site_up_that_is_killed_does_not_open_the_lan", &["sixway", "nft"], killed),
    Interop::new(
        "site_up_leaves_the_filter_where_the_host_forwards_anyway",
        &["sixway", "nft"],
        forwards_anyway,
    ),
    Interop::new(
        "a_start_of_site_up_that_fails_leaves_nothing_where_the_host_forwards_anyway",
        &["sixway", "nft", "ip"],
        start_fails,
    ),
    Interop::new("site_up_makes_its_filter_again_after_a_flush", &["sixway", "nft"], flushed),
    Interop::new("site_up_prints_the_configuration_that_it_runs", &["sixway", "nft", "dnsmasq"], printed),
];

/// The LAN host asks a server by both families and is answered; a stranger is not let in, by an address of the LAN, by the mapped
/// port or by a port of nobody. The box's own service is reached as before.
fn out_and_in(options: &[&str]) -> Result<()> {
    let network = home()?;
    let service = socket(&network, "gateway", "0.0.0.0", 5_300)?;
    let service6 = socket(&network, "gateway", "::", 5_301)?;
    up(&network, options)?;
    let (host4, host6) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "host", HOST6, 4_000)?);
    let (server4, server6) =
        (socket(&network, "server", SERVER4, 53)?, socket(&network, "server", SERVER6, 53)?);
    let stranger4 = socket(&network, "server", STRANGER4, 53)?;
    let stranger6 = socket(&network, "server", STRANGER6, 53)?;
    // Before anybody asked for anything.
    is_kept_out(&server6, at(&host6)?, &host6)?;
    is_kept_out(&server4, at(&host4)?, &host4)?;
    // More packets than the fast path waits for.
    let mut mapped = None;
    for _ in 0..20 {
        let seen4 = passes(&host4, at(&server4)?, &server4)?;
        assert_eq!(seen4.ip().to_string(), PUBLIC4);
        assert!((20_000..32_768).contains(&seen4.port()), "{seen4}");
        passes(&server4, seen4, &host4)?;
        mapped = Some(seen4);
        let seen6 = passes(&host6, at(&server6)?, &server6)?;
        assert_eq!(seen6, at(&host6)?, "IPv6 is not translated");
        passes(&server6, seen6, &host6)?;
    }
    if let Some(mapped) = mapped {
        is_kept_out(&stranger4, mapped, &host4)?;
    }
    is_kept_out(&stranger6, at(&host6)?, &host6)?;
    is_kept_out(&stranger4, at(&host4)?, &host4)?;
    is_kept_out(&stranger4, SocketAddr::new(at(&stranger4)?.ip(), 0), &host4)?;
    passes(&stranger4, format!("{PUBLIC4}:5300").parse().map_err(unexpected)?, &service)?;
    passes(&stranger6, "[2001:db8:f::1]:5301".parse().map_err(unexpected)?, &service6)?;
    // RFC 4890 §4.3.1: connectivity may be checked.
    assert_eq!(ping(network.host("server")?, HOST6, 2, 56, Duration::from_millis(20))?.answered, 2);
    assert_eq!(ping(network.host("host")?, SERVER6, 2, 56, Duration::from_millis(20))?.answered, 2);
    assert_eq!(ping(network.host("host")?, SERVER4, 2, 56, Duration::from_millis(20))?.answered, 2);
    assert_eq!(ping(network.host("server")?, HOST4, 2, 56, Duration::from_millis(20))?.answered, 0);
    Ok(())
}

fn unexpected(error: impl std::fmt::Display) -> Failure {
    Failure::Unexpected(error.to_string())
}

/// From outside with an address of the LAN, to the box's own service, to a LAN host and to a mapped port; from the LAN with others.
fn forged() -> Result<()> {
    let network = home()?;
    let service = socket(&network, "gateway", "0.0.0.0", 5_300)?;
    let service6 = socket(&network, "gateway", "::", 5_301)?;
    up(&network, &[])?;
    for (host, address) in [
        ("server", "192.168.1.77/32"),
        ("server", "2001:db8:1::77/128"),
        // The box's own.
        ("server", "2001:db8:1::1/128"),
        ("host", "10.9.9.9/32"),
        ("host", "2001:db8:77::7/128"),
    ] {
        network.address(host, "lo", address)?;
    }
    let (host4, host6) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "host", HOST6, 4_000)?);
    let (server4, server6) =
        (socket(&network, "server", SERVER4, 53)?, socket(&network, "server", SERVER6, 53)?);
    let own6 = socket(&network, "server", "2001:db8:1::1", 53)?;
    let mapped = passes(&host4, at(&server4)?, &server4)?;
    passes(&host6, at(&server6)?, &server6)?;
    let forged4 = socket(&network, "server", "192.168.1.77", 53)?;
    let forged6 = socket(&network, "server", "2001:db8:1::77", 53)?;
    is_kept_out(&forged4, format!("{PUBLIC4}:5300").parse().map_err(unexpected)?, &service)?;
    is_kept_out(&forged4, at(&host4)?, &host4)?;
    is_kept_out(&forged4, mapped, &host4)?;
    is_kept_out(&forged6, at(&host6)?, &host6)?;
    is_kept_out(&own6, "[2001:db8:f::1]:5301".parse().map_err(unexpected)?, &service6)?;
    is_kept_out(&own6, at(&host6)?, &host6)?;
    let stray4 = socket(&network, "host", "10.9.9.9", 4_001)?;
    let stray6 = socket(&network, "host", "2001:db8:77::7", 4_001)?;
    is_kept_out(&stray4, at(&server4)?, &server4)?;
    is_kept_out(&stray6, at(&server6)?, &server6)
}

/// Such as a tunnel of the kernel, which may come and go while the site runs.
fn other_default() -> Result<()> {
    let network = home()?;
    network.link(("gateway", "out1"), ("server", "up1"))?;
    for (host, device, address) in [
        ("gateway", "out1", "2001:db8:e::1/64"),
        ("server", "up1", "2001:db8:e::2/64"),
        ("server", "up1", "2001:db8:e::3/64"),
    ] {
        network.address(host, device, address)?;
    }
    let (gateway, server) = (network.host("gateway")?, network.host("server")?);
    up(&network, &["--wan", "out0"])?;
    gateway.ip("-6 route replace default via 2001:db8:e::2")?;
    server.ip("-6 route replace 2001:db8:1::/64 via 2001:db8:e::1")?;
    let listed = || -> Result<String> {
        let mut nft = command("nft")?;
        nft.args(["list", "ruleset"]);
        Ok(gateway.run(nft, Duration::from_secs(5))?.succeeded()?.stdout)
    };
    interrupt::wait_until(Duration::from_secs(10), "the next table", || Ok(listed()?.contains("\"out1\"")))?;
    let host6 = socket(&network, "host", HOST6, 4_000)?;
    let other6 = socket(&network, "server", "2001:db8:e::2", 53)?;
    let stranger6 = socket(&network, "server", "2001:db8:e::3", 53)?;
    is_kept_out(&other6, at(&host6)?, &host6)?;
    passes(&host6, at(&other6)?, &other6)?;
    passes(&other6, at(&host6)?, &host6)?;
    is_kept_out(&stranger6, at(&host6)?, &host6)
}

/// Routers are often called fe80::1: as a source from outside it is not forged.
fn same_link_local() -> Result<()> {
    let network = home()?;
    for (host, device) in [("gateway", "in0"), ("server", "up0")] {
        network.address(host, device, "fe80::1/64")?;
    }
    network.host("gateway")?.ip("-6 route replace default via fe80::1 dev out0")?;
    up(&network, &["--wan", "out0"])?;
    network.host("gateway")?.ip("-6 neighbour flush dev out0")?;
    let (host6, server6) =
        (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", SERVER6, 53)?);
    passes(&host6, at(&server6)?, &server6)?;
    passes(&server6, at(&host6)?, &host6).map(drop)
}

fn taken_back() -> Result<()> {
    let network = home()?;
    let before = state(&network)?;
    for by_command in [false, true] {
        let id = up(&network, &["--wan", "out0"])?;
        assert!(tables(&network)?.contains("sixway_filter_"), "{}", tables(&network)?);
        if by_command {
            let said = site(&network, &["down"])?.succeeded()?.stdout;
            assert!(said.contains("has ended"), "{said}");
            interrupt::wait_until(Duration::from_secs(5), "its end", || {
                network.with_process(id, |process| process.runs().map(|runs| !runs))?
            })?;
        } else {
            let status = network.with_process(id, Process::stop)?;
            assert!(status.is_some_and(|status| status.success()), "{status:?}");
        }
        assert_eq!(state(&network)?, before, "by command: {by_command}");
        let name = network.gateway_name("gateway");
        for file in ["toml", "filter", "reloads", "state", "sock"] {
            let path = format!("/run/sixway/{name}.{file}");
            assert!(!std::path::Path::new(&path).exists(), "{path} is left");
        }
    }
    let again = site(&network, &["down"])?;
    assert!(!again.status.success() && again.stderr.contains("nothing is left of it"), "{}", again.stderr);
    Ok(())
}

/// A rule of the host's own for an inside service, which the host does not forward by itself.
fn own_rule() -> Result<()> {
    let network = home()?;
    let mut nft = command("nft")?;
    nft.arg("table ip own { chain in { type nat hook prerouting priority dstnat; iifname out0 udp dport 5400 dnat to 192.168.1.2:4000; }; }");
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    up(&network, &[])?;
    let host = socket(&network, "host", HOST4, 4_000)?;
    let server = socket(&network, "server", SERVER4, 53)?;
    let to = |port: u16| format!("{PUBLIC4}:{port}").parse::<SocketAddr>().map_err(unexpected);
    passes(&server, to(5_400)?, &host)?;
    is_kept_out(&server, to(5_401)?, &host)?;
    is_kept_out(&server, at(&host)?, &host)
}

/// A second `up` says that there is one; after `kill -9` the kernel still forwards, and the table still keeps strangers out.
fn killed() -> Result<()> {
    let network = home()?;
    let before = state(&network)?;
    let id = up(&network, &[])?;
    let (host6, server6) =
        (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", SERVER6, 53)?);
    let second = site(&network, &["up", "--lan", "in0"])?;
    assert!(!second.status.success() && second.stderr.contains("is already running"), "{}", second.stderr);
    network.with_process(id, Process::kill)?;
    assert_eq!(network.host("gateway")?.read_sysctl("ipv6/conf/all/forwarding")?.trim(), "1");
    is_kept_out(&server6, at(&host6)?, &host6)?;
    // The kernel's own forwarding: what the LAN asks for is answered even now.
    passes(&host6, at(&server6)?, &server6)?;
    passes(&server6, at(&host6)?, &host6)?;
    // Addresses of the LAN do not leak.
    let (host4, server4) =
        (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    is_kept_out(&host4, at(&server4)?, &server4)?;
    // The next one continues; one that is killed again is cleared up.
    let next = up(&network, &[])?;
    is_kept_out(&socket(&network, "server", STRANGER6, 53)?, at(&host6)?, &host6)?;
    network.with_process(next, Process::kill)?;
    let said = site(&network, &["down"])?.succeeded()?.stdout;
    assert!(said.contains("was removed"), "{said}");
    assert_eq!(state(&network)?, before);
    // One without a table of its own leaves none of an earlier one.
    let id = up(&network, &[])?;
    network.with_process(id, Process::kill)?;
    assert!(tables(&network)?.contains("sixway_filter_"), "{}", tables(&network)?);
    up(&network, &["--no-firewall"])?;
    assert!(!tables(&network)?.contains("sixway_filter_"), "{}", tables(&network)?);
    passes(&server6, at(&host6)?, &host6)?;
    Ok(())
}

/// Forwarding was on before: the table is what keeps the LAN closed, so it stays and says so.
fn forwards_anyway() -> Result<()> {
    let network = home()?;
    network.forwards("gateway")?;
    let id = up(&network, &[])?;
    network.with_process(id, Process::stop)?;
    let said = network.with_process(id, |process| process.stdout())?;
    assert!(said.contains("stays, because net.ipv4.conf.out0.forwarding is on"), "{said}");
    let (host6, server6) =
        (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", SERVER6, 53)?);
    is_kept_out(&server6, at(&host6)?, &host6)?;
    // Nothing translates any more: addresses of the LAN do not leak.
    let (host4, server4) =
        (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    is_kept_out(&host4, at(&server4)?, &server4)?;
    network.host("gateway")?.sysctl("ipv4/ip_forward", "0")?;
    network.host("gateway")?.sysctl("ipv6/conf/all/forwarding", "0")?;
    let said = site(&network, &["down"])?.succeeded()?.stdout;
    assert!(said.contains("was removed") && tables(&network)?.is_empty(), "{said}");
    Ok(())
}

/// The device's name is taken. The table of a gateway that has never run would only drop packets that were forwarded before.
fn start_fails() -> Result<()> {
    let network = home()?;
    network.forwards("gateway")?;
    let gateway = network.host("gateway")?;
    gateway.ip("link add sixway0 type veth peer name other0")?;
    let before = state(&network)?;
    let failed = site(&network, &["up", "--lan", "in0"])?;
    assert!(!failed.status.success() && failed.stderr.contains("sixway0"), "{}", failed.stderr);
    assert!(failed.stdout.contains("was removed"), "{}", failed.stdout);
    assert_eq!(state(&network)?, before);
    let name = network.gateway_name("gateway");
    for file in ["toml", "filter"] {
        assert!(!std::path::Path::new(&format!("/run/sixway/{name}.{file}")).exists(), "{file} is left");
    }
    Ok(())
}

/// As `systemctl reload nftables` does; or a program removes rules alone.
fn flushed() -> Result<()> {
    let network = home()?;
    up(&network, &[])?;
    // One that was made again is the last of the list.
    let all = || -> Result<BTreeSet<String>> { Ok(tables(&network)?.lines().map(str::to_owned).collect()) };
    let made = all()?;
    let listed = || -> Result<String> {
        let mut nft = command("nft")?;
        nft.args(["list", "ruleset"]);
        Ok(network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?.stdout)
    };
    let rules = listed()?.matches(" drop").count();
    let chain = format!("sixway_filter_{} from_outside", network.gateway_name("gateway"));
    for what in ["ruleset".to_owned(), format!("chain inet {chain}")] {
        let mut flush = command("nft")?;
        flush.arg(format!("flush {what}"));
        network.host("gateway")?.run(flush, Duration::from_secs(5))?.succeeded()?;
        interrupt::wait_until(Duration::from_secs(10), "the tables", || {
            Ok(all()? == made && listed()?.matches(" drop").count() == rules)
        })?;
    }
    let (host6, server6) =
        (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", SERVER6, 53)?);
    is_kept_out(&server6, at(&host6)?, &host6)
}

/// `--print-config` and `--dry-run` change nothing; what is printed is what runs. The comments are what nft and dnsmasq take.
fn printed() -> Result<()> {
    let network = home()?;
    let before = state(&network)?;
    let printed = site(&network, &["up", "--lan", "in0", "--print-config"])?.succeeded()?.stdout;
    let leasing = site(&network, &["up", "--lan", "in0", "--dhcp", "--print-config"])?.succeeded()?.stdout;
    let taken_out = |mark: &str| -> String {
        let lines = leasing.lines().filter_map(|line| line.strip_prefix(mark)?.strip_prefix(' '));
        lines.map(|line| format!("{line}\n")).collect()
    };
    let (table, leases) = (taken_out("#nft"), taken_out("#dnsmasq"));
    assert!(table.contains("chain forward") && leases.contains("dhcp-range="), "{leasing}");
    let mut nft = command("nft")?;
    nft.arg("--check").arg("--file").arg(network.file("printed.nft", &table)?);
    network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?;
    let mut dnsmasq = command("dnsmasq")?;
    let file = network.file("printed.dnsmasq", &leases)?;
    dnsmasq.arg("--test").arg(format!("--conf-file={}", file.display()));
    network.host("gateway")?.run(dnsmasq, Duration::from_secs(5))?.succeeded()?;
    let dry = site(&network, &["up", "--lan", "in0", "--dry-run"])?.succeeded()?.stdout;
    assert!(dry.contains("Nothing was changed.") && dry.lines().count() <= 11, "{dry}");
    assert_eq!(state(&network)?, before);
    let file = network.file("printed.toml", &printed)?;
    let running = |network: &Network| -> Result<String> {
        let mut show = Command::new(sixway()?);
        let socket = format!("/run/sixway/{}.sock", network.gateway_name("gateway"));
        show.args(["show", "config", "--socket", &socket]);
        Ok(network.host("gateway")?.run(show, Duration::from_secs(10))?.succeeded()?.stdout)
    };
    let id = up(&network, &[])?;
    let by_up = running(&network)?;
    network.with_process(id, Process::stop)?;
    let mut run = Command::new(sixway()?);
    run.args(["run", "-c"]).arg(file);
    let id = network.start("gateway", run)?;
    interrupt::wait_until(Duration::from_secs(10), "sixway's \"ready\"", || {
        network.with_process(id, |process| Ok(process.stdout().contains("ready in")))?
    })?;
    assert_eq!(running(&network)?, by_up);
    let (host4, server4) =
        (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    let seen = passes(&host4, at(&server4)?, &server4)?;
    passes(&server4, seen, &host4)?;
    Ok(())
}
