//! A paper's headline: a ratio of two of its devices, to be set next to today's.

use super::ratio::Bearing;
use super::view::View;
use std::collections::BTreeMap;

/// A ratio that a paper printed, or that follows from its tables.
#[derive(Clone, Copy, Debug)]
pub struct Headline {
    /// Its text, such as "PF over TAYGA, packets a second with 8 clients".
    pub statement: &'static str,
    /// The paper's ratio.
    pub published: f64,
    /// The values to be divided, or why there are none.
    pub today: Today,
}

/// What is divided today.
#[derive(Clone, Copy, Debug)]
pub enum Today {
    /// A value of one device over that of another, in the same series at the same place.
    Ratio {
        /// The series.
        series: &'static str,
        /// The place on the axes.
        point: &'static [(&'static str, f64)],
        /// The value.
        value: &'static str,
        /// The devices: the first one over the second.
        devices: (&'static str, &'static str),
    },
    /// The paper's devices do not run here.
    Nothing(&'static str),
}

impl Headline {
    /// Today's ratio.
    pub fn today(&self, view: &View<'_>) -> Bearing {
        let (series, point, value, (over, under)) = match self.today {
            Today::Nothing(why) => return Bearing::Nothing(why.to_owned()),
            Today::Ratio { series, point, value, devices } => (series, point, value, devices),
        };
        let point: BTreeMap<_, _> = point.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect();
        match (view.group(series, over, &point), view.group(series, under, &point)) {
            (Some(over), Some(under)) => view.ratio(over, under, value),
            (None, _) => Bearing::Nothing(format!("{over} was not measured")),
            (_, None) => Bearing::Nothing(format!("{under} was not measured")),
        }
    }

    /// The devices that are divided, in words.
    pub fn devices(&self) -> String {
        match self.today {
            Today::Nothing(_) => "–".to_owned(),
            Today::Ratio { devices: (over, under), .. } => format!("{over} / {under}"),
        }
    }
}
