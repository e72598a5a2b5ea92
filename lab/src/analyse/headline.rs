//! A paper's headline: a ratio of two of its devices, to be set next to today's.

use super::ratio::Bearing;
use super::series::Group;
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
    /// A value of a row over one of another row, or over another one of the same row.
    Rows {
        /// What is divided.
        over: Place,
        /// By what.
        under: Place,
    },
    /// The paper's devices do not run here.
    Nothing(&'static str),
}

/// Where a value is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The device.
    pub device: &'static str,
    /// The series.
    pub series: &'static str,
    /// The place on the axes.
    pub point: &'static [(&'static str, f64)],
    /// The value.
    pub value: &'static str,
}

impl Headline {
    /// What is divided and by what, or why nothing is.
    pub const fn places(&self) -> Result<[Place; 2], &'static str> {
        match self.today {
            Today::Nothing(why) => Err(why),
            Today::Rows { over, under } => Ok([over, under]),
            Today::Ratio { series, point, value, devices: (over, under) } => Ok([
                Place { device: over, series, point, value },
                Place { device: under, series, point, value },
            ]),
        }
    }

    /// Today's ratio.
    pub fn today(&self, view: &View<'_>) -> Bearing {
        let [over, under] = match self.places() {
            Ok(places) => places,
            Err(why) => return Bearing::Nothing(why.to_owned()),
        };
        match (over.group(view), under.group(view)) {
            (Some(above), Some(below)) => view.ratio_of((above, over.value), (below, under.value)),
            (None, _) => Bearing::Nothing(over.missing(view)),
            (_, None) => Bearing::Nothing(under.missing(view)),
        }
    }

    /// The devices that are divided, in words.
    pub fn devices(&self) -> String {
        match self.today {
            Today::Nothing(_) => "–".to_owned(),
            Today::Ratio { devices: (over, under), .. } => format!("{over} / {under}"),
            Today::Rows { over, under } if over.device == under.device => over.device.to_owned(),
            Today::Rows { over, under } => format!("{} / {}", over.device, under.device),
        }
    }
}

impl Place {
    fn group<'v, 'a>(&self, view: &'v View<'a>) -> Option<&'v Group<'a>> {
        let point: BTreeMap<_, _> = self.point.iter().map(|(axis, at)| ((*axis).to_owned(), *at)).collect();
        view.group(self.series, self.device, &point)
    }

    /// Why there is no such row.
    fn missing(&self, view: &View<'_>) -> String {
        let Self { device, series, .. } = self;
        let is_there = |group: &Group<'_>| group.cell.device == *device && group.cell.series == *series;
        match view.groups.iter().any(is_there) {
            true => format!("{device} has no row at this point in this run"),
            false => format!("{device} was not measured"),
        }
    }
}
