//! Configurations without faults, what becomes of them, and that no text whatever breaks the reader.

use proptest::prelude::*;

use super::*;

const FULL: &str = r#"
[gateway]
name = "gw1"
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
workers = 4
busy_poll = "200 us"
metrics = "[::1]:9464"
log = "debug"

[tun]
name = "sixway0"
mtu = 9_000
queues = 2
routes = ["auto", "198.51.100.128/25"]

[fragments]
memory = "64 MiB"
packets = 10_000
timeout = "10 s"

[[pool]]
name = "main"
addresses = ["192.0.2.0/28", "192.0.2.16/28"]
ports = "443,1024-65535"

[nat64]
prefix = "64:ff9b::/96"
pool = "main"
filtering = "address-dependent"
translate_non_global = true
subscriber_prefix_length = 56
exempt_subscribers = ["2001:db8:99::/48"]
exempt_destinations = ["9.9.9.9"]
max_bindings_per_subscriber = 100
max_tcp_bindings_per_subscriber = 1
max_udp_bindings_per_subscriber = 2
max_icmp_bindings_per_subscriber = 3
max_sessions_per_subscriber = 4
max_new_bindings_per_second = 5
max_new_sessions_per_second = 6
static = [{ protocol = "tcp", inside = "[2001:db8::80]:80", outside = "192.0.2.1:80" }]
timeouts = { tcp_est = "2 h 4 min", tcp_trans = "5 min", tcp_opening = "30 s", quarantine = "0 s", port = [{ protocol = "udp", ports = "53,123", timeout = "10 s" }] }

[siit]
prefix = "2001:db8:64::/96"
udp_zero_checksum = "drop"
lowest_ipv6_mtu = 1400
traffic_class = 0
hairpinning = "simple"
eam = [
    { ipv4 = "198.51.100.8/30", ipv6 = "2001:db8:1::/126" },
    { ipv4 = "198.51.100.12/30", ipv6 = "2001:db8:2::/125" },
]
icmp_source_pool = ["203.0.113.9", "203.0.113.10/31"]
dynamic_pool = "172.16.0.0/12"
dynamic_lifetime = "90 min"
"#;

fn good(text: &str) -> Config {
    parse(text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}")).0
}

#[test]
fn a_full_configuration_is_read_whole() {
    let config = good(FULL);
    assert_eq!((config.gateway.workers, config.queues(), config.tun.mtu), (4, 2, 9_000));
    assert_eq!(config.gateway.busy_poll.as_micros(), 200);
    assert_eq!(config.gateway.admin_socket, Path::new("/run/sixway/gw1.sock"));
    assert_eq!(config.fragments.memory, 64 << 20);
    let nat64 = &config.nat64[0];
    assert_eq!(nat64.filtering, Filtering::AddressDependent);
    assert_eq!(nat64.timeouts.tcp_est.as_secs(), 7_440);
    assert_eq!(nat64.timeouts.udp_default.as_secs(), 300);
    assert_eq!(nat64.subscribers.prefix_length, 56);
    let limits = nat64.limits.of_subscriber;
    assert_eq!((limits.bindings, limits.bindings_of, limits.sessions), (100, [1, 2, 3], 4));
    assert_eq!((limits.new_bindings_per_second, limits.new_sessions_per_second), (5, 6));
    assert_eq!((nat64.timeouts.tcp_opening.as_secs(), nat64.timeouts.tcp_closing.as_secs()), (30, 300));
    let engine = config.engines([0, 0], &Surroundings::default()).remove(0);
    let timeouts = &engine.nat64[0].timeouts;
    assert!(timeouts.quarantine.is_zero());
    let subscribers = &engine.nat64[0].subscribers;
    assert_eq!((subscribers.bits, &subscribers.exempt[..]), (56, &["2001:db8:99::/48".parse().unwrap()][..]));
    assert_eq!(subscribers.exempt_destinations, ["9.9.9.9/32".parse().unwrap()]);
    let ports: Vec<_> = timeouts.ports.iter().map(|row| (row.ports.clone(), row.timeout.as_secs())).collect();
    assert_eq!(ports, [(53..=53, 10), (123..=123, 10)]);
    assert_eq!(nat64.static_bindings[0].inside.to_string(), "[2001:db8::80]:80");
    let pool = config.pool(&nat64.pool).unwrap();
    assert_eq!((pool.address_count(), pool.ports.count()), (32, 64_513));
    let siit = &config.siit[0];
    assert_eq!(siit.translation.traffic_class, HeaderByte::Set(0));
    assert_eq!(siit.translation.tos, HeaderByte::Copy);
    assert_eq!(siit.icmp_sources().count(), 3);
    assert_eq!(siit.mappings.iter().count(), 2);
    assert_eq!(siit.dynamic_remembered.as_secs(), 14 * 86_400);
}

#[test]
fn routes_are_what_the_mechanisms_need_and_what_is_written() {
    let routes: Vec<String> = good(FULL).routes().iter().map(ToString::to_string).collect();
    assert_eq!(
        routes,
        [
            "172.16.0.0/12",
            "192.0.2.0/27",
            "192.0.2.254/32",
            "198.51.100.8/29",
            "198.51.100.128/25",
            "64:ff9b::/96",
            "2001:db8::fe/128",
            "2001:db8:64::/96",
        ]
    );
    assert_eq!(good(&FULL.replace("[\"auto\", \"198.51.100.128/25\"]", "\"none\"")).routes(), []);
    let ipv6 = good(&FULL.replace("hairpinning", "eam_routes = \"ipv6\"\nhairpinning"));
    assert!(ipv6.routes().contains(&Route::V6("2001:db8:2::/125".parse().unwrap())));
    assert!(!ipv6.routes().contains(&Route::V4("198.51.100.8/29".parse().unwrap())));
}

/// The edge relay of RFC 7756 in docs/mechanisms/siit-dc.md.
#[test]
fn the_prefix_of_another_relay_is_not_routed_into_the_device() {
    let edge = |more: &str| {
        let siit = "[siit]\nprefix = \"2001:db8:46::/96\"\neam_routes = \"ipv6\"\n";
        let eam = "eam = [{ ipv4 = \"198.51.100.20\", ipv6 = \"2001:db8:e::14\" }]\n";
        let routes = good(&format!("{OWN}{siit}{eam}{more}")).routes();
        routes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let own = ["192.0.2.254/32", "2001:db8::fe/128"];
    assert_eq!(edge(""), [own[0], own[1], "2001:db8:e::14/128"]);
    let default = "[tun]\nroutes = [\"auto\", \"0.0.0.0/1\", \"128.0.0.0/1\"]\n";
    assert_eq!(edge(default), ["0.0.0.0/1", "128.0.0.0/1", own[0], own[1], "2001:db8:e::14/128"]);
    // Hosts with addresses of this pool send to the prefix.
    let pool = edge("dynamic_pool = \"172.16.0.0/12\"\n");
    assert!(pool.contains(&"2001:db8:46::/96".to_owned()), "{pool:?}");
}

#[test]
fn an_own_address_that_the_host_has_elsewhere_is_not_routed_into_the_device() {
    let text = format!("{}{POOL}{NAT64}", OWN.replace("192.0.2.254", "203.0.113.7"));
    let routes = good(&text).routes();
    assert!(!routes.contains(&Route::V4("203.0.113.7/32".parse().unwrap())));
    assert!(routes.contains(&Route::V6("2001:db8::fe/128".parse().unwrap())));
}

#[test]
fn a_configuration_written_out_reads_as_the_same() {
    for text in [
        FULL.to_owned(),
        format!("{OWN}{POOL}{NAT64}"),
        format!("{OWN}[siit]\nprefix = \"64:ff9b:1::/96\"\n"),
    ] {
        let config = good(&text);
        let again = config.to_string();
        assert_eq!(good(&again), config, "written out:\n{again}");
    }
}

#[test]
fn engines_get_what_is_written_and_share_the_rest() {
    let config = good(FULL);
    let engines = config.engines([1, 2], &Surroundings::default());
    assert_eq!(engines.len(), 4);
    let (first, last) = (&engines[0], &engines[3]);
    assert_eq!((first.worker.0, last.worker.0, last.workers, last.seed), (0, 3, 4, [1, 2]));
    assert_eq!((first.icmp_errors_per_second, first.limits.mtu6), (250, 9_000));
    assert!(std::sync::Arc::ptr_eq(&first.siit[0].eam, &last.siit[0].eam));
    assert_eq!(first.siit[0].policy.lowest_ipv6_mtu, 1_400);
    let nat64 = &first.nat64[0];
    assert_eq!((nat64.limits.sessions, nat64.pool.addresses.len(), nat64.pool.ports.len()), (1 << 18, 2, 2));
    assert!(nat64.faults().is_empty());
}

#[test]
fn what_is_not_written_is_what_the_engine_holds_usual() {
    use sixway_dataplane::mechanism::{nat64::Nat64Config, siit};
    use sixway_dataplane::{fragment, nat, translate};
    let config = good(&format!(
        "{OWN}{POOL}{NAT64}[siit]\nprefix = \"2001:db8:65::/96\"\ndynamic_pool = \"10.0.0.0/8\"\n"
    ));
    let engine = config.engines([0, 0], &Surroundings::default()).remove(0);
    assert_eq!(engine.fragments, fragment::FragmentLimits::default());
    let nat64 = &engine.nat64[0];
    assert_eq!(nat64.timeouts, nat::Timeouts::default());
    assert_eq!((nat64.filtering, nat64.policy), (nat::Filtering::default(), translate::Policy::default()));
    let usual = Nat64Config::new(nat64.prefix, nat64.pool.clone());
    assert_eq!(
        (nat64.limits.sessions * 2, nat64.limits.bindings * 2, nat64.limits.of_subscriber),
        (usual.limits.sessions, usual.limits.bindings, usual.limits.of_subscriber),
        "two workers share them"
    );
    let pool = engine.siit[0].dynamic_pool.clone().unwrap();
    assert_eq!(pool, siit::dynamic_pool::DynamicPoolConfig::new(pool.prefix));
    assert_eq!(engine.siit[0].hairpinning, siit::Hairpinning::default());
}

#[test]
fn workers_are_as_many_as_cpus_unless_written() {
    assert_eq!(good(&format!("{OWN}{POOL}{NAT64}")).gateway.workers, 2);
    assert!(good(&format!("{OWN}{POOL}{NAT64}")).gateway.busy_poll.is_zero());
    assert_eq!(good(&format!("{OWN}workers = 1\n{POOL}{NAT64}")).gateway.workers, 1);
}

#[test]
fn mechanisms_without_names_are_numbered() {
    let one =
        "[[siit]]\nprefix = \"2001:db8:1::/96\"\n[[siit]]\nprefix = \"2001:db8:2::/96\"\nname = \"lab\"\n";
    let config = good(&format!("{OWN}{one}"));
    assert_eq!([&*config.siit[0].name, &*config.siit[1].name], ["siit-1", "lab"]);
}

#[test]
fn a_mapping_of_all_ipv4_addresses_leaves_room_for_the_gateways_own() {
    let text = "eam = [{ ipv4 = \"0.0.0.0/0\", ipv6 = \"2001:db8:ff00::/40\" }, { ipv4 = \"198.51.100.64\", ipv6 = \"2001:db8:1::abcd\" }]";
    good(&format!("{OWN}[siit]\n{text}\n"));
}

#[test]
fn a_million_mappings_are_read_and_checked_in_seconds() {
    use std::fmt::Write as _;
    let mut rows = String::new();
    for number in 0..1_000_000_u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + number * 2);
        writeln!(rows, "{address} 2001:db8:1::{:x}:{:x}", number >> 16, number & 0xffff).unwrap();
    }
    let text = format!("{OWN}[siit]\nprefix = \"2001:db8:64::/96\"\neam_file = \"eam.txt\"\n");
    let started = std::time::Instant::now();
    let (config, warnings) = Config::parse("x.toml", &text, &host(), &mut |_| Ok(rows.clone())).unwrap();
    println!("{:?}", started.elapsed());
    assert_eq!(config.siit[0].mappings.iter().count(), 1_000_000);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    let said = "x.toml  siit  the mappings need 1000000 routes, more than 4096; no route is added; write shorter prefixes that cover them in tun.routes";
    assert_eq!(lines(&warnings), [said]);
    assert_eq!(config.routes().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_text_whatever_breaks_the_reader(text in "\\PC*") {
        let _ = parse(&text).map_err(|faults| faults.to_string());
    }

    #[test]
    fn a_configuration_with_a_piece_cut_or_replaced_is_read_or_refused(
        from in 0..FULL.len(), length in 0..40_usize, piece in "[\\[\\]\"=,{}a-z0-9.:/ \n]{0,12}"
    ) {
        let to = (from + length).min(FULL.len());
        let text = format!("{}{piece}{}", &FULL[..from], &FULL[to..]);
        match parse(&text) {
            Ok((config, _)) => prop_assert_eq!(good(&config.to_string()), config),
            Err(faults) => prop_assert!(!faults.remarks().is_empty()),
        }
    }
}

/// TAYGA's own IPv6 address is by default the image of its IPv4 address; the addresses of a router may lie within its mappings.
#[test]
fn the_gateways_own_addresses_may_lie_within_a_prefix_and_a_mapping() {
    let own = "[gateway]\nipv4_address = \"198.51.100.9\"\nipv6_address = \"2001:db8:64::c633:6409\"\n";
    let prefix = "[siit]\nprefix = \"2001:db8:64::/96\"\n";
    warnings(&format!("{own}{prefix}"), &[]);
    let mapping = "[siit]\nprefix = \"2001:db8:65::/96\"\neam = [{ ipv4 = \"198.51.100.8/29\", ipv6 = \"2001:db8:64::c633:6408/125\" }]\n";
    warnings(&format!("{own}{mapping}"), &[]);
}

#[test]
fn this_hosts_address_among_those_of_a_mapping_is_told_and_not_refused() {
    let mapping = "[siit]\nprefix = \"2001:db8:65::/96\"\neam = [{ ipv4 = \"203.0.113.0/29\", ipv6 = \"2001:db8:2::/125\" }]\n";
    warnings(
        &format!("{OWN}{mapping}"),
        &[
            "sixway.toml:6  siit.eam[0]  203.0.113.7 is this host's own address on eth0 and is within this prefix; packets for it will not reach the gateway",
        ],
    );
}

/// What `sixway show config` prints is an input file again.
#[test]
fn each_example_that_is_written_again_is_the_same_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut no_rows = |_: &Path| Ok(String::new());
        let host = HostFacts { cpus: 2, ..HostFacts::default() };
        let mut read = |text: &str| {
            let parsed = Config::parse("sixway.toml", text, &host, &mut no_rows);
            parsed.unwrap_or_else(|faults| panic!("{}: {faults}\n{text}", path.display())).0
        };
        let config = read(&text);
        assert_eq!(read(&config.to_string()), config, "{}", path.display());
        count += 1;
    }
    assert!(count >= 10, "{count} examples");
}
