//! What the paper printed.

use crate::analyse::{Headline, Published, Today};

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
    of("jitter of audio", ("call", "jitter"), [28, 33], [82, 75]),
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

/// The connection times, which are the only ones that it prints as figures, and the peaks of CPU.
pub const PUBLISHED: &[Published] = &[
    Published {
        device: "Fedora 12 (sit, iptables, radvd)",
        source: "text on connection time, 50 Mbit/s of background",
        series: "connection",
        axis: "form",
        values: &["connection"],
        rows: &[(1.0, &[1.72]), (2.0, &[1.91])],
    },
    Published {
        device: "bare PC",
        source: "text on connection time, 50 Mbit/s of background",
        series: "connection",
        axis: "form",
        values: &["connection"],
        rows: &[(1.0, &[0.98]), (2.0, &[1.38])],
    },
    Published {
        device: "Fedora 12 (sit, iptables, radvd)",
        source: "text on CPU: peak",
        series: "cpu",
        axis: "background",
        values: &["cpu"],
        rows: &[(90.0, &[0.019])],
    },
    Published {
        device: "bare PC",
        source: "text on CPU: peak, of which it does not tell the rate",
        series: "cpu",
        axis: "background",
        values: &["cpu"],
        rows: &[(90.0, &[0.005])],
    },
];

const NO_BARE_PC: Today = Today::Nothing(
    "the program for the bare PC was not published, and an emulated Linux is compared with plain forwarding in its own guest only; the findings have decoupled against co-located",
);

/// The paper's headlines.
pub const HEADLINES: &[Headline] = &[
    Headline {
        statement: "Linux over bare PC, TCP connection time, co-located",
        published: 1.76,
        today: NO_BARE_PC,
    },
    Headline {
        statement: "Linux over bare PC, TCP connection time, decoupled",
        published: 1.39,
        today: NO_BARE_PC,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

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
