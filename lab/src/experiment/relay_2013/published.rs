//! What the paper printed: packets a second are echo requests, each counted once.

use crate::analyse::Published;

/// The loss that the paper saw at most with Linux, as a share.
pub const LOSS: f64 = 0.000_3;

const VALUES: &[&str] = &["loss", "response", "cpu", "requests", "memory", "response-sd", "cpu-sd"];

/// Its tables of the series with two responders.
pub const PUBLISHED: &[Published] = &[
    Published {
        device: "Linux 2.6.32 sit",
        source: "table of Linux sit",
        series: "icmp",
        axis: "hosts",
        fixed: &[],
        values: VALUES,
        rows: &[
            (1.0, &[0.0, 0.274, 0.03, 11_177.0, 72.0, 0.017, 0.01]),
            (2.0, &[0.0, 0.308, 0.061, 21_360.0, 96.0, 0.029, 0.013]),
            (3.0, &[0.0, 0.241, 0.101, 29_424.0, 120.0, 0.053, 0.025]),
            (4.0, &[0.0, 0.48, 0.169, 35_166.0, 124.0, 0.082, 0.056]),
            (5.0, &[0.0, 0.576, 0.281, 39_829.0, 148.0, 0.105, 0.103]),
            (6.0, &[0.0, 0.7, 0.51, 42_615.0, 124.0, 0.126, 0.222]),
            (7.0, &[0.000_1, 0.867, 0.846, 43_502.0, 108.0, 0.148, 0.238]),
            (8.0, &[0.000_1, 0.998, 0.941, 45_411.0, 164.0, 0.176, 0.135]),
            (9.0, &[0.000_3, 1.168, 0.925, 45_691.0, 212.0, 0.192, 0.128]),
            (10.0, &[0.000_3, 1.311, 0.943, 46_812.0, 292.0, 0.196, 0.089]),
        ],
    },
    Published {
        device: "FreeBSD 9.0 stf",
        source: "table of FreeBSD stf",
        series: "icmp",
        axis: "hosts",
        fixed: &[],
        values: VALUES,
        rows: &[
            (1.0, &[0.000_2, 0.491, 0.69, 8_900.0, 536.0, 0.034, 0.039]),
            (2.0, &[0.000_1, 0.936, 0.914, 11_916.0, 892.0, 0.093, 0.029]),
            (3.0, &[0.000_1, 1.454, 0.978, 12_873.0, 1_548.0, 0.143, 0.014]),
            (4.0, &[0.0, 2.05, 0.987, 13_018.0, 892.0, 0.179, 0.011]),
            (5.0, &[0.0, 2.635, 0.997, 13_179.0, 892.0, 0.181, 0.006]),
            (6.0, &[0.0, 3.234, 1.0, 13_248.0, 1_300.0, 0.139, 0.0]),
            (7.0, &[0.0, 3.866, 0.999, 13_176.0, 2_320.0, 0.144, 0.004]),
            (8.0, &[0.0, 4.456, 1.0, 13_212.0, 2_060.0, 0.115, 0.0]),
            (9.0, &[0.0, 5.059, 1.0, 13_214.0, 2_012.0, 0.156, 0.0]),
            (10.0, &[0.0, 5.629, 1.0, 13_288.0, 2_648.0, 0.178, 0.0]),
        ],
    },
    Published {
        device: "NetBSD 6.0.1 stf",
        source: "table of NetBSD stf",
        series: "icmp",
        axis: "hosts",
        fixed: &[],
        values: VALUES,
        rows: &[
            (1.0, &[0.0, 2.191, 0.099, 3_068.0, 936.0, 0.574, 0.02]),
            (2.0, &[0.0, 2.27, 0.189, 5_958.0, 144.0, 0.628, 0.04]),
            (3.0, &[0.0, 2.668, 0.25, 7_836.0, 156.0, 0.809, 0.063]),
            (4.0, &[0.0, 2.514, 0.349, 11_006.0, 160.0, 0.718, 0.079]),
            (5.0, &[0.0, 2.543, 0.429, 13_628.0, 160.0, 0.719, 0.095]),
            (6.0, &[0.0, 3.033, 0.445, 14_021.0, 176.0, 0.768, 0.103]),
            (7.0, &[0.0, 2.786, 0.558, 17_644.0, 240.0, 0.686, 0.116]),
            (8.0, &[0.0, 3.32, 0.55, 17_241.0, 228.0, 0.634, 0.101]),
            (9.0, &[0.0, 3.267, 0.625, 19_721.0, 236.0, 0.617, 0.113]),
            (10.0, &[0.0, 3.398, 0.674, 21_079.0, 592.0, 0.557, 0.107]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's headline: Linux forwards 3.52 times as much as FreeBSD and 2.22 times as much as NetBSD with ten hosts.
    #[test]
    fn the_papers_headline_follows_from_its_tables() {
        let requests = |device: usize| PUBLISHED[device].at(10.0, "requests").unwrap();
        assert!((requests(0) / requests(1) - 3.52).abs() < 0.01);
        assert!((requests(0) / requests(2) - 2.22).abs() < 0.01);
        assert!(PUBLISHED.iter().all(|table| table.rows.len() == 10));
        assert!(PUBLISHED.iter().flat_map(|table| table.rows).all(|(_, row)| row.len() == VALUES.len()));
    }

    /// Of ten hosts, as the paper's tables have them.
    #[test]
    fn deviations_are_those_of_the_tables() {
        let of =
            |device: usize| ["response-sd", "cpu-sd"].map(|value| PUBLISHED[device].at(10.0, value).unwrap());
        assert_eq!([of(0), of(1), of(2)], [[0.196, 0.089], [0.178, 0.0], [0.557, 0.107]]);
    }

    /// Rate times response time is what is under way: eight requests a host for those that were busy, so each is counted once.
    #[test]
    fn the_paper_counts_each_request_once() {
        for hosts in [8.0, 9.0, 10.0] {
            let freebsd = |value| PUBLISHED[1].at(hosts, value).unwrap();
            let under_way = freebsd("requests") * freebsd("response") / 1e3;
            assert!((under_way / hosts - 8.0).abs() < 1.0, "{under_way} with {hosts} hosts");
        }
    }
}
