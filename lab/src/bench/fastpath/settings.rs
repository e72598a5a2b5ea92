//! Sixway's configurations for the fast path's benchmark, and how its fast path is set.

/// Where Sixway's fast path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nowhere.
    Off,
    /// At tc ingress.
    Tc,
    /// In the driver.
    Xdp,
}

/// Capacity of the flow table, unless stated otherwise.
pub const FLOWS: u32 = 1 << 20;

/// The section `[fastpath]` for a gateway between in0 and out0. `packets`: after how many a session moves to the fast path; `None`: the default.
pub fn section(mode: Mode, packets: Option<u32>) -> String {
    let mode = match mode {
        Mode::Off => return String::new(),
        Mode::Tc => "tc",
        Mode::Xdp => "xdp",
    };
    let packets = packets.map_or(String::new(), |packets| format!("packets = {packets}\n"));
    format!("\n[fastpath]\nmode = \"{mode}\"\ninterfaces = [\"in0\", \"out0\"]\nflows = {FLOWS}\n{packets}")
}

const TUN: &str = "[tun]\nname = \"sixway0\"\nmtu = 1500\n";

const GATEWAY: &str =
    "[gateway]\nworkers = 1\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n";

/// Stateful NAT64 for some thousand hosts with a thousand flows each; each is a subscriber.
pub fn nat64(mode: Mode, packets: Option<u32>) -> String {
    let nat64 = "[[pool]]\nname = \"main\"\naddresses = [\"198.18.0.0/26\"]\nports = \"1024-65535\"\n\n\
                 [nat64]\nprefix = \"64:ff9b::/96\"\npool = \"main\"\ntranslate_non_global = true\nsubscriber_prefix_length = 128\n";
    format!("{TUN}\n{nat64}\n{GATEWAY}{}", section(mode, packets))
}

/// NAT44 for the client's network, and for the hosts behind it.
pub fn nat44(mode: Mode, packets: Option<u32>) -> String {
    let nat44 = "[[pool]]\nname = \"main\"\naddresses = [\"198.18.0.0/26\"]\nports = \"1024-65535\"\n\n\
                 [nat44]\ninside = [\"192.0.2.0/25\", \"10.0.0.0/16\"]\npool = \"main\"\n";
    format!("{TUN}\n{nat44}\n{GATEWAY}{}", section(mode, packets))
}

/// The host 2001:db8:c::1:0 is 198.18.1.2.
pub fn siit(mode: Mode) -> String {
    let siit = "[siit]\nprefix = \"2001:db8:64::/96\"\neam = [{ ipv4 = \"198.18.1.2/32\", ipv6 = \"2001:db8:c::1:0/128\" }]\n";
    format!("{TUN}\n{siit}\n{GATEWAY}{}", section(mode, None))
}

/// The relay 192.0.2.1.
pub fn relay(mode: Mode) -> String {
    let relay = "[six_to_four]\nrole = \"relay\"\naddress = \"192.0.2.1\"\nmtu = 1480\n";
    format!("[tun]\nname = \"sixway0\"\n\n{relay}\n{GATEWAY}{}", section(mode, None))
}

/// The router of the site of 192.0.2.8, its LAN being 2002:c000:208:1::/64.
pub fn router(mode: Mode) -> String {
    let router =
        "[six_to_four]\nrole = \"router\"\naddress = \"192.0.2.8\"\nrelay = \"192.0.2.1\"\nmtu = 1480\n";
    let gateway = GATEWAY.replace("254", "253").replace("fe\"", "fd\"");
    format!("[tun]\nname = \"sixway0\"\n\n{router}\n{gateway}{}", section(mode, None))
}
