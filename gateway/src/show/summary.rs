//! `sixway show`: the gateway in two lines and a row for each mechanism.

use super::colour::Colour;
use super::dns64;
use super::event_log::sinks;
use super::pcp;
use super::problems::problems;
use super::quantity::{count, duration, percent, plural, scaled};
use super::table::Table;
use super::teredo_server;
use crate::view::{FastPathShare, MechanismRow, Status};

/// The summary.
pub fn summary(status: &Status, colour: Colour) -> String {
    let rates = &status.rates;
    let mut text = problems(&status.problems, colour);
    text.push_str(&format!(
        "{} · up {} · {}bit/s · {}packets/s{} · drops {}{}\n",
        status.name,
        duration(status.uptime_seconds),
        scaled(rates.bits),
        scaled(rates.packets),
        status.fast_path.as_ref().map_or_else(String::new, |it| format!(" · fast path {}", share(it))),
        percent(rates.drops, rates.frames),
        rates.top_reason.as_ref().map_or_else(String::new, |reason| format!(", mostly {reason}")),
    ));
    if let Some(device) = &status.device {
        text.push_str(&format!(
            "{} · MTU {} · {} · {} · GSO: {}\n",
            device.name,
            device.mtu,
            plural(status.workers as u64, "worker"),
            plural(device.queues as u64, "queue"),
            if device.gso.is_empty() { "none" } else { &device.gso },
        ));
    }
    text.push_str(&reload(status));
    text.push_str(&host(status));
    text.push_str(&sinks(&status.event_log));
    let mut table = Table::new(&["MECHANISM", "SERVES", "FRAMES/S", "STATE"]);
    for mechanism in &status.mechanisms {
        table.row(vec![
            mechanism.name.clone(),
            mechanism.serves.clone(),
            count(mechanism.frames as u64),
            state(mechanism),
        ]);
    }
    if let Some(row) = &status.dns64 {
        table.row(vec!["dns64".into(), row.serves.clone(), dns64::queries(row), dns64::state(row)]);
    }
    if let Some(row) = &status.pcp {
        table.row(vec!["pcp".into(), row.interfaces.join(", "), String::new(), pcp::state(row)]);
    }
    if let Some(row) = &status.teredo_server {
        let rate = format!("{} /min", count(row.received_last_minute));
        table.row(vec!["teredo server".into(), row.exposes.clone(), rate, teredo_server::state(row)]);
    }
    text.push_str(&table.text(colour));
    text
}

/// The part that the fast path carried.
pub(super) fn share(fast_path: &FastPathShare) -> String {
    match fast_path.share {
        _ if fast_path.is_off() => "off".into(),
        Some(share) => percent(share, 1.0),
        None => "idle".into(),
    }
}

/// The last reload, while it is on trial.
fn reload(status: &Status) -> String {
    let Some(reload) = &status.reload else { return String::new() };
    match (reload.state.as_str(), reload.seconds_left) {
        ("awaits confirmation", Some(left)) => format!(
            "the reload awaits `sixway reload --keep`; otherwise the previous configuration returns in {left} s\n"
        ),
        ("on trial", Some(left)) => format!("the reloaded configuration is on trial for {left} s\n"),
        (_, _) => String::new(),
    }
}

/// What other programs changed on the host; nothing in most cases.
fn host(status: &Status) -> String {
    let Some(host) = &status.host else { return String::new() };
    let restored: Vec<String> = host
        .restored
        .iter()
        .filter(|row| row.times > 0)
        .map(|row| format!("{} ({})", row.what.replace('_', " "), count(row.times)))
        .collect();
    let mut text = String::new();
    if !restored.is_empty() {
        text.push_str(&format!("restored, after other programs changed it: {}\n", restored.join(", ")));
    }
    text
}

fn state(mechanism: &MechanismRow) -> String {
    let bindings = count(mechanism.bindings);
    if let Some(mappings) = &mechanism.mappings {
        let refused = match mappings.refused_for_room() {
            0 => String::new(),
            refused => format!(" · {} refused", count(refused)),
        };
        return format!("{bindings} of {} mappings{refused}", count(mechanism.bindings_capacity));
    }
    if let Some(state) = &mechanism.state {
        return state.clone();
    }
    match (mechanism.stateful, mechanism.bindings_capacity) {
        (true, _) => {
            let (sessions, bindings) = (mechanism.sessions, mechanism.bindings);
            format!("{} · {}", plural(sessions, "session"), plural(bindings, "binding"))
        }
        (false, 0) => "stateless".into(),
        (false, capacity) => format!("{bindings} of {} addresses in use", count(capacity)),
    }
}
