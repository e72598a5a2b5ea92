//! A batch is processed in strides, and a stride in runs of packets of one mechanism: a run is prepared, warmed stage by stage, so that its
//! cache misses overlap, and then decided and executed packet by packet. One loop serves all mechanisms, and is compiled for each.

use super::Engine;
use super::bounds::STRIDE;
use super::path::{Batch, Path};
use super::slot::{Inner, Slot};
use crate::alg::may_be_of_control_connection;
use crate::classify::Owner;
use crate::frame::Frame;
use crate::mechanism::contract::Mechanism;
use crate::mechanism::table::{Row, with_row};
use crate::parse::{self, Packet, Transport};
use crate::verdict::{MechanismId, Verdict};

impl Engine {
    pub(super) fn go(&mut self, frames: &mut [Frame], mut batch: Batch<'_>) {
        self.path.rewriter.set_time(batch.now);
        if let [frame] = frames {
            self.one(frame, &mut batch);
            return self.path.send_generated(&mut batch);
        }
        let mut slots = core::mem::take(&mut self.slots);
        for stride in frames.chunks_mut(STRIDE) {
            self.path.effects.begin();
            let count = self.read(stride, &mut slots, &mut batch);
            self.run_all(&slots[..count], stride, &mut batch);
            if self.join {
                self.join_decapsulated(stride, &slots[..count]);
            }
        }
        self.slots = slots;
        self.path.send_generated(&mut batch);
    }

    /// A single packet, without runs.
    #[inline(always)]
    pub(super) fn one(&mut self, frame: &mut Frame, batch: &mut Batch<'_>) {
        self.path.effects.begin();
        // Field by field: copying a constant of this size would be a call.
        let (packet, owner) = (Packet::EMPTY, Owner::Gateway);
        let mut slot = Slot { packet, inner: Inner::NONE, owner, alone: true, frame: 0 };
        if !self.read_one(&mut slot, frame, batch) {
            return;
        }
        match slot.owner {
            Owner::Mechanism(id) if !slot.alone => {
                let is_done = with_row!(self.mechanisms, id.kind, row => {
                    row.one(id.index, &slot, frame, (&mut self.path, batch))
                });
                if !is_done {
                    self.walk_on(&slot, frame, batch);
                }
            }
            Owner::Mechanism(_) | Owner::Gateway | Owner::TunnelAddress(_) => {
                self.walk_alone(&slot, frame, batch)
            }
        }
    }

    /// Parses and classifies a stride into the first slots, and returns their number. A packet that fails here is dropped here.
    #[inline(always)]
    fn read(&mut self, stride: &mut [Frame], slots: &mut [Slot], batch: &mut Batch<'_>) -> usize {
        let mut count = 0;
        for (index, frame) in stride.iter_mut().enumerate() {
            let Some(slot) = slots.get_mut(count) else { return count };
            if self.read_one(slot, frame, batch) {
                slot.frame = index as u32;
                count += 1;
            }
        }
        count
    }

    /// Parses and classifies a packet. Returns whether to continue with it.
    #[inline(always)]
    fn read_one(&mut self, slot: &mut Slot, frame: &mut Frame, batch: &mut Batch<'_>) -> bool {
        if let Err(reason) = parse::parse_into(frame.bytes(), &mut slot.packet) {
            self.path.refuse(reason, frame, None, batch);
            return false;
        }
        slot.inner.clear();
        let is_error = matches!(slot.packet.transport, Transport::IcmpError { .. });
        slot.alone = is_error || slot.packet.fragment.is_some() || frame.passes > 0;
        match self.classify(frame, slot) {
            Ok(Some(owner)) => {
                if self.workers > 1
                    && let Some(worker) = self.elsewhere(frame, &slot.packet, owner)
                {
                    self.path.conclude(Verdict::HandOver(worker), frame);
                    return false;
                }
                slot.owner = owner;
                if self.reads_ftp && may_be_of_control_connection(&slot.packet) {
                    slot.alone = true;
                }
                true
            }
            Ok(None) => {
                self.path.conclude(Verdict::Punted, frame);
                false
            }
            Err(reason) => {
                self.path.refuse(reason, frame, Some(&slot.packet), batch);
                false
            }
        }
    }

    /// Cuts a stride into runs.
    #[inline(always)]
    fn run_all(&mut self, slots: &[Slot], stride: &mut [Frame], batch: &mut Batch<'_>) {
        let mut rest = slots;
        while let [slot, behind @ ..] = rest {
            match slot.owner {
                Owner::Mechanism(id) if !slot.alone => {
                    let length = 1 + behind.iter().take_while(|slot| slot.is_of(id)).count();
                    let (run, behind) = rest.split_at(length);
                    rest = behind;
                    self.run(id, run, stride, batch);
                }
                Owner::Mechanism(_) | Owner::Gateway | Owner::TunnelAddress(_) => {
                    rest = behind;
                    self.walk_alone(slot, &mut stride[slot.frame as usize], batch);
                }
            }
        }
    }

    /// A run. The mechanism's kind is matched once.
    #[inline(always)]
    fn run(&mut self, id: MechanismId, run: &[Slot], stride: &mut [Frame], batch: &mut Batch<'_>) {
        let index = usize::from(id.index);
        with_row!(self.mechanisms, id.kind, row => row.begin(index, run));
        let mut rest = run;
        while !rest.is_empty() {
            let first = run.len() - rest.len();
            rest = with_row!(self.mechanisms, id.kind, row => {
                row.decide((index, first), rest, stride, (&mut self.path, batch))
            });
            if let [stopped, behind @ ..] = rest {
                self.walk_on(stopped, &mut stride[stopped.frame as usize], batch);
                rest = behind;
            }
        }
    }

    /// Joins the segments of a stride that came out of tunnels.
    #[inline(never)]
    fn join_decapsulated(&mut self, stride: &mut [Frame], slots: &[Slot]) {
        let counters = &mut self.path.effects.counters;
        self.mates.begin();
        for slot in slots {
            let ports = match (slot.inner.as_ref(), slot.owner) {
                // A translator gives packets of one flow the same ports again.
                (Some(Packet { transport: Transport::Ports { source, destination, .. }, .. }), _) => {
                    Some((*source, *destination))
                }
                (Some(_), _) | (None, Owner::TunnelAddress(_)) => None,
                (None, Owner::Mechanism(_) | Owner::Gateway) => continue,
            };
            let frame = &stride[slot.frame as usize];
            if frame.verdict == Verdict::Forward {
                match ports {
                    Some(ports) => self.mates.add(ports, slot.frame),
                    None => self.mates.add_unknown(slot.frame),
                }
            }
            // A reassembled packet leaves here, and no later packet may leave before it.
            if !frame.pieces.is_empty() {
                self.joining.join(stride, self.mates.candidates(), counters);
                self.mates.begin();
            }
        }
        self.joining.join(stride, self.mates.candidates(), counters);
    }
}

impl<M: Mechanism> Row<M> {
    /// Begins the lookups of a run, if there are any.
    #[inline(always)]
    fn begin(&mut self, index: usize, run: &[Slot]) {
        if M::STAGES > 0 {
            self.prepare(index, run);
        }
    }

    /// The same. A function of its own, called once for a run: what it needs would fill the caller's registers.
    #[inline(never)]
    fn prepare(&mut self, index: usize, run: &[Slot]) {
        if self.probes.is_empty() {
            self.probes.resize(STRIDE, M::NO_PROBE);
        }
        let mechanism = &self.all[index];
        for (slot, probe) in run.iter().zip(&mut self.probes) {
            mechanism.prepare(&slot.packet, slot.inner.as_ref(), probe);
        }
        for stage in 0..M::STAGES {
            for probe in self.probes.get_mut(..run.len()).unwrap_or_default() {
                mechanism.warm(stage, probe);
            }
        }
    }

    /// Looks a packet up, decides and executes it; whether it has its verdict.
    #[inline(always)]
    fn one(
        &mut self,
        index: u16,
        slot: &Slot,
        frame: &mut Frame,
        (path, batch): (&mut Path, &mut Batch<'_>),
    ) -> bool {
        if M::APART {
            return self.one_apart(index, slot, frame, (path, batch));
        }
        path.step(&mut self.all[usize::from(index)], slot.subject(&M::NO_PROBE), frame, batch)
    }

    #[inline(never)]
    fn one_apart(
        &mut self,
        index: u16,
        slot: &Slot,
        frame: &mut Frame,
        (path, batch): (&mut Path, &mut Batch<'_>),
    ) -> bool {
        let mechanism = &mut self.all[usize::from(index)];
        let mut probe = M::NO_PROBE;
        mechanism.prepare(&slot.packet, slot.inner.as_ref(), &mut probe);
        for stage in 0..M::STAGES {
            mechanism.warm(stage, &mut probe);
        }
        path.step(mechanism, slot.subject(&probe), frame, batch)
    }

    /// Decides and executes the rest of a run whose first `first` packets are done. Returns what remains when it stops at a packet whose
    /// result does not leave.
    #[inline(never)]
    fn decide<'a>(
        &mut self,
        (index, first): (usize, usize),
        run: &'a [Slot],
        stride: &mut [Frame],
        (path, batch): (&mut Path, &mut Batch<'_>),
    ) -> &'a [Slot] {
        let mechanism = &mut self.all[index];
        let none = M::NO_PROBE;
        let mut probes = self.probes.get(first..).unwrap_or_default().iter();
        let mut rest = run;
        while let [slot, behind @ ..] = rest {
            let probe = if M::STAGES == 0 { &none } else { probes.next().unwrap_or(&none) };
            let frame = &mut stride[slot.frame as usize];
            if !path.step(mechanism, slot.subject(probe), frame, batch) {
                return rest;
            }
            rest = behind;
        }
        rest
    }
}
