//! Small packets: as many as one core can make, receive, forward and count.

use super::column::Column;
use super::compared::{ALONE, COLD, Goal, KERNEL, Measured, SHARING_TAYGA, TAYGA, WARM, figures};
use super::content::Content;
use super::frame::{CLIENTS, PORT, ethernet, in_ipv4, udp4, udp6};
use super::left_out;
use super::million;
use super::scene::{Middle, Scene};
use super::settings::{Mode, nat64, relay, siit};
use crate::bench::{Options, Section};
use crate::failure::Result;
use crate::load::Pattern;
use crate::probe::cpu::cpus;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

/// Flows where there are few.
const FEW: u32 = 1_000;
/// Flows where there are many.
pub const MANY: u32 = 1_000_000;

const SITE4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const RELAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);
/// A host on the server's link, the last word of whose address the senders write.
const NATIVE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 1, 0);
/// The same in the site of 192.0.2.8.
const IN_SITE: Ipv6Addr = Ipv6Addr::new(0x2002, 0xc000, 0x208, 0, 0, 0, 1, 0);
/// The server as hosts behind the NAT64 write it, and behind SIIT and TAYGA.
const BY_NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xcb00, 0x7102);
const BY_PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0xcb00, 0x7102);
/// What SIIT calls the client.
const MAPPED: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
/// Behind which the kernel hides what leaves.
const GATEWAY4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// From where TAYGA takes a client's address.
const TAYGAS: Ipv4Addr = Ipv4Addr::new(192, 168, 255, 0);

/// A row: what is sent from where, what it must reach, and how often it was measured.
struct Row {
    column: Column,
    measured: Measured,
}

/// A row before it is measured.
struct Sent {
    name: &'static str,
    /// The sending host.
    from: &'static str,
    pattern: Box<dyn Fn([u8; 6]) -> Pattern>,
    /// What the frames become.
    arrives: Content,
    goal: Goal,
}

/// Rows that share a scene, and its middle.
type Plan = (Middle, Vec<Sent>);

fn pattern(program: &'static str, frame: Vec<u8>) -> Pattern {
    Pattern { program, frame, flows: FEW, at_random: false, train: None }
}

fn to6(destination: Ipv6Addr) -> impl Fn([u8; 6]) -> Pattern + 'static {
    move |door| pattern("frames6", ethernet(door, &udp6(CLIENTS, destination)))
}

/// New flows through the NAT64, each of 2 to this power packets.
pub fn new_flows(power: u32) -> impl Fn([u8; 6]) -> Pattern {
    move |door| Pattern { train: Some(power), ..to6(BY_NAT64)(door) }
}

fn to4(source: Ipv4Addr, destination: Ipv4Addr) -> impl Fn([u8; 6]) -> Pattern + 'static {
    move |door| pattern("frames4", ethernet(door, &udp4(source, 0, destination, PORT)))
}

/// The many flows, one after the other or at random.
pub fn many(at_random: bool) -> impl Fn([u8; 6]) -> Pattern {
    move |door| Pattern { flows: MANY, at_random, ..to6(BY_NAT64)(door) }
}

fn replies(door: [u8; 6]) -> Pattern {
    pattern("replies4", ethernet(door, &udp4(SERVER4, PORT, Ipv4Addr::UNSPECIFIED, 0)))
}

fn from_site(door: [u8; 6]) -> Pattern {
    // Six octets more than the smallest: the senders write whole words.
    let mut inner = udp6(IN_SITE, SERVER6);
    inner.extend([0; 4]);
    inner[5] += 4;
    inner[45] += 4;
    // The length counts twice in the checksum, in the pseudo-header and in the header.
    let field = u16::from_be_bytes([inner[46], inner[47]]);
    let sum = sixway_wire::checksum::update(
        field,
        sixway_wire::checksum::Sum::ZERO,
        sixway_wire::checksum::Sum::ZERO.word(8),
    );
    inner[46..48].copy_from_slice(&sum.to_be_bytes());
    pattern("frames41", ethernet(door, &in_ipv4(SITE4, RELAY, &inner)))
}

fn to_site(door: [u8; 6]) -> Pattern {
    pattern("frames6", ethernet(door, &udp6(NATIVE, IN_SITE)))
}

fn sent(
    name: &'static str,
    from: &'static str,
    pattern: impl Fn([u8; 6]) -> Pattern + 'static,
    arrives: Content,
    goal: Goal,
) -> Sent {
    Sent { name, from, pattern: Box::new(pattern), arrives, goal }
}

/// The yardsticks.
fn others() -> Vec<Plan> {
    let six = |name, goal| sent(name, "client", to6(SERVER6), Content::from_clients(SERVER6), goal);
    let four = |name, source| {
        sent(name, "client", to4(SITE4, SERVER4), Content::v4(source, 32, SERVER4), Goal::None)
    };
    let tayga = |name, source, bits| {
        sent(name, "client", to6(BY_PREFIX), Content::v4(source, bits, SERVER4), Goal::None)
    };
    vec![
        (Middle::Nothing, vec![six(ALONE, Goal::None)]),
        (Middle::Onward, vec![six("XDP redirect alone", Goal::Bound)]),
        (Middle::Kernel, vec![six(KERNEL, Goal::None)]),
        (Middle::Kernel, vec![four("kernel IPv4", SITE4)]),
        (Middle::Masquerade, vec![four("kernel IPv4 + masquerade", GATEWAY4)]),
        (Middle::Tayga, vec![tayga(TAYGA, TAYGAS, 24)]),
        (Middle::SharingTayga, vec![tayga(SHARING_TAYGA, GATEWAY4, 32)]),
    ]
}

fn ours() -> Vec<Plan> {
    let stateful = |mode| Middle::Sixway(nat64(mode, Some(2)));
    let up = |name, goal| sent(name, "client", to6(BY_NAT64), Content::by_nat64(), goal);
    let back = Content::v6(BY_NAT64, CLIENTS);
    let siit_up = |name, goal| sent(name, "client", to6(BY_PREFIX), Content::v4(MAPPED, 32, SERVER4), goal);
    let siit_back = Content::v6(BY_PREFIX, CLIENTS);
    let decap = |name, goal| sent(name, "client", from_site, Content::v6(IN_SITE, SERVER6), goal);
    let into = Content::v6(NATIVE, IN_SITE).in_tunnel(RELAY, SITE4);
    let encap = |name, goal| sent(name, "server", to_site, into, goal);
    vec![
        (stateful(Mode::Off), vec![up("nat64, no fast path", Goal::None)]),
        (stateful(Mode::Tc), vec![up("nat64, tc", Goal::None)]),
        (
            stateful(Mode::Xdp),
            vec![up(WARM, Goal::Stateful), sent("nat64 v4→v6, xdp", "server", replies, back, Goal::Stateful)],
        ),
        (
            Middle::Sixway(siit(Mode::Xdp)),
            vec![
                siit_up("siit, xdp", Goal::Stateless),
                sent("siit v4→v6, xdp", "server", to4(SERVER4, MAPPED), siit_back, Goal::Stateless),
            ],
        ),
        (Middle::Sixway(siit(Mode::Tc)), vec![siit_up("siit, tc", Goal::None)]),
        (
            Middle::Sixway(relay(Mode::Xdp)),
            vec![
                decap("6to4 relay decap, xdp", Goal::Stateless),
                encap("6to4 relay encap, xdp", Goal::Stateless),
            ],
        ),
        (
            Middle::Sixway(relay(Mode::Tc)),
            vec![decap("6to4 relay decap, tc", Goal::None), encap("6to4 relay encap, tc", Goal::None)],
        ),
        (
            Middle::Sixway(million::configuration()),
            vec![sent(COLD, "client", many(true), Content::by_nat64(), Goal::Many)],
        ),
    ]
}

/// Starts one plan's scene and sends its flows until they are carried as fast as they can be.
fn start((middle, rows): Plan) -> Result<Vec<Row>> {
    if let Some(why) = middle.cannot_run() {
        return Err(why);
    }
    let scene: Rc<Scene> = Rc::new(middle.start()?);
    let mut ready = Vec::new();
    for Sent { name, from, pattern, arrives, goal } in rows {
        if goal == Goal::Many {
            million::install(&scene)?;
        }
        let mut column = Column::new(name, Rc::clone(&scene), from, pattern, arrives)?;
        column.answer(&scene.server.answers()?)?;
        column.settle(8)?;
        ready.push(Row { column, measured: Measured { name, goal, rates: Vec::new() } });
    }
    Ok(ready)
}

/// Measures all that can run here. The row with many flows is handed out, to be looked at further.
pub fn run(options: &Options, time: Duration) -> Result<(Section, Option<Column>)> {
    let mut skipped = Vec::new();
    let mut rows = Vec::new();
    for plan in others().into_iter().chain(ours()) {
        let names: Vec<_> = plan.1.iter().map(|row| row.name).collect();
        options.say(&format!("fast path: preparing {}", names.join(", ")));
        match start(plan) {
            Ok(ready) => rows.extend(ready),
            Err(why) => skipped.push(left_out(&names.join(", "), why)?),
        }
    }
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, small packets: round {number} of {}", options.repeats()));
        for Row { column, measured } in &mut rows {
            measured.rates.push(column.measure(time)?);
        }
    }
    let (columns, rows): (Vec<_>, Vec<_>) = rows.into_iter().map(|row| (row.column, row.measured)).unzip();
    let section = Section { title: "Small packets", how: how(), figures: figures(&rows), skipped };
    let many = columns.into_iter().find(|column| column.name == COLD);
    Ok((section, many))
}

fn how() -> String {
    format!(
        "Frames of 64 octets (tunnel packets 88), {FEW} flows where nothing else is said, over veth pairs with one queue. The sender is the kernel's own \
         (BPF_PROG_RUN with live frames); what arrives is counted by a program in the driver. Sender, receiving and the kernel's forwarding have CPU 0 of {}. \
         CPU time: of the sender's thread, of ksoftirqd and of the forwarding process; net: less that of the sender alone, whose frames are counted \
         where they enter the gateway. One frame in 1,024 is looked at where it arrives: addresses, lengths, checksums. \"XDP redirect alone\" sends on what comes and does nothing else: no program in the driver can cost less. Look-up and update: \
         what a packet of {MANY} flows at random costs more than one of {FEW}.",
        cpus()
    )
}
