//! Realms and VRFs: whether the VRF of a realm is there and has interfaces, and whether interfaces of a realm with a table are in none.

use super::finding::Finding;
use crate::config::{Config, Realm, RealmRouting};
use crate::host::{NoVrf, Vrf, members, vrf, vrf_with};

const CHECK: &str = "vrf";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let kernel = Kernel { vrf: &vrf, vrf_with: &vrf_with, members: &members };
    config.realms.iter().flat_map(|realm| of_realm(realm, &kernel)).collect()
}

/// The query to the kernel.
struct Kernel<'k> {
    vrf: &'k dyn Fn(&str) -> Result<Vrf, NoVrf>,
    vrf_with: &'k dyn Fn(&str) -> Option<String>,
    members: &'k dyn Fn(u32) -> Vec<String>,
}

fn of_realm(realm: &Realm, kernel: &Kernel<'_>) -> Vec<Finding> {
    let name = &realm.nat44.name;
    match &realm.routing {
        RealmRouting::Table(table) => {
            let in_vrf = |interface: &String| {
                let vrf = (kernel.vrf_with)(interface)?;
                let what = format!(
                    "{interface} belongs to VRF {vrf}: its packets are routed by that VRF, not by table {table} of realm {name}"
                );
                let cure = format!(
                    "vrf = \"{vrf}\" in the section of realm {name}, in place of interfaces and table; or: ip link set {interface} nomaster"
                );
                Some(Finding::fault(CHECK, what, cure))
            };
            realm.nat44.interfaces.iter().filter_map(in_vrf).collect()
        }
        RealmRouting::Vrf(vrf) => vec![match (kernel.vrf)(vrf) {
            Err(fault) => Finding::fault(CHECK, fault.what(vrf), fault.advice(vrf)),
            Ok(Vrf { is_up: false, .. }) => {
                let what = format!("VRF {vrf} of realm {name} is down");
                Finding::fault(CHECK, what, format!("ip link set {vrf} up"))
            }
            Ok(found) => of_vrf(realm, (vrf, found), &(kernel.members)(found.index)),
        }],
    }
}

fn of_vrf(realm: &Realm, (vrf, found): (&str, Vrf), members: &[String]) -> Finding {
    let (name, device) = (&realm.nat44.name, &realm.device);
    let others: Vec<&str> = members.iter().filter(|one| *one != device).map(String::as_str).collect();
    if others.is_empty() {
        let what = format!("no interface belongs to VRF {vrf} of realm {name}: it has no inside hosts");
        return Finding::warning(CHECK, what, format!("ip link set lan1 master {vrf}"));
    }
    let (others, table) = (others.join(", "), found.table);
    match members.contains(device) {
        true => Finding::fine(CHECK, format!("{device} is in VRF {vrf} (table {table}) with {others}")),
        false => {
            let why = format!(
                "{device} is not in VRF {vrf} (table {table}) with {others}: the gateway puts it there when it runs"
            );
            Finding::not_checked(CHECK, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn realm(place: &str) -> Realm {
        let text = format!(
            "[gateway]\nipv4_address = \"192.0.2.14\"\n[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.1\"]\n[[realm]]\nname = \"red\"\ninside = [\"10.0.0.0/8\"]\npool = \"p\"\n{place}\n"
        );
        crate::sample::config(&text).realms.remove(0)
    }

    fn found(realm: &Realm, vrf: Result<Vrf, NoVrf>, members: &[&str]) -> Vec<(Verdict, String)> {
        let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
        let kernel = Kernel {
            vrf: &|_| vrf.clone(),
            vrf_with: &|interface| (interface == "lan2").then(|| "other".to_owned()),
            members: &|_| members.clone(),
        };
        let said = |it: Finding| (it.verdict, format!("{} → {}", it.what, it.cure.unwrap_or_default()));
        of_realm(realm, &kernel).into_iter().map(said).collect()
    }

    #[test]
    fn what_keeps_a_realm_from_its_vrf_is_named_with_what_mends_it() {
        let red = realm("vrf = \"red\"");
        let up = Vrf { index: 7, table: 101, is_up: true };
        for (vrf, members, verdict, words) in [
            (Err(NoVrf::Absent), &[][..], Verdict::Fault, "ip link add red up type vrf"),
            (Err(NoVrf::Unsupported), &[], Verdict::Fault, "write realm.table and realm.interfaces"),
            (Err(NoVrf::OtherKind), &[], Verdict::Fault, "interface red is not a VRF"),
            (Ok(Vrf { is_up: false, ..up }), &["lan1"], Verdict::Fault, "ip link set red up"),
            (Ok(up), &["sixway0-red"], Verdict::Warning, "ip link set lan1 master red"),
            (Ok(up), &["lan1"], Verdict::NotChecked, "sixway0-red is not in VRF red (table 101) with lan1"),
            (Ok(up), &["lan1", "sixway0-red"], Verdict::Fine, "is in VRF red (table 101) with lan1"),
        ] {
            let found = found(&red, vrf, members);
            assert!(found.len() == 1 && found[0].0 == verdict && found[0].1.contains(words), "{found:?}");
        }
    }

    #[test]
    fn an_interface_of_a_table_that_belongs_to_a_vrf_is_a_fault() {
        let red = realm("interfaces = [\"lan1\", \"lan2\"]\ntable = 101");
        let found = found(&red, Err(NoVrf::Absent), &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("lan2 belongs to VRF other") && found[0].1.contains("vrf = \"other\""));
    }
}
