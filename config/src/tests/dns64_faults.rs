//! DNS64: what is said of what cannot be, and of what will hardly be meant.

use super::dns64::{DNS64, ELSEWHERE, good};
use super::*;
use std::io;

/// The lines that are said of `[dns64]` with a line more, in an otherwise good configuration, without its own part.
#[track_caller]
fn fault(line: &str, said: &str) {
    let text = format!("{DNS64}{ELSEWHERE}{line}\n");
    let number = text.lines().count();
    faults(&text, &[&format!("sixway.toml:{number}  dns64.{said}")]);
}

#[track_caller]
fn warning(line: &str, said: &str) {
    let text = format!("{DNS64}{ELSEWHERE}{line}\n");
    let number = text.lines().count();
    warnings(&text, &[&format!("sixway.toml:{number}  dns64.{said}")]);
}

#[test]
fn a_prefix_that_nothing_translates_is_reported() {
    let mend = "translated_elsewhere = true if another machine translates it";
    faults(
        &format!("{DNS64}prefix = \"64:ff9b::/96\"\n"),
        &[&format!(
            "sixway.toml:4  dns64.prefix = \"64:ff9b::/96\"  no translator of this gateway has prefix 64:ff9b::/96; write a [nat64] with it, or {mend}"
        )],
    );
    faults(
        &format!("{OWN}{POOL}{NAT64}{DNS64}prefix = \"64:ff9b::/96\"\n"),
        &[&format!(
            "sixway.toml:13  dns64.prefix = \"64:ff9b::/96\"  no translator of this gateway has prefix 64:ff9b::/96; write 2001:db8:64::/96, or {mend}"
        )],
    );
    faults(
        DNS64,
        &[
            "sixway.toml:1  dns64.prefix  no translator of this gateway has a prefix; write a [nat64], or prefix = \"64:ff9b::/96\" and translated_elsewhere = true if another machine translates it",
        ],
    );
    let nat64 = NAT64.replace("2001:db8:64::/96", "2001:db8::/95");
    let told =
        parse(&format!("{OWN}{POOL}{nat64}{DNS64}prefix = \"64:ff9b::/96\"\n")).unwrap_err().to_string();
    assert!(!told.contains("dns64"), "a translator that cannot be read is told of itself: {told}");
}

#[test]
fn what_is_missing_is_reported_with_what_would_mend_it() {
    faults(
        "[dns64]\n",
        &[
            "sixway.toml:1  dns64.listen  is missing; write listen = [\"[2001:db8:ffff::7]:53\"], an address of this host",
            "sixway.toml:1  dns64.prefix  no translator of this gateway has a prefix; write a [nat64], or prefix = \"64:ff9b::/96\" and translated_elsewhere = true if another machine translates it",
            "sixway.toml:1  dns64.upstream  is missing; write upstream = [{ address = \"192.0.2.53\" }]",
        ],
    );
    faults(
        &format!("[dns64]\nlisten = \"::1\"\nupstream = []\n{ELSEWHERE}"),
        &["sixway.toml:1  dns64.upstream  is empty; write at least one DNS server"],
    );
}

#[test]
fn addresses_that_nobody_can_listen_at_are_reported() {
    let listen = |address: &str| {
        format!("[dns64]\n{ELSEWHERE}upstream = {{ address = \"198.51.100.53\" }}\nlisten = {address}\n")
    };
    for (address, said) in [
        ("\"ff02::1\"", "[ff02::1]:53 is a multicast address; write an address of this host"),
        ("\"[::1]:0\"", "[::1]:0 port 0 is not valid; write 1 to 65535"),
        ("\"::ffff:192.0.2.1\"", "[::ffff:192.0.2.1]:53 is an IPv4-mapped address; write it as IPv4"),
        (
            "\"fe80::1\"",
            "[fe80::1]:53 is link-local and needs an interface; append its number, such as [fe80::1%2]:53",
        ),
        (
            "\"eth0\"",
            "is not an address; write one such as 2001:db8::53, or with a port, such as [2001:db8::53]:53",
        ),
    ] {
        faults(&listen(address), &[&format!("sixway.toml:5  dns64.listen = {address}  {said}")]);
    }
    faults(
        &listen("[\"::1\", \"[::1]:53\"]"),
        &["sixway.toml:5  dns64.listen  [::1]:53 is already used (line 5); write another port"],
    );
    faults(
        &format!("[gateway]\nmetrics = \"[::1]:443\"\n{}listen_https = \"::1\"\n", listen("\"::1\"")),
        &[
            "sixway.toml:3  dns64.certificate  is missing, for listen_tls and listen_https; write certificate = \"/etc/sixway/certificate.pem\"",
            "sixway.toml:3  dns64.key  is missing, for listen_tls and listen_https; write key = \"/etc/sixway/key.pem\"",
            "sixway.toml:8  dns64.listen_https = \"::1\"  [::1]:443 is already used by gateway.metrics; write another port",
        ],
    );
    let foreign = "2001:db8:ffff::8 is not configured on this host; the DNS64 binds it when it appears: ip address add 2001:db8:ffff::8/128 dev INTERFACE";
    warnings(
        &listen("\"2001:db8:ffff::8\""),
        &[&format!("sixway.toml:5  dns64.listen = \"2001:db8:ffff::8\"  {foreign}")],
    );
    let own = "2001:db8::fe is the gateway's own address, which this host does not have; write an address of this host";
    warnings(
        &format!("{OWN}{}", listen("\"2001:db8::fe\"")),
        &[&format!("sixway.toml:8  dns64.listen = \"2001:db8::fe\"  {own}")],
    );
}

#[test]
fn certificates_that_cannot_be_read_are_reported() {
    let text = format!("{DNS64}{ELSEWHERE}listen_tls = \"::1\"\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n");
    faults(
        &text,
        &[
            "sixway.toml:7  dns64.certificate = \"a.pem\"  cannot be read: no file a.pem",
            "sixway.toml:8  dns64.key = \"b.pem\"  cannot be read: no file b.pem",
        ],
    );
    let mut other = |_: &Path| Ok("-----BEGIN CERTIFICATE-----\n".to_owned());
    let told = Config::parse("sixway.toml", &text, &host(), &mut other).unwrap_err();
    assert_eq!(
        lines(told.remarks()),
        [
            "sixway.toml:8  dns64.key = \"b.pem\"  contains no PEM block \"PRIVATE KEY\"; write the path of a PEM file"
        ]
    );
    assert_eq!(
        with_files(
            &text,
            &[("a.pem", "-----BEGIN CERTIFICATE-----\n"), ("b.pem", "-----BEGIN PRIVATE KEY-----\n")]
        ),
        [
            "sixway.toml:7  dns64.certificate = \"a.pem\"  is truncated or damaged; replace the file",
            "sixway.toml:8  dns64.key = \"b.pem\"  is truncated or damaged; replace the file",
        ]
    );
    warning(
        "key = \"b.pem\"",
        "key = \"b.pem\"  has no effect without listen_tls or listen_https; set one of them, or remove this",
    );
}

/// The faults where these files are there.
fn with_files(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::other("no such file"))
    };
    Config::parse("sixway.toml", text, &host(), &mut read)
        .map_or_else(|told| lines(told.remarks()), |_| Vec::new())
}

#[test]
fn a_key_that_is_not_the_certificates_is_reported() {
    let made = || rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let (one, other) = (made(), made());
    let text = format!("{DNS64}{ELSEWHERE}listen_tls = \"::1\"\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n");
    let told = |key: &str| with_files(&text, &[("a.pem", &one.cert.pem()), ("b.pem", key)]);
    assert_eq!(told(&one.signing_key.serialize_pem()), [""; 0]);
    assert_eq!(
        told(&other.signing_key.serialize_pem()),
        [
            "sixway.toml:8  dns64.key = \"b.pem\"  does not match the first certificate in a.pem; use the matching key"
        ]
    );
}

#[test]
fn upstreams_that_cannot_be_asked_are_reported() {
    let loops = "is where this DNS64 itself listens: queries would loop; write another server";
    for (row, key, said) in [
        (
            "address = \"2001:db8:ffff::7\"",
            "address = \"2001:db8:ffff::7\"",
            &*format!("[2001:db8:ffff::7]:53 {loops}"),
        ),
        (
            "address = \"::\"",
            "address = \"::\"",
            "[::]:53 is not a valid server address; write a unicast address",
        ),
        (
            "address = \"::2\", transport = \"tls\"",
            "name",
            "is missing: it is compared with the certificate; write name = \"dns.example\"",
        ),
        (
            "address = \"::2\", name = \"dns.example\"",
            "name = \"dns.example\"",
            "applies only to certificates; set transport = \"tls\" or \"https\", or remove it",
        ),
        (
            "address = \"::2\", path = \"/q\"",
            "path = \"/q\"",
            "applies only to HTTPS; set transport = \"https\", or remove it",
        ),
        (
            "address = \"::2\", through = \"nat64\"",
            "through = \"nat64\"",
            "applies only to IPv4 upstreams; this one has an IPv6 address: remove it",
        ),
        (
            "address = \"10.0.0.1\", through = \"nat64\"",
            "through = \"nat64\"",
            "10.0.0.1 is not globally reachable, and 64:ff9b::/96 must not represent it (RFC 6052 §3.1); set translate_non_global = true in the translator's section, or use another prefix",
        ),
        (
            "address = \"::2\", names = \"*.lan\"",
            "names = \"*.lan\"",
            "\"*.lan\" contains a *; names below are included anyway: write lan",
        ),
        (
            "address = \"::2\", names = \".\"",
            "names = \".\"",
            "\".\" is the root and matches every name; remove the key instead",
        ),
        (
            "address = \"::2\", names = \"a..b\"",
            "names = \"a..b\"",
            "\"a..b\" is not a domain name; write one such as site.example",
        ),
        (
            "address = \"::2\", names = \"bücher.example\"",
            "names = \"bücher.example\"",
            "\"bücher.example\" is not ASCII; write the name in its DNS form, with xn--",
        ),
    ] {
        let text = format!("[dns64]\nlisten = \"2001:db8:ffff::7\"\n{ELSEWHERE}upstream = [{{ {row} }}]\n");
        faults(&text, &[&format!("sixway.toml:5  dns64.upstream[0].{key}  {said}")]);
    }
    let any = format!(
        "[dns64]\nlisten = \"::\"\nallow = \"::1\"\n{ELSEWHERE}upstream = {{ address = \"2001:db8:ffff::7\" }}\n"
    );
    let told = parse(&any).unwrap_err().to_string();
    assert!(told.contains("queries would loop"), "{told}");
    good(&any.replace("2001:db8:ffff::7", "127.0.0.1"));
}

#[test]
fn an_upstream_is_written_once_and_somebody_is_asked_about_every_name() {
    let two = |names: &str| {
        format!(
            "[dns64]\nlisten = \"::1\"\nallow = \"::1\"\n{ELSEWHERE}[[dns64.upstream]]\naddress = \"::2\"\n{names}[[dns64.upstream]]\naddress = \"[::2]:53\"\n{names}"
        )
    };
    faults(&two(""), &["sixway.toml:8  dns64.upstream[1]  is the same as another (line 6); remove one"]);
    faults(
        &two("names = \"lan\"\n"),
        &["sixway.toml:9  dns64.upstream[1]  is the same as another (line 6); remove one"],
    );
    warnings(
        &two("names = \"lan\"\n").replacen("\"lan\"", "\"example\"", 1),
        &["sixway.toml:1  dns64  every upstream has names: other names are answered with SERVFAIL"],
    );
}

#[test]
fn rules_that_never_match_are_warned_of() {
    let rule = |lines: &str| format!("{DNS64}{ELSEWHERE}[[dns64.rule]]\n{lines}");
    let covered = "never matches: the rule at line 6 matches everything before it; move this rule before it";
    let second = "[[dns64.rule]]\nnames = \"a.corp.example\"\nsynthesis = \"never\"\n";
    warnings(
        &rule(&format!("names = \"corp.example\"\n{second}")),
        &[&format!("sixway.toml:8  dns64.rule[1]  {covered}")],
    );
    warnings(
        &rule(&format!("synthesis = \"always\"\n{second}")),
        &[&format!("sixway.toml:8  dns64.rule[1]  {covered}")],
    );
    warnings(&rule(&format!("names = \"orp.example\"\n{second}")), &[]);
    warnings(&rule(&format!("addresses = \"10.0.0.0/8\"\n{second}")), &[]);
    warnings(&rule(&format!("clients = \"2001:db8:2::/48\"\n{second}")), &[]);
    let clients =
        rule("clients = \"2001:db8:2::/48\"\n").replace("listen", "allow = \"2001:db8:1::/48\"\nlisten");
    warnings(
        &clients,
        &["sixway.toml:7  dns64.rule[0]  never matches: its clients are refused; add them to dns64.allow"],
    );
    warnings(
        &rule("names = \"ipv4only.arpa\"\n"),
        &["sixway.toml:6  dns64.rule[0]  never matches: ipv4only.arpa is answered specially (RFC 8880 §7.1)"],
    );
}

#[test]
fn rules_that_contradict_themselves_are_reported() {
    let rule = "[[dns64.rule]]\n";
    fault(
        &format!("{rule}synthesis = \"never\"\nprefix = \"64:ff9b::/96\""),
        "rule[0].prefix = \"64:ff9b::/96\"  cannot be combined with synthesis = \"never\"; remove one",
    );
    fault(
        &format!("{rule}addresses = \"10.0.0.0/8\"\nsynthesis = \"always\""),
        "rule[0].synthesis = \"always\"  cannot be combined with addresses, because it is decided before A records are known; remove one",
    );
    fault(&format!("{rule}clients = []"), "rule[0].clients  is empty; write prefixes, or remove it");
    fault(
        &format!("{rule}clients = \"lan\""),
        "rule[0].clients = \"lan\"  is not a prefix; write one such as 2001:db8:1::/64 or 192.0.2.0/24",
    );
    fault(
        &format!("{rule}prefix = \"2001:db8::/95\""),
        "rule[0].prefix = \"2001:db8::/95\"  2001:db8::/95: the length is 95; it must be 32, 40, 48, 56, 64 or 96 (RFC 6052 §2.2)",
    );
}

#[test]
fn too_many_prefixes_are_reported() {
    let prefixes: Vec<String> = (0..9).map(|number| format!("\"2001:db8:64:{number}::/96\"")).collect();
    faults(
        &format!("{DNS64}translated_elsewhere = true\nprefix = [{}]\n", prefixes.join(", ")),
        &["sixway.toml:5  dns64.prefix  has 9 prefixes; write at most 8"],
    );
}

#[test]
fn bounds_and_words_that_make_no_sense_are_reported() {
    fault(
        "max_ttl = \"1 h\"\nmax_negative_ttl = \"2 h\"",
        "max_negative_ttl = \"2 h\"  is more than max_ttl, 1 h; lower it, or raise max_ttl",
    );
    fault("burst = 10", "burst = 10  has no effect without queries_per_second; set that too, or remove this");
    fault(
        "queries_per_second = 0",
        "queries_per_second = 0  is out of range; write 1 to 1,000,000, or remove the key for no limit",
    );
    fault("stale = \"5 s\"", "stale = \"5 s\"  is out of range; write 30 s to 30 d");
    fault(
        "allow = []",
        "allow  is empty: every client would be refused; write your clients' prefixes, or remove it",
    );
    fault(
        "reverse = \"cnam\"",
        "reverse = \"cnam\"  is not \"cname\" or \"ptr\" or \"off\", and not a domain name; write one of them",
    );
    fault("reverse = \"a..b\"", "reverse = \"a..b\"  is not a domain name; write one such as site.example");
}

#[test]
fn what_lets_everyone_or_nobody_ask_is_warned_of() {
    let open = "lets everyone query: an open resolver is abused for reflection attacks (RFC 5358); write your clients' prefixes";
    warning("allow = \"::/0\"", &format!("allow = \"::/0\"  ::/0 {open}"));
    warning("allow = [\"::1\", \"0.0.0.0/0\"]", &format!("allow  0.0.0.0/0 {open}"));
    for (any, socket) in [("::", "[::]:53"), ("0.0.0.0", "0.0.0.0:53")] {
        let every = format!("{}{ELSEWHERE}", DNS64.replace("2001:db8:ffff::7", any));
        let said = format!(
            "sixway.toml:1  dns64.allow  is missing: {socket} is every address of this host, those towards the Internet too; write your clients' prefixes, such as allow = [\"2001:db8:1::/64\"]"
        );
        faults(&every, &[&said]);
        warnings(&format!("{every}allow = \"2001:db8:ffff::/64\"\n"), &[]);
    }
    let mut alone = host();
    alone.addresses[1].length = 128;
    alone.addresses.remove(0);
    let (_, told) =
        Config::parse("sixway.toml", &format!("{DNS64}{ELSEWHERE}"), &alone, &mut no_files).unwrap();
    assert_eq!(
        lines(&told),
        [
            "sixway.toml:1  dns64.allow  is not set, and only this host may query: the networks of the listening addresses have no other hosts; write your clients' prefixes"
        ]
    );
}

#[test]
fn keys_without_effect_are_warned_of() {
    let dnssec = "[dns64.dnssec]\n";
    warning(
        &format!("{dnssec}insecure = \"lan\""),
        "dnssec.insecure = \"lan\"  has no effect without validate = true",
    );
    for key in ["dnssec_ok = \"pass_on\"", "ad_without_do = true"] {
        let what = "has no effect without validate = true or trust_upstream_ad = true";
        warning(&format!("{dnssec}{key}"), &format!("dnssec.{key}  {what}"));
        warnings(&format!("{DNS64}{ELSEWHERE}{dnssec}validate = true\n{key}\n"), &[]);
    }
    for key in ["dnssec_ok = \"synthesise\"", "ad_without_do = false", "checking_disabled = \"pass_on\""] {
        warnings(&format!("{DNS64}{ELSEWHERE}{dnssec}{key}\n"), &[]);
    }
    for reverse in ["ptr", "off"] {
        warning(
            &format!("reverse = \"{reverse}\"\nreverse_ttl = \"1 h\""),
            "reverse_ttl = \"1 h\"  has no effect with reverse = \"ptr\" or \"off\"; remove it",
        );
    }
    for reverse in ["cname", "nat64.example"] {
        warnings(&format!("{DNS64}{ELSEWHERE}reverse = \"{reverse}\"\nreverse_ttl = \"1 h\"\n"), &[]);
    }
}

#[test]
fn an_upstream_through_a_prefix_that_nothing_translates_is_warned_of() {
    let upstream = |prefix: &str| DNS64.replace(" }]", &format!(", through = \"{prefix}\" }}]"));
    let other = upstream("2001:db8:1::/96");
    let said = "sixway.toml:12  dns64.upstream[0].through = \"2001:db8:1::/96\"  no translator of this gateway has prefix 2001:db8:1::/96; queries through it get no answer, unless another machine translates it (translated_elsewhere = true)";
    warnings(&format!("{OWN}{POOL}{NAT64}{other}"), &[said]);
    warnings(&format!("{OWN}{POOL}{NAT64}{other}translated_elsewhere = true\n"), &[]);
    warnings(&format!("{OWN}{POOL}{NAT64}{}", upstream("2001:db8:64::/96")), &[]);
}

#[test]
fn exclusions_that_hold_the_prefix_are_warned_of() {
    warning(
        "exclude = \"64:ff9b::/64\"",
        "exclude = \"64:ff9b::/64\"  64:ff9b::/64 overlaps 64:ff9b::/96, the prefix for synthesis: existing AAAA records within it are ignored",
    );
}

#[test]
fn cookies_and_designated_resolvers_need_what_they_are_made_of() {
    fault("cookie_secret = \"cookies\"", "cookie_secret = \"cookies\"  cannot be read: no file cookies");
    warning(
        "designated_name = \"dns.example\"",
        "designated_name = \"dns.example\"  has no effect without listen_tls or listen_https; remove it",
    );
}

#[test]
fn dnssec_that_does_not_hold_is_reported() {
    let dnssec = "[dns64.dnssec]\n";
    fault(
        &format!("{dnssec}validate = true\ntrust_anchor = \"root.key\""),
        "dnssec.trust_anchor = \"root.key\"  cannot be read: no file root.key",
    );
    warning(
        &format!("{dnssec}trust_anchor_state = \"off\""),
        "dnssec.trust_anchor_state = \"off\"  has no effect without validate = true",
    );
    warning(
        &format!("{dnssec}validate = true\ntrust_upstream_ad = true"),
        "dnssec.trust_upstream_ad = true  has no effect with validate = true: answers are validated here",
    );
    warnings(
        &format!("{DNS64}{ELSEWHERE}{dnssec}trust_upstream_ad = true\n"),
        &[
            "sixway.toml:1  dns64.dnssec.trust_upstream_ad  the AD bit of 198.51.100.53:53 is received over udp: anyone on the path can set it (RFC 6840 §5.8); use TLS, or validate = true",
        ],
    );
    let text = format!("{DNS64}{ELSEWHERE}{dnssec}validate = true\ntrust_anchor = \"root.key\"\n");
    let mut empty = |_: &Path| Ok("; nothing\n".to_owned());
    let told = Config::parse("sixway.toml", &text, &host(), &mut empty).unwrap_err().to_string();
    assert!(told.contains("has no records; write DS or DNSKEY records into it, one per line"), "{told}");
    let mut wrong = |_: &Path| Ok("\n. IN A 192.0.2.1\n".to_owned());
    let told = Config::parse("sixway.toml", &text, &host(), &mut wrong).unwrap_err().to_string();
    assert!(told.starts_with("root.key:2  "), "{told}");
    assert_eq!(good(&format!("{DNS64}{ELSEWHERE}")).dns64.unwrap().dnssec.anchors.len(), 2, "the root's");
}

#[test]
fn networks_with_customers_of_their_own_want_the_length_of_their_prefixes() {
    let said = |wide: &str| {
        format!(
            "client_prefix_length  is not set, and allow has {wide}, which is larger than one site: a customer with a /56 counts as 256 clients, with 256 shares and rates; write the prefix length of a customer, or 64"
        )
    };
    let text = format!("{DNS64}{ELSEWHERE}allow = [\"10.0.0.0/8\", \"2001:db8::/47\"]\n");
    warnings(&text, &[&format!("sixway.toml:1  dns64.{}", said("2001:db8::/47"))]);
    for quiet in [
        "allow = [\"2001:db8::/48\", \"fd00::/8\", \"fe80::/10\", \"10.0.0.0/8\"]\n",
        "allow = [\"2001:db8::/32\"]\nclient_prefix_length = 56\n",
        "allow = [\"2001:db8::/32\"]\nclient_prefix_length = 64\n",
    ] {
        warnings(&format!("{DNS64}{ELSEWHERE}{quiet}"), &[]);
    }
}
