//! The list of keys, compared with the code that reads them.

use super::*;
use crate::schema::{AFTR_KEYS, AFTR_SUBSCRIBER_KEYS, Kind, SECTIONS, Section, Times};

/// Keys that only a host's end of 4over6 has.
const OF_HOST_END: [&str; 6] = ["local", "concentrator", "servers", "address", "idle", "destinations"];

/// The keys that a section needs, those of its role.
fn required(section: &str, is_of_aftr: bool, line: &str) -> Vec<(&'static str, &'static str)> {
    match section {
        "pool" => vec![("name", "\"two\""), ("addresses", "\"10.0.0.1\"")],
        "nat64" => vec![("prefix", "\"2001:db8:65::/96\""), ("pool", "\"main\"")],
        "nat64.static" => {
            vec![
                ("protocol", "\"tcp\""),
                ("inside", "\"[2001:db8::80]:80\""),
                ("outside", "\"192.0.2.1:80\""),
            ]
        }
        "siit" => vec![("eam_file", "\"eam.txt\"")],
        "siit.eam" => vec![("ipv4", "\"198.51.100.1\""), ("ipv6", "\"2001:db8:1::1\"")],
        "ip_in_ip" => vec![
            ("local", "\"2001:db8:75::1\""),
            ("remote", "\"2001:db8:76::1\""),
            ("prefixes", "\"10.7.0.0/16\""),
        ],
        "ds_lite.static" => {
            vec![
                ("protocol", "\"tcp\""),
                ("softwire", "\"2001:db8:78::b4\""),
                ("inside", "\"10.0.0.1:80\""),
                ("outside", "\"192.0.2.1:80\""),
            ]
        }
        "ds_lite" if is_of_aftr => {
            vec![
                ("pool", "\"two\""),
                ("role", "\"aftr\""),
                ("addresses", "\"2001:db8:77::a\""),
                ("clients", "\"2001:db8:78::/48\""),
            ]
        }
        "ds_lite" => {
            vec![("role", "\"b4\""), ("interface", "\"eth0\""), ("aftr", "\"aftr.example\"")]
        }
        "nat46" => vec![
            ("clients", "\"10.46.0.0/16\""),
            ("pool", "\"192.168.46.0/24\""),
            ("prefix", "\"2001:db8:77::/96\""),
        ],
        "nat46.static" => vec![("address", "\"192.168.46.80\""), ("server", "\"2001:db8:80::80\"")],
        "four_over_six" => of_four_over_six(line),
        "four_over_six.static" => vec![("host", "\"2001:db8:78::1\""), ("ipv4", "\"10.9.0.1\"")],
        "teredo_relay" => vec![("interface", "\"eth0\""), ("ipv6_address", "\"2001:db8:79::9\"")],
        // Its servers are the section below it.
        "teredo_client"
            if ["address", "secondary"].iter().any(|key| line.starts_with(&format!("{key} "))) =>
        {
            vec![("interface", "\"eth0\"")]
        }
        "teredo_client" => vec![
            ("interface", "\"eth0\""),
            ("servers", "[{ address = \"198.51.100.200\", secondary = \"198.51.100.201\" }]"),
        ],
        "pcp" => vec![("interfaces", "[\"eth1\"]")],
        "teredo_server" => vec![("address", "\"203.0.113.7\"")],
        "teredo_client.servers" => vec![("address", "\"198.51.100.200\"")],
        "npt66" => vec![("inside", "\"fd01:203:405::/48\""), ("outside", "\"2001:db8:74::/48\"")],
        "six_to_four" => vec![("role", "\"router\""), ("interface", "\"eth0\"")],
        "six_rd" => {
            vec![
                ("role", "\"customer_edge\""),
                ("prefix", "\"2001:db8:6d::/48\""),
                ("ipv4_mask_length", "16"),
                ("interface", "\"eth0\""),
                ("border_relays", "\"203.0.113.1\""),
            ]
        }
        "tunnel" => {
            vec![
                ("interface", "\"eth0\""),
                ("remote", "\"198.51.100.9\""),
                ("prefixes", "\"2001:db8:70::/48\""),
            ]
        }
        "isatap" => {
            vec![("role", "\"router\""), ("interface", "\"eth0\""), ("prefix", "\"2001:db8:71::/64\"")]
        }
        "router_advertisement" => vec![("interface", "\"eth0\""), ("router_lifetime", "\"30 min\"")],
        "router_advertisement.prefixes" => {
            vec![("prefix", "\"2001:db8:72::/64\""), ("valid_lifetime", "\"infinite\"")]
        }
        "router_advertisement.routes" => vec![("prefix", "\"2001:db8:73::/64\"")],
        "dns64" => vec![("listen", "\"[2001:db8:ffff::7]:53\""), ("queries_per_second", "100")],
        "dns64.upstream" => vec![("address", "\"192.0.2.53\""), ("transport", "\"tls\"")],
        "log.file" => vec![("path", "\"events.jsonl\"")],
        "log.syslog" => vec![("server", "\"192.0.2.5\""), ("name", "\"log.example\"")],
        "log.ipfix" => vec![("collector", "\"192.0.2.6\"")],
        _ => vec![],
    }
}

fn of_four_over_six(line: &str) -> Vec<(&'static str, &'static str)> {
    let is = |key: &&str| line.starts_with(&format!("{key} "));
    let host =
        [("role", "\"host\""), ("local", "\"2001:db8:77::1\""), ("concentrator", "\"2001:db8:79::1\"")];
    // Its lease file is instead of servers.
    if is(&"server_lease_file") {
        return host.to_vec();
    }
    if OF_HOST_END.iter().any(is) {
        return [&host[..], &[("servers", "\"2001:db8:79::2\"")]].concat();
    }
    vec![
        ("role", "\"concentrator\""),
        ("addresses", "\"2001:db8:77::1\""),
        ("pool", "\"10.9.0.0/24\""),
        ("clients", "\"2001:db8:78::/48\""),
    ]
}

/// A good configuration in which one key of a section can be written last.
fn with(section: &Section, line: &str) -> String {
    let of_aftr = AFTR_KEYS.iter().chain(AFTR_SUBSCRIBER_KEYS).map(|key| key.name);
    let mut of_aftr = of_aftr.chain(["static", "timeouts"]);
    let is_of_aftr =
        section.name.starts_with("ds_lite.") || of_aftr.any(|key| line.starts_with(&format!("{key} = ")));
    let write = |name: &str, lists: bool| {
        let key = line.split(' ').next().unwrap_or_default();
        let head = if lists { format!("[[{name}]]\n") } else { format!("[{name}]\n") };
        let rest: Vec<String> = required(name, is_of_aftr, line)
            .into_iter()
            .filter(|(required, _)| name != section.name || *required != key)
            .map(|(required, value)| format!("{required} = {value}\n"))
            .collect();
        head + &rest.concat()
    };
    let is_row = section.name.contains('.') && section.times == Times::Several || section.name == "pool";
    let parent = section.name.split('.').next().unwrap_or_default();
    let above = if parent == section.name { String::new() } else { write(parent, false) };
    let other = if parent == "nat64" { "" } else { NAT64 };
    // The other bound of a tunnel's MTU, in addition to its own.
    let tun = if section.name == "tun" { "" } else { "[tun]\nmtu = 65535\n" };
    // Deterministic NAT needs to know its subscribers.
    let inside = if section.name == "nat64" && line == "deterministic = true" {
        "inside = [\"2001:db8::/60\"]\n"
    } else {
        ""
    };
    format!("{POOL}{other}{tun}{above}{}{inside}{line}\n", write(section.name, is_row))
}

fn said(text: &str) -> Vec<String> {
    let mut eam_file = |_: &Path| Ok(String::new());
    match Config::parse("sixway.toml", text, &host(), &mut eam_file) {
        Ok(_) => Vec::new(),
        Err(faults) => lines(faults.remarks()),
    }
}

#[test]
fn every_key_of_the_list_is_read() {
    for section in SECTIONS {
        for key in section.keys() {
            let text = with(section, &format!("{} = 1979-05-27", key.name));
            let told = said(&text);
            let about = |line: &String| line.contains(&format!(".{}", key.name)) && line.contains("datetime");
            assert!(told.iter().any(about), "{told:?} in:\n{text}");
        }
    }
}

#[test]
fn every_word_and_bound_of_the_list_is_good() {
    for section in SECTIONS {
        for key in section.keys() {
            let values = match key.kind {
                Kind::Choice(words) => words.iter().map(|word| format!("\"{word}\"")).collect(),
                Kind::IntegerOr { word, min, max } => {
                    vec![format!("\"{word}\""), min.to_string(), max.to_string()]
                }
                Kind::DurationOr { word, .. } | Kind::Addresses4Or(word) | Kind::PathOr(word) => {
                    vec![format!("\"{word}\"")]
                }
                Kind::Prefix6Or(words) | Kind::NameOr(words) => {
                    words.iter().map(|word| format!("\"{word}\"")).collect()
                }
                Kind::Choices(words) => words
                    .iter()
                    .filter(|word| **word != "destinations")
                    .map(|word| format!("[\"{word}\"]"))
                    .collect(),
                // If true, it needs clients, whose secrets are in files.
                Kind::Boolean if section.name == "teredo_server" && key.name == "required" => {
                    vec!["false".to_owned()]
                }
                Kind::Boolean => vec!["true".to_owned(), "false".to_owned()],
                Kind::Integer { min, .. } => vec![min.to_string()],
                Kind::Text
                | Kind::Path
                | Kind::Address
                | Kind::Address4
                | Kind::Address6
                | Kind::Prefix4
                | Kind::Prefix6 => {
                    vec![]
                }
                Kind::Texts | Kind::Addresses4 | Kind::Addresses6 | Kind::Prefixes6 => vec![],
                Kind::Prefixes4
                | Kind::Routes
                | Kind::Ports
                | Kind::Endpoint4
                | Kind::Endpoint4OrAddress
                | Kind::Endpoint6 => vec![],
                Kind::Duration { .. } | Kind::Size { .. } | Kind::Socket => vec![],
                Kind::Sockets(_) | Kind::Server | Kind::Networks => vec![],
                Kind::Table(_) | Kind::Tables(_) => vec![],
            };
            for value in values {
                let text = with(section, &format!("{} = {value}", key.name));
                let told = said(&text);
                let about = |line: &String| line.contains(&format!(".{} = ", key.name));
                assert!(!told.iter().any(about), "{told:?} in:\n{text}");
            }
        }
    }
}

#[test]
fn every_default_is_within_the_keys_bounds() {
    let text = format!(
        "{OWN}{POOL}{NAT64}[siit]\nprefix = \"2001:db8:65::/96\"\n[tun]\n[fragments]\n[nat64.timeouts]\n"
    );
    assert_eq!(said(&text), Vec::<String>::new());
}
