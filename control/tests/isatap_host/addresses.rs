//! RFC 4862 §5.5.3 over ISATAP: addresses, and how their lifetimes run down.

use super::*;
use sixway_control::isatap_host::{MAX_ADDRESSES, TWO_HOURS};
use sixway_control::neighbour_discovery::INFINITY;

fn site() -> Site {
    let mut site = Site::new(&[R1]);
    site.pass(2);
    site
}

/// Remaining valid and preferred lifetime of the only address.
fn lifetimes(site: &Site) -> (u32, u32) {
    let [address] = site.host.addresses() else { panic!("{:?}", site.host.addresses()) };
    (address.valid(site.now), address.preferred(site.now))
}

#[test]
fn an_address_is_made_of_the_prefix_and_the_ipv4_address() {
    let mut site = site();
    site.advertise(R1, with_prefix(5_400, 2_700));
    let [address] = site.host.addresses() else { panic!() };
    assert_eq!(address.address, "2001:db8:1::5efe:a00:7".parse::<Ipv6Addr>().unwrap());
    assert!(address.on_link);
    assert_eq!(lifetimes(&site), (5_400, 2_700));
    assert!(site.done.iter().any(|(_, action)| *action == HostAction::SetAddress(*address)));
}

/// RFC 4861 §6.3.4: L = 0 says nothing about what is on the link.
#[test]
fn a_prefix_that_says_nothing_of_the_link_takes_nothing_back() {
    let mut site = site();
    site.advertise(R1, with_prefix(5_400, 2_700));
    let (prefix, on_link, autonomous) = (prefix("2001:db8:1::/64"), false, true);
    let silent =
        NdOption::Prefix(PrefixInformation { prefix, on_link, autonomous, valid: 5_400, preferred: 2_700 });
    site.advertise(R1, RouterAdvertisement { options: vec![silent], ..router(1_800) });
    assert!(site.host.addresses()[0].on_link);
    assert_eq!(lifetimes(&site), (5_400, 2_700));
}

#[test]
fn a_host_with_a_global_ipv4_address_says_so() {
    let now = Instant::from_secs(1_000);
    let mut host = IsatapHost::new(HostSettings::new(Ipv4Addr::new(9, 1, 2, 3)), 1, now);
    host.set_potential_routers(now, &[R1], None);
    let mut site = Site { host, now, done: Vec::new() };
    site.advertise(R1, with_prefix(5_400, 2_700));
    let address = site.host.addresses()[0].address;
    assert_eq!(address, "2001:db8:1:0:200:5efe:901:203".parse::<Ipv6Addr>().unwrap());
}

#[test]
fn lifetimes_run_down_and_the_address_goes_with_the_valid_one() {
    let mut site = site();
    site.advertise(R1, with_prefix(5_400, 2_700));
    let address = site.host.addresses()[0].address;
    site.pass(3_000);
    assert_eq!(lifetimes(&site), (2_400, 0));
    site.pass(2_399);
    assert_eq!(site.host.addresses().len(), 1);
    site.pass(2);
    assert!(site.host.addresses().is_empty());
    assert!(site.done.iter().any(|(_, action)| *action == HostAction::RemoveAddress(address)));
}

#[test]
fn useless_prefixes_are_ignored() {
    let good = PrefixInformation {
        prefix: prefix("2001:db8:1::/64"),
        on_link: true,
        autonomous: true,
        valid: 100,
        preferred: 50,
    };
    for bad in [
        PrefixInformation { autonomous: false, ..good },
        PrefixInformation { prefix: prefix("fe80::/64"), ..good },
        PrefixInformation { prefix: prefix("ff02::/64"), ..good },
        PrefixInformation { prefix: prefix("2001:db8::/32"), ..good },
        PrefixInformation { prefix: prefix("2001:db8::/96"), ..good },
        PrefixInformation { preferred: 101, ..good },
        PrefixInformation { valid: 0, preferred: 0, ..good },
    ] {
        let mut site = site();
        site.advertise(R1, RouterAdvertisement { options: vec![NdOption::Prefix(bad)], ..router(1_800) });
        assert!(site.host.addresses().is_empty(), "{bad:?}");
    }
}

/// The valid lifetime after an advertisement of `said`, when `remaining` was left.
fn valid_after(remaining: u32, said: u32) -> u32 {
    let mut site = site();
    site.advertise(R1, with_prefix(remaining, 0));
    site.advertise(R1, with_prefix(said, 0));
    lifetimes(&site).0
}

#[test]
fn no_advertisement_shortens_a_life_below_two_hours() {
    for (remaining, said, expected) in [
        (10_000, 0, TWO_HOURS),
        (10_000, 7_200, TWO_HOURS),
        (10_000, 7_201, 7_201),
        (10_000, 20_000, 20_000),
        (7_201, 0, TWO_HOURS),
        (7_200, 0, 7_200),
        (1_000, 0, 1_000),
        (1_000, 999, 1_000),
        (1_000, 1_001, 1_001),
        (INFINITY, 0, TWO_HOURS),
        (INFINITY, 9_000, 9_000),
        (1_000, INFINITY, INFINITY),
    ] {
        assert_eq!(valid_after(remaining, said), expected, "{remaining} left, {said} said");
    }
}

#[test]
fn the_preferred_lifetime_is_always_what_was_said_last() {
    let mut site = site();
    site.advertise(R1, with_prefix(1_000, 900));
    site.advertise(R1, with_prefix(0, 0));
    assert_eq!(lifetimes(&site), (1_000, 0), "deprecated, and valid for as long as it was");
    site.advertise(R1, with_prefix(2_000, 1_500));
    assert_eq!(lifetimes(&site), (2_000, 1_500));
}

#[test]
fn an_address_for_ever_has_no_end() {
    let mut site = site();
    site.advertise(R1, with_prefix(INFINITY, INFINITY));
    site.pass(1_000_000);
    assert_eq!(lifetimes(&site), (INFINITY, INFINITY));
}

#[test]
fn addresses_are_bounded() {
    let mut site = site();
    for number in 0..200 {
        let text = format!("2001:db8:{number:x}::/64");
        let options = vec![prefix_option(&text, 5_400, 2_700)];
        site.advertise(R1, RouterAdvertisement { options, ..router(1_800) });
    }
    assert_eq!(site.host.addresses().len(), MAX_ADDRESSES);
}
