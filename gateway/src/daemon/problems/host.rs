//! Problems of the host: missing addresses, routers and VRFs, rules that drop packets, and changes by other programs.

use crate::daemon::tunnel_view::ANY_INTERFACE;
use crate::doctor::Verdict;
use crate::host::{SilentRouter, VrfTrouble};
use crate::view::{HostRow, ProblemKind, ProblemRow};

/// Settings that other programs change repeatedly.
pub(in crate::daemon) fn host(row: &HostRow) -> Vec<ProblemRow> {
    let left = row.left_alone.iter().map(|what| {
        ProblemRow::error(
            ProblemKind::LeftAlone,
            format!("not restored, because another program changes it repeatedly: {what}"),
            "end that program, or configure it to ignore the gateway's device and routes",
        )
    });
    left.collect()
}

/// Rules that drop the gateway's packets: the finding and, after an arrow, the remedy.
pub(in crate::daemon) fn packet_filter(findings: &[(Verdict, String)]) -> Vec<ProblemRow> {
    let row = |(verdict, finding): &(Verdict, String)| {
        let (text, advice) = finding.split_once(" → ").unwrap_or((finding, "`sixway doctor` has the rule"));
        match verdict {
            Verdict::Fault => ProblemRow::error(ProblemKind::PacketFilter, text, advice),
            Verdict::Warning | Verdict::NotChecked | Verdict::Fine => {
                ProblemRow::warning(ProblemKind::PacketFilter, text, advice)
            }
        }
    };
    findings.iter().map(row).collect()
}

/// Realms that are not in their VRFs.
pub(in crate::daemon) fn vrfs(troubles: &[(String, VrfTrouble)]) -> Vec<ProblemRow> {
    let row = |(realm, trouble): &(String, VrfTrouble)| {
        let text = format!("{realm}: {}; its hosts are not translated", trouble.what);
        ProblemRow::error(ProblemKind::Vrf, text, trouble.advice.clone())
    };
    troubles.iter().map(row).collect()
}

/// Tunnels and pools that wait for an address.
pub(in crate::daemon) fn awaited(tunnels: &[(String, String)]) -> Vec<ProblemRow> {
    let row = |(name, interface): &(String, String)| {
        ProblemRow::error(
            ProblemKind::AwaitedAddress,
            format!("{name}: waiting for an IPv4 address on {interface}"),
            match &**interface {
                ANY_INTERFACE => {
                    "configure it on an interface (ip -4 address); it then starts by itself".into()
                }
                _ => format!(
                    "check that {interface} is up and gets one (ip -4 address); it then starts by itself"
                ),
            },
        )
    };
    tunnels.iter().map(row).collect()
}

/// Routers that the kernel cannot resolve.
pub(in crate::daemon) fn routers(silent: &[SilentRouter]) -> Vec<ProblemRow> {
    let row = |router: &SilentRouter| {
        let SilentRouter { address, interface } = router;
        let protocol = if address.is_ipv4() { "ARP" } else { "neighbour discovery" };
        ProblemRow::error(
            ProblemKind::Neighbour,
            format!("the router {address} on {interface} does not answer {protocol}"),
            format!(
                "check the cable and the VLAN of {interface}, and whether {address} is the right address: ip route get"
            ),
        )
    };
    silent.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::Severity;

    #[test]
    fn what_others_changed_what_is_awaited_and_who_is_silent_is_named() {
        let row = HostRow { left_alone: vec!["routes into sixway0".into()], ..HostRow::default() };
        assert!(host(&row)[0].text.ends_with("repeatedly: routes into sixway0"));
        let waits = awaited(&[("six_rd".into(), "ppp0".into())]);
        assert_eq!(waits[0].text, "six_rd: waiting for an IPv4 address on ppp0");
        let waits = awaited(&[("pool main, 192.0.2.1".into(), ANY_INTERFACE.into())]);
        assert_eq!(waits[0].text, "pool main, 192.0.2.1: waiting for an IPv4 address on this host");
        assert!(waits[0].advice.starts_with("configure it on an interface"));
        let router = SilentRouter { address: [192, 0, 2, 1].into(), interface: "eth0".into() };
        assert_eq!(routers(&[router])[0].text, "the router 192.0.2.1 on eth0 does not answer ARP");
    }

    #[test]
    fn a_realm_without_its_vrf_is_an_error_with_what_mends_it() {
        let (what, advice) =
            ("VRF red does not exist".into(), "ip link add red up type vrf table 101".into());
        let rows = vrfs(&[("customers".into(), VrfTrouble { what, advice })]);
        let text = "customers: VRF red does not exist; its hosts are not translated";
        assert_eq!(said(&rows), [(Severity::Error, text)]);
        assert!(rows[0].advice.starts_with("ip link add red"));
    }

    #[test]
    fn rules_that_drop_are_errors_and_another_source_is_a_warning() {
        let what = "the packet filter: forward drops one; and another → nft one; nft two";
        let rows = packet_filter(&[(Verdict::Fault, what.into())]);
        assert_eq!(said(&rows), [(Severity::Error, "the packet filter: forward drops one; and another")]);
        assert_eq!(rows[0].advice, "nft one; nft two");
        let behind =
            packet_filter(&[(Verdict::Warning, "the packet filter: another source → nft one".into())]);
        assert_eq!(said(&behind), [(Severity::Warning, "the packet filter: another source")]);
    }
}
