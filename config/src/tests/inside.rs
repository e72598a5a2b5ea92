//! Who may use a NAT64.

use super::*;

const NAT64: &str = "[[pool]]\nname = \"a\"\naddresses = [\"198.18.0.0/24\"]\n[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"a\"\n";

#[test]
fn the_prefixes_of_the_hosts_are_read() {
    let text = format!("{OWN}{NAT64}inside = [\"2001:db8:1::/48\", \"fd00::/8\"]\n");
    let (config, warnings) = parse_with_all_warnings(&text).unwrap();
    let inside: Vec<String> = config.nat64[0].inside.iter().map(ToString::to_string).collect();
    assert_eq!(inside, ["2001:db8:1::/48", "fd00::/8"]);
    assert!(warnings.iter().all(|warning| !warning.to_string().contains("inside")), "{warnings:?}");
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    assert_eq!(engine.nat64[0].inside, config.nat64[0].inside);
}

#[test]
fn without_them_a_warning_has_the_line_to_write_and_next_to_a_relay_it_is_an_error() {
    let mend = "write the prefixes of your hosts, such as inside = [\"2001:db8:1::/48\"]";
    let text = format!("{OWN}{NAT64}");
    let warned = parse_with_all_warnings(&text).unwrap().1;
    let said = format!(
        "nat64.inside  is not set: any host that can send to 2001:db8:64::/96 can use the pool; {mend}"
    );
    assert!(warned.iter().any(|warning| warning.to_string().ends_with(&said)), "{warned:?}");
    for (relay, named) in [
        ("[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n", "[six_to_four] role = \"relay\""),
        (
            "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:dc8::/32\"\nipv4_mask_length = 8\naddress = \"203.0.113.7\"\n",
            "[six_rd] role = \"border_relay\"",
        ),
        (
            "[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"2001:db8:9::/64\"\n",
            "[isatap] role = \"router\" without locators",
        ),
    ] {
        let faults = parse(&format!("{text}{relay}")).unwrap_err().to_string();
        let said =
            format!("nat64.inside  is missing: through {named}, the Internet could use the pool; {mend}");
        // Columns are aligned.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&faults).contains(&words(&said)), "{faults}");
        let closed = text.replace("[nat64]\n", "[nat64]\ninside = [\"2001:db8:1::/48\"]\n");
        assert!(parse(&format!("{closed}{relay}")).is_ok());
    }
}
