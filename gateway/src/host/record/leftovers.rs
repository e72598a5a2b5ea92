//! What was restored.

use std::fmt;

/// What was restored or removed of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Kernel settings restored.
    pub settings: usize,
    /// Kernel settings that stay, because another gateway runs in this network namespace.
    pub staying: usize,
    /// Settings of forwarding that stay, because another program enabled forwarding meanwhile.
    pub forwarding: usize,
    /// Routes removed.
    pub routes: usize,
    /// Addresses removed.
    pub addresses: usize,
    /// Proxy ARP entries removed.
    pub proxies: usize,
    /// Steering programs removed.
    pub programs: usize,
    /// The device that was removed.
    pub device: Option<String>,
    /// Whether the fast path was removed.
    pub fast_path: bool,
    /// Nothing was restored: the next process continues with the device and the fast path.
    pub adopted: bool,
    /// Whether the table in the packet filter was removed.
    pub table: bool,
    /// Whether its socket was removed.
    pub socket: bool,
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |count: usize, one: &str, many: &str, done: [&str; 2]| match count {
            0 => None,
            1 => Some(format!("{one} {}", done[0])),
            count => Some(format!("{count} {many} {}", done[1])),
        };
        let removed = ["was removed", "were removed"];
        let forwarding = "kept, because net.ipv4.ip_forward was enabled meanwhile";
        let staying = ["kept while another gateway is running", "kept while another gateway is running"];
        let parts = [
            several(self.settings, "a kernel setting", "kernel settings", ["restored", "restored"]),
            several(self.routes, "a route", "routes", removed),
            several(self.addresses, "an address", "addresses", removed),
            several(self.proxies, "a proxy neighbour entry", "proxy neighbour entries", removed),
            several(self.programs, "a steering program", "steering programs", removed),
            self.fast_path.then(|| "the fast path was removed".to_owned()),
            self.device.as_ref().map(|device| format!("{device} was removed")),
            self.table.then(|| "the packet filter's table was removed".to_owned()),
            self.socket.then(|| "its socket was removed".to_owned()),
            several(self.forwarding, "a setting of forwarding", "settings of forwarding", [forwarding; 2]),
            several(self.staying, "a kernel setting", "kernel settings", staying),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("nothing to restore") } else { f.write_str(&parts.join(", ")) }
    }
}

impl Leftovers {
    /// Whether nothing was restored.
    pub fn is_empty(&self) -> bool {
        *self
            == Self {
                staying: self.staying,
                forwarding: self.forwarding,
                adopted: self.adopted,
                ..Self::default()
            }
    }
}
