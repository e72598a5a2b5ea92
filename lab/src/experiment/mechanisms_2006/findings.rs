//! The paper's statements.

use super::overhead::{Form, Transport, truncated};
use super::published::{MISPRINTED, OVERHEAD};
use crate::analyse::{Finding, Outcome, View};
use crate::experiment::three_routers::Way;
use crate::results::{Results, Verdict};

/// What counts as small data, in octets.
const SMALL: f64 = 256.0;

/// Whether the paper's statements hold.
pub fn findings(results: &Results) -> Vec<Finding> {
    let view = View::of(results, "mechanisms-2006");
    let tunnels = [Way::Configured, Way::SixToFour, Way::Isatap];
    let mut all: Vec<_> =
        Form::ALL.iter().zip(OVERHEAD).map(|(form, printed)| header(*form, printed)).collect();
    all.extend(tunnels.into_iter().filter_map(|way| small(&view, way)));
    all
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

/// With small data, a tunnel has less throughput over TCP than native IPv6.
fn small(view: &View<'_>, way: Way) -> Option<Finding> {
    let groups = view.groups.iter().filter(|group| {
        let cell = group.cell;
        !matches!(group.verdict(), Verdict::TesterBound { .. } | Verdict::Failed)
            && cell.series == way.name()
            && [2.0, 7.0, 8.0].contains(&cell.at("load"))
            && cell.at("octets") <= SMALL
    });
    let pair =
        |name: &str, group: &crate::analyse::Group<'_>| group.value(name).map(|(estimate, _)| estimate.mean);
    let pairs: Vec<_> = groups
        .filter_map(|group| Some((pair("throughput", group)?, pair("native-throughput", group)?)))
        .collect();
    let below = pairs.iter().filter(|(through, native)| through < native).count();
    (!pairs.is_empty()).then(|| Finding {
        statement: format!(
            "With writes of {SMALL} octets or less, TCP is slower by {} than natively.",
            way.name()
        ),
        outcome: if below == pairs.len() { Outcome::Holds } else { Outcome::DoesNotHold },
        evidence: format!("slower in {below} of {} rows", pairs.len()),
    })
}
