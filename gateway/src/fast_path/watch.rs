//! Which work recent events require: a new generation, reading links and rules, reading routes.

use super::event::Event;
use super::neighbours::matters;
use super::pace::Pace;
use super::used_hop::UsedHop;
use std::time::{Duration, Instant};

/// Minimum interval: a flood of routes must not make every flow look up the kernel's tables again.
const GENERATIONS: Duration = Duration::from_millis(20);
/// Minimum interval: reading takes a millisecond per few hundred links.
const LOOKS: Duration = Duration::from_millis(50);
/// Minimum interval: multipath routes are rarely removed, and this reads all routes.
const ROUTES: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Entries found in the kernel's tables are looked up again.
    pub generation: bool,
    /// Links, rules and features are looked at.
    pub look: bool,
    /// All routes are.
    pub routes: bool,
}

/// Collects events.
#[derive(Debug)]
pub(super) struct Watch {
    generation: Pace,
    look: Pace,
    routes: Pace,
    /// A route is known that leads several ways, or depends on more than the destination.
    pub several: bool,
}

impl Watch {
    /// At the beginning everything is to be looked at.
    pub fn new(now: Instant) -> Self {
        let mut watch = Self {
            generation: Pace::new(GENERATIONS),
            look: Pace::new(LOOKS),
            routes: Pace::new(ROUTES),
            several: false,
        };
        watch.note(Event::Lost, &[], now);
        watch
    }

    /// Takes note of an event; `used` are the neighbours that the programs send to.
    pub fn note(&mut self, event: Event, used: &[UsedHop], now: Instant) {
        match event {
            Event::Neighbour(neighbour) if !matters(&neighbour, used) => return,
            Event::Neighbour(_) => {}
            Event::Link | Event::Address | Event::Rule => self.look.want(now),
            Event::Route { plain: true } if !self.several => {}
            // It may have taken the place of the last one.
            Event::Route { plain: true } => self.routes.want(now),
            Event::Route { plain: false } => {
                if !std::mem::replace(&mut self.several, true) {
                    self.look.want(now);
                }
                self.routes.want(now);
            }
            Event::Lost => {
                self.look.want(now);
                self.routes.want(now);
            }
        }
        self.generation.want(now);
    }

    /// Until when nothing is to be done.
    pub fn next(&self) -> Option<Instant> {
        [&self.generation, &self.look, &self.routes].into_iter().filter_map(Pace::due).min()
    }

    /// What is to be done now.
    pub fn due(&mut self, now: Instant) -> Due {
        Due {
            generation: self.generation.take(now),
            look: self.look.take(now),
            routes: self.routes.take(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::event::Neighbour;

    fn quiet(start: Instant) -> Watch {
        let mut watch = Watch::new(start);
        assert_eq!(watch.due(start), Due { generation: true, look: true, routes: true });
        assert_eq!((watch.due(start), watch.next()), (Due::default(), None));
        watch
    }

    #[test]
    fn a_neighbour_that_nobody_sends_to_asks_for_nothing() {
        let start = Instant::now();
        let mut watch = quiet(start);
        let address = "192.0.2.1".parse().unwrap();
        let gone = Event::Neighbour(Neighbour { ifindex: 3, address, mac: None, settled: false });
        watch.note(gone, &[], start);
        assert_eq!(watch.next(), None);
        let used = [UsedHop { ifindex: 3, address, mac: [2, 0, 0, 0, 0, 1], idle: Duration::ZERO }];
        watch.note(gone, &used, start + Duration::from_secs(1));
        assert_eq!(watch.due(start + Duration::from_secs(1)), Due { generation: true, ..Due::default() });
    }

    #[test]
    fn a_flood_of_routes_is_fifty_generations_a_second_and_no_look() {
        let start = Instant::now();
        let mut watch = quiet(start);
        let mut generations = 0;
        for millisecond in 0..1_000 {
            let now = start + Duration::from_millis(millisecond);
            watch.note(Event::Route { plain: true }, &[], now);
            let due = watch.due(now);
            generations += usize::from(due.generation);
            assert!(!due.look && !due.routes);
        }
        assert!((49..=50).contains(&generations), "{generations}");
    }

    #[test]
    fn the_first_route_that_leads_several_ways_is_looked_at_and_later_ones_seldom() {
        let start = Instant::now();
        let mut watch = quiet(start);
        let several = Event::Route { plain: false };
        let at = |seconds| start + Duration::from_secs(seconds);
        watch.note(several, &[], at(1));
        assert!(watch.several);
        assert_eq!(watch.due(at(1)), Due { generation: true, look: true, routes: false });
        watch.note(several, &[], at(2));
        assert_eq!(watch.due(at(2)), Due { generation: true, ..Due::default() });
        assert!(watch.due(at(30)).routes);
    }

    #[test]
    fn links_addresses_and_rules_are_looked_at_and_what_was_lost_is_everything() {
        let start = Instant::now();
        for event in [Event::Link, Event::Address, Event::Rule] {
            let mut watch = quiet(start);
            watch.note(event, &[], start + Duration::from_secs(1));
            let due = watch.due(start + Duration::from_secs(1));
            assert_eq!(due, Due { generation: true, look: true, routes: false });
        }
        let mut watch = quiet(start);
        watch.note(Event::Lost, &[], start + Duration::from_secs(60));
        assert!(watch.due(start + Duration::from_secs(60)).routes);
    }
}
