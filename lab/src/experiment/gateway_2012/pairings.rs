//! The order of the four pairings of two boxes: NAT and 6to4 by a device, by Linux, and by one each.

use super::compared::{OF_AUDIO, Standing, standing};
use super::form::Form;
use super::mostly::is_mostly_ahead;
use super::published::PERCENTAGES;
use crate::analyse::{Finding, Group, View};

/// Linux' gateway, whose own pairing is that of two boxes by Linux.
const LINUX: &str = "linux-site-gateway";

/// Whether the paper's order holds with a device in place of the bare PC: for those that were measured with a box of Linux.
pub fn pairings(view: &View<'_>, device: &str) -> Vec<Finding> {
    let own = (device, Form::Decoupled);
    let (linux_nat, linux_six) = ((device, Form::LinuxNat), (device, Form::LinuxSix));
    let best: Vec<Standing> = [linux_nat, linux_six, (LINUX, Form::Decoupled)]
        .into_iter()
        .flat_map(|other| against(view, own, other))
        .collect();
    let has_mixed = view.groups.iter().any(|group| {
        let forms = [Form::LinuxNat, Form::LinuxSix].map(|form| f64::from(form as u8));
        group.cell.device == device && forms.contains(&group.cell.at("form"))
    });
    let best = if has_mixed { best } else { Vec::new() };
    let statements = [
        (
            format!(
                "{device}: with both boxes it is ahead of each pairing with a Linux box (the paper: bare-bare is best)."
            ),
            best,
        ),
        (
            format!(
                "{device}: its 6to4 behind Linux' NAT is ahead of Linux' 6to4 behind its NAT (the paper: Linux-bare beats bare-Linux)."
            ),
            against(view, linux_nat, linux_six),
        ),
    ];
    let finding = |(statement, all): (String, Vec<Standing>)| is_mostly_ahead(statement, &all, "");
    statements.into_iter().filter_map(finding).collect()
}

/// A pairing against another one at all places that both have: above 1 the first is ahead. What is lost has a statement of its own.
fn against(view: &View<'_>, one: (&str, Form), other: (&str, Form)) -> Vec<Standing> {
    let measures =
        PERCENTAGES.iter().map(|printed| printed.value).filter(|(_, value)| !OF_AUDIO.contains(value));
    let of_measure = |(series, value): (&'static str, &'static str)| {
        let of = |ours: &Group<'_>| {
            let mut point = ours.cell.point.clone();
            point.insert("form".to_owned(), f64::from(other.1 as u8));
            let theirs = view.group(series, other.0, &point)?;
            // What neither has was not measured in this run.
            let has_some = [ours, theirs].iter().any(|row| row.value(value).is_some());
            has_some.then(|| standing(view, ours, theirs, value))
        };
        let is_meant = |group: &&Group<'_>| {
            let cell = group.cell;
            cell.device == one.0 && cell.series == series && cell.at("form") == f64::from(one.1 as u8)
        };
        view.groups.iter().filter(is_meant).filter_map(of).collect::<Vec<_>>()
    };
    measures.flat_map(of_measure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Outcome;
    use crate::results::{Cell, Header, Results, Sample, TesterCost, Unit, Value, Verdict};

    /// Rounds of a connection's time.
    fn rows(device: &str, form: Form, times: &[f64]) -> Vec<Sample> {
        let row = |(repeat, time): (u32, &f64)| Sample {
            cell: Cell {
                experiment: "gateway-2012".to_owned(),
                series: "connection".to_owned(),
                device: device.to_owned(),
                point: [("form".to_owned(), f64::from(form as u8)), ("version".to_owned(), 6.0)].into(),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: [("connection".to_owned(), Value::one(*time, Unit::Milliseconds))].into(),
            not_measurable: [].into(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        (0..).zip(times).map(row).collect()
    }

    fn of(samples: &[Vec<Sample>], device: &str) -> Vec<Outcome> {
        let results = Results { header: Header::default(), samples: samples.concat() };
        pairings(&View::of(&results, "gateway-2012"), device).into_iter().map(|it| it.outcome).collect()
    }

    fn about(time: f64) -> [f64; 3] {
        [0.99 * time, time, 1.01 * time]
    }

    #[test]
    fn the_order_of_pairings_is_that_of_their_times() {
        let device = "sixway-in-guest";
        let with = |nat: &[f64], six: &[f64]| {
            let all = [
                rows(device, Form::Decoupled, &about(1.0)),
                rows(device, Form::LinuxNat, nat),
                rows(device, Form::LinuxSix, six),
                rows(LINUX, Form::Decoupled, &about(2.0)),
            ];
            of(&all, device)
        };
        assert_eq!(with(&about(1.3), &about(1.6)), [Outcome::Holds; 2]);
        assert_eq!(with(&about(1.6), &about(1.3)), [Outcome::Holds, Outcome::DoesNotHold]);
        assert_eq!(with(&about(0.6), &about(0.5)), [Outcome::DoesNotHold; 2]);
        let wild = [0.5, 1.0, 3.0];
        assert_eq!(with(&wild, &about(1.0)), [Outcome::NotShown; 2], "an uncertain row is a row");
        assert_eq!(with(&about(1.3)[..2], &about(1.6)[..2]), [Outcome::NotShown; 2], "two rounds");
    }

    #[test]
    fn a_device_without_a_box_of_linux_has_no_statement() {
        let all = [rows("sixway", Form::Decoupled, &about(1.0)), rows(LINUX, Form::Decoupled, &about(2.0))];
        assert_eq!(of(&all, "sixway"), []);
        assert_eq!(of(&all, LINUX), []);
        // Linux' 6to4 takes a guest: one pairing is not measured here.
        let mixed = rows("sixway", Form::LinuxNat, &about(1.5));
        assert_eq!(of(&[all.concat(), mixed], "sixway"), [Outcome::Holds]);
    }

    #[test]
    fn calls_that_lose_nothing_do_not_count_against_a_pairing() {
        let device = "sixway-in-guest";
        let calls = |device, form| {
            let mut all = rows(device, form, &[1.0; 3]);
            for sample in &mut all {
                sample.cell.series = "call".to_owned();
                sample.values =
                    ["loss", "throughput"].map(|name| (name.to_owned(), Value::one(0.0, Unit::Lost))).into();
            }
            all
        };
        let places = [
            (device, Form::Decoupled, 1.0),
            (device, Form::LinuxNat, 1.3),
            (device, Form::LinuxSix, 1.6),
            (LINUX, Form::Decoupled, 2.0),
        ];
        let all: Vec<_> = places
            .iter()
            .flat_map(|(of, form, time)| [rows(of, *form, &about(*time)), calls(*of, *form)])
            .collect();
        assert_eq!(of(&all, device), [Outcome::Holds; 2]);
    }
}
