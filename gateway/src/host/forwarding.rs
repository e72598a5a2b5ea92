//! Which kernel settings (`/proc/sys`) the gateway needs: its own device's, which vanish with it, and the host's, so
//! that packets pass between the device and the other interfaces.

use std::path::{Path, PathBuf};

/// A setting under `/proc/sys` and the value wanted. Wanting the value it has is a wish too: what is done behind it may
/// change it, and then it is restored.
pub type Setting = (PathBuf, String);

/// The families that this host must forward between its interfaces for the mechanisms' packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// IPv4: translators need it. Tunnel packets are this host's own, or come by the device, which forwards.
    pub v4: bool,
    /// IPv6: all but hosts at the end of a tunnel need it.
    pub v6: bool,
}

/// The device's own settings, to be made before it is up. `root` is `/proc/sys`.
pub fn device_settings(root: &Path, device: &str) -> Vec<Setting> {
    let v4 = |name: &str| root.join("net/ipv4/conf").join(device).join(name);
    let v6 = |name: &str| root.join("net/ipv6/conf").join(device).join(name);
    let wanted = [
        // Packets that we make with one of the host's own addresses as source are dropped otherwise, without a counter.
        (v4("accept_local"), "1"),
        // Sources of translated packets need not be routed back into the device.
        (v4("rp_filter"), "0"),
        (v4("forwarding"), "1"),
        // Its routes are looked up while no process reads from it.
        (v4("ignore_routes_with_linkdown"), "0"),
        (v6("ignore_routes_with_linkdown"), "0"),
        (v6("disable_ipv6"), "0"),
        // The host has no business of its own on the device: no link-local address, MLD or router solicitations.
        (v6("addr_gen_mode"), "1"),
        (v6("accept_ra"), "0"),
        (v6("forwarding"), "1"),
    ];
    wanted.into_iter().map(|(path, value)| (path, value.into())).collect()
}

/// The host's settings, in the order in which they are made; they are restored in the reverse order. Only what is not
/// right already is listed, and nothing of `device`. `root` is `/proc/sys`.
pub fn host_settings(root: &Path, device: &str, forwarding: Forwarding) -> Vec<Setting> {
    let mut settings = Vec::new();
    if forwarding.v4 {
        forward_v4(&root.join("net/ipv4/conf"), &mut settings);
    }
    if forwarding.v6 {
        forward_v6(&root.join("net/ipv6/conf"), &mut settings);
    }
    loosen_rp_filter(&root.join("net/ipv4/conf"), &mut settings);
    let of_device = |path: &Path| path.parent().is_some_and(|interface| interface.ends_with(device));
    settings.retain(|(path, _)| !of_device(path));
    settings
}

/// Neighbour solicitations are answered for proxy entries only where this is set. An interface that is missing has no settings.
pub fn proxy_ndp_settings(root: &Path, interfaces: &[String]) -> Vec<Setting> {
    let setting = |interface: &String| root.join("net/ipv6/conf").join(interface).join("proxy_ndp");
    let wanted = interfaces.iter().map(setting).filter(|path| value(path) == Some(0));
    wanted.map(|path| (path, "1".into())).collect()
}

/// IPv4 looks at the flag of the interface that a packet comes in by. `all` is left alone: writing it changes every
/// interface, and `accept_redirects`.
fn forward_v4(conf: &Path, settings: &mut Vec<Setting>) {
    for interface in interfaces(conf) {
        let path = conf.join(&interface).join("forwarding");
        if interface != "lo" && value(&path) == Some(0) {
            settings.push((path, "1".into()));
        }
    }
}

/// IPv6 looks at `all`. Writing it changes every interface, and makes the kernel forget default routes learnt from
/// advertisements unless `accept_ra` is 2.
fn forward_v6(conf: &Path, settings: &mut Vec<Setting>) {
    let all = conf.join("all/forwarding");
    if value(&all) != Some(0) {
        return;
    }
    for interface in interfaces(conf) {
        let accept_ra = conf.join(&interface).join("accept_ra");
        let forwarding = conf.join(&interface).join("forwarding");
        match value(&forwarding) {
            Some(0) if interface != "lo" && value(&accept_ra) == Some(1) => {
                settings.push((accept_ra, "2".into()))
            }
            Some(0) | None => {}
            // It forwards already: that is to be true again behind the reset of `all`.
            Some(before) => settings.push((forwarding, before.to_string())),
        }
    }
    settings.push((all, "1".into()));
}

/// The kernel takes the greater of `all` and an interface's own: `all` becomes 0, and every other interface keeps what it
/// had in effect.
fn loosen_rp_filter(conf: &Path, settings: &mut Vec<Setting>) {
    let all = conf.join("all/rp_filter");
    let Some(effective) = value(&all).filter(|effective| *effective > 0) else { return };
    for interface in interfaces(conf) {
        let path = conf.join(interface).join("rp_filter");
        if value(&path).is_some_and(|own| own < effective) {
            settings.push((path, effective.to_string()));
        }
    }
    settings.push((all, "0".into()));
}

/// The interfaces that have settings, by name, and `default` behind them: writing it changes every interface whose own was
/// never written.
fn interfaces(conf: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(conf) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name != "all").collect();
    names.sort_by_key(|name| (name == "default", name.clone()));
    names
}

fn value(path: &Path) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A `/proc/sys` with these settings of interfaces, in a directory of its own.
    struct Sys(PathBuf);

    impl Sys {
        fn with(name: &str, settings: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("sixway-sys-{}-{name}", std::process::id()));
            for (path, value) in settings {
                let path = root.join("net").join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{value}\n")).unwrap();
            }
            Self(root)
        }

        fn host(&self) -> Vec<(String, String)> {
            let name =
                |path: PathBuf| path.strip_prefix(self.0.join("net")).unwrap().to_str().unwrap().to_owned();
            host_settings(&self.0, "sixway0", Forwarding { v4: true, v6: true })
                .into_iter()
                .map(|(path, value)| (name(path), value))
                .collect()
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect()
    }

    #[test]
    fn a_host_that_forwards_already_is_left_alone() {
        let sys = Sys::with(
            "forwards",
            &[
                ("ipv4/conf/all/forwarding", "1"),
                ("ipv4/conf/eth0/forwarding", "1"),
                ("ipv4/conf/lo/forwarding", "0"),
                ("ipv4/conf/all/rp_filter", "0"),
                ("ipv4/conf/eth0/rp_filter", "2"),
                ("ipv6/conf/all/forwarding", "1"),
                ("ipv6/conf/eth0/forwarding", "0"),
                ("ipv6/conf/eth0/accept_ra", "1"),
            ],
        );
        assert_eq!(sys.host(), []);
    }

    #[test]
    fn default_routes_from_advertisements_survive_forwarding() {
        let sys = Sys::with(
            "accept-ra",
            &[
                ("ipv6/conf/all/forwarding", "0"),
                ("ipv6/conf/eth0/forwarding", "0"),
                ("ipv6/conf/eth0/accept_ra", "1"),
                ("ipv6/conf/eth1/forwarding", "1"),
                ("ipv6/conf/eth1/accept_ra", "1"),
                ("ipv6/conf/eth2/forwarding", "0"),
                ("ipv6/conf/eth2/accept_ra", "0"),
            ],
        );
        let wanted = [
            ("ipv6/conf/eth0/accept_ra", "2"),
            ("ipv6/conf/eth1/forwarding", "1"),
            ("ipv6/conf/all/forwarding", "1"),
        ];
        assert_eq!(sys.host(), pairs(&wanted));
    }

    #[test]
    fn every_interface_keeps_the_reverse_path_filter_it_had_in_effect() {
        let sys = Sys::with(
            "rp-filter",
            &[
                ("ipv4/conf/all/rp_filter", "1"),
                ("ipv4/conf/eth0/rp_filter", "0"),
                ("ipv4/conf/eth1/rp_filter", "2"),
            ],
        );
        assert_eq!(sys.host(), pairs(&[("ipv4/conf/eth0/rp_filter", "1"), ("ipv4/conf/all/rp_filter", "0")]));
    }

    #[test]
    fn ipv4_forwarding_is_set_by_interface() {
        let sys = Sys::with(
            "ipv4",
            &[
                ("ipv4/conf/all/forwarding", "0"),
                ("ipv4/conf/default/forwarding", "0"),
                ("ipv4/conf/eth0/forwarding", "0"),
                ("ipv4/conf/eth1/forwarding", "1"),
                ("ipv4/conf/lo/forwarding", "0"),
                ("ipv4/conf/sixway0/forwarding", "0"),
            ],
        );
        let wanted = [("ipv4/conf/eth0/forwarding", "1"), ("ipv4/conf/default/forwarding", "1")];
        assert_eq!(sys.host(), pairs(&wanted));
    }
}
