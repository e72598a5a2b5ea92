//! Configurations of the authority and of the resolvers: one thread each, all files in the network's folder, no rights given up, no control
//! socket. `FOLDER` is that folder, `AUTHORITY` the authority's address, `LISTEN` the resolver's.

/// Without its rate limit, which would ruin every figure.
pub const NSD: &str = r#"server:
  server-count: 1
  ip-address: AUTHORITY
  username: ""
  database: ""
  pidfile: ""
  zonesdir: "FOLDER"
  xfrdir: "FOLDER"
  xfrdfile: ""
  zonelistfile: "FOLDER/zone.list"
  rrl-ratelimit: 0
  round-robin: no
remote-control:
  control-enable: no
"#;

/// Root hints for all peers.
pub const HINTS: &str = ". 3600 NS ns.test.\nns.test. 3600 A AUTHORITY\n";

/// Caches large enough for 100,000 names; the defaults of 4 MB are not.
pub const UNBOUND: &str = r#"server:
  num-threads: 1
  interface: LISTEN
  access-control: ::/0 allow
  username: ""
  chroot: ""
  directory: "FOLDER"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  root-hints: "FOLDER/hints"
  module-config: "dns64 MODULES"
  ANCHOR
  dns64-prefix: 64:ff9b::/96
  msg-cache-size: 128m
  rrset-cache-size: 256m
  local-zone: "test." nodefault
remote-control:
  control-enable: no
"#;

/// Its views of private networks are switched off, because the zones are ours.
pub const BIND: &str = r#"options {
  directory "FOLDER";
  pid-file none;
  session-keyfile none;
  listen-on { none; };
  listen-on-v6 { LISTEN; };
  recursion yes;
  allow-query { any; };
  allow-recursion { any; };
  empty-zones-enable no;
  dnssec-validation VALIDATION;
  dns64 64:ff9b::/96 { clients { any; }; mapped { any; }; exclude { ::ffff:0:0/96; }; };
};
controls { };
ANCHOR
zone "." { type hint; file "FOLDER/hints"; };
"#;

/// `dont-query` would keep it from an authority at an address for documentation.
pub const RECURSOR: &str = "local-address=LISTEN
allow-from=::/0
daemon=no
config-dir=FOLDER
socket-dir=FOLDER
hint-file=FOLDER/hints
dont-query=
threads=1
pdns-distributes-queries=no
dns64-prefix=64:ff9b::/96
dnssec=VALIDATION
security-poll-suffix=
serve-rfc1918=no
disable-syslog=yes
loglevel=3
quiet=yes
write-pid=no
";

/// What makes a forwarder of unbound: behind its configuration.
pub const UNBOUND_FORWARDS: &str = r#"forward-zone:
  name: "."
  forward-addr: AUTHORITY
"#;

/// What makes a forwarder of BIND: among its options.
pub const BIND_FORWARDS: &str = "  forward only;\n  forwarders { AUTHORITY; };\n";

/// What makes a forwarder of pdns-recursor: behind its configuration.
pub const RECURSOR_FORWARDS: &str = "forward-zones-recurse=.=AUTHORITY\n";

/// Sixway's, with more keys of `[dns64]` and of `[dns64.dnssec]`. It asks the authority, as it would ask any resolver.
pub fn sixway(validates: bool, keys: &str, dnssec: &str) -> String {
    let validation = match validates {
        true => "validate = true\ntrust_anchor = \"FOLDER/anchor\"\ntrust_anchor_state = \"off\"\n",
        false => "",
    };
    format!(
        "{SIXWAY}{keys}\n[[dns64.upstream]]\naddress = \"AUTHORITY\"\n[dns64.dnssec]\n{validation}{dnssec}\n"
    )
}

const SIXWAY: &str = r#"[gateway]
[dns64]
listen = ["[LISTEN]:53"]
special_names = "upstream"
prefix = "64:ff9b::/96"
translated_elsewhere = true
"#;
