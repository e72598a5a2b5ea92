//! A Teredo client: the path to its servers and whether they answer, native IPv6, its packet filter, and the state of the running client.

use super::facts::Facts;
use super::finding::Finding;
use super::teredo_question::{Asked, ask};
use crate::admin;
use crate::config::{Config, Surroundings, TeredoClient};
use crate::host::notrack::listing;
use crate::host::{Hop, NftError, hop, native_ipv6, routes_ipv6_internet};
use crate::teredo_secret::teredo_secret;
use crate::view::{TeredoClientRow, TeredoRow};
use sixway_wire::teredo::TEREDO_PORT;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

const CHECK: &str = "teredo_client";
/// More servers are not asked.
const ASKED: usize = 4;

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let Some(client) = config.others.teredo_client.first() else { return Vec::new() };
    let ways = client.servers.iter().map(|it| (it.address, hop(IpAddr::V4(it.address))));
    let ways: Vec<(Ipv4Addr, Option<Hop>)> = ways.collect();
    let has_nft = !matches!(listing(&config.gateway.name), Err(NftError::Missing));
    let routes = config.reach(&Surroundings::of(&facts.addresses)).routes;
    let own = (!routes_ipv6_internet(&routes)).then_some(&*config.tun.name);
    let is_native = native_ipv6(own) == Some(true);
    let mut findings = judge(client, &config.tun.name, &ways, is_native, has_nft);
    let known = facts.is_running.then(|| running(config)).flatten();
    let has_address = known.as_ref().is_some_and(|row| row.address.is_some());
    findings.extend(known.as_ref().and_then(|row| state(&client.name, row)));
    // A client that is off sends no queries, and one with an address has its answers.
    if !is_native && !has_address {
        let is_routed = |way: &&(Ipv4Addr, Option<Hop>)| {
            way.1.as_ref().is_some_and(|hop| hop.interface != config.tun.name)
        };
        let routed: Vec<Ipv4Addr> = ways.iter().filter(is_routed).map(|(server, _)| *server).collect();
        findings.extend(questions(client, facts, &routed));
    }
    findings
}

/// The state of the running client.
fn running(config: &Config) -> Option<TeredoClientRow> {
    let rows: Vec<TeredoRow> =
        admin::Client::new(&config.gateway.admin_socket).get("/v1/teredo", &[]).ok()?;
    rows.into_iter().find_map(|row| row.client)
}

fn state(name: &str, row: &TeredoClientRow) -> Option<Finding> {
    match (&row.address, &row.why) {
        (Some(address), _) => {
            let server =
                row.server.as_ref().map_or_else(String::new, |server| format!(" by server {server}"));
            Some(Finding::fine(CHECK, format!("{name} has the address {address}{server}")))
        }
        (None, Some(why)) if !row.is_as_wanted => Some(Finding::fault(
            CHECK,
            format!("{name} has no address: {why}"),
            "see the other findings; `sixway show teredo` has the details",
        )),
        (None, _) => None,
    }
}

/// Whether the servers answer.
fn questions(client: &TeredoClient, facts: &Facts, servers: &[Ipv4Addr]) -> Vec<Finding> {
    let secret = match teredo_secret(client) {
        Ok(secret) => secret,
        Err(error) => {
            let file = client.secret_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
            let what = format!("{}: secret_file = {file}: {error}", client.name);
            return vec![Finding::fault(CHECK, what, "write the secret into the first line of the file")];
        }
    };
    let Some(local) = client.address(&Surroundings::of(&facts.addresses)) else { return Vec::new() };
    let asked = servers.iter().take(ASKED).map(|server| {
        let asked = ask(SocketAddrV4::new(*server, TEREDO_PORT), local, secret.clone());
        answer(&client.name, *server, &asked, secret.is_some())
    });
    asked.collect()
}

fn answer(name: &str, server: Ipv4Addr, asked: &Asked, has_secret: bool) -> Finding {
    match asked {
        Asked::Answered => Finding::fine(CHECK, format!("server {server} answers")),
        Asked::Refused => Finding::fault(
            CHECK,
            format!("{name}: nothing listens at UDP port {TEREDO_PORT} of server {server}"),
            "start the server, or set another one in teredo_client.servers",
        ),
        Asked::Silent => {
            let mut cure = format!(
                "check that it runs, and that this host's rules and the firewalls on the path accept UDP to its port {TEREDO_PORT} and back; or set another server in teredo_client.servers"
            );
            if has_secret {
                cure += "; it does not answer a client whose client_id and secret_file it does not know";
            }
            Finding::fault(CHECK, format!("{name}: server {server} does not answer"), cure)
        }
        Asked::NotSent(why) => Finding::fault(
            CHECK,
            format!("{name}: the kernel does not send to server {server}: {why}"),
            format!("accept UDP to port {TEREDO_PORT} in the output chains: nft list ruleset"),
        ),
    }
}

fn judge(
    client: &TeredoClient,
    device: &str,
    ways: &[(Ipv4Addr, Option<Hop>)],
    is_native: bool,
    has_nft: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (server, way) in ways {
        match way {
            None => findings.push(Finding::fault(
                CHECK,
                format!("{}: there is no route to server {server}", client.name),
                "ip route add default via ROUTER dev UPLINK",
            )),
            Some(Hop { interface, .. }) if interface == device => findings.push(Finding::fault(
                CHECK,
                format!("{}: packets to server {server} are routed into {device}", client.name),
                format!("ip route add {server} via ROUTER dev UPLINK"),
            )),
            Some(Hop { interface, .. }) => {
                findings.push(Finding::fine(CHECK, format!("server {server} is routed by {interface}")));
            }
        }
    }
    if is_native {
        let what = "this host has native IPv6: the client is off while it has (RFC 4380 §5.5)";
        findings.push(Finding::fine(CHECK, what));
    }
    if client.firewall && !has_nft {
        findings.push(Finding::fault(
            CHECK,
            "nft is not installed: the client stays off, because unsolicited packets to its address could not be dropped",
            "install the package nftables",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn a_client_needs_a_way_to_its_server_and_a_filter() {
        let config = crate::sample::config(
            "[teredo_client]\naddress = \"203.0.113.1\"\nservers = [{ address = \"80.64.79.1\" }]\n",
        );
        let client = &config.others.teredo_client[0];
        let server = client.servers[0].address;
        let by = |interface: &str| Some(Hop { interface: interface.into(), gateway: None });
        let verdicts = |way: Option<Hop>, is_native, has_nft| -> Vec<Verdict> {
            let found = judge(client, "sixway0", &[(server, way)], is_native, has_nft);
            found.iter().map(|finding| finding.verdict).collect()
        };
        assert_eq!(verdicts(by("eth0"), false, true), [Verdict::Fine]);
        assert_eq!(verdicts(by("sixway0"), false, true), [Verdict::Fault]);
        assert_eq!(verdicts(None, true, false), [Verdict::Fault, Verdict::Fine, Verdict::Fault]);
    }

    #[test]
    fn what_the_running_client_lacks_and_what_its_server_answered_are_findings() {
        let server = Ipv4Addr::new(80, 64, 79, 1);
        let of = |asked: Asked, has_secret| answer("teredo_client", server, &asked, has_secret);
        assert_eq!(of(Asked::Answered, true).verdict, Verdict::Fine);
        let silent = of(Asked::Silent, false);
        assert_eq!(
            (silent.verdict, &*silent.what),
            (Verdict::Fault, "teredo_client: server 80.64.79.1 does not answer")
        );
        assert!(of(Asked::Silent, true).cure.unwrap().contains("secret_file"));
        assert!(of(Asked::Refused, false).what.contains("nothing listens at UDP port 3544"));
        assert!(of(Asked::NotSent("not permitted".into()), false).cure.unwrap().contains("output"));
        let row = |address: Option<&str>, why: Option<&str>, is_as_wanted| TeredoClientRow {
            address: address.map(str::to_owned),
            why: why.map(str::to_owned),
            is_as_wanted,
            ..TeredoClientRow::default()
        };
        let lost =
            state("teredo_client", &row(None, Some("no answer from server 80.64.79.1"), false)).unwrap();
        assert_eq!(
            (lost.verdict, &*lost.what),
            (Verdict::Fault, "teredo_client has no address: no answer from server 80.64.79.1")
        );
        assert_eq!(
            state("teredo_client", &row(Some("2001:0::1"), None, true)).unwrap().verdict,
            Verdict::Fine
        );
        assert_eq!(state("teredo_client", &row(None, Some("this host has native IPv6"), true)), None);
    }
}
