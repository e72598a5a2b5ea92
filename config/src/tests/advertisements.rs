//! Router advertisements: what is read, and what is said of what cannot be.

use super::*;
use std::time::Duration;

const LAN: &str = "[router_advertisement]\ninterface = \"eth0\"\n";

#[track_caller]
fn good(text: &str) -> RouterAdvertisement {
    let (config, _) = parse(text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}"));
    let again = config.to_string();
    assert_eq!(parse(&again).unwrap_or_else(|faults| panic!("{faults}\nin:\n{again}")).0, config);
    config.router_advertisements[0].clone()
}

#[test]
fn what_is_not_written_is_what_rfc_4861_says() {
    let one = good(&format!("{LAN}[[router_advertisement.prefixes]]\nprefix = \"2001:db8:1::/64\"\n"));
    let seconds = Duration::from_secs;
    assert_eq!(
        (one.max_interval, one.min_interval, one.router_lifetime),
        (seconds(600), seconds(200), seconds(1_800))
    );
    assert_eq!((one.managed, one.other, one.hop_limit, one.mtu), (false, false, 64, None));
    assert_eq!((one.reachable_time, one.retransmit_timer), (Duration::ZERO, Duration::ZERO));
    assert_eq!((one.pref64, one.pref64_lifetime, one.goodbye), (Pref64::Auto, seconds(1_800), true));
    let prefix = &one.prefixes[0];
    assert_eq!((prefix.on_link, prefix.autonomous), (true, true));
    let (valid, preferred) = (Lifetime::For(seconds(2_592_000)), Lifetime::For(seconds(604_800)));
    assert_eq!((prefix.valid_lifetime, prefix.preferred_lifetime), (valid, preferred));
}

/// RFC 4861 §6.2.1, AdvSendAdvertisements, and §6.2.2: nothing is said on an interface that has no section.
#[test]
fn nothing_is_advertised_unless_it_is_written_and_nowhere_else() {
    let silent = parse(&format!("{OWN}[six_to_four]\nrole = \"router\"\ninterface = \"eth0\"\n")).unwrap().0;
    assert!(silent.router_advertisements.is_empty());
    let one = parse(&format!("{OWN}{LAN}")).unwrap().0;
    assert_eq!(one.router_advertisements.len(), 1);
    assert_eq!(one.router_advertisements[0].interface.as_deref(), Some("eth0"));
}

/// RFC 5969 §4: the gateway does not know the lease of its IPv4 address.
#[test]
fn a_6rd_prefix_is_advertised_for_ninety_minutes_at_most() {
    let edge = "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 0\ninterface = \"eth0\"\nborder_relays = [\"198.51.100.1\"]\n";
    let one = good(&format!("{OWN}{edge}{LAN}prefixes = [{{ from = \"six_rd\" }}]\n"));
    let seconds = |seconds| Lifetime::For(Duration::from_secs(seconds));
    assert_eq!(
        (one.prefixes[0].valid_lifetime, one.prefixes[0].preferred_lifetime),
        (seconds(5_400), seconds(2_700))
    );
}

#[test]
fn a_prefix_that_follows_has_the_lifetimes_of_rfc_9096() {
    let router = "[six_to_four]\nrole = \"router\"\ninterface = \"eth0\"\n";
    let from = "prefixes = [{ from = \"six_to_four\", subnet = 1 }]\n";
    let one = good(&format!("{OWN}{router}{LAN}{from}"));
    let (valid, preferred) = (Duration::from_secs(5_400), Duration::from_secs(2_700));
    assert_eq!(one.prefixes[0].valid_lifetime, Lifetime::For(valid));
    assert_eq!(one.prefixes[0].preferred_lifetime, Lifetime::For(preferred));
    let slow = good(&format!("{OWN}{router}{LAN}max_interval = \"30 min\"\n{from}"));
    assert_eq!(
        slow.prefixes[0].preferred_lifetime,
        Lifetime::For(valid),
        "three times the interval at least"
    );
}

#[test]
fn everything_that_can_be_said_is_read_and_written_out_again() {
    let text = "[router_advertisement]\ninterface = \"eth0\"\nmax_interval = \"20 s\"\nmin_interval = \"5 s\"\nrouter_lifetime = \"0 s\"\npreference = \"high\"\nmanaged = true\nother = true\nhop_limit = 0\nmtu = 1480\nreachable_time = \"30 s\"\nretransmit_timer = \"500 ms\"\nrdnss = [\"2001:db8::53\"]\ndnssl = [\"site.example\"]\ndns_lifetime = \"infinite\"\ncaptive_portal = \"https://portal.example/api\"\npref64 = \"64:ff9b::/96\"\npref64_lifetime = \"10 min\"\ngoodbye = false\nroutes = [{ prefix = \"2001:db8:2::/48\", preference = \"low\", lifetime = \"1 h\" }]\n[[router_advertisement.prefixes]]\nprefix = \"2001:db8:1::/64\"\non_link = false\nvalid_lifetime = \"infinite\"\n";
    let one = good(text);
    assert_eq!((one.retransmit_timer, one.mtu), (Duration::from_millis(500), Some(1_480)));
    assert_eq!(one.routes[0].preference, RouterPreference::Low);
    assert_eq!(one.prefixes[0].valid_lifetime, Lifetime::Infinite);
}

/// RFC 8910 §2.
#[test]
fn a_network_without_a_portal_may_say_so() {
    let none = "urn:ietf:params:capport:unrestricted";
    let one = good(&format!("{LAN}captive_portal = \"{none}\"\n"));
    assert_eq!(one.captive_portal.as_deref(), Some(none));
}

#[test]
fn what_cannot_be_said_is_reported() {
    for (line, said) in [
        ("over = \"isatap\"", "over = \"isatap\"  cannot be combined with interface; remove one"),
        (
            "min_interval = \"9 min\"",
            "min_interval = \"9 min\"  is more than three quarters of max_interval; write at most 7 min 30 s",
        ),
        (
            "router_lifetime = \"5 min\"",
            "router_lifetime = \"5 min\"  is less than max_interval: the router would expire between advertisements; write 0 s or a longer time",
        ),
        ("rdnss = \"ff02::1\"", "rdnss = \"ff02::1\"  ff02::1 is not a valid server address"),
        (
            "dnssl = \"a..b\"",
            "dnssl = \"a..b\"  \"a..b\" is not a domain name; write one such as site.example",
        ),
        (
            "captive_portal = \"http://x\"",
            "captive_portal = \"http://x\"  is not a valid API URI; write one that begins with https://, at most 255 octets (RFC 8910 §2)",
        ),
        (
            "pref64 = \"2001:db8::/95\"",
            "pref64 = \"2001:db8::/95\"  the length is 95; it must be 32, 40, 48, 56, 64 or 96 (RFC 6052 §2.2)",
        ),
        (
            "prefixes = [{}]",
            "prefixes[0]  has no prefix; write prefix = \"2001:db8:1::/64\", or from = a mechanism's name",
        ),
        (
            "prefixes = [{ from = \"x\" }]",
            "prefixes[0].from = \"x\"  no [six_to_four] router and no [six_rd] customer edge has this name; add one, or write the name of one",
        ),
        (
            "prefixes = [{ prefix = \"fe80::/64\" }]",
            "prefixes[0].prefix = \"fe80::/64\"  is not a valid prefix for hosts (RFC 4861 §4.6.2)",
        ),
        (
            "prefixes = [{ prefix = \"2001:db8:1::/64\", valid_lifetime = \"1 d\", preferred_lifetime = \"2 d\" }]",
            "prefixes[0].preferred_lifetime = \"2 d\"  is more than valid_lifetime; lower it (RFC 4861 §4.6.2)",
        ),
    ] {
        faults(&format!("{LAN}{line}\n"), &[&format!("sixway.toml:3  router_advertisement.{said}")]);
    }
    faults(
        "[router_advertisement]\n",
        &[
            "sixway.toml:1  router_advertisement  has no link; write interface = \"eth1\", or over = an [isatap] router",
        ],
    );
    faults(
        "[[router_advertisement]]\ninterface = \"eth0\"\n[[router_advertisement]]\ninterface = \"eth0\"\n",
        &[
            "sixway.toml:3  router_advertisement[1]  eth0 already has advertisements (line 1); write one section for each link",
        ],
    );
}

#[test]
fn what_no_advertisement_has_room_for_is_reported() {
    let rows: Vec<String> = (0..17).map(|n| format!("{{ prefix = \"2001:db8:{n}::/64\" }}")).collect();
    let text = format!("{LAN}prefixes = [{}]\n", rows.join(", "));
    let said =
        "sixway.toml:1  router_advertisement.prefixes  17 prefixes; at most 16 can be advertised on a link";
    faults(&text, &[said]);
}

#[test]
fn a_subnet_lies_within_the_delegated_prefix() {
    let edge = "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\ninterface = \"eth0\"\nborder_relays = \"198.51.100.1\"\n";
    let text =
        |subnet: u32| format!("{OWN}{edge}{LAN}prefixes = [{{ from = \"six_rd\", subnet = {subnet} }}]\n");
    good(&text(255));
    faults(
        &text(256),
        &[
            "sixway.toml:12  router_advertisement.prefixes[0].subnet = 256  is out of range for the delegated /56; write 0 to 255",
        ],
    );
}

#[test]
fn lifetimes_that_two_lost_advertisements_end_are_warned_of() {
    warnings(
        &format!(
            "{LAN}router_lifetime = \"20 min\"\nprefixes = [{{ prefix = \"2001:db8::/48\", preferred_lifetime = \"1 min\" }}]\n"
        ),
        &[
            "sixway.toml:3  router_advertisement.router_lifetime = \"20 min\"  is less than three times max_interval, 30 min: it expires when two advertisements are lost",
            "sixway.toml:4  router_advertisement.prefixes[0].preferred_lifetime = \"1 min\"  is less than three times max_interval, 30 min: it expires when two advertisements are lost",
            "sixway.toml:4  router_advertisement.prefixes[0].prefix = \"2001:db8::/48\"  is 48 bits long: hosts configure addresses only from a /64 (RFC 4862 §5.5.3 d); write autonomous = false, or a /64",
        ],
    );
}

#[test]
fn where_no_hosts_are_nothing_is_advertised() {
    for (interface, said) in [
        ("lo", "has no hosts; write an interface with hosts"),
        ("sixway0", "is the gateway's own device and has no hosts; write an interface with hosts"),
        ("../eth0", "is not a valid interface name (at most 15 characters); write one that `ip link` shows"),
    ] {
        let text = format!("[router_advertisement]\ninterface = \"{interface}\"\n");
        faults(&text, &[&format!("sixway.toml:2  router_advertisement.interface = \"{interface}\"  {said}")]);
    }
}

#[test]
fn a_subnet_is_on_one_link_and_comes_from_a_router() {
    let router = "[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\n";
    let lan = |name: &str| {
        format!(
            "[[router_advertisement]]\ninterface = \"{name}\"\nprefixes = [{{ from = \"six_to_four\", subnet = 1 }}]\n"
        )
    };
    faults(
        &format!("{router}{}{}", lan("eth0"), lan("sixway1")),
        &[
            "sixway.toml:7  router_advertisement[1]  subnet 1 of six_to_four is already used on a link (line 4); use a different number for each link",
        ],
    );
    let said =
        parse(&format!("{}{}", router.replace("router", "host"), lan("eth0"))).unwrap_err().to_string();
    assert!(said.contains("no [six_to_four] router and no [six_rd] customer edge has this name"), "{said}");
}
