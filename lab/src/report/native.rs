//! Tables of what a mechanism costs against the native way by the same routers. Devices in guests are in no other table, if their experiment has no plain
//! forwarding: this ratio is all that may be said of them.

use super::grid::{Grid, Row, place, place_cells, rows_of};
use crate::analyse::{Column, Table, View};

/// The name of the native value next to a value, by the names that experiments give them.
fn native_of(value: &str) -> String {
    match value.strip_prefix("tunnel") {
        Some(rest) => format!("ipv6{rest}"),
        None => format!("native-{value}"),
    }
}

/// Each value over the native one of the same rows.
pub(super) fn native_ratios(table: &Table, view: &View<'_>) -> Option<Grid> {
    let rows = rows_of(table, view, false);
    let has = |name: &str| rows.iter().any(|group| group.value(name).is_some());
    let is_pair = |column: &&Column| {
        let native = native_of(column.value);
        table.columns.iter().any(|other| other.value == native) && has(column.value) && has(&native)
    };
    let columns: Vec<&Column> = table.columns.iter().filter(is_pair).collect();
    let mut lines: Vec<Row> = Vec::new();
    let mut before = None;
    for group in &rows {
        let ratios: Vec<_> = columns
            .iter()
            .map(|column| match group.value(column.value) {
                Some(_) => {
                    let native = native_of(column.value);
                    let bearing = view.ratio_of((group, column.value), (group, &native));
                    (bearing.text(), bearing.explained())
                }
                None => ("–".to_owned(), String::new()),
            })
            .collect();
        let place = place(table, group);
        let mut cells = place_cells(&place);
        cells.push((group.cell.device.clone(), String::new()));
        cells.push((view.realm(&group.cell.device).to_owned(), String::new()));
        cells.extend(ratios);
        lines.push(Row { cells, is_published: false, begins: before.as_ref() != Some(&place) });
        before = Some(place);
    }
    if columns.is_empty() || lines.is_empty() {
        return None;
    }
    let mut heads: Vec<_> = table.axes.iter().map(|axis| (*axis).to_owned()).collect();
    heads.extend(["device".to_owned(), "realm".to_owned()]);
    heads.extend(columns.iter().map(|column| column.title.to_owned()));
    Some(Grid {
        title: format!("{}: ratios to the native way", table.title),
        caption: "Each device over the native way by the same routers, in the same rows; what runs in a guest over what the same guests forward. \
                  Numbers are printed as in the other ratios."
            .to_owned(),
        heads,
        names: table.axes.len() + 2,
        rows: lines,
    })
}

#[cfg(test)]
mod tests {
    use super::super::grid::absolute;
    use super::*;
    use crate::results::{
        Asked, Cell, DeviceEntry, Header, Results, Sample, TesterCost, Unit, Value, Verdict,
    };
    use std::collections::BTreeMap;

    #[test]
    fn a_native_load_has_a_verdict_of_its_own() {
        let sample = |own: &Option<Verdict>, repeat: u32| {
            let mut sample = Sample::failed(
                Cell {
                    experiment: "x".to_owned(),
                    series: "s".to_owned(),
                    device: "sixway".to_owned(),
                    point: BTreeMap::new(),
                    repeat,
                },
                "",
            );
            (sample.failed, sample.verdict) = (None, Verdict::DeviceBound);
            sample.control = Some(3.0 + 0.03 * f64::from(repeat));
            let value = |bits| Value::one(bits, Unit::BitsPerSecond);
            let native = Value { verdict: own.clone(), ..value(2.67e8) };
            sample.values = BTreeMap::from([
                ("throughput".to_owned(), value(6.9e8)),
                ("native-throughput".to_owned(), native),
            ]);
            sample
        };
        let columns = &[
            Column { value: "throughput", title: "throughput" },
            Column { value: "native-throughput", title: "native throughput" },
        ];
        let table = Table { title: "T", series: "s", axes: &[], columns };
        let printed = |own: Option<Verdict>| {
            let results =
                Results { header: Header::default(), samples: (0..3).map(|at| sample(&own, at)).collect() };
            let view = View::of(&results, "x");
            let ratio = native_ratios(&table, &view).unwrap().rows[0].cells[2].clone();
            let grid = absolute(&table, &view, &[], &Asked::default()).unwrap();
            (ratio.0, ratio.1, grid.rows[0].cells.last().unwrap().0.clone())
        };
        assert_eq!(printed(None).0, "2.58 ×");
        let (ratio, why, verdict) = printed(Some(Verdict::TesterBound { why: String::new() }));
        assert_eq!(ratio, "–");
        assert_eq!(why, "the tester was at its limit with native-throughput of sixway");
        assert_eq!(verdict, "device-bound (native throughput: tester-bound)");
        let (ratio, _, verdict) = printed(Some(Verdict::DeviceBound));
        assert_eq!((ratio.as_str(), verdict.as_str()), ("2.58 ×", "device-bound"));
        assert_eq!(printed(Some(Verdict::NotLoaded)).0, "–");
    }

    #[test]
    fn a_device_in_a_guest_is_shown_as_a_ratio_to_the_native_way() {
        let sample = |repeat: u32| Sample {
            cell: Cell {
                experiment: "x".to_owned(),
                series: "s".to_owned(),
                device: "linux-sit".to_owned(),
                point: BTreeMap::from([("octets".to_owned(), 64.0)]),
                repeat,
            },
            started: String::new(),
            took: 1.0,
            values: [("response", 6.0), ("native-response", 3.0)]
                .map(|(name, value)| (name.to_owned(), Value::one(value, Unit::Milliseconds)))
                .into(),
            not_measurable: BTreeMap::new(),
            verdict: Verdict::NotLoaded,
            tester: TesterCost::default(),
            control: Some(3.0 + 0.03 * f64::from(repeat)),
            commands: Vec::new(),
            raw: Vec::new(),
            failed: None,
        };
        let header = Header {
            devices: vec![DeviceEntry {
                name: "linux-sit".to_owned(),
                realm: "qemu".to_owned(),
                version: String::new(),
                cannot_run: None,
                is_plain: false,
            }],
            ..Header::default()
        };
        let results = Results { header, samples: (0..3).map(sample).collect() };
        let columns = &[
            Column { value: "response", title: "response" },
            Column { value: "native-response", title: "native response" },
        ];
        let table = Table { title: "T", series: "s", axes: &["octets"], columns };
        let grid = native_ratios(&table, &View::of(&results, "x")).unwrap();
        assert_eq!(grid.heads, ["octets", "device", "realm", "response"]);
        let row: Vec<&str> = grid.rows[0].cells.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(row, ["64", "linux-sit", "qemu", "2.00 ×"]);
        assert_eq!(
            (native_of("tunnel-tcp"), native_of("tunnel")),
            ("ipv6-tcp".to_owned(), "ipv6".to_owned())
        );
    }
}
