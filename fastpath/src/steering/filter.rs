//! A gateway's filters in clsact: a priority of all gateways, two handles for each. The handle distinguishes a gateway's own filter from
//! those of others. With two of them the next process attaches its filter before it removes that of the previous one, so that no packet
//! reaches the host's own stack in between.

use super::hook::FORMER_NAME;
use aya::programs::tc::{NlOptions, TcAttachOptions, TcHandle, qdisc_add_clsact, qdisc_detach_program};
use aya::programs::{Link, ProgramError, SchedClassifier, TcAttachType, tc::SchedClassifierLink};

/// Lower than what the kernel chooses for a filter without one (49,152), so that ours comes before those.
const PRIORITY: u16 = 25_238;

/// The handles of a gateway's filters, of which one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handles([u32; 2]);

impl Handles {
    /// From the gateway's name (FNV-1a). Zero would let the kernel choose.
    pub(super) fn of(gateway: &str) -> Self {
        let step = |hash: u32, octet: u8| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193);
        let hash = gateway.bytes().fold(0x811c_9dc5, step) | 2;
        Self([hash & !1, hash | 1])
    }

    /// The priority, and both handles.
    pub(super) const fn numbers(self) -> (u16, [u32; 2]) {
        (PRIORITY, self.0)
    }

    /// Attaches a program at the handle that this process does not use, then removes what a previous process of the gateway
    /// left. The filter of this process at `used` stays until the caller drops it.
    pub(super) fn attach(
        self,
        program: &mut SchedClassifier,
        interface: &str,
        used: Option<u32>,
    ) -> Result<Filter, ProgramError> {
        // It may exist already. If it cannot be created, attaching fails.
        let _ = qdisc_add_clsact(interface);
        let [one, other] = match self.0 {
            [one, other] if used == Some(one) => [other, one],
            handles => handles,
        };
        let filter = match attach(program, interface, one) {
            Ok(filter) => filter,
            // The previous process has it, or was killed between attaching and removing.
            Err(_) if used.is_some() => {
                remove(interface, one);
                attach(program, interface, one)?
            }
            Err(_) => {
                let filter = attach(program, interface, other).or_else(|_| {
                    remove(interface, other);
                    attach(program, interface, other)
                })?;
                remove(interface, one);
                filter
            }
        };
        if used.is_none() && filter.handle == one {
            remove(interface, other);
        }
        // Versions that let the kernel choose the handle had one filter for all gateways.
        let _ = qdisc_detach_program(interface, TcAttachType::Ingress, FORMER_NAME);
        Ok(filter)
    }

    /// Removes the gateway's filters. Whether there were any.
    pub(super) fn remove(self, interface: &str) -> bool {
        let former = qdisc_detach_program(interface, TcAttachType::Ingress, FORMER_NAME).is_ok();
        self.0.map(|handle| remove(interface, handle)).contains(&true) || former
    }
}

/// A filter that is attached; dropping it removes it.
#[derive(Debug)]
pub(super) struct Filter {
    handle: u32,
    _link: SchedClassifierLink,
}

impl Filter {
    pub(super) const fn handle(&self) -> u32 {
        self.handle
    }
}

fn attach(program: &mut SchedClassifier, interface: &str, handle: u32) -> Result<Filter, ProgramError> {
    let options = NlOptions { priority: PRIORITY, handle: TcHandle::from(handle), ..NlOptions::default() };
    let options = TcAttachOptions::Netlink(options);
    let link = program.attach_with_options(interface, TcAttachType::Ingress, options)?;
    // The program keeps one link of a handle, also of one that was removed by others.
    Ok(Filter { handle, _link: program.take_link(link)? })
}

fn remove(interface: &str, handle: u32) -> bool {
    let filter = SchedClassifierLink::attached(
        interface,
        TcAttachType::Ingress,
        PRIORITY,
        TcHandle::from(handle),
        None,
    );
    filter.is_ok_and(|filter| filter.detach().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_have_different_handles() {
        let handles: Vec<[u32; 2]> = ["gw1", "gw2", "sixway0", ""].map(|name| Handles::of(name).0).to_vec();
        let mut all: Vec<u32> = handles.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
        assert!(!all.contains(&0), "the kernel would choose");
        // They are in the kernel when another version comes.
        assert_eq!(Handles::of("gw1"), Handles([0x832f_8396, 0x832f_8397]));
    }
}
