//! Pools that are drained, their alarms, and where their addresses lead without the device.

use super::*;

/// With what is at line 7 and below.
fn pool(lines: &str) -> String {
    format!(
        "{OWN}[[pool]]\nname = \"main\"\naddresses = [\"198.51.100.0/28\", \"198.51.100.32\"]\n{lines}\n{NAT64}"
    )
}

#[test]
fn a_part_of_a_pool_is_drained_and_the_engines_know() {
    let (config, remarks) = parse(&pool("draining = [\"198.51.100.4/30\", \"198.51.100.32\"]")).unwrap();
    assert_eq!(lines(&remarks), [""; 0]);
    let drained: Vec<sixway_wire::Prefix4> =
        ["198.51.100.4/30", "198.51.100.32/32"].map(|text| text.parse().unwrap()).into();
    assert_eq!(config.pools[0].draining, drained);
    assert_eq!(config.engines([1, 2], &Surroundings::default())[0].nat64[0].draining, drained);
    assert_eq!(parse(&config.to_string()).unwrap().0, config);
    assert!(parse(&pool("draining = []")).unwrap().0.pools[0].draining.is_empty());
}

#[test]
fn only_parts_of_the_pool_are_drained() {
    let what = "is not a part of the pool; write a prefix within one of addresses";
    faults(
        &pool("draining = [\"198.51.100.16/30\", \"198.51.100.0/27\"]"),
        &[
            &format!("sixway.toml:7  pool.main.draining  198.51.100.16/30 {what}"),
            &format!("sixway.toml:7  pool.main.draining  198.51.100.0/27 {what}"),
        ],
    );
    let followed = pool("draining = [\"198.51.100.1\"]").replace(
        "addresses = [\"198.51.100.0/28\", \"198.51.100.32\"]",
        "interface = \"eth0\"\nshared = true\nports = \"61000-65535\"",
    );
    let told = parse(&followed).unwrap_err();
    assert!(told.to_string().contains("the pool has one address; remove draining"), "{told:?}");
}

#[test]
fn a_pool_of_which_everything_is_drained_is_a_warning() {
    let (_, remarks) =
        parse(&pool("draining = [\"198.51.100.0/29\", \"198.51.100.8/29\", \"198.51.100.32\"]")).unwrap();
    let said = lines(&remarks);
    assert!(
        said.len() == 1 && said[0].contains("contains the whole pool: further hosts are refused"),
        "{said:?}"
    );
}

#[test]
fn an_alarm_is_cleared_below_where_it_is_raised() {
    let alarm = |lines: &str| parse(&pool(lines)).map(|(config, _)| config.pools[0].alarm);
    let thresholds = |at, clear| AlarmThresholds { at, clear };
    assert_eq!(alarm("").unwrap(), thresholds(80, 70));
    assert_eq!(alarm("alarm_at = 100\nalarm_clear = 0").unwrap(), thresholds(100, 0));
    faults(
        &pool("alarm_at = 60\nalarm_clear = 60"),
        &[
            "sixway.toml:8  pool.main.alarm_clear = 60  must be less than alarm_at, which is 60; write 59 or less",
        ],
    );
    assert_eq!(alarm("alarm_at = 70").unwrap(), thresholds(70, 60));
    assert_eq!(alarm("alarm_at = 5").unwrap(), thresholds(5, 0));
    assert_eq!(alarm("alarm_clear = 90").unwrap(), thresholds(91, 90));
    for wrong in ["alarm_at = 0", "alarm_at = 101", "alarm_clear = 100"] {
        assert!(alarm(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn routed_addresses_lead_nowhere_without_the_device_by_the_prefixes_of_their_routes() {
    let reach = |text: &str| parse(text).unwrap().0.reach(&Surroundings::default());
    let told = |text: &str| reach(text).blackholes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let two = pool("").replace("198.51.100.32", "198.51.100.16/28");
    assert_eq!(told(&two), ["192.0.2.254/32", "198.51.100.0/27"]);
    let routes: Vec<String> = parse(&two).unwrap().0.routes().iter().map(ToString::to_string).collect();
    for prefix in told(&two) {
        assert!(routes.contains(&prefix), "a narrower one would have precedence: {prefix}, {routes:?}");
    }
    assert!(told(&format!("{two}\n[tun]\nroutes = \"none\"\n")).is_empty());
}
