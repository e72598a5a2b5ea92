//! What the paper printed.

use crate::analyse::{Headline, Place, Published, Today};

/// A measure's percentages, as printed: co-located before decoupled on Linux and on the bare PC, and the bare PC before Linux with one box and with two.
#[derive(Clone, Copy, Debug)]
pub struct Percentages {
    /// The measure, in words.
    pub measure: &'static str,
    /// The series and the value.
    pub value: (&'static str, &'static str),
    /// Linux, bare PC.
    pub one_box: [u32; 2],
    /// Co-located, decoupled.
    pub bare: [u32; 2],
}

/// All measures that the paper gives percentages of.
pub const PERCENTAGES: [Percentages; 7] = [
    of("TCP connection time", ("connection", "connection"), [11, 40], [76, 39]),
    of("HTTP response time", ("web", "response"), [7, 34], [51, 38]),
    of("call set-up", ("call", "setup"), [38, 57], [86, 65]),
    of("mean jitter of audio", ("call", "mean-jitter"), [28, 33], [82, 75]),
    of("throughput of audio", ("call", "throughput"), [12, 5], [23, 35]),
    of("loss of audio", ("call", "loss"), [16, 13], [51, 52]),
    of("round-trip time of 1,400 octets", ("rtt", "response"), [45, 34], [57, 60]),
];

const fn of(
    measure: &'static str,
    value: (&'static str, &'static str),
    one_box: [u32; 2],
    bare: [u32; 2],
) -> Percentages {
    Percentages { measure, value, one_box, bare }
}

/// The paper's formula: 1.72 ms against 0.98 ms are 76 %.
pub const FORMULA: &str = "slower / faster − 1";

/// Where the paper gives its connection times.
const IN_TEXT: [(&str, f64); 4] =
    [("version", 6.0), ("link", 100.0), ("background", 50.0), ("packet", 1_000.0)];
/// Where its peaks of CPU are shown: it does not tell how many boxes, nor the size of packets.
const PEAK: [(&str, f64); 3] = [("form", 1.0), ("version", 6.0), ("packet", 1_000.0)];

/// The connection times, which are the only ones that it prints as figures, and the peaks of CPU.
pub const PUBLISHED: &[Published] = &[
    Published {
        device: "Fedora 12 (sit, iptables, radvd)",
        source: "text on connection time, 50 Mbit/s of background",
        series: "connection",
        axis: "form",
        fixed: &IN_TEXT,
        values: &["connection"],
        rows: &[(1.0, &[1.72]), (2.0, &[1.91])],
    },
    Published {
        device: "bare PC",
        source: "text on connection time, 50 Mbit/s of background",
        series: "connection",
        axis: "form",
        fixed: &IN_TEXT,
        values: &["connection"],
        rows: &[(1.0, &[0.98]), (2.0, &[1.38])],
    },
    Published {
        device: "Fedora 12 (sit, iptables, radvd)",
        source: "text on CPU: peak",
        series: "cpu",
        axis: "background",
        fixed: &PEAK,
        values: &["cpu"],
        rows: &[(90.0, &[0.019])],
    },
    Published {
        device: "bare PC",
        source: "text on CPU: peak, of which it does not tell the rate",
        series: "cpu",
        axis: "background",
        fixed: &PEAK,
        values: &["cpu"],
        rows: &[(90.0, &[0.005])],
    },
];

/// A place on the axes.
type Point = &'static [(&'static str, f64)];

const fn place(form: f64) -> [(&'static str, f64); 5] {
    [("form", form), ("version", 6.0), ("link", 100.0), ("background", 50.0), ("packet", 1_000.0)]
}

const fn page(form: f64) -> [(&'static str, f64); 6] {
    let [a, b, c, d, e] = place(form);
    [a, b, c, d, e, ("page", 25_000.0)]
}

/// One box and two, with the paper's background over its links.
const BOXES: [Point; 2] = [&place(1.0), &place(2.0)];
/// The same with a page of the middle.
const PAGES: [Point; 2] = [&page(1.0), &page(2.0)];

/// The devices in the places of Linux and the bare PC.
const LINUX: &str = "linux-site-gateway";
const BARE: &str = "sixway-xdp";

/// A measure's ratios: Linux over the bare PC with one box and with two, and two boxes over one on either, or the other way round for what is to be great.
const fn measure(
    (series, value): (&'static str, &'static str),
    (points, is_rate): ([Point; 2], bool),
    ratios: [(&'static str, f64); 4],
) -> [Headline; 4] {
    let devices = if is_rate { (BARE, LINUX) } else { (LINUX, BARE) };
    let [one, two] = points;
    let (over, under) = if is_rate { (one, two) } else { (two, one) };
    [
        by_device((series, value), one, devices, ratios[0]),
        by_device((series, value), two, devices, ratios[1]),
        by_form((series, value), LINUX, (over, under), ratios[2]),
        by_form((series, value), BARE, (over, under), ratios[3]),
    ]
}

const fn by_device(
    (series, value): (&'static str, &'static str),
    point: Point,
    devices: (&'static str, &'static str),
    (statement, published): (&'static str, f64),
) -> Headline {
    Headline { statement, published, today: Today::Ratio { series, point, value, devices } }
}

const fn by_form(
    (series, value): (&'static str, &'static str),
    device: &'static str,
    (over, under): (Point, Point),
    (statement, published): (&'static str, f64),
) -> Headline {
    let over = Place { device, series, point: over, value };
    let under = Place { device, series, point: under, value };
    Headline { statement, published, today: Today::Rows { over, under } }
}

/// The paper's headlines, by measure in the order of [`PERCENTAGES`].
pub const HEADLINES: &[Headline] = MEASURES.as_flattened();

const MEASURES: &[[Headline; 4]] = &[
    measure(
        ("connection", "connection"),
        (BOXES, false),
        [
            ("TCP connection time, co-located: Linux over bare PC", 1.76),
            ("TCP connection time, decoupled: Linux over bare PC", 1.39),
            ("TCP connection time, Linux: decoupled over co-located", 1.11),
            ("TCP connection time, bare PC: decoupled over co-located", 1.4),
        ],
    ),
    measure(
        ("web", "response"),
        (PAGES, false),
        [
            ("HTTP response time, co-located: Linux over bare PC", 1.51),
            ("HTTP response time, decoupled: Linux over bare PC", 1.38),
            ("HTTP response time, Linux: decoupled over co-located", 1.07),
            ("HTTP response time, bare PC: decoupled over co-located", 1.34),
        ],
    ),
    measure(
        ("call", "setup"),
        (BOXES, false),
        [
            ("Call set-up, co-located: Linux over bare PC", 1.86),
            ("Call set-up, decoupled: Linux over bare PC", 1.65),
            ("Call set-up, Linux: decoupled over co-located", 1.38),
            ("Call set-up, bare PC: decoupled over co-located", 1.57),
        ],
    ),
    measure(
        ("call", "mean-jitter"),
        (BOXES, false),
        [
            ("Mean jitter of audio, co-located: Linux over bare PC", 1.82),
            ("Mean jitter of audio, decoupled: Linux over bare PC", 1.75),
            ("Mean jitter of audio, Linux: decoupled over co-located", 1.28),
            ("Mean jitter of audio, bare PC: decoupled over co-located", 1.33),
        ],
    ),
    measure(
        ("call", "throughput"),
        (BOXES, true),
        [
            ("Throughput of audio, co-located: bare PC over Linux", 1.23),
            ("Throughput of audio, decoupled: bare PC over Linux", 1.35),
            ("Throughput of audio, Linux: co-located over decoupled", 1.12),
            ("Throughput of audio, bare PC: co-located over decoupled", 1.05),
        ],
    ),
    measure(
        ("call", "loss"),
        (BOXES, false),
        [
            ("Loss of audio, co-located: Linux over bare PC", 1.51),
            ("Loss of audio, decoupled: Linux over bare PC", 1.52),
            ("Loss of audio, Linux: decoupled over co-located", 1.16),
            ("Loss of audio, bare PC: decoupled over co-located", 1.13),
        ],
    ),
    measure(
        ("rtt", "response"),
        (BOXES, false),
        [
            ("Round-trip time of 1,400 octets, co-located: Linux over bare PC", 1.57),
            ("Round-trip time of 1,400 octets, decoupled: Linux over bare PC", 1.6),
            ("Round-trip time of 1,400 octets, Linux: decoupled over co-located", 1.45),
            ("Round-trip time of 1,400 octets, bare PC: decoupled over co-located", 1.34),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_percentage_is_a_headline_with_a_place_for_todays_ratio() {
        for (measure, printed) in MEASURES.iter().zip(PERCENTAGES) {
            let [co_located, decoupled] = printed.bare;
            let [linux, bare] = printed.one_box;
            for (headline, percent) in measure.iter().zip([co_located, decoupled, linux, bare]) {
                let (ratio, text) = (1.0 + f64::from(percent) / 100.0, headline.statement);
                assert!((headline.published - ratio).abs() < 1e-9, "{text}");
                let (series, value) = match headline.today {
                    Today::Ratio { series, value, .. } => (series, value),
                    Today::Rows { over, .. } => (over.series, over.value),
                    Today::Nothing(why) => panic!("{text}: {why}"),
                };
                assert_eq!((series, value), printed.value, "{text}");
                assert!(text.to_lowercase().starts_with(&printed.measure.to_lowercase()), "{text}");
            }
        }
        assert_eq!(HEADLINES.len(), 4 * PERCENTAGES.len());
    }

    #[test]
    fn percent_is_slower_over_faster_less_one() {
        // Linux' two, the bare PC's two.
        let [[linux, linux_two], [bare, bare_two]] =
            [0, 1].map(|at| [1.0, 2.0].map(|form| PUBLISHED[at].at(form, "connection").unwrap()));
        let percent = |slower: f64, faster: f64| ((slower / faster - 1.0) * 100.0).round() as u32;
        let printed = PERCENTAGES[0];
        assert_eq!(percent(linux, bare), printed.bare[0]);
        // The paper has 39, of times before they were rounded.
        assert!(percent(linux_two, bare_two).abs_diff(printed.bare[1]) <= 1);
        assert_eq!(percent(linux_two, linux), printed.one_box[0]);
        assert!(percent(bare_two, bare).abs_diff(printed.one_box[1]) <= 1);
    }
}
