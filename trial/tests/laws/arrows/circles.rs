//! Circles in a graph: sets of nodes that reach one another (Tarjan 1972).

use std::collections::{BTreeMap, BTreeSet};

/// Every set of two or more nodes that reach one another.
pub fn circles(arrows: &BTreeSet<(String, String)>) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().push(to);
    }
    let mut search = Search { next, ..Search::default() };
    for (from, _) in arrows {
        if !search.number.contains_key(from.as_str()) {
            search.visit(from);
        }
    }
    search.found
}

#[derive(Default)]
struct Search<'a> {
    next: BTreeMap<&'a str, Vec<&'a str>>,
    number: BTreeMap<&'a str, usize>,
    lowest: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<BTreeSet<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, node: &'a str) {
        let number = self.number.len();
        self.number.insert(node, number);
        self.lowest.insert(node, number);
        self.stack.push(node);
        for to in self.next.get(node).cloned().unwrap_or_default() {
            let reached = match self.number.get(to) {
                None => {
                    self.visit(to);
                    self.lowest[to]
                }
                Some(number) if self.stack.contains(&to) => *number,
                Some(_) => continue,
            };
            let lowest = self.lowest[node].min(reached);
            self.lowest.insert(node, lowest);
        }
        if self.lowest[node] == number {
            let start = self.stack.iter().position(|other| *other == node).unwrap_or(0);
            let set: BTreeSet<_> = self.stack.drain(start..).map(str::to_owned).collect();
            if set.len() > 1 {
                self.found.push(set);
            }
        }
    }
}
