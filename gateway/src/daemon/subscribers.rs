//! Subscribers of all workers: the first ones, and the end of one.

use super::gateway::Gateway;
use crate::admin::{AdminError, By, DEFAULT_TOP, Edit, Filter, Ranking};
use crate::inside_endpoint;
use crate::view::{Ended, SubscriberRow, Subscribers};
use crate::worker::{Command, Dump, DumpPage, Position, SubscriberEntry};
use sixway_dataplane::nat::{NatProtocol, Outside, RowBlocks};
use sixway_wire::Prefix6;

/// Rows that a worker is queried for at a time.
const PAGE: usize = 1_000;

impl Gateway {
    /// The first subscribers of all workers.
    pub(super) async fn first_subscribers(&self, ranking: &Ranking) -> Result<Subscribers, AdminError> {
        let inside = ranking.prefix().map_err(|error| AdminError::BadRequest(error.to_string()))?;
        let (by, top) = (ranking.by.unwrap_or_default(), ranking.top.unwrap_or(DEFAULT_TOP));
        let filter = Filter { inside: inside.map(|prefix| (prefix, None)), ..Filter::default() };
        let mut found = Subscribers::default();
        for worker in 0..self.workers() {
            let mut from = Some(Position::default());
            while let Some(position) = from {
                let page = self.subscribers_of(worker, position, &filter).await?;
                found.total += page.rows.len() as u64;
                found.rows.extend(page.rows.into_iter().map(|entry| self.subscriber_row(worker, entry)));
                keep_first(&mut found.rows, by, top);
                from = page.next;
            }
        }
        Ok(found)
    }

    /// Subscribers of a worker, from a place on.
    pub(super) async fn subscribers_of(
        &self,
        worker: usize,
        from: Position,
        filter: &Filter,
    ) -> Result<DumpPage<SubscriberEntry>, AdminError> {
        self.ask(worker, |answer| {
            let (filter, limit, rows) = (filter.clone(), PAGE, Vec::new());
            Command::Subscribers(Dump { filter, from, limit, parts: None, rows, answer })
        })
        .await
    }

    fn subscriber_row(
        &self,
        worker: usize,
        SubscriberEntry { mechanism, row }: SubscriberEntry,
    ) -> SubscriberRow {
        SubscriberRow {
            mechanism: self.mechanism(mechanism),
            worker,
            subscriber: inside_endpoint::prefix_text(row.address, row.bits),
            hosts: row.hosts,
            tcp_ports: row.bindings[NatProtocol::Tcp as usize],
            udp_ports: row.bindings[NatProtocol::Udp as usize],
            icmp_identifiers: row.bindings[NatProtocol::Icmp as usize],
            sessions: row.sessions,
            sessions_from_outside: row.from_outside,
            new_sessions_per_second: row.per_second,
            sessions_made: row.made,
            refused: row.refused,
            port_blocks: port_blocks(&row.blocks),
        }
    }

    /// Ends the dynamic bindings of the hosts in a prefix: those that exist when the pass reaches their place in the table.
    pub(super) async fn end_bindings_of(
        &self,
        inside: Prefix6,
        mechanism: Option<&str>,
    ) -> Result<Ended, AdminError> {
        let stateful = self.of_inside(mechanism, Some(inside))?;
        let filter = Filter { inside: Some((inside, None)), ..Filter::default() };
        let _alone = self.edits.lock().await;
        let mut ended = Ended::default();
        for worker in 0..self.workers() {
            let mut from = Some(Position::default());
            while let Some(position) = from {
                let page = self
                    .ask(worker, |answer| {
                        let (filter, limit, rows) = (filter.clone(), PAGE, Vec::new());
                        Command::Bindings(Dump { filter, from: position, limit, parts: None, rows, answer })
                    })
                    .await?;
                for row in page.rows.iter().filter(|row| stateful.contains(&row.mechanism)) {
                    let Some(protocol) = row.protocol.and_then(NatProtocol::of) else { continue };
                    let edit = Edit::EndBinding(protocol, Outside(row.outside));
                    ended.bindings += u64::from(self.edit_whole(worker, row.mechanism, edit).await?);
                }
                from = page.next;
            }
        }
        if ended.bindings == 0 {
            return Err(AdminError::NotFound(format!(
                "no host in {} has a dynamic binding; `sixway show subscribers` lists who has",
                inside_endpoint::prefix_text(inside.address(), inside.length())
            )));
        }
        Ok(ended)
    }
}

/// Each as ADDRESS:FIRST-LAST, the oldest first.
fn port_blocks(blocks: &RowBlocks) -> Vec<String> {
    let Some(address) = blocks.address else { return Vec::new() };
    let given = blocks.first.iter().take(blocks.count.into()).rev();
    given.map(|first| format!("{address}:{first}-{}", first + (blocks.size - 1))).collect()
}

/// Keeps the first rows, in descending order.
fn keep_first(rows: &mut Vec<SubscriberRow>, by: By, top: usize) {
    rows.sort_by(|one, other| {
        by.key(other).cmp(&by.key(one)).then_with(|| one.subscriber.cmp(&other.subscriber))
    });
    rows.truncate(top);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subscriber: &str, [ports, sessions, rate, refused]: [u32; 4]) -> SubscriberRow {
        SubscriberRow {
            subscriber: subscriber.into(),
            tcp_ports: ports / 2,
            udp_ports: ports - ports / 2,
            sessions,
            new_sessions_per_second: rate,
            refused: refused.into(),
            ..SubscriberRow::default()
        }
    }

    #[test]
    fn a_subscribers_blocks_are_written_with_their_address_and_ports() {
        let mut blocks = RowBlocks { size: 512, count: 2, ..RowBlocks::default() };
        assert!(port_blocks(&blocks).is_empty());
        blocks.address = Some("192.0.2.1".parse().unwrap());
        blocks.first[..2].copy_from_slice(&[65_024, 1_024]);
        assert_eq!(port_blocks(&blocks), ["192.0.2.1:1024-1535", "192.0.2.1:65024-65535"]);
    }

    #[test]
    fn the_first_are_those_with_the_most_of_what_is_asked_for() {
        let rows = [row("a", [1, 9, 3, 0]), row("b", [9, 1, 3, 1]), row("c", [5, 5, 4, 9])];
        for (by, first) in [(By::Ports, "bc"), (By::Sessions, "ac"), (By::Rate, "ca"), (By::Refused, "cb")] {
            let mut rows = rows.to_vec();
            keep_first(&mut rows, by, 2);
            let names: String = rows.iter().map(|row| row.subscriber.as_str()).collect();
            assert_eq!(names, first, "{by:?}");
        }
    }
}
