//! MTUs: of the device, the links on both sides of it, and the tunnels over them.

use super::facts::Facts;
use super::finding::Finding;
use crate::config::{Config, Encapsulation, LocalAddress, OuterFragments, TunnelMtu};
use std::collections::BTreeSet;

const CHECK: &str = "mtu";
/// RFC 8200 §5.
const MIN_IPV6: u32 = 1_280;
/// An IPv6 header without options is so much longer than that of IPv4, and the outer header of protocol 41 is as long.
const GROWTH: u32 = 20;

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    if !config.needs_device() {
        return Vec::new();
    }
    let mut findings = below_minimum(config, facts);
    findings.extend(device(config, facts));
    findings.extend(tunnels(config).into_iter().filter_map(|tunnel| outer(&tunnel, facts)));
    if findings.is_empty() {
        findings.push(fine(config, facts));
    }
    findings
}

/// The links that packets come from and leave by, without the device.
fn links<'f>(config: &Config, facts: &'f Facts) -> BTreeSet<&'f str> {
    let outside = facts.uplink4.iter().chain(&facts.uplink6).map(|hop| hop.interface.as_str());
    let inside = facts.inside.iter().map(|(_, interface)| interface.as_str());
    outside.chain(inside).filter(|name| *name != config.tun.name).collect()
}

/// The kernel has no IPv6 on such a link.
fn below_minimum(config: &Config, facts: &Facts) -> Vec<Finding> {
    let inside = facts.inside.iter().map(|(_, interface)| interface.as_str());
    let links: BTreeSet<&str> =
        facts.uplink6.iter().map(|hop| hop.interface.as_str()).chain(inside).collect();
    let small = links.into_iter().filter(|name| *name != config.tun.name);
    let small = small.filter_map(|name| Some((name, *facts.mtus.get(name)?)));
    small
        .filter(|(_, mtu)| *mtu < MIN_IPV6)
        .map(|(name, mtu)| {
            Finding::fault(
                CHECK,
                format!("{name} has an MTU of {mtu} octets, and IPv6 needs {MIN_IPV6} (RFC 8200 §5)"),
                format!("ip link set {name} mtu {MIN_IPV6}"),
            )
        })
        .collect()
}

fn device(config: &Config, facts: &Facts) -> Option<Finding> {
    let name = &config.tun.name;
    let mtu = facts.mtus.get(name).copied().unwrap_or_else(|| config.tun.mtu.into());
    let links = links(config, facts);
    let smallest = links.iter().filter_map(|name| facts.mtus.get(*name)).min()?;
    // A device of the largest MTU has no counterpart.
    let wanted = (*smallest).min(u32::from(u16::MAX));
    (mtu < wanted).then(|| {
        Finding::warning(
            CHECK,
            format!("{name} has an MTU of {mtu} octets, and {} of {smallest} or more: larger packets are answered with Packet Too Big", listed(&links)),
            format!("tun.mtu = {wanted} in the configuration"),
        )
    })
}

fn listed(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// A tunnel of protocol 41: its name, its end, and its encapsulation.
type Tunnel<'c> = (&'c str, &'c LocalAddress, Encapsulation);

fn tunnels(config: &Config) -> Vec<Tunnel<'_>> {
    let six_to_four = config.six_to_four.iter().map(|it| (&*it.name, &it.local, it.encapsulation));
    let six_rd = config.six_rd.iter().map(|it| (&*it.name, &it.local, it.encapsulation));
    let isatap = config.isatap.iter().map(|it| (&*it.name, &it.local, it.encapsulation));
    let configured = config.configured_tunnels.iter().map(|it| (&*it.name, &it.local, it.encapsulation));
    six_to_four.chain(six_rd).chain(isatap).chain(configured).collect()
}

/// Whether a tunnel's largest packet fits into the link that it leaves by. A dynamic MTU adapts itself.
fn outer((tunnel, local, encapsulation): &Tunnel<'_>, facts: &Facts) -> Option<Finding> {
    let uplink = facts.uplink4.as_ref().map(|hop| hop.interface.as_str());
    // An address on `lo` says nothing of the link.
    let link = local.holder.as_deref().filter(|name| *name != "lo").or(uplink)?;
    let mtu = *facts.mtus.get(link)?;
    let inner = match encapsulation.mtu {
        TunnelMtu::Static(inner) => u32::from(inner),
        TunnelMtu::Dynamic => MIN_IPV6,
    };
    if inner + GROWTH <= mtu {
        return None;
    }
    let then = match encapsulation.outer_fragments {
        OuterFragments::Allowed => "outer packets are fragmented",
        OuterFragments::Never => "larger packets are answered with Packet Too Big, or dropped",
    };
    let what = format!(
        "{tunnel}: {inner} octets and {GROWTH} of the outer header exceed the MTU of {link}, {mtu}: {then}"
    );
    let cure = match mtu.saturating_sub(GROWTH) {
        fits if fits >= MIN_IPV6 => format!("mtu = {fits} in the section of {tunnel}"),
        _ => format!("ip link set {link} mtu {}, if the network there can carry it", MIN_IPV6 + GROWTH),
    };
    Some(Finding::warning(CHECK, what, cure))
}

fn fine(config: &Config, facts: &Facts) -> Finding {
    let name = &config.tun.name;
    let mtu = facts.mtus.get(name).copied().unwrap_or_else(|| config.tun.mtu.into());
    let lan = facts.inside.iter().filter_map(|(_, lan)| facts.mtus.get(lan)).min().copied();
    let fits = lan.unwrap_or(mtu).min(mtu).saturating_sub(GROWTH);
    let what = match config.translates() {
        true => format!(
            "{name} has {mtu} octets; IPv4 packets of up to {fits} fit when they have grown by {GROWTH} octets, larger ones are answered with Fragmentation Needed"
        ),
        false => format!("{name} has {mtu} octets, no less than the links"),
    };
    Finding::fine(CHECK, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::host::Hop;

    const NAT64: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8::/32\"]\npool = \"main\"\n";

    fn facts(mtus: &[(&str, u32)]) -> Facts {
        Facts {
            uplink4: Some(Hop { interface: "eth0".into(), gateway: None }),
            uplink6: Some(Hop { interface: "eth0".into(), gateway: None }),
            inside: vec![("2001:db8::5157".parse().unwrap(), "lan0".into())],
            mtus: mtus.iter().map(|(name, mtu)| ((*name).to_owned(), *mtu)).collect(),
            ..Facts::default()
        }
    }

    fn found(text: &str, mtus: &[(&str, u32)]) -> Finding {
        let mut findings = check(&crate::sample::config(text), &facts(mtus));
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    #[test]
    fn equal_mtus_are_fine_and_the_growth_is_told() {
        let finding = found(NAT64, &[("eth0", 1_500), ("lan0", 1_500), ("sixway0", 1_500)]);
        assert_eq!(finding.verdict, Verdict::Fine);
        assert!(finding.what.contains("IPv4 packets of up to 1480 fit"), "{}", finding.what);
    }

    #[test]
    fn a_link_without_room_for_ipv6_is_a_fault() {
        let finding = found(NAT64, &[("eth0", 1_500), ("lan0", 1_200), ("sixway0", 1_500)]);
        assert_eq!(finding.verdict, Verdict::Fault);
        assert_eq!(finding.cure.as_deref(), Some("ip link set lan0 mtu 1280"));
    }

    #[test]
    fn a_device_that_is_smaller_than_both_links_is_found_with_its_value() {
        let finding = found(NAT64, &[("eth0", 9_000), ("lan0", 4_000), ("sixway0", 1_500)]);
        assert_eq!(finding.verdict, Verdict::Warning);
        assert_eq!(finding.cure.as_deref(), Some("tun.mtu = 4000 in the configuration"));
        let mixed = [("eth0", 1_492), ("lan0", 9_000), ("sixway0", 1_500)];
        assert_eq!(found(NAT64, &mixed).verdict, Verdict::Fine);
    }

    #[test]
    fn a_tunnel_that_does_not_fit_into_its_link_is_found_with_its_value() {
        let text = "[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\nmtu = 1480\n";
        let mtus = |eth0| [("eth0", eth0), ("lan0", 1_500), ("sixway0", 1_500)];
        assert_eq!(found(text, &mtus(1_500)).verdict, Verdict::Fine);
        let finding = found(text, &mtus(1_492));
        assert!(finding.what.contains("outer packets are fragmented"), "{}", finding.what);
        assert_eq!(finding.cure.as_deref(), Some("mtu = 1472 in the section of six_to_four"));
    }
}
