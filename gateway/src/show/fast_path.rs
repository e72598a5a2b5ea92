//! `sixway show fastpath`.

use super::colour::Colour;
use super::quantity::{count, plural, scaled};
use super::summary::share;
use super::table::Table;
use crate::view::FastPathRow;

/// The fast path: a summary, packets forwarded, and packets passed to the engine.
pub fn fast_path(row: &Option<FastPathRow>, colour: Colour) -> String {
    let Some(row) = row else {
        return "No fast path is running. It needs a [fastpath] section with a mode other than \"off\"; if there is one, the log at startup says why it did not start.\n"
            .into();
    };
    let summary = &row.summary;
    if summary.is_off() {
        return "The fast path was removed; the engine forwards all packets. The next start loads it again.\n".into();
    }
    let mut text = format!("fast path {} · {}\n", share(summary), summary.attached);
    text.push_str(&format!(
        "{} of {} flows · {}\n\n",
        count(summary.flows),
        count(summary.flows_capacity),
        plural(row.next_hops, "next hop"),
    ));
    let mut carried = Table::new(&["MECHANISM", "PACKETS OUT/IN", "OCTETS OUT/IN"]);
    let used = row.carried.iter().filter(|one| one.packets_out + one.packets_in > 0);
    for one in used {
        carried.row(vec![
            one.mechanism.clone(),
            format!("{}/{}", count(one.packets_out), count(one.packets_in)),
            format!("{}/{}", scaled(one.octets_out as f64).trim(), scaled(one.octets_in as f64).trim()),
        ]);
    }
    text.push_str(&carried.text(colour));
    let mut passed = Table::new(&["PASSED TO ENGINE", "PACKETS", "REASON"]);
    for one in row.passed.iter().filter(|one| one.packets > 0) {
        passed.row(vec![one.cause.clone(), count(one.packets), one.help.clone()]);
    }
    text.push('\n');
    text.push_str(&passed.text(colour));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{CarriedRow, FastPathShare, PassedRow};

    #[test]
    fn it_says_where_how_much_and_why_not() {
        let row = FastPathRow {
            summary: FastPathShare {
                share: Some(0.973),
                attached: "eth0 XDP · eth1 tc".into(),
                flows: 1_200,
                flows_capacity: 262_144,
            },
            next_hops: 2,
            carried: vec![
                CarriedRow {
                    mechanism: "nat64".into(),
                    packets_out: 1_204,
                    octets_out: 90_000,
                    ..CarriedRow::default()
                },
                CarriedRow { mechanism: "siit".into(), ..CarriedRow::default() },
            ],
            passed: vec![
                PassedRow { cause: "flags".into(), packets: 12, help: "SYN, FIN or RST".into() },
                PassedRow { cause: "hops".into(), ..PassedRow::default() },
            ],
        };
        let text = fast_path(&Some(row), Colour::Never);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "fast path 97.3 % · eth0 XDP · eth1 tc");
        assert_eq!(lines[1], "1,200 of 262,144 flows · 2 next hops");
        assert!(lines[4].starts_with("nat64      1,204/0"), "{text}");
        assert!(lines[7].starts_with("flags             12       SYN, FIN or RST"), "{text}");
        assert_eq!(lines.len(), 8, "{text}");
        assert!(fast_path(&None, Colour::Never).contains("[fastpath]"));
        let off = FastPathShare { attached: "off".into(), ..FastPathShare::default() };
        let text = fast_path(&Some(FastPathRow { summary: off, ..FastPathRow::default() }), Colour::Never);
        assert_eq!((text.lines().count(), text.contains("was removed")), (1, true), "{text}");
    }
}
