//! Small packets: as many as one core can generate, receive, forward and count.

use super::column::Column;
use super::compared::{ALONE, COLD, Goal, KERNEL, MASQUERADE, Measured, SHARING_TAYGA, TAYGA, WARM, figures};
use super::content::Content;
use super::frame::CLIENTS;
use super::left_out::left_out;
use super::million;
use super::patterns::{
    BY_NAT64, BY_PREFIX, FEW, GATEWAY4, IN_SITE, MANY, MAPPED, NATIVE, RELAY, SERVER4, SERVER6, SITE4,
    TAYGAS, from_site, many, replies, to_site, to4, to6,
};
use super::scene::{Entry, MiddleHost, Scene};
use super::settings::{Mode, nat44, nat64, relay, siit};
use crate::bench::{Options, Section};
use crate::failure::Result;
use crate::load::Pattern;
use crate::probe::cpu::cpus;
use std::rc::Rc;
use std::time::Duration;

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
type Plan = (MiddleHost, Vec<Sent>);

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
        (MiddleHost::Nothing, vec![six(ALONE, Goal::None)]),
        (MiddleHost::Redirector, vec![six("XDP redirect alone", Goal::Bound)]),
        (MiddleHost::Kernel, vec![six(KERNEL, Goal::None)]),
        (MiddleHost::Kernel, vec![four("kernel IPv4", SITE4)]),
        (MiddleHost::Masquerade, vec![four(MASQUERADE, GATEWAY4)]),
        (MiddleHost::Tayga, vec![tayga(TAYGA, TAYGAS, 24)]),
        (MiddleHost::SharingTayga, vec![tayga(SHARING_TAYGA, GATEWAY4, 32)]),
    ]
}

fn ours() -> Vec<Plan> {
    let stateful = |mode| MiddleHost::Sixway(nat64(mode, Some(2)));
    let up = |name, goal| sent(name, "client", to6(BY_NAT64), Content::by_nat64(), goal);
    let back = Content::v6(BY_NAT64, CLIENTS);
    let shared = |mode| MiddleHost::Sixway(nat44(mode, Some(2)));
    let entered = |entry| MiddleHost::Entered(nat44(Mode::Off, None), entry);
    let hidden = |name, goal| sent(name, "client", to4(SITE4, SERVER4), Content::by_nat64(), goal);
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
        (shared(Mode::Off), vec![hidden("nat44, no fast path", Goal::None)]),
        (entered(Entry::ByDevice), vec![hidden("nat44, no fast path, rule by device", Goal::None)]),
        (entered(Entry::Redirect), vec![hidden("nat44, no fast path, redirected by tc", Goal::None)]),
        (shared(Mode::Tc), vec![hidden("nat44, tc", Goal::None)]),
        (
            shared(Mode::Xdp),
            vec![
                hidden("nat44, xdp", Goal::Shared),
                sent("nat44 in, xdp", "server", replies, Content::v4(SERVER4, 32, SITE4), Goal::Shared),
            ],
        ),
        (
            MiddleHost::Sixway(siit(Mode::Xdp)),
            vec![
                siit_up("siit, xdp", Goal::Stateless),
                sent("siit v4→v6, xdp", "server", to4(SERVER4, MAPPED), siit_back, Goal::Stateless),
            ],
        ),
        (MiddleHost::Sixway(siit(Mode::Tc)), vec![siit_up("siit, tc", Goal::None)]),
        (
            MiddleHost::Sixway(relay(Mode::Xdp)),
            vec![
                decap("6to4 relay decap, xdp", Goal::Stateless),
                encap("6to4 relay encap, xdp", Goal::Stateless),
            ],
        ),
        (
            MiddleHost::Sixway(relay(Mode::Tc)),
            vec![decap("6to4 relay decap, tc", Goal::None), encap("6to4 relay encap, tc", Goal::None)],
        ),
        (
            MiddleHost::Sixway(million::configuration()),
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

/// Measures all that can run here. The row with many flows is handed out, to be examined further.
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
        "Frames of 64 octets (tunnel packets 88), {FEW} flows unless stated otherwise, over veth pairs with one queue. The kernel sends \
         (BPF_PROG_RUN with live frames); a program in the driver counts what arrives. Sender, receiver and the kernel's forwarding share CPU 0 of {}. \
         CPU time: that of the sender's thread, of ksoftirqd and of the forwarding process; net: less that of the sender alone, whose frames are counted \
         where they enter the gateway. One frame in 1,024 is checked on arrival: addresses, lengths, checksums. \"XDP redirect alone\" only redirects packets: no program in the driver can cost less. Look-up and update: \
         the extra cost of a packet of {MANY} random flows over one of {FEW} flows.",
        cpus()
    )
}
