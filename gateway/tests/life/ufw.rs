//! What ufw 0.36 loads by `ufw enable` with its defaults (deny incoming, deny routed), as its `before.rules`, `user.rules` and `after.rules`
//! write it, without what it logs.

/// The skeleton of either family: chains that are empty, jumps, and the policies.
fn skeleton(prefix: &str, before: &str, family: &str) -> String {
    let mut text = String::from("*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n");
    let chains = ["before-logging", "before", "after", "after-logging", "reject", "track"];
    let hooks = ["input", "forward", "output"];
    for (chain, hook) in chains.iter().flat_map(|chain| hooks.iter().map(move |hook| (chain, hook))) {
        text += &format!(":{prefix}-{chain}-{hook} - [0:0]\n");
    }
    for name in
        ["logging-deny", "logging-allow", "skip-to-policy-input", "user-input", "user-forward", "user-output"]
    {
        text += &format!(":{prefix}-{name} - [0:0]\n");
    }
    for (chain, hook) in chains.iter().flat_map(|chain| hooks.iter().map(move |hook| (chain, hook))) {
        text += &format!("-A {} -j {prefix}-{chain}-{hook}\n", hook.to_uppercase());
    }
    text += &format!("-A {prefix}-skip-to-policy-input -j DROP\n{before}");
    text += &format!("-A {prefix}-before-input -j {prefix}-user-input\n");
    text += &format!("-A {prefix}-before-forward -j {prefix}-user-forward\n");
    text += &format!("-A {prefix}-before-output -j {prefix}-user-output\n");
    for (protocol, port) in
        [("udp", 137), ("udp", 138), ("tcp", 139), ("tcp", 445), ("udp", dhcp_port(family))]
    {
        text += &format!(
            "-A {prefix}-after-input -p {protocol} -m {protocol} --dport {port} -j {prefix}-skip-to-policy-input\n"
        );
    }
    for protocol in ["tcp", "udp"] {
        text += &format!("-A {prefix}-track-output -p {protocol} -m conntrack --ctstate NEW -j ACCEPT\n");
    }
    text + "COMMIT\n"
}

/// DHCP's port of the family.
fn dhcp_port(family: &str) -> u16 {
    if family == "ip" { 67 } else { 546 }
}

fn states(prefix: &str) -> String {
    format!(
        "-A {prefix}-before-input -i lo -j ACCEPT\n-A {prefix}-before-output -o lo -j ACCEPT\n\
         -A {prefix}-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         -A {prefix}-before-output -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         -A {prefix}-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
         -A {prefix}-before-input -m conntrack --ctstate INVALID -j {prefix}-logging-deny\n\
         -A {prefix}-before-input -m conntrack --ctstate INVALID -j DROP\n"
    )
}

/// For iptables-restore.
pub fn ipv4() -> String {
    let mut before = states("ufw");
    for (chain, kind) in
        ["input", "forward"].iter().flat_map(|chain| [3, 11, 12, 8].map(|kind| (chain, kind)))
    {
        before += &format!("-A ufw-before-{chain} -p icmp -m icmp --icmp-type {kind} -j ACCEPT\n");
    }
    before += "-N ufw-not-local\n-A ufw-before-input -p udp -m udp --sport 67 --dport 68 -j ACCEPT\n-A ufw-before-input -j ufw-not-local\n\
               -A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN\n-A ufw-not-local -m addrtype --dst-type MULTICAST -j RETURN\n\
               -A ufw-not-local -m addrtype --dst-type BROADCAST -j RETURN\n-A ufw-not-local -j DROP\n\
               -A ufw-before-input -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT\n";
    skeleton("ufw", &before, "ip")
}

/// For ip6tables-restore.
pub fn ipv6() -> String {
    let mut before = String::from(
        "-A ufw6-before-input -m rt --rt-type 0 -j DROP\n-A ufw6-before-forward -m rt --rt-type 0 -j DROP\n",
    );
    before += &states("ufw6");
    for kind in [1, 2, 3, 4, 128, 129, 133, 134, 135, 136] {
        before += &format!("-A ufw6-before-input -p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT\n");
    }
    for kind in [1, 2, 3, 4, 128, 129] {
        before += &format!("-A ufw6-before-forward -p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT\n");
    }
    skeleton("ufw6", &before, "ip6")
}
