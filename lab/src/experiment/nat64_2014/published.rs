//! What the paper printed: its table of ICMP, and what its text says of TCP.

use crate::analyse::Published;

const TAYGA: &str = "TAYGA 0.9.2 + MASQUERADE";
const PF: &str = "OpenBSD PF (af-to)";
const ICMP: &[&str] = &["loss", "response", "response-max", "cpu", "requests", "response-sd", "cpu-sd"];
const HTTP: &[&str] = &["files"];

const fn http(
    device: &'static str,
    series: &'static str,
    rows: &'static [(f64, &'static [f64])],
) -> Published {
    Published {
        device,
        source: "text on TCP and UDP",
        series,
        axis: "octets",
        fixed: &[],
        values: HTTP,
        rows,
    }
}

/// Its figures.
pub const PUBLISHED: &[Published] = &[
    Published {
        device: TAYGA,
        source: "table of ICMP",
        series: "icmp",
        axis: "clients",
        fixed: &[],
        values: ICMP,
        rows: &[
            (1.0, &[0.000_02, 1.67, 30.0, 0.888_9, 3_825.0, 0.56, 0.021_6]),
            (2.0, &[0.000_03, 3.65, 34.7, 0.956_4, 3_928.0, 0.94, 0.017_7]),
            (4.0, &[0.000_05, 7.42, 52.4, 0.995_5, 4_097.0, 1.7, 0.008_9]),
            (8.0, &[0.000_07, 28.47, 87.24, 1.0, 4_128.0, 9.21, 0.0]),
        ],
    },
    Published {
        device: PF,
        source: "table of ICMP",
        series: "icmp",
        axis: "clients",
        fixed: &[],
        values: ICMP,
        rows: &[
            (1.0, &[0.000_01, 0.48, 21.3, 0.498_6, 8_536.0, 0.22, 0.066_4]),
            (2.0, &[0.000_02, 0.7, 30.5, 0.772_3, 14_010.0, 0.46, 0.039_1]),
            (4.0, &[0.000_07, 1.43, 44.0, 0.911_7, 17_195.0, 0.77, 0.018_2]),
            (8.0, &[0.000_08, 3.19, 43.4, 0.964_7, 17_944.0, 1.15, 0.015_1]),
        ],
    },
    http(TAYGA, "http-1", &[(100.0, &[405.0]), (12_800.0, &[233.0])]),
    http(TAYGA, "http-2", &[(100.0, &[683.0]), (12_800.0, &[292.0])]),
    http(PF, "http-8", &[(100.0, &[2_875.0]), (12_800.0, &[1_055.0])]),
    http(TAYGA, "vpn-1", &[(100.0, &[644.0]), (12_800.0, &[335.0])]),
    http(TAYGA, "vpn-2", &[(100.0, &[1_228.0]), (12_800.0, &[506.0])]),
    http(PF, "vpn-1", &[(100.0, &[747.0]), (12_800.0, &[446.0])]),
];

/// The most that it saw lost, as a share: PF with eight clients.
pub const LOSS: f64 = 0.000_08;

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's headline: PF forwards 4.35 times as much as TAYGA with eight clients, and answers 8.9 times as fast.
    #[test]
    fn published_headlines_follow_from_the_tables() {
        let at = |table: usize, value| PUBLISHED[table].at(8.0, value).unwrap();
        assert!((at(1, "requests") / at(0, "requests") - 4.35).abs() < 0.01);
        assert!((at(0, "response") / at(1, "response") - 8.9).abs() < 0.05);
        assert!(PUBLISHED[..2].iter().all(|table| table.rows.len() == 4));
        for table in PUBLISHED {
            assert!(table.rows.iter().all(|(_, row)| row.len() == table.values.len()), "{table:?}");
        }
    }

    #[test]
    fn deviations_are_those_of_the_table() {
        let of =
            |table: usize| ["response-sd", "cpu-sd"].map(|value| PUBLISHED[table].at(8.0, value).unwrap());
        assert_eq!([of(0), of(1)], [[9.21, 0.0], [1.15, 0.015_1]]);
    }

    /// Eight requests of each client are under way, or more because of those that are sent again after 10 ms: so each is counted once.
    #[test]
    fn in_flight_is_rate_times_response() {
        for (clients, least, most) in [(2.0, 12.0, 17.0), (4.0, 28.0, 33.0), (8.0, 110.0, 125.0)] {
            let under_way = PUBLISHED[0].at(clients, "requests").unwrap()
                * PUBLISHED[0].at(clients, "response").unwrap()
                / 1e3;
            assert!((least..most).contains(&under_way), "{under_way} with {clients} clients");
        }
    }
}
