//! The paper's statements.

use super::overhead::{Form, Transport, truncated};
use super::published::{MISPRINTED, OVERHEAD};
use crate::analyse::{Bearing, Finding, Group, Outcome, View, short};
use crate::experiment::minimal::{MINIMAL, is_minimal};
use crate::experiment::three_routers::Way;
use crate::results::{Results, Verdict};

/// What counts as small data, in octets.
const SMALL: f64 = 256.0;
/// Data of the MTU's size.
const MTU: f64 = 1_400.0;
/// Mechanisms of which the paper prints how much TCP loses by small data.
const BY_SMALL: [(Way, &str); 5] = [
    (Way::Configured, "by 36.2 %"),
    (Way::SixToFour, "by 36.2 %"),
    (Way::Isatap, "by about 10 % more than a configured tunnel"),
    (Way::Nat64, "by 7.7 %"),
    (Way::DsLite, "by 15.0 %"),
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
    let small = BY_SMALL.into_iter().filter_map(|(way, printed)| small(rows, way, printed));
    let large = TUNNELS.into_iter().filter_map(|way| large(rows, way));
    let others = [
        udp(rows),
        rows.ahead(
            "the CPU increase with TCP is more by ISATAP than by a configured tunnel, for each KiB (the paper: 15.2 against 4.5 %)",
            (Way::Isatap, TCP, "cpu-increase-kib"),
            (Way::Configured, TCP, "cpu-increase-kib"),
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
        rows.ahead(
            "with large data the response time of native IPv6 is longer than that of DS-Lite (DSTM)",
            (Way::Nat64, PING, "native-response"),
            (Way::DsLite, PING, "response"),
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
        let mut all = self.measured(way, load);
        all.retain(|group| !matches!(group.verdict(), Verdict::TesterBound { .. }));
        all
    }

    /// Those that were measured.
    fn measured(&self, way: Way, load: f64) -> Vec<&'v Group<'a>> {
        let is_meant = |group: &&Group<'_>| {
            *group.verdict() != Verdict::Failed
                && group.cell.device == self.device
                && group.cell.series == way.name()
                && group.cell.at("load") == load
        };
        let mut all: Vec<_> = self.view.groups.iter().filter(is_meant).collect();
        all.sort_by(|a, b| a.cell.at("octets").total_cmp(&b.cell.at("octets")));
        all
    }

    /// Throughput over the native one, with the octets of data, where these are between two sizes.
    fn ratios(&self, way: Way, load: f64, octets: (f64, f64)) -> Vec<(f64, Bearing)> {
        let of = |group: &'v Group<'a>| {
            (group.cell.at("octets"), self.view.ratio_of((group, "throughput"), (group, "native-throughput")))
        };
        // Of one with the tester at its limit there is no ratio, and it is not left out.
        let all = self.measured(way, load).into_iter().map(of);
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
        let outcome = Outcome::from(bearing.is_above());
        let evidence = format!("{} at {} octets: {}", bearing.text(), at(above), bearing.explained());
        Some(Finding { statement: format!("{}: {what}.", self.device), outcome, evidence })
    }
}

/// What a ratio says of a statement: nothing, if the noise does not bear it.
type Test = fn(&Bearing) -> Option<bool>;

/// Whether the whole interval is below a half, or not.
fn is_below_half(bearing: &Bearing) -> Option<bool> {
    match bearing {
        Bearing::Number(ratio) | Bearing::Direction(ratio) if ratio.interval.1 < 0.5 => Some(true),
        Bearing::Number(ratio) | Bearing::Direction(ratio) | Bearing::Equal(ratio) => {
            (ratio.interval.0 >= 0.5).then_some(false)
        }
        Bearing::Nothing(_) => None,
    }
}

/// A statement over rows: it takes ratios of two sizes, and holds if all ratios say so. One that says nothing leaves it open.
fn over_sizes(statement: String, all: &[(f64, Bearing)], words: &str, test: Test) -> Option<Finding> {
    let said: Vec<(f64, bool)> = all.iter().filter_map(|(at, bearing)| Some((*at, test(bearing)?))).collect();
    let is_so = said.iter().filter(|(_, is_so)| *is_so).count();
    let has_two_sizes = said.iter().any(|(at, _)| *at != said[0].0);
    let outcome = match (is_so < said.len(), said.len() == all.len()) {
        _ if !has_two_sizes => Outcome::NotShown,
        (true, _) => Outcome::DoesNotHold,
        (false, true) => Outcome::Holds,
        (false, false) => Outcome::NotShown,
    };
    let mut evidence = format!("{words} in {is_so} of {} rows", all.len());
    if is_so < said.len() {
        evidence += &format!(", not in {}", said.len() - is_so);
    }
    if said.len() < all.len() {
        evidence += &format!(", uncertain in {}", all.len() - said.len());
    }
    let mut numbers: Vec<f64> =
        all.iter().filter_map(|(_, it)| it.number()).map(|ratio| ratio.value).collect();
    numbers.sort_by(f64::total_cmp);
    match numbers[..] {
        [] => {}
        [one] => evidence += &format!("; {} × the native throughput", short(one)),
        [least, .., greatest] => {
            evidence += &format!("; {} to {} × the native throughput", short(least), short(greatest));
        }
    }
    let nothing = all.iter().find_map(|(at, bearing)| match bearing {
        Bearing::Nothing(why) => Some(format!("; none at {at} octets: {why}")),
        Bearing::Number(_) | Bearing::Direction(_) | Bearing::Equal(_) => None,
    });
    evidence += &nothing.unwrap_or_default();
    if !has_two_sizes {
        evidence += "; a statement over sizes takes two";
    }
    (!all.is_empty()).then_some(Finding { statement, outcome, evidence })
}

/// With small data, a mechanism has less throughput over TCP than its native way.
fn small(rows: &Rows<'_, '_>, way: Way, printed: &str) -> Option<Finding> {
    let all: Vec<_> =
        [TCP, 7.0, 8.0].into_iter().flat_map(|load| rows.ratios(way, load, (0.0, SMALL))).collect();
    let statement = format!(
        "{}: with writes of {SMALL} octets or less, TCP is slower by {} than natively (the paper: {printed}).",
        rows.device,
        way.name()
    );
    over_sizes(statement, &all, "slower", Bearing::is_below)
}

/// With data of the MTU's size and more, the difference of a tunnel is minimal.
fn large(rows: &Rows<'_, '_>, way: Way) -> Option<Finding> {
    let all = rows.ratios(way, TCP, (MTU, f64::INFINITY));
    let what =
        format!("with writes of an MTU or more, TCP by {} differs minimally from native IPv6", way.name());
    minimal(rows, &what, &all)
}

fn udp(rows: &Rows<'_, '_>) -> Option<Finding> {
    let all: Vec<_> =
        Way::ALL.into_iter().flat_map(|way| rows.ratios(way, UDP, (0.0, f64::INFINITY))).collect();
    minimal(rows, "the throughput of UDP by all mechanisms differs minimally from the native one", &all)
}

fn minimal(rows: &Rows<'_, '_>, what: &str, all: &[(f64, Bearing)]) -> Option<Finding> {
    let words = format!("within {:.0} %", MINIMAL * 100.0);
    over_sizes(format!("{}: {what}.", rows.device), all, &words, is_minimal)
}

/// Teredo loses most by small data: more than half, and not more by large data.
fn teredo(rows: &Rows<'_, '_>) -> Option<Finding> {
    let all = rows.ratios(Way::Teredo, TCP, (0.0, f64::INFINITY));
    let [(least, small), .., (most, large)] = &all[..] else { return None };
    let is_half = is_below_half(small).filter(|_| *least <= SMALL);
    // The ratios by small and by large data are those of other rows: only intervals that do not meet differ.
    let is_more_by_large =
        large.ratio().zip(small.ratio()).map(|(large, small)| large.interval.1 < small.interval.0);
    let outcome = match (is_half, is_more_by_large) {
        (Some(true), Some(false)) => Outcome::Holds,
        (Some(false), _) | (Some(true), Some(true)) => Outcome::DoesNotHold,
        (None, _) | (Some(true), None) => Outcome::NotShown,
    };
    let part = |at: &f64, it: &Bearing| format!("{} at {at} octets: {}", it.text(), it.explained());
    Some(Finding {
        statement: format!("{}: Teredo loses most of TCP's throughput with small data.", rows.device),
        outcome,
        evidence: format!("{}; {}", part(least, small), part(most, large)),
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
        rounds_of(series, at, [share * 0.99, share, share * 1.01])
    }

    /// Shares of the native throughput by round.
    fn rounds_of(series: &str, at: (f64, f64), shares: [f64; 3]) -> Vec<Sample> {
        let values =
            [("throughput", 1e8, Unit::BitsPerSecond), ("native-throughput", 1e8, Unit::BitsPerSecond)];
        let mut all = rounds(series, at, &values);
        for (sample, share) in all.iter_mut().zip(shares) {
            if let Some(value) = sample.values.get_mut("throughput") {
                value.value *= share;
            }
        }
        all
    }

    fn outcome(samples: Vec<Vec<Sample>>, words: &str) -> Outcome {
        of(samples, words).unwrap().0
    }

    #[test]
    fn small_and_large_data_are_judged_by_what_is_lost() {
        let tcp = |octets, share| throughput("configured", (2.0, octets), share);
        let all = |second| vec![tcp(64.0, 0.6), tcp(256.0, second), tcp(1_400.0, 0.95), tcp(3_072.0, 0.96)];
        let (holds, evidence) = of(all(0.7), "(the paper: by 36.2 %)").unwrap();
        let words = "slower in 2 of 2 rows; 0.60 to 0.70 × the native throughput";
        assert_eq!((holds, evidence.as_str()), (Outcome::Holds, words));
        assert_eq!(outcome(all(1.5), "(the paper: by 36.2 %)"), Outcome::DoesNotHold);
        let (equal, evidence) = of(all(1.0), "(the paper: by 36.2 %)").unwrap();
        assert_eq!(equal, Outcome::DoesNotHold, "as fast is not slower");
        assert_eq!(evidence, "slower in 1 of 2 rows, not in 1; 0.60 × the native throughput");
        assert_eq!(outcome(all(0.7), "of an MTU or more"), Outcome::Holds);
        let slow = |large| vec![tcp(1_400.0, 0.95), tcp(3_072.0, large)];
        assert_eq!(outcome(slow(0.5), "of an MTU or more"), Outcome::DoesNotHold);
        assert_eq!(of(all(0.7), "Teredo"), None, "it was not measured");
    }

    #[test]
    fn a_statement_over_sizes_takes_two_of_them() {
        let tcp = |load, octets, share| throughput("configured", (load, octets), share);
        let one = vec![tcp(2.0, 64.0, 0.6), tcp(7.0, 64.0, 0.6), tcp(2.0, 3_072.0, 0.95)];
        let (not_shown, evidence) = of(one.clone(), "(the paper: by 36.2 %)").unwrap();
        assert_eq!(not_shown, Outcome::NotShown);
        assert!(evidence.ends_with("a statement over sizes takes two"), "{evidence}");
        assert_eq!(outcome(one, "of an MTU or more"), Outcome::NotShown);
        assert_eq!(outcome(vec![throughput("nat64", (3.0, 64.0), 0.4)], "of UDP"), Outcome::NotShown);
    }

    #[test]
    fn what_the_noise_does_not_bear_is_not_shown() {
        let wild = |load, octets| rounds_of("configured", (load, octets), [0.3, 0.9, 1.6]);
        let small = vec![wild(2.0, 64.0), wild(2.0, 256.0)];
        let (not_shown, evidence) = of(small, "(the paper: by 36.2 %)").unwrap();
        assert_eq!(not_shown, Outcome::NotShown);
        assert!(evidence.contains("none at 64 octets: the rounds differ too much"), "{evidence}");
        assert_eq!(outcome(vec![wild(2.0, 1_400.0), wild(2.0, 3_072.0)], "MTU or more"), Outcome::NotShown);
        assert_eq!(outcome(vec![wild(3.0, 64.0), wild(3.0, 1_024.0)], "of UDP"), Outcome::NotShown);
        // On average within a tenth, but each by an interval that reaches beyond it.
        let about = |octets| rounds_of("configured", (2.0, octets), [0.95, 1.0, 1.1]);
        assert_eq!(outcome(vec![about(1_400.0), about(3_072.0)], "MTU or more"), Outcome::NotShown);
    }

    #[test]
    fn an_uncertain_size_is_not_left_out() {
        let tcp = |octets, share| throughput("configured", (2.0, octets), share);
        let wild = rounds_of("configured", (7.0, 64.0), [0.3, 0.9, 1.6]);
        let words = "(the paper: by 36.2 %)";
        let (not_shown, evidence) = of(vec![tcp(64.0, 0.6), tcp(256.0, 0.7), wild.clone()], words).unwrap();
        assert_eq!(not_shown, Outcome::NotShown);
        assert!(evidence.starts_with("slower in 2 of 3 rows, uncertain in 1"), "{evidence}");
        assert_eq!(outcome(vec![tcp(64.0, 0.6), tcp(256.0, 1.5), wild], words), Outcome::DoesNotHold);
        let mut bound = throughput("configured", (8.0, 256.0), 0.7);
        bound.iter_mut().for_each(|it| it.verdict = Verdict::TesterBound { why: String::new() });
        assert_eq!(outcome(vec![tcp(64.0, 0.6), tcp(256.0, 0.7), bound], words), Outcome::NotShown);
    }

    #[test]
    fn a_native_load_that_was_not_at_its_limit_bears_no_statement() {
        let native = |own: Option<Verdict>| {
            let mut all =
                [throughput("configured", (2.0, 64.0), 0.6), throughput("configured", (2.0, 256.0), 0.6)];
            for sample in all.iter_mut().flatten() {
                if let Some(value) = sample.values.get_mut("native-throughput") {
                    value.verdict = own.clone();
                }
            }
            of(all.to_vec(), "(the paper: by 36.2 %)").unwrap()
        };
        assert_eq!(native(None).0, Outcome::Holds);
        assert_eq!(native(Some(Verdict::DeviceBound)).0, Outcome::Holds);
        let (not_shown, evidence) = native(Some(Verdict::TesterBound { why: String::new() }));
        assert_eq!(not_shown, Outcome::NotShown);
        assert!(
            evidence.contains("the tester was at its limit with native-throughput of sixway"),
            "{evidence}"
        );
        let (not_shown, evidence) = native(Some(Verdict::NotLoaded));
        assert_eq!(not_shown, Outcome::NotShown);
        assert!(evidence.contains("nothing was at its limit with native-throughput"), "{evidence}");
    }

    #[test]
    fn udp_has_a_statement_over_mechanisms() {
        let udp =
            |share| vec![throughput("nat64", (3.0, 64.0), share), throughput("6to4", (3.0, 1_024.0), 0.95)];
        assert_eq!(outcome(udp(0.93), "throughput of UDP"), Outcome::Holds);
        assert_eq!(outcome(udp(0.4), "throughput of UDP"), Outcome::DoesNotHold);
    }

    #[test]
    fn teredo_loses_most_if_less_than_half_is_left() {
        let teredo = |small, large| {
            vec![throughput("teredo", (2.0, 64.0), small), throughput("teredo", (2.0, 1_024.0), large)]
        };
        assert_eq!(outcome(teredo(0.3, 0.8), "Teredo loses"), Outcome::Holds);
        assert_eq!(outcome(teredo(0.7, 0.8), "Teredo loses"), Outcome::DoesNotHold);
        assert_eq!(outcome(teredo(2.16, 2.88), "Teredo loses"), Outcome::DoesNotHold, "it gains");
        assert_eq!(outcome(teredo(0.3, 0.1), "Teredo loses"), Outcome::DoesNotHold, "more by large data");
        assert_eq!(outcome(teredo(0.5, 0.8), "Teredo loses"), Outcome::NotShown, "about a half");
        let wild = rounds_of("teredo", (2.0, 64.0), [0.1, 0.5, 1.6]);
        let large = throughput("teredo", (2.0, 1_024.0), 0.8);
        assert_eq!(outcome(vec![wild, large], "Teredo loses"), Outcome::NotShown);
    }

    #[test]
    fn two_mechanisms_are_compared_at_the_greatest_size_of_both() {
        let cpu = |series, octets, more| {
            rounds(series, (2.0, octets), &[("cpu-increase-kib", more, Unit::NanosecondsPerPacket)])
        };
        let all = |isatap| {
            vec![cpu("isatap", 64.0, 9.0), cpu("isatap", 1_024.0, isatap), cpu("configured", 1_024.0, 0.4)]
        };
        assert_eq!(of(all(0.5), "more by ISATAP").unwrap().0, Outcome::Holds);
        assert_eq!(of(all(0.4), "more by ISATAP").unwrap().0, Outcome::DoesNotHold, "as much");
        // From 0.87 to 1.17: neither more nor as much.
        let mut open = vec![cpu("isatap", 1_024.0, 0.4), cpu("configured", 1_024.0, 0.4)];
        for (sample, share) in open[0].iter_mut().zip([0.95, 1.0, 1.07]) {
            sample.values.get_mut("cpu-increase-kib").unwrap().value *= share;
        }
        assert_eq!(of(open, "more by ISATAP").unwrap().0, Outcome::NotShown, "a wide interval");
        let mut both = all(0.4);
        both.push(cpu("configured", 64.0, 0.4));
        assert_eq!(of(both, "more by ISATAP").unwrap().0, Outcome::DoesNotHold, "the greatest size decides");
        let time = |series, of_native| {
            rounds(series, (1.0, 3_072.0), &[("native-response", of_native, Unit::Milliseconds)])
        };
        let longer = vec![time("ds-lite", 0.2), time("nat64", 0.1)];
        assert_eq!(of(longer, "native IPv4 is longer than that of IPv6").unwrap().0, Outcome::Holds);
        let six = || time("nat64", 0.2);
        let by_ds_lite = |time| rounds("ds-lite", (1.0, 3_072.0), &[("response", time, Unit::Milliseconds)]);
        let words = "native IPv6 is longer than that of DS-Lite";
        assert_eq!(outcome(vec![six(), by_ds_lite(0.1)], words), Outcome::Holds);
        assert_eq!(outcome(vec![six(), by_ds_lite(0.3)], words), Outcome::DoesNotHold);
        assert_eq!(
            outcome(vec![six(), by_ds_lite(0.3)[..2].to_vec()], words),
            Outcome::NotShown,
            "two rounds"
        );
    }
}
