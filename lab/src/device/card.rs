//! The description of a device before it runs.

use super::needs::Needs;

/// A device's card.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Where it runs.
    pub realm: Realm,
    /// What it needs here.
    pub needs: Needs,
}

/// Where a device runs. Figures of two realms are compared only as ratios, each to plain forwarding in its own realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realm {
    /// On this machine's kernel.
    Here,
    /// In an emulated machine with a kernel of its own; its kind, such as `uml`.
    Guest(&'static str),
    /// On another machine.
    Remote,
    /// Nowhere: a paper's figures.
    Published,
}

impl Realm {
    /// As it is written in results.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Guest(kind) => kind,
            Self::Remote => "remote",
            Self::Published => "published",
        }
    }
}
