//! All experiments. A new one is a line here.

use super::contract::Experiment;
use super::gateway_2012::Gateway2012;
use super::mechanisms_2006::Mechanisms2006;
use super::nat64_2014::Nat642014;
use super::overload::Overload;
use super::relay_2013::Relay2013;
use super::rfc8219::Rfc8219;
use super::tester::Tester;
use super::tools::Tools;
use super::tunnel_2012::Tunnel2012;

/// All experiments, in the order in which `run all` measures them.
pub fn all() -> [&'static dyn Experiment; 9] {
    [&Relay2013, &Nat642014, &Tunnel2012, &Gateway2012, &Mechanisms2006, &Rfc8219, &Overload, &Tester, &Tools]
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    all().into_iter().find(|experiment| experiment.about().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Realm;
    use crate::results::Asked;
    use std::collections::BTreeMap;

    #[test]
    fn where_a_papers_device_does_not_run_its_published_figures_are_in_a_report() {
        let published: Vec<&str> =
            all().iter().flat_map(|it| it.about().published).map(|table| table.device).collect();
        let devices = crate::device::all().into_iter().map(|device| device.card());
        let absent: Vec<_> = devices.filter(|card| card.realm == Realm::Published).collect();
        assert!(absent.len() >= 5);
        for card in absent {
            // "Cisco 2821, TCP" is of "Cisco 2821 with IOS, as published in 2012", and "OpenBSD PF (af-to)" of "OpenBSD PF, as published in 2014".
            let named = |device: &&str| {
                let short = device.split([',', '(']).next().unwrap_or_default().trim();
                card.what.starts_with(short) || short.to_lowercase().replace(' ', "-") == card.name
            };
            assert!(published.iter().any(named), "{}: {published:?}", card.name);
        }
    }

    #[test]
    fn each_experiment_names_devices_that_exist() {
        for experiment in all() {
            let name = experiment.about().name;
            assert!(!experiment.about().tables.is_empty() && !experiment.lineup().is_empty(), "{name}");
            for entry in experiment.lineup() {
                for device in entry.usual {
                    let device = crate::device::find(device).unwrap_or_else(|| panic!("{name}: no {device}"));
                    assert!(device.tasks().contains(&entry.task), "{name}: {}", device.card().name);
                }
            }
        }
    }

    #[test]
    fn each_published_row_is_shown_at_a_place_that_is_planned() {
        for experiment in all() {
            let about = experiment.about();
            let usual: Vec<&str> =
                experiment.lineup().iter().flat_map(|entry| entry.usual).copied().collect();
            let asked =
                Asked { set: BTreeMap::from([("series".to_owned(), "all".to_owned())]), ..Asked::default() };
            let cells =
                experiment.cells(&asked, &usual).or_else(|_| experiment.cells(&Asked::default(), &usual));
            let cells = cells.unwrap();
            for paper in about.published {
                let tables = about.tables.iter().filter(|table| table.series == paper.series);
                let places: Vec<f64> = tables
                    .filter(|table| table.columns.iter().any(|column| paper.values.contains(&column.value)))
                    .flat_map(|table| {
                        let of = cells.iter().filter(|cell| cell.series == table.series);
                        of.filter_map(|cell| {
                            let place: Vec<f64> = table.axes.iter().map(|axis| cell.at(axis)).collect();
                            paper.row(table.axes, &place)
                        })
                    })
                    .collect();
                for value in paper.values {
                    let mut columns = about
                        .tables
                        .iter()
                        .filter(|table| table.series == paper.series)
                        .flat_map(|table| table.columns.iter());
                    assert!(
                        columns.any(|column| column.value == value.trim_end_matches("-sd")),
                        "{}: {}: {value} has no column",
                        about.name,
                        paper.series
                    );
                }
                for (at, _) in paper.rows {
                    assert!(
                        places.contains(at),
                        "{}: {} of {} at {at}",
                        about.name,
                        paper.series,
                        paper.device
                    );
                }
            }
        }
    }

    /// A headline without a row would say for ever that nothing was measured.
    #[test]
    fn the_rows_of_each_headline_are_planned_by_a_quick_run_too() {
        for experiment in all() {
            let about = experiment.about();
            let mut devices: Vec<&str> =
                experiment.lineup().iter().flat_map(|entry| entry.usual).copied().collect();
            let places: Vec<(&str, [crate::analyse::Place; 2])> = experiment
                .headlines()
                .iter()
                .filter_map(|headline| Some((headline.statement, headline.places().ok()?)))
                .collect();
            for device in places.iter().flat_map(|(_, places)| places.iter().map(|place| place.device)) {
                if !devices.contains(&device) {
                    devices.push(device);
                }
            }
            let series = BTreeMap::from([("series".to_owned(), "all".to_owned())]);
            for quick in [false, true] {
                let asked = Asked { quick, repeats: 3, set: series.clone(), ..Asked::default() };
                let usual = Asked { quick, repeats: 3, ..Asked::default() };
                let cells = experiment.cells(&asked, &devices);
                let cells = cells.or_else(|_| experiment.cells(&usual, &devices)).unwrap();
                for (statement, places) in &places {
                    for place in places {
                        let planned = cells.iter().any(|cell| {
                            let point: Vec<_> = cell.point.iter().map(|(axis, at)| (&**axis, *at)).collect();
                            let mut wanted = place.point.to_vec();
                            wanted.sort_unstable_by_key(|(axis, _)| *axis);
                            (&*cell.series, &*cell.device) == (place.series, place.device) && point == wanted
                        });
                        assert!(planned, "{}, quick: {quick}: {statement}: {place:?}", about.name);
                    }
                }
            }
        }
    }

    /// Keys that are written out where they are read.
    fn read_in(folder: &std::path::Path, keys: &mut std::collections::BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                read_in(&path, keys);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for call in ["numbers(\"", "set.get(\"", "set.contains_key(\""] {
                keys.extend(
                    code.split(call).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())),
                );
            }
        }
    }

    #[test]
    fn a_key_that_an_experiment_reads_is_among_its_settings() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/experiment");
        for experiment in all() {
            let (name, settings) = (experiment.about().name, experiment.settings());
            assert!(settings.is_sorted(), "{name}");
            let mut keys = std::collections::BTreeSet::new();
            read_in(&folder.join(name.replace('-', "_")), &mut keys);
            let missing: Vec<_> = keys.iter().filter(|key| !settings.contains(&key.as_str())).collect();
            assert!(missing.is_empty(), "{name} reads {missing:?}");
        }
    }

    #[test]
    fn the_documentation_has_a_row_with_the_settings_of_each_experiment() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/lab.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("| Experiment | Keys |").nth(1).unwrap();
        for experiment in all().into_iter().filter(|experiment| !experiment.settings().is_empty()) {
            let name = format!("| `{}` |", experiment.about().name);
            let row = section.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
            let words = row.split('`').skip(1).step_by(2).filter(|word| *word != "all");
            let mut keys: Vec<&str> = words.collect();
            keys.sort_unstable();
            assert_eq!(keys, experiment.settings(), "{name}");
        }
    }
}
