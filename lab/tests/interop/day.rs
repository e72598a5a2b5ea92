//! A home's line by day: the provider assigns another address and delegates another prefix, and hosts follow within seconds.

use crate::Interop;
use crate::day_network::{
    FAR4, FAR6, FAR64, FIRST, HOST4, addresses6, aims, comes_from, endpoint, follows, home, logged, measured,
    provider4, renumbered4, solicit,
};
use crate::day_prober::Prober;
use crate::day_stream::{Echo, Stream};
use nix::sys::signal::Signal;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::port_mapping::MappingRequest;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_day_in_which_the_provider_assigns_another_address_by_dhcp",
        &["sixway", "nft", "dnsmasq", "busybox"],
        another_address,
    ),
    Interop::new(
        "a_day_in_which_the_provider_delegates_another_prefix",
        &["sixway", "nft", "dnsmasq", "busybox", "kea-dhcp6", "dhclient"],
        another_prefix,
    ),
];

/// What hosts may lose at most.
const SECONDS: Duration = Duration::from_secs(12);

fn another_address() -> Result<()> {
    let network = home()?;
    let provider = provider4(&network, "203.0.113.10")?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10", "203.0.113.20"]))?;
    FIRST.plug_in(&network)?;
    network.route("server", "192.168.1.0/24 via 203.0.113.10 onlink dev up0")?;
    network.route("server", "2001:db8:1::/64 via fe80::b dev up0")?;
    let client = FIRST.lease4(&network)?;
    FIRST.has_prefix(&network, "2001:db8:1::")?;
    let up = FIRST.up(&network, &sixway()?, &[])?;
    solicit(&network)?;
    let (host6, _) = follows(&network, "2001:db8:1:")?;
    aims(&[&host6]).into_iter().for_each(|aim| prober.also(aim));
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let native = Stream::open(&network, "host", "native IPv6", endpoint(FAR6)?)?;
    let nat44 = Stream::open(&network, "host", "NAT44", endpoint(FAR4)?)?;
    nat44.goes_on()?;
    comes_from(&network, FAR4, "203.0.113.10")?;
    let request = MappingRequest {
        client: endpoint("192.168.1.2:0")?.ip(),
        port: 8_080,
        suggested: 0,
        lifetime: 3_600,
    };
    let (host, server) = (network.host("host")?, endpoint("192.168.1.1:0")?.ip());
    let before = request.send(host, server)?;
    assert_eq!(before.external.ip().to_string(), "203.0.113.10");
    native.mark();
    renumbered4(&network, provider, "203.0.113.20")?;
    // RFC 2131 §4.4.5: the time to renew the lease has come.
    network.with_process(client, |process| process.signal(Signal::SIGUSR1))?;
    interrupt::wait_until(Duration::from_secs(20), "the next lease", || {
        Ok(FIRST.public(&network)? == "203.0.113.20")
    })?;
    let took = comes_from(&network, FAR4, "203.0.113.20")?;
    let took6 = took + comes_from(&network, FAR64, "203.0.113.20")?;
    measured("another address: new connections by NAT44 come from it after", took);
    measured("another address: and by NAT64", took6);
    assert!(took6 < SECONDS, "{took:?} and {took6:?}");
    // RFC 6887 §8.5: by the Epoch Time hosts know that they are to ask again.
    let after = request.send(host, server)?;
    assert_eq!(after.external.ip().to_string(), "203.0.113.20");
    assert!(after.epoch < 30, "{before:?} {after:?}");
    let stood = native.goes_on()?;
    measured("another address: native IPv6 stood still for", stood);
    assert!(stood < Duration::from_secs(3), "{stood:?}");
    logged(&network, up, "out0 now has the address 203.0.113.20")?;
    prober.was_kept_out(&network, "host")
}

/// A server of DHCPv6 that delegates this /56.
fn provider6(network: &Network, prefix: &str) -> Result<u32> {
    let text = format!(
        r#"{{ "Dhcp6": {{
  "interfaces-config": {{ "interfaces": [ "up0" ] }},
  "lease-database": {{ "type": "memfile", "persist": false }},
  "data-directory": {:?},
  "valid-lifetime": 60, "preferred-lifetime": 50, "renew-timer": 2, "rebind-timer": 40,
  "subnet6": [ {{ "id": 1, "subnet": "2001:db8::/32", "interface": "up0",
    "pd-pools": [ {{ "prefix": "{prefix}", "prefix-len": 56, "delegated-len": 56 }} ] }} ]
}} }}"#,
        network.folder()
    );
    let file = network.file(&format!("kea-{}.json", prefix.replace(':', "-")), &text)?;
    let mut server = command("kea-dhcp6")?;
    server.arg("-c").arg(file);
    for variable in ["KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR", "KEA_DHCP_DATA_DIR"] {
        server.env(variable, network.folder());
    }
    let id = network.start("server", server)?;
    interrupt::wait_until(Duration::from_secs(30), "Kea's start", || {
        network.with_process(id, |process| {
            process.must_run()?;
            Ok([process.stdout(), process.stderr()].join("").contains("_STARTED"))
        })?
    })?;
    network.route("server", &format!("{prefix}/56 via fe80::b dev up0"))?;
    Ok(id)
}

/// What dhclient runs: the LAN has the first /64 of the delegated prefix.
const PREFIX: &str = r#"#!/bin/sh
lan() { echo "${1%/*}1/64"; }
case $reason in
BOUND6|RENEW6|REBIND6)
    if [ -n "$old_ip6_prefix" ] && [ "$old_ip6_prefix" != "$new_ip6_prefix" ]; then
        ip -6 address del $(lan $old_ip6_prefix) dev in0
    fi
    if [ -n "$new_ip6_prefix" ]; then
        ip -6 address replace $(lan $new_ip6_prefix) dev in0 nodad
        ip -6 route replace default via fe80::2 dev out0
    fi ;;
EXPIRE6|RELEASE6|STOP6)
    ip -6 address del $(lan $old_ip6_prefix) dev in0 ;;
esac
exit 0
"#;

/// The system's client of prefix delegation.
fn client6(network: &Network) -> Result<u32> {
    let script = network.file("prefix.sh", PREFIX)?;
    programs::make_executable(&script)?;
    let mut client = command("dhclient")?;
    client.args(["-6", "-P", "-d", "-v", "-sf"]).arg(script);
    client.arg("-lf").arg(network.folder().join("prefix.leases"));
    client.arg("-pf").arg(network.folder().join("dhclient.pid")).arg("out0");
    network.start("gateway", client)
}

fn lan_has(network: &Network, address: &str) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(30), &format!("{address} on the LAN's interface"), || {
        Ok(network.host("gateway")?.ip("-6 address show dev in0")?.contains(address))
    })
}

fn another_prefix() -> Result<()> {
    let network = home()?;
    provider4(&network, "203.0.113.10")?;
    let provider = provider6(&network, "2001:db8:a000::")?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10"]))?;
    FIRST.plug_in(&network)?;
    FIRST.lease4(&network)?;
    client6(&network)?;
    lan_has(&network, "2001:db8:a000::1/64")?;
    let up = FIRST.up(&network, &sixway()?, &[])?;
    solicit(&network)?;
    let (old, _) = follows(&network, "2001:db8:a000:")?;
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let nat44 = Stream::open(&network, "host", "NAT44", endpoint(FAR4)?)?;
    nat44.goes_on()?;
    comes_from(&network, FAR6, "2001:db8:a000:")?;
    nat44.mark();
    // The provider forgets, and routes the old prefix no more.
    network.with_process(provider, Process::stop)?;
    network.host("server")?.ip("-6 route del 2001:db8:a000::/56 dev up0")?;
    provider6(&network, "2001:db8:b000::")?;
    lan_has(&network, "2001:db8:b000::1/64")?;
    let begun = Instant::now();
    let (new, _) = follows(&network, "2001:db8:b000:")?;
    let learnt = begun.elapsed();
    comes_from(&network, FAR6, "2001:db8:b000:")?;
    let used = begun.elapsed();
    comes_from(&network, FAR64, "203.0.113.10")?;
    measured("another prefix: the host has an address in it, and the old one is deprecated, after", learnt);
    measured("another prefix: new connections use it after", used);
    assert!(used < SECONDS, "{learnt:?} {used:?}");
    // RFC 9096 §3.4: it is valid for the connections that it has, and not preferred.
    let all = addresses6(&network)?;
    // RFC 9096 §3.4: 45 minutes at most, so that a prefix that nobody withdraws does not stay for days.
    let life = network.host("host")?.ip(&format!("-6 -oneline address show to {new}"))?;
    let life =
        life.split_once("preferred_lft ").and_then(|(_, life)| life.split_once("sec")?.0.parse::<u32>().ok());
    assert!(life.is_some_and(|life| (1..=2_700).contains(&life)), "{life:?}");
    if all.iter().any(|(address, preferred)| *address == old && *preferred) {
        return Err(Failure::Unexpected(format!("{old} is preferred: {all:?}")));
    }
    aims(&[&old, &new]).into_iter().for_each(|aim| prober.also(aim));
    let stood = nat44.goes_on()?;
    measured("another prefix: NAT44 stood still for", stood);
    assert!(stood < Duration::from_secs(3), "{stood:?}");
    logged(&network, up, "addresses, prefixes or routes of this host changed")?;
    std::thread::sleep(Duration::from_secs(1));
    prober.was_kept_out(&network, "host")
}
