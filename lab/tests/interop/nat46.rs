//! NAT46 with real programs: a host without IPv6 reaches a server without IPv4 by its name.

use crate::Interop;
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::Result;
use sixway_lab::gateway::{run_sixway, show, take_over};
use sixway_lab::name_service::{Resolving, serve};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch_from, ping, serve_page};
use sixway_lab::process::RunsCommands as _;
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "nat46_leads_curl_by_name_to_an_ipv6_only_server",
        &["sixway", "nsd", "taskset", "unshare", "nginx", "curl", "ping"],
        by_name,
    ),
    Interop::new(
        "nat46_leads_curl_to_the_https_server_that_sni_names",
        &["sixway", "nsd", "taskset", "unshare", "nginx", "curl", "openssl"],
        by_https,
    ),
    Interop::new("nat46_is_seen_by_tracepath", &["sixway", "nsd", "taskset", "unshare", "tracepath"], traced),
    Interop::new(
        "nat46_excludes_ftp_by_name_and_leaves_proofs_to_dig",
        &["sixway", "nsd", "taskset", "unshare", "dig", "curl"],
        excluded,
    ),
    Interop::new(
        "nat46_mappings_continue_after_a_takeover_and_a_kill",
        &["sixway", "nsd", "taskset", "unshare", "nginx", "curl", "ping"],
        restarted,
    ),
];

const SIXWAY: &str = r#"[gateway]
ipv4_address = "192.168.46.1"
ipv6_address = "2001:db8::fe"

[nat46]
clients = ["10.1.0.0/16"]
pool = "192.168.46.0/24"
prefix = "2001:db8:46::/96"
exclude_names = ["ftp.example"]
static = [{ address = "192.168.46.80", server = "2001:db8:80::1" }]

[dns64]
listen = ["10.1.0.1"]
special_names = "upstream"

[[dns64.upstream]]
address = "203.0.113.2"
"#;

const RECORDS: &str = "www AAAA 2001:db8:80::2\nshop AAAA 2001:db8:80::2\nftp AAAA 2001:db8:80::2\nboth AAAA 2001:db8:80::2\nboth A 203.0.113.2\n";

/// The client without IPv6, the gateway, an IPv6 router, and the server: its web is at an IPv6 address alone.
fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "router", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("router", "left"))?;
    network.link(("router", "right"), ("server", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "10.1.0.5/24"),
        ("gateway", "in0", "10.1.0.1/24"),
        ("gateway", "out0", "2001:db8:2::1/64"),
        ("gateway", "out0", "203.0.112.1/24"),
        ("router", "left", "2001:db8:2::2/64"),
        ("router", "left", "203.0.112.2/24"),
        ("router", "right", "2001:db8:80::ff/64"),
        ("router", "right", "203.0.113.1/24"),
        ("server", "up0", "2001:db8:80::1/64"),
        ("server", "up0", "2001:db8:80::2/64"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 10.1.0.1")?;
    network.route("gateway", "2001:db8:80::/64 via 2001:db8:2::2")?;
    network.route("gateway", "203.0.113.0/24 via 203.0.112.2")?;
    network.route("router", "2001:db8:46::/96 via 2001:db8:2::1")?;
    network.route("server", "default via 2001:db8:80::ff")?;
    network.route("server", "default via 203.0.113.1")?;
    network.forwards("gateway")?;
    network.forwards("router")?;
    serve(&network, RECORDS)?;
    run_sixway(&network, SIXWAY)?;
    Ok(network)
}

fn client(network: &Network) -> Result<Resolving<'_>> {
    Resolving::by(network, "client", "10.1.0.1")
}

/// The A records of a name that the client gets.
fn told(network: &Network, name: &str, flags: Flags) -> Result<Vec<String>> {
    let server = SocketAddr::new(Ipv4Addr::new(10, 1, 0, 1).to_ipv6_mapped().into(), 53);
    let reply = Asker::open(network.host("client")?, server)?.ask(name, "A", flags)?;
    assert_eq!(reply.rcode, "NOERROR", "{reply:?}");
    Ok(reply.data("A").into_iter().map(str::to_owned).collect())
}

fn by_name() -> Result<()> {
    let network = network()?;
    let client = client(&network)?;
    serve_page(&network, "server", "[2001:db8:80::2]", "from the server")?;
    assert_eq!(fetch_from(&client, &network, "http://www.example/")?.body, "from the server");
    assert_eq!(fetch_from(&client, &network, "http://shop.example/")?.body, "from the server");
    for octets in [0, 56, 1_400, 1_452] {
        let trips = ping(&client, "www.example", 3, octets, Duration::from_millis(5))?;
        assert_eq!(trips.answered, 3, "pings with {octets} octets");
    }
    let trips = ping(&client, "192.168.46.80", 3, 56, Duration::from_millis(5))?;
    assert_eq!(trips.answered, 3, "a static mapping");
    assert_eq!(told(&network, "both.example", Flags::NONE)?, ["203.0.113.2"], "it has IPv4");
    let shown = network.host("gateway")?.run(show(&network, &["bindings"])?, Duration::from_secs(10))?;
    let shown = shown.succeeded()?.stdout;
    assert!(shown.contains("2001:db8:80::2") && shown.contains("10.1.0.5"), "{shown}");
    Ok(())
}

/// Two names at one address: by SNI the server knows which certificate to show.
fn by_https() -> Result<()> {
    let network = network()?;
    let folder = network.folder().join("https");
    std::fs::create_dir_all(&folder).expect("the network's folder is ours");
    let at = folder.display().to_string();
    let mut servers = String::new();
    for name in ["www", "shop"] {
        let mut openssl = command("openssl")?;
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", &format!("/CN={name}.example")]);
        openssl.args(["-addext", &format!("subjectAltName=DNS:{name}.example")]);
        openssl.args(["-out", &format!("{at}/{name}.pem"), "-keyout", &format!("{at}/{name}.key")]);
        network.host("server")?.run(openssl, Duration::from_secs(20))?.succeeded()?;
        servers += &format!(
            "server {{ listen [2001:db8:80::2]:443 ssl; server_name {name}.example; ssl_certificate {at}/{name}.pem; \
             ssl_certificate_key {at}/{name}.key; location / {{ return 200 \"{name}\"; }} }}\n"
        );
    }
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind}; "))
        .concat();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{ }}\nhttp {{ access_log off; \
         {temporary}\n{servers}}}\n"
    );
    let file = network.file("https.conf", &text)?;
    let mut nginx = command("nginx")?;
    nginx.args(["-p", &at, "-e", &format!("{at}/error.log"), "-c"]).arg(file);
    network.start("server", nginx)?;
    let client = client(&network)?;
    for name in ["www", "shop"] {
        let mut curl = command("curl")?;
        curl.args(["-sS", "--max-time", "10", "--noproxy", "*", "--retry", "20", "--retry-connrefused"]);
        curl.args(["--retry-delay", "1", "--cacert", &format!("{at}/{name}.pem")]);
        curl.arg(format!("https://{name}.example/"));
        let page = client.run(curl, Duration::from_secs(40))?.succeeded()?.stdout;
        assert_eq!(page, name, "the certificate and the page of this name");
    }
    assert_eq!(told(&network, "www.example", Flags::NONE)?, told(&network, "shop.example", Flags::NONE)?);
    Ok(())
}

fn traced() -> Result<()> {
    let network = network()?;
    let client = client(&network)?;
    // The router's link to the server is narrow: 1,400 octets of IPv6 are 1,380 of IPv4.
    network.host("router")?.ip("link set right mtu 1400")?;
    network.host("server")?.ip("link set up0 mtu 1400")?;
    let mut tracepath = command("tracepath")?;
    tracepath.args(["-4", "-n", "-m", "6", "www.example"]);
    let said = client.run(tracepath, Duration::from_secs(40))?.succeeded()?.stdout;
    let address = told(&network, "www.example", Flags::NONE)?.remove(0);
    // The gateway, the router in the name of the gateway, and the server.
    assert!(said.contains("10.1.0.1") && said.contains("192.168.46.1"), "{said}");
    assert!(said.contains("pmtu 1380"), "{said}");
    assert!(said.contains(&address) && said.contains("reached"), "{said}");
    Ok(())
}

fn excluded() -> Result<()> {
    let network = network()?;
    let client = client(&network)?;
    assert_eq!(told(&network, "ftp.example", Flags::NONE)?, Vec::<String>::new());
    let mut curl = command("curl")?;
    curl.args(["-4", "-sS", "--max-time", "5", "--noproxy", "*", "ftp://ftp.example/"]);
    let failed = client.run(curl, Duration::from_secs(15))?;
    assert!(failed.stderr.contains("Could not resolve host"), "{}", failed.stderr);
    let numbers =
        Flags::OF_A_VALIDATOR.map(|flags| told(&network, "www.example", flags).map(|all| all.len()));
    for (flags, (told, right)) in Flags::OF_A_VALIDATOR.iter().zip(numbers.into_iter().zip([1, 1, 1, 0])) {
        assert_eq!(told?, right, "{flags}");
    }
    let dig = |flag: &str| -> Result<String> {
        let mut dig = command("dig")?;
        dig.args(["@10.1.0.1", "+tries=1", "+time=5", "+dnssec", flag, "www.example", "A"]);
        Ok(client.run(dig, Duration::from_secs(15))?.succeeded()?.stdout)
    };
    let (plain, validator) = (dig("+nocdflag")?, dig("+cdflag")?);
    assert!(plain.contains("192.168.46.") && !plain.contains(" ad;"), "{plain}");
    assert!(!validator.contains("192.168.46.") && validator.contains("SOA"), "{validator}");
    Ok(())
}

/// What the client was told holds, whatever becomes of the process.
fn restarted() -> Result<()> {
    let network = network()?;
    let client = client(&network)?;
    serve_page(&network, "server", "[2001:db8:80::2]", "from the server")?;
    let address = told(&network, "www.example", Flags::NONE)?.remove(0);
    let reached = |what: &str| -> Result<()> {
        let page = fetch_from(&client, &network, &format!("http://{address}/"))?;
        assert_eq!(page.body, "from the server", "{what}");
        Ok(())
    };
    reached("before")?;
    let second = take_over(&network, SIXWAY)?;
    reached("after a takeover")?;
    network.with_process(second, |process| process.kill())?;
    run_sixway(&network, SIXWAY)?;
    reached("after a sudden end")?;
    assert_eq!(told(&network, "www.example", Flags::NONE)?, [address.as_str()]);
    Ok(())
}
