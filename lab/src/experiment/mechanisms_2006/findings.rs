//! The paper's statements.

use super::overhead::{Form, Transport, truncated};
use super::published::{MISPRINTED, OVERHEAD};
use crate::analyse::{Bearing, Finding, Group, Outcome, View};
use crate::experiment::three_routers::Way;
use crate::results::{Results, Verdict};

/// What counts as small data, in octets.
const SMALL: f64 = 256.0;
/// Data of the MTU's size.
const MTU: f64 = 1_400.0;
/// Differences of this share and less are minimal.
const MINIMAL: f64 = 0.1;
/// Mechanisms of which the paper prints how much TCP loses by small data, in percent.
const BY_SMALL: [(Way, f64); 5] = [
    (Way::Configured, 36.2),
    (Way::SixToFour, 36.2),
    (Way::Isatap, 36.2),
    (Way::Nat64, 7.7),
    (Way::DsLite, 15.0),
];
const TUNNELS: [Way; 3] = [Way::Configured, Way::SixToFour, Way::Isatap];
const PING: f64 = 1.0;
const TCP: f64 = 2.0;
const UDP: f64 = 3.0;

/// Whether the paper's statements hold: headers, and the rest for each device.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "mechanisms-2006");
    let mut devices: Vec<&str> = view.groups.iter().map(|group| group.cell.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut all: Vec<_> =
        Form::ALL.iter().zip(OVERHEAD).map(|(form, printed)| header(*form, printed)).collect();
    all.extend(devices.into_iter().flat_map(|device| of_device(&Rows { view: &view, device })));
    all
}

fn of_device(rows: &Rows<'_, '_>) -> Vec<Finding> {
    let small = BY_SMALL.into_iter().filter_map(|(way, percent)| small(rows, way, percent));
    let large = TUNNELS.into_iter().filter_map(|way| large(rows, way));
    let others = [
        udp(rows),
        rows.ahead(
            "ISATAP takes more CPU time with TCP than a configured tunnel (the paper: 15.2 against 4.5 %)",
            (Way::Isatap, TCP, "cpu"),
            (Way::Configured, TCP, "cpu"),
        ),
        teredo(rows),
        rows.ahead(
            "with large data DS-Lite (DSTM) has more throughput over TCP than NAT64 (NAT-PT)",
            (Way::DsLite, TCP, "throughput"),
            (Way::Nat64, TCP, "throughput"),
        ),
        // The native way of the former is IPv4, of the others IPv6.
        rows.ahead(
            "with large data the response time of native IPv4 is longer than that of IPv6",
            (Way::DsLite, PING, "native-response"),
            (Way::Nat64, PING, "native-response"),
        ),
        rows.ahead(
            "with large data the response time of native IPv4 is longer than that of a configured tunnel of IPv6",
            (Way::DsLite, PING, "native-response"),
            (Way::Configured, PING, "response"),
        ),
        rows.ahead(
            "with large data the response time of NAT64 is longer than that of native IPv6",
            (Way::Nat64, PING, "response"),
            (Way::Nat64, PING, "native-response"),
        ),
    ];
    small.chain(large).chain(others.into_iter().flatten()).collect()
}

/// The rows of a device.
struct Rows<'v, 'a> {
    view: &'v View<'a>,
    device: &'v str,
}

impl<'v, 'a> Rows<'v, 'a> {
    /// Those of a mechanism under a load, without those that say nothing about the device, by size.
    fn of(&self, way: Way, load: f64) -> Vec<&'v Group<'a>> {
        let is_meant = |group: &&Group<'_>| {
            !matches!(group.verdict(), Verdict::TesterBound { .. } | Verdict::Failed)
                && group.cell.device == self.device
                && group.cell.series == way.name()
                && group.cell.at("load") == load
        };
        let mut all: Vec<_> = self.view.groups.iter().filter(is_meant).collect();
        all.sort_by(|a, b| a.cell.at("octets").total_cmp(&b.cell.at("octets")));
        all
    }

    /// Throughput as a share of the native one, with the octets of data, where these are between two sizes.
    fn shares(&self, way: Way, load: f64, octets: (f64, f64)) -> Vec<(f64, f64)> {
        let of = |group: &Group<'_>| {
            let mean = |name| group.value(name).map(|(estimate, _)| estimate.mean);
            Some((group.cell.at("octets"), mean("throughput")? / mean("native-throughput")?))
        };
        let all = self.of(way, load).into_iter().filter_map(of);
        all.filter(|(at, _)| (octets.0..=octets.1).contains(at)).collect()
    }

    /// Whether one value is above another one at the greatest size that both have.
    fn ahead(&self, what: &str, over: (Way, f64, &str), under: (Way, f64, &str)) -> Option<Finding> {
        let (above, below) = (self.of(over.0, over.1), self.of(under.0, under.1));
        let at = |group: &Group<'_>| group.cell.at("octets");
        let pair = |above: &&'v Group<'a>| {
            let below = below.iter().find(|below| at(below) == at(above))?;
            Some((*above, *below))
        };
        let (above, below) = above.iter().rev().find_map(pair)?;
        let bearing = self.view.ratio_of((above, over.2), (below, under.2));
        let outcome = match &bearing {
            Bearing::Number(ratio) | Bearing::Direction(ratio) if ratio.value > 1.0 => Outcome::Holds,
            Bearing::Number(_) | Bearing::Direction(_) | Bearing::Equal(_) => Outcome::DoesNotHold,
            Bearing::Nothing(_) => Outcome::NotShown,
        };
        let evidence = format!("{} at {} octets: {}", bearing.text(), at(above), bearing.explained());
        Some(Finding { statement: format!("{}: {what}.", self.device), outcome, evidence })
    }
}

fn percent(share: f64) -> f64 {
    (1.0 - share) * 100.0
}

fn mean(all: &[(f64, f64)]) -> f64 {
    all.iter().map(|(_, share)| share).sum::<f64>() / all.len().max(1) as f64
}

/// With small data, a mechanism has less throughput over TCP than its native way.
fn small(rows: &Rows<'_, '_>, way: Way, printed: f64) -> Option<Finding> {
    let all: Vec<_> =
        [TCP, 7.0, 8.0].into_iter().flat_map(|load| rows.shares(way, load, (0.0, SMALL))).collect();
    let below = all.iter().filter(|(_, share)| *share < 1.0).count();
    (!all.is_empty()).then(|| Finding {
        statement: format!(
            "{}: with writes of {SMALL} octets or less, TCP is slower by {} than natively (the paper: by {printed} %).",
            rows.device,
            way.name()
        ),
        outcome: if below == all.len() { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!("slower in {below} of {} rows, by {:.1} % on average", all.len(), percent(mean(&all))),
    })
}

/// With data of the MTU's size and more, the difference of a tunnel is minimal.
fn large(rows: &Rows<'_, '_>, way: Way) -> Option<Finding> {
    let all = rows.shares(way, TCP, (MTU, f64::INFINITY));
    let what =
        format!("with writes of an MTU or more, TCP by {} differs minimally from native IPv6", way.name());
    minimal(rows, &what, &all)
}

fn udp(rows: &Rows<'_, '_>) -> Option<Finding> {
    let all: Vec<_> =
        Way::ALL.into_iter().flat_map(|way| rows.shares(way, UDP, (0.0, f64::INFINITY))).collect();
    minimal(rows, "the throughput of UDP by all mechanisms differs minimally from the native one", &all)
}

fn minimal(rows: &Rows<'_, '_>, what: &str, all: &[(f64, f64)]) -> Option<Finding> {
    let within = all.iter().filter(|(_, share)| (share - 1.0).abs() <= MINIMAL).count();
    (!all.is_empty()).then(|| Finding {
        statement: format!("{}: {what}.", rows.device),
        outcome: if within == all.len() { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!(
            "within {:.0} % in {within} of {} rows; {:.1} % less on average",
            MINIMAL * 100.0,
            all.len(),
            percent(mean(all))
        ),
    })
}

/// Teredo loses more by small data than by large.
fn teredo(rows: &Rows<'_, '_>) -> Option<Finding> {
    let all = rows.shares(Way::Teredo, TCP, (0.0, f64::INFINITY));
    let [(least, small), .., (most, large)] = all[..] else { return None };
    Some(Finding {
        statement: format!("{}: Teredo loses most of TCP's throughput with small data.", rows.device),
        outcome: if small < large { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!(
            "{:.1} % less than natively at {least} octets, {:.1} % at {most}",
            percent(small),
            percent(large)
        ),
    })
}

fn header(form: Form, printed: [u32; 2]) -> Finding {
    let computed = [Transport::Tcp, Transport::Udp].map(|transport| truncated(form.overhead(transport)));
    let percent = |[tcp, udp]: [u32; 2]| {
        format!("{}.{:02} % with TCP and {}.{:02} % with UDP", tcp / 100, tcp % 100, udp / 100, udp % 100)
    };
    let is_misprint = MISPRINTED.iter().any(|(of, _)| *of == form);
    let misprint = if is_misprint { "; the paper's figure for TCP is a misprint" } else { "" };
    Finding {
        statement: format!("The headers of {} add {}.", form.name(), percent(printed)),
        outcome: if computed == printed { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!("{} in packets that our encoders write{misprint}", percent(computed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Header, Sample, TesterCost, Unit, Value};
    use std::collections::BTreeMap;

    fn rounds(series: &str, (load, octets): (f64, f64), values: &[(&str, f64, Unit)]) -> Vec<Sample> {
        let round = |repeat: u32| Sample {
            cell: Cell {
                experiment: "mechanisms-2006".to_owned(),
                series: series.to_owned(),
                device: "sixway".to_owned(),
                point: BTreeMap::from([("load".to_owned(), load), ("octets".to_owned(), octets)]),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: values
                .iter()
                .map(|(name, it, unit)| ((*name).to_owned(), Value::one(*it, *unit)))
                .collect(),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::DeviceBound,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..3).map(round).collect()
    }

    /// The statement with these words.
    fn of(samples: Vec<Vec<Sample>>, words: &str) -> Option<(Outcome, String)> {
        let header = Header::default();
        let all = findings(&Results { header, samples: samples.concat() });
        all.into_iter().find(|it| it.statement.contains(words)).map(|it| (it.outcome, it.evidence))
    }

    fn throughput(series: &str, at: (f64, f64), share: f64) -> Vec<Sample> {
        let values = [
            ("throughput", share * 1e8, Unit::BitsPerSecond),
            ("native-throughput", 1e8, Unit::BitsPerSecond),
        ];
        rounds(series, at, &values)
    }

    #[test]
    fn small_and_large_data_are_judged_by_what_is_lost() {
        let all = || {
            vec![throughput("configured", (2.0, 64.0), 0.6), throughput("configured", (2.0, 1_400.0), 0.95)]
        };
        let (outcome, evidence) = of(all(), "(the paper: by 36.2 %)").unwrap();
        assert_eq!(
            (outcome, evidence.as_str()),
            (Outcome::Holds, "slower in 1 of 1 rows, by 40.0 % on average")
        );
        assert_eq!(of(all(), "of an MTU or more").unwrap().0, Outcome::Holds);
        let slow = vec![throughput("6to4", (2.0, 3_072.0), 0.5)];
        assert_eq!(of(slow, "of an MTU or more").unwrap().0, Outcome::DoesNotHold);
        assert_eq!(of(all(), "Teredo"), None, "it was not measured");
    }

    #[test]
    fn udp_and_teredo_have_their_statements() {
        let udp = |share| vec![throughput("nat64", (3.0, 64.0), share)];
        assert_eq!(of(udp(0.93), "throughput of UDP").unwrap().0, Outcome::Holds);
        assert_eq!(of(udp(0.4), "throughput of UDP").unwrap().0, Outcome::DoesNotHold);
        let teredo =
            |small| vec![throughput("teredo", (2.0, 64.0), small), throughput("teredo", (2.0, 1_024.0), 0.8)];
        assert_eq!(of(teredo(0.3), "Teredo loses").unwrap().0, Outcome::Holds);
        assert_eq!(of(teredo(0.9), "Teredo loses").unwrap().0, Outcome::DoesNotHold);
    }

    #[test]
    fn two_mechanisms_are_compared_at_the_greatest_size_of_both() {
        let cpu = |series, octets, cores| rounds(series, (2.0, octets), &[("cpu", cores, Unit::Cores)]);
        let all = |isatap| {
            vec![cpu("isatap", 64.0, 9.0), cpu("isatap", 1_024.0, isatap), cpu("configured", 1_024.0, 0.4)]
        };
        assert_eq!(of(all(0.5), "ISATAP takes").unwrap().0, Outcome::Holds);
        assert_eq!(of(all(0.4), "ISATAP takes").unwrap().0, Outcome::DoesNotHold, "as much");
        let time = |series, of_native| {
            rounds(series, (1.0, 3_072.0), &[("native-response", of_native, Unit::Milliseconds)])
        };
        let longer = vec![time("ds-lite", 0.2), time("nat64", 0.1)];
        assert_eq!(of(longer, "native IPv4 is longer than that of IPv6").unwrap().0, Outcome::Holds);
    }
}
