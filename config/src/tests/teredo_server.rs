//! A Teredo server.

use super::*;
use sixway_dataplane::mechanism::table::Kind;

const SERVER: &str = "[teredo_server]\naddress = \"203.0.113.7\"\nsecondary = \"192.0.2.254\"\n";

/// The file of one secret.
fn secret_of(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("/etc/alice") => Ok("correct horse battery\n".into()),
        Some("/etc/short") => Ok("short\n".into()),
        _ => no_files(path),
    }
}

fn parse_with_secrets(text: &str) -> Result<(Config, Vec<Warning>), Faults> {
    Config::parse("sixway.toml", text, &host(), &mut secret_of)
}

#[test]
fn a_server_is_read_and_needs_no_device() {
    let (config, warnings) = parse(SERVER).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(lines(&warnings), Vec::<String>::new());
    assert!(!config.needs_device() && config.routes().is_empty());
    let server = config.teredo_server.as_ref().unwrap();
    assert!(!server.required && server.native);
    assert_eq!(
        server.exposes(),
        "UDP 203.0.113.7:3544, 192.0.2.254:3544 · serves any IPv4 host · forwards bubbles of any IPv4 host, echo messages to native hosts"
    );
    assert!(!server.own_networks);
    let inward = parse(&format!("{SERVER}own_networks = true\n")).unwrap().0.teredo_server.unwrap();
    assert!(inward.own_networks && inward.exposes().ends_with("also of this host's networks"));
    assert_eq!(parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}")).0, config);
    assert!(!Kind::ALL.iter().any(|kind| kind.section() == "teredo_server"));
}

#[test]
fn a_server_with_one_address_is_warned_of() {
    let (_, warnings) = parse("[teredo_server]\naddress = \"203.0.113.7\"\n").unwrap();
    let said = lines(&warnings).join("\n");
    assert!(said.contains("has no secondary: ") && said.contains("symmetric NAT"), "{said}");
}

#[test]
fn a_secret_is_read_from_its_file_and_never_printed() {
    let text = format!("{SERVER}client = [{{ id = \"alice\", secret_file = \"/etc/alice\" }}]\n");
    let (config, _) = parse_with_secrets(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let server = config.teredo_server.as_ref().unwrap();
    assert!(server.required, "there is a client");
    assert_eq!(server.clients[0].secret.octets(), b"correct horse battery");
    for printed in [config.to_string(), format!("{config:?}"), format!("{server:?}")] {
        assert!(!printed.contains("horse") && printed.contains("alice"), "{printed}");
    }
    assert!(server.exposes().contains("serves 1 client with a secret"));
    assert_eq!(parse_with_secrets(&config.to_string()).unwrap().0, config);
}

#[test]
fn what_cannot_work_is_said_with_what_mends_it() {
    let with = |from: &str, to: &str| SERVER.replace(from, to);
    let client = |row: &str| format!("{SERVER}client = [{row}]\n");
    for (text, what) in [
        (with("192.0.2.254", "203.0.113.7"), "is the same as address"),
        (with("192.0.2.254", "203.0.113.8"), "this host does not have this address; add it"),
        (with("203.0.113.7", "10.0.0.1"), "is not a global unicast address"),
        (with("203.0.113.7", "100.64.0.1"), "is not a global unicast address"),
        (format!("{SERVER}required = true\n"), "no client could qualify"),
        (client("{ id = \"alice\", secret_file = \"/etc/short\" }"), "must contain one line of at least 16"),
        (client("{ id = \"alice\", secret_file = \"/etc/nothing\" }"), "cannot be read"),
        (client("{ id = \"\", secret_file = \"/etc/alice\" }"), "is empty; write"),
        (
            client(
                "{ id = \"alice\", secret_file = \"/etc/alice\" }, { id = \"alice\", secret_file = \"/etc/alice\" }",
            ),
            "another client has this id",
        ),
        (format!("{SERVER}total_rate = 0\n"), "total_rate"),
    ] {
        let said = parse_with_secrets(&text).map(|_| ()).expect_err(&text).to_string();
        assert!(said.contains(what), "{what}\nnot in:\n{said}");
    }
}

#[test]
fn the_port_of_a_server_must_not_belong_to_a_shared_pool() {
    let pool = "[[pool]]\nname = \"main\"\naddresses = [\"203.0.113.7\"]\nshared = true\nports = \"2000-9999\"\n[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";
    let said = parse(&format!("{OWN}{pool}{SERVER}")).map(|_| ()).expect_err("a fault").to_string();
    assert!(said.contains("port 3544 of 203.0.113.7 belongs to a pool, too"), "{said}");
}
