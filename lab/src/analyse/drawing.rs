//! The drawing of a network: hosts in a grid, and links between them.

/// A network. It is drawn from left to right, and from top to bottom on a narrow screen.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    /// Its hosts.
    pub nodes: &'static [Node],
    /// Its links.
    pub links: &'static [Wire],
}

/// A host.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The text in its box, such as `host1 … host10`.
    pub name: &'static str,
    /// Addresses and remarks below it, each in a line of about 24 characters.
    pub lines: &'static [&'static str],
    /// The column, from 0.
    pub column: u8,
    /// The row, from 0.
    pub row: u8,
    /// Its part in the experiment.
    pub part: Part,
}

/// The part of a host in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The device under test.
    Device,
    /// Where load comes from, or goes to.
    End,
    /// Several ends that are alike.
    Ends,
    /// A router or switch that is not measured.
    Between,
}

/// A link, or a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// The places of its two hosts in the list.
    pub ends: (usize, usize),
    /// Its label, such as `IPv6 in IPv4` or `100 Mbit/s`.
    pub label: &'static str,
    /// Whether it is drawn dashed, as a tunnel.
    pub is_tunnel: bool,
}
