//! Figures as SVG: text stays text, and colours come from the page's style sheet.

mod bars;
mod lines;
mod mark;
mod network;
mod scale;

pub(super) use bars::{Bar, bars};
pub(super) use lines::{Lines, Point, lines};
pub(super) use mark::{Style, escape};
pub(super) use network::{Direction, network};
