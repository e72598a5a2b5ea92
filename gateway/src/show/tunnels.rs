//! `sixway show six-rd` and `sixway show router-advertisements`.

use super::colour::Colour;
use super::quantity::{count, duration};
use super::table::Table;
use crate::view::{AdvertisedRow, LeaseRow, RouterAdvertisementRow, SixRdRow};

/// The 6rd domains.
pub fn six_rd(rows: &[SixRdRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No 6rd domain is configured.\n".into();
    }
    let mut table = Table::new(&[
        "NAME",
        "ROLE",
        "6RD PREFIX",
        "IPV4 COMMON",
        "ADDRESS",
        "DELEGATED PREFIX",
        "BORDER RELAYS",
    ]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".into());
    for row in rows {
        let common = row.ipv4_common.clone().unwrap_or_else(|| format!("/{}", row.ipv4_mask_length));
        let relays = if row.border_relays.is_empty() { "–".into() } else { row.border_relays.join(", ") };
        table.row(vec![
            row.name.clone(),
            row.role.replace('_', " "),
            row.prefix.clone(),
            common,
            or_none(&row.address),
            or_none(&row.delegated),
            relays,
        ]);
    }
    table.text(colour)
}

/// Leases of IPv4 addresses over IPv6.
pub fn leases(rows: &[LeaseRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No leases.\n".into();
    }
    let mut table = Table::new(&["MECHANISM", "IPV4", "HOST", "STATE", "ENDS IN"]);
    for row in rows {
        table.row(vec![
            row.mechanism.clone(),
            row.ipv4.clone(),
            row.host.clone(),
            row.state.clone(),
            row.ends_in_seconds.map_or_else(|| "–".into(), duration),
        ]);
    }
    table.text(colour)
}

/// Router advertisements per link.
pub fn router_advertisements(rows: &[RouterAdvertisementRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No router advertisements are configured.\n".into();
    }
    let mut table =
        Table::new(&["LINK", "STATE", "SOURCE", "LIFETIME", "MULTICAST/UNICAST", "SOLICITATIONS", "CONTENT"]);
    for row in rows {
        table.row(vec![
            row.link.clone(),
            row.state.clone(),
            row.source.clone().unwrap_or_else(|| "–".into()),
            round(row.router_lifetime_seconds.into()),
            format!("{}/{}", count(row.multicast), count(row.unicast)),
            count(row.solicitations),
            says(row),
        ]);
    }
    table.text(colour)
}

fn says(row: &RouterAdvertisementRow) -> String {
    let mut parts: Vec<String> = row.prefixes.iter().map(prefix).collect();
    parts.extend(row.routes.iter().map(|route| format!("route {route}")));
    parts.extend(row.rdnss.iter().map(|server| format!("DNS {server}")));
    parts.extend(row.pref64.iter().map(|prefix| format!("NAT64 {prefix}")));
    if parts.is_empty() { "–".into() } else { parts.join(" · ") }
}

fn prefix(row: &AdvertisedRow) -> String {
    let time = |seconds: u32| match seconds {
        u32::MAX => "infinity".to_owned(),
        seconds => round(seconds.into()),
    };
    match row.deprecated {
        true => format!("{} deprecated", row.prefix),
        false => format!(
            "{} for {} ({} preferred)",
            row.prefix,
            time(row.valid_seconds),
            time(row.preferred_seconds)
        ),
    }
}

/// A lifetime; whole minutes without their seconds.
fn round(seconds: u64) -> String {
    let text = duration(seconds);
    text.strip_suffix(" m 0 s").map(|minutes| format!("{minutes} m")).unwrap_or(text)
}
