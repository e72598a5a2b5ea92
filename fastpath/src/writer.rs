//! The flow table as a worker's engine uses it.

use crate::flows::FlowTable;
use crate::layout::Flow;
use crate::ticks::Epoch;
use sixway_dataplane::Instant;
use sixway_dataplane::nat::Direction;
use sixway_dataplane::offload::{FastPath, FlowHandle, HalfUsage, OffloadedFlow, Usage};
use std::sync::Arc;

/// A worker's handle to the flow table. Its methods are a few memory accesses each.
#[derive(Clone, Debug)]
pub struct FastPathWriter {
    table: Arc<FlowTable>,
    epoch: Epoch,
}

impl FastPathWriter {
    /// A handle for an engine whose clock says `now`.
    pub fn new(table: Arc<FlowTable>, now: Instant) -> Self {
        Self { table, epoch: Epoch::of(now) }
    }

    /// The table.
    pub fn table(&self) -> &Arc<FlowTable> {
        &self.table
    }

    /// The traffic of both halves, in the engine's terms.
    pub fn used(&self, halves: &[Flow; 2]) -> Usage {
        halves.map(|half| HalfUsage {
            packets: half.packets,
            octets: half.octets,
            last: Some(self.epoch.instant(half.last)),
        })
    }
}

impl FastPath for FastPathWriter {
    fn handle(&self) -> Box<dyn FastPath> {
        Box::new(self.clone())
    }

    fn arm(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        self.table.arm(flow)
    }

    fn half_open(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        self.table.half_open(flow)
    }

    fn is_half_open(&self, handle: FlowHandle) -> bool {
        self.table.is_half_open(handle)
    }

    fn activate(&mut self, handle: FlowHandle, way: Direction, mark: u32) -> bool {
        self.table.activate(self.table.halves_of(handle)[way as usize], mark)
    }

    fn rearm(&mut self, handle: FlowHandle, way: Direction) {
        self.table.rearm(self.table.halves_of(handle)[way as usize]);
    }

    fn force(&mut self, handle: FlowHandle) -> bool {
        let [out, into] = self.table.halves_of(handle).map(|slot| self.table.force(slot));
        out | into
    }

    fn remove(&mut self, handle: FlowHandle) -> Usage {
        self.used(&self.table.remove(handle))
    }

    fn touch(&mut self, handle: FlowHandle, last: Instant) {
        self.table.touch(handle, self.epoch.tick(last));
    }

    fn usage(&self, handle: FlowHandle) -> Usage {
        self.used(&self.table.halves_of(handle).map(|slot| self.table.read(slot)))
    }
}
