//! Problems of servers, relays and clients of Teredo.

use crate::show::{count, plural};
use crate::view::{ProblemKind, ProblemRow, TeredoClientRow, TeredoServerRow};
use std::net::Ipv4Addr;

/// From this many datagrams of the last minute on, those that are discarded are an attack or a mistake.
const MANY_DATAGRAMS: u64 = 1_000;

/// Problems of the Teredo server.
pub(in crate::daemon) fn teredo_server(row: &TeredoServerRow) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::TeredoServer;
    let details = "`sixway show teredo-server` has the reasons";
    let waits = row.waits.iter().map(|address| {
        let text = format!("teredo_server: this host does not have {address}");
        ProblemRow::error(KIND, text, format!("add it: ip address add {address}/32 dev INTERFACE"))
    });
    let failed = row.troubles.iter().map(|what| {
        let advice = "stop the program that has this port: ss -lunp 'sport = :3544'";
        ProblemRow::error(KIND, format!("teredo_server: {what}"), advice)
    });
    let over = (row.over_total_rate_last_minute > 0).then(|| {
        let text = format!(
            "teredo_server: {} discarded: all sources together exceeded teredo_server.total_rate",
            plural(row.over_total_rate_last_minute, "datagram")
        );
        ProblemRow::warning(
            KIND,
            text,
            "it may be a flood of forged sources; clients with a secret are still served",
        )
    });
    let (received, refused) = (row.received_last_minute, row.refused_last_minute);
    let refuses = (received >= MANY_DATAGRAMS && refused > received / 2).then(|| {
        let text = format!("teredo_server: {} of {} discarded", count(refused), plural(received, "datagram"));
        ProblemRow::warning(KIND, text, details)
    });
    waits.chain(failed).chain(over).chain(refuses).collect()
}

/// Problems of relays and clients of Teredo: a socket that cannot be opened, and a client without an address.
/// `missing`: those with an address that this host does not have.
pub(in crate::daemon) fn teredo(
    sockets: &[(String, String)],
    missing: &[(String, Ipv4Addr)],
    client: Option<&TeredoClientRow>,
) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::Teredo;
    let missing = missing.iter().map(|(name, address)| {
        let text = format!("{name}: this host does not have {address}");
        ProblemRow::error(KIND, text, format!("add it: ip address add {address}/32 dev INTERFACE"))
    });
    let closed = sockets.iter().map(|(name, what)| {
        let advice = "check which program has the port: ss -lunp; `sixway doctor` names it";
        ProblemRow::error(KIND, format!("{name}: its socket cannot be opened: {what}"), advice)
    });
    let client = client.filter(|row| !row.is_as_wanted && row.address.is_none());
    let without = client.and_then(|row| {
        let text = format!("teredo_client: no address: {}", row.why.as_ref()?);
        Some(ProblemRow::error(
            KIND,
            text,
            "`sixway doctor` looks for the cause; `sixway show teredo` has the details",
        ))
    });
    missing.chain(closed).chain(without).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::Severity;

    #[test]
    fn what_keeps_a_teredo_server_from_its_clients_is_said() {
        assert_eq!(teredo_server(&TeredoServerRow::default()), []);
        let quiet =
            TeredoServerRow { received_last_minute: 900, refused_last_minute: 900, ..Default::default() };
        assert_eq!(teredo_server(&quiet), [], "a few strangers");
        let row = TeredoServerRow {
            waits: vec!["192.0.2.2".into()],
            troubles: vec!["UDP 192.0.2.3:3544: in use".into()],
            received_last_minute: 4_000,
            refused_last_minute: 3_000,
            over_total_rate_last_minute: 7,
            ..TeredoServerRow::default()
        };
        let found = teredo_server(&row);
        assert_eq!(
            found.iter().map(|row| row.severity).collect::<Vec<_>>(),
            [Severity::Error, Severity::Error, Severity::Warning, Severity::Warning]
        );
        assert_eq!(found[0].text, "teredo_server: this host does not have 192.0.2.2");
        assert_eq!(found[1].text, "teredo_server: UDP 192.0.2.3:3544: in use");
        assert_eq!(found[3].text, "teredo_server: 3,000 of 4,000 datagrams discarded");
    }

    #[test]
    fn a_relay_without_a_socket_and_a_client_without_an_address_are_errors() {
        assert_eq!(teredo(&[], &[], None), []);
        let gone = teredo(&[], &[("relay".into(), Ipv4Addr::new(192, 0, 2, 1))], None);
        assert_eq!(said(&gone), [(Severity::Error, "relay: this host does not have 192.0.2.1")]);
        assert_eq!(gone[0].advice, "add it: ip address add 192.0.2.1/32 dev INTERFACE");
        let row = TeredoClientRow { why: Some("no answer".into()), ..TeredoClientRow::default() };
        let found = teredo(&[("relay".into(), "in use".into())], &[], Some(&row));
        let texts = ["relay: its socket cannot be opened: in use", "teredo_client: no address: no answer"];
        assert_eq!(said(&found), texts.map(|text| (Severity::Error, text)));
        let native = TeredoClientRow { is_as_wanted: true, ..row.clone() };
        let in_use = TeredoClientRow { address: Some("2001::1".into()), ..row };
        for fine in [native, in_use, TeredoClientRow::default()] {
            assert_eq!(teredo(&[], &[], Some(&fine)), [], "{fine:?}");
        }
    }
}
