//! `sixway show six-rd`.

use super::Colour;
use super::table::Table;
use crate::admin::SixRdRow;

/// The 6rd domains.
pub fn six_rd(rows: &[SixRdRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "There is no 6rd domain.\n".into();
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
