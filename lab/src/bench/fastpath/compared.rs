//! Compares the rates of small packets with those of the yardsticks, measured in the same rounds.

use super::column::Rate;
use crate::bench::{Figure, Target};

/// Senders whose frames are counted where they enter the gateway.
pub const ALONE: &str = "sender alone";
/// The kernel's forwarding.
pub const KERNEL: &str = "kernel IPv6";
/// The kernel's NAT.
pub const MASQUERADE: &str = "kernel IPv4 + masquerade";
/// TAYGA: stateless, an IPv4 address for each client.
pub const TAYGA: &str = "tayga";
/// TAYGA with the kernel's masquerade behind it: stateful.
pub const SHARING_TAYGA: &str = "tayga + masquerade";
/// NAT64 with few flows, all of them in the CPU's caches.
pub const WARM: &str = "nat64, xdp";
/// NAT64 with many flows, so that each packet misses the caches.
pub const COLD: &str = "nat64, 1M random flows, xdp";

/// The targets of a row, relative to the kernel's IPv6 forwarding and to TAYGA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// None: for comparison only.
    None,
    /// The same; what it reaches bounds the rows that have something to reach.
    Bound,
    /// 3 × the kernel, 10 × TAYGA with masquerade, 8 × the kernel net of the sender.
    Stateful,
    /// The same, relative to TAYGA without masquerade.
    Stateless,
    /// 1.8 × the kernel.
    Many,
    /// 4 × the kernel's masquerade.
    Shared,
}

impl Goal {
    fn gross(self) -> Target {
        match self {
            Self::Stateful | Self::Stateless => Target::AtLeast(3.0),
            Self::Many => Target::AtLeast(1.8),
            Self::None | Self::Bound | Self::Shared => Target::None,
        }
    }

    fn net(self) -> Target {
        if self.is_whole() { Target::AtLeast(8.0) } else { Target::None }
    }

    fn beside_peer(self) -> Target {
        match self {
            Self::Stateful | Self::Stateless => Target::AtLeast(10.0),
            Self::Shared => Target::AtLeast(4.0),
            Self::None | Self::Bound | Self::Many => Target::None,
        }
    }

    /// Whether there is a target for everything.
    fn is_whole(self) -> bool {
        matches!(self, Self::Stateful | Self::Stateless)
    }

    /// Devices that do the same work: share addresses among many hosts, or do not.
    fn peer(self) -> &'static str {
        match self {
            Self::Stateful | Self::Many => SHARING_TAYGA,
            Self::Shared => MASQUERADE,
            Self::Stateless | Self::Bound | Self::None => TAYGA,
        }
    }
}

/// A row as it was measured.
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// What it must reach.
    pub goal: Goal,
    /// One for each round.
    pub rates: Vec<Rate>,
}

/// The table: rates, CPU time, and both relative to the yardsticks.
pub fn figures(rows: &[Measured]) -> Vec<Figure> {
    let mut figures = each(rows, "Mpps", |rate| rate.per_second / 1e6);
    figures.extend(each(rows, "ns CPU/packet", |rate| rate.ns));
    figures.extend(net(rows));
    let yardsticks = Yardsticks::of(rows);
    for row in rows.iter().filter(|row| row.name != ALONE && row.name != KERNEL) {
        figures.extend(yardsticks.beside(row));
    }
    figures.extend(look_up(rows));
    figures
}

fn each(rows: &[Measured], unit: &'static str, of: fn(&Rate) -> f64) -> Vec<Figure> {
    rows.iter().map(|row| Figure::new(row.name, unit, row.rates.iter().map(of).collect())).collect()
}

/// CPU time less that of the sender alone.
fn net(rows: &[Measured]) -> Vec<Figure> {
    let Some(alone) = find(rows, ALONE) else { return Vec::new() };
    let of = |row: &Measured| {
        let net = row.rates.iter().zip(alone).map(|(ours, alone)| ours.ns - alone.ns).collect();
        Figure::new(row.name, "ns net/packet", net)
    };
    rows.iter().filter(|row| row.name != ALONE).map(of).collect()
}

fn find<'a>(rows: &'a [Measured], name: &str) -> Option<&'a [Rate]> {
    rows.iter().find(|row| row.name == name).map(|row| &*row.rates)
}

/// The additional cost of a packet with very many flows: the lookup and the update of an entry that is in no CPU cache.
fn look_up(rows: &[Measured]) -> Option<Figure> {
    let (cold, warm) = (find(rows, COLD)?, find(rows, WARM)?);
    let more = cold.iter().zip(warm).map(|(cold, warm)| cold.ns - warm.ns).collect();
    let figure = Figure::new("a random flow's look-up and update, vs one of 1,000", "ns CPU/packet", more);
    Some(figure.to_reach(Target::AtMost(220.0)))
}

/// The reference for rows; `None`: it could not run.
struct Yardsticks<'a> {
    alone: Option<&'a [Rate]>,
    kernel: Option<&'a [Rate]>,
    rows: &'a [Measured],
}

impl<'a> Yardsticks<'a> {
    fn of(rows: &'a [Measured]) -> Self {
        Self { alone: find(rows, ALONE), kernel: find(rows, KERNEL), rows }
    }

    fn beside(&self, row: &Measured) -> Vec<Figure> {
        let (goal, gross) = (row.goal, |ours: &Rate, theirs: &Rate| ours.per_second / theirs.per_second);
        let mut figures = Vec::new();
        figures.extend(compare(row, "gross vs kernel IPv6", self.kernel, gross, goal.gross()));
        if goal == Goal::None {
            return figures;
        }
        figures.extend(self.net_beside_kernel(row));
        let (peer, theirs) = (goal.peer(), find(self.rows, goal.peer()));
        figures.extend(compare(row, &format!("gross vs {peer}"), theirs, gross, goal.beside_peer()));
        if goal != Goal::Bound {
            let process = row.rates.iter().map(|rate| rate.process_ns).collect();
            let name = format!("{}, the gateway's process", row.name);
            figures.push(Figure::new(name, "ns CPU/packet", process));
        }
        figures
    }

    fn net_beside_kernel(&self, row: &Measured) -> Option<Figure> {
        let (alone, kernel) = (self.alone?, self.kernel?);
        let rounds = alone.iter().zip(kernel).zip(&row.rates);
        let ratios = rounds.map(|((alone, kernel), ours)| (kernel.ns - alone.ns) / (ours.ns - alone.ns));
        let name = format!("{}, net vs kernel IPv6", row.name);
        Some(Figure::new(name, "×", ratios.collect()).to_reach(row.goal.net()))
    }
}

fn compare(
    row: &Measured,
    what: &str,
    theirs: Option<&[Rate]>,
    ratio: fn(&Rate, &Rate) -> f64,
    target: Target,
) -> Option<Figure> {
    let ratios = row.rates.iter().zip(theirs?).map(|(ours, theirs)| ratio(ours, theirs)).collect();
    Some(Figure::new(format!("{}, {what}", row.name), "×", ratios).to_reach(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, goal: Goal, mpps: f64, ns: f64) -> Measured {
        Measured { name, goal, rates: vec![Rate { per_second: mpps * 1e6, ns, process_ns: 0.0 }] }
    }

    #[test]
    fn rows_compare_with_the_kernel_and_tayga_gross_and_net_of_the_sender() {
        let rows = [
            row(ALONE, Goal::None, 20.0, 50.0),
            row("XDP redirect alone", Goal::Bound, 12.0, 80.0),
            row(KERNEL, Goal::None, 2.5, 350.0),
            row(TAYGA, Goal::None, 0.5, 5_000.0),
            row(SHARING_TAYGA, Goal::None, 0.3, 8_000.0),
            row("siit, xdp", Goal::Stateless, 7.5, 130.0),
            row(WARM, Goal::Stateful, 7.5, 130.0),
            row(COLD, Goal::Many, 4.0, 330.0),
            row(MASQUERADE, Goal::None, 2.0, 500.0),
            row("nat44, xdp", Goal::Shared, 7.0, 140.0),
        ];
        let figures = figures(&rows);
        let of = |name: &str| {
            let found = figures.iter().find(|figure| figure.name == name);
            found.map(|figure| (figure.median(), figure.reached()))
        };
        let net = figures.iter().find(|figure| (&*figure.name, figure.unit) == (WARM, "ns net/packet"));
        assert_eq!(net.map(Figure::median), Some(80.0));
        assert_eq!(of("nat64, xdp, gross vs kernel IPv6"), Some((3.0, Some(true))));
        assert_eq!(of("nat64, xdp, net vs kernel IPv6"), Some((3.75, Some(false))));
        assert_eq!(of("nat64, xdp, gross vs tayga + masquerade"), Some((25.0, Some(true))));
        assert_eq!(of("nat64, xdp, gross vs tayga"), None);
        assert_eq!(of("nat44, xdp, gross vs kernel IPv4 + masquerade"), Some((3.5, Some(false))));
        assert_eq!(of("nat44, xdp, gross vs kernel IPv6"), Some((2.8, None)));
        assert_eq!(of("siit, xdp, gross vs tayga"), Some((15.0, Some(true))));
        assert_eq!(of("siit, xdp, gross vs tayga + masquerade"), None);
        assert_eq!(of("XDP redirect alone, net vs kernel IPv6"), Some((10.0, None)));
        assert_eq!(of("XDP redirect alone, gross vs tayga"), Some((24.0, None)));
        assert_eq!(of("tayga, gross vs kernel IPv6"), Some((0.2, None)));
        assert_eq!(of("tayga, gross vs tayga"), None);
        assert_eq!(of("a random flow's look-up and update, vs one of 1,000"), Some((200.0, Some(true))));
    }

    #[test]
    fn what_could_not_run_has_no_figures() {
        let figures = figures(&[row(KERNEL, Goal::None, 2.5, 350.0), row(WARM, Goal::Stateful, 7.5, 130.0)]);
        let compared: Vec<_> = figures.iter().skip(4).map(|figure| &*figure.name).collect();
        assert_eq!(compared, ["nat64, xdp, gross vs kernel IPv6", "nat64, xdp, the gateway's process"]);
    }
}
