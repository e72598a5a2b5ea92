//! Attaches programs to an interface, replacing earlier ones atomically.

use crate::choose::{Driver, hidden_tags};
use crate::error::FastPathError;
use crate::interface;
use crate::pins::{PRIORITY, Pins};
use crate::programs::{Programs, XdpDemand};
use crate::settings::{AttachPoint, Attached, Mode};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, qdisc_add_clsact};
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{LinkOrder, ProgramError, TcAttachType};

/// Attaches the programs to an interface.
pub(crate) fn attach(
    programs: &mut Programs,
    pins: &Pins,
    (mode, clsact): (Mode, bool),
    interface: &str,
) -> Result<Attached, FastPathError> {
    let ifindex = index(interface)?;
    let place = match clsact {
        true => attach_clsact(programs, pins, interface).map(|()| AttachPoint::Clsact)?,
        false => attach_tc(programs, pins, interface, ifindex)?,
    };
    let (place, why) = match may_run(mode, interface) {
        Err(why) => {
            pins.unlink("xdp", ifindex);
            (place, why)
        }
        Ok(why) => match attach_xdp(programs, pins, ifindex) {
            Ok(()) => (AttachPoint::Xdp, why),
            Err(error) if mode == Mode::Xdp => {
                return Err(FastPathError::NoDriver { interface: interface.into(), why: error.to_string() });
            }
            Err(error) => (place, error.to_string()),
        },
    };
    // Where the choice was ours, it was another one.
    let warning = hidden_tags(interface).filter(|_| place == AttachPoint::Xdp);
    Ok(Attached { interface: interface.into(), ifindex, place, why, warning })
}

/// Detaches the programs from an interface, which may no longer exist.
pub(crate) fn detach(pins: &Pins, attached: &Attached) {
    pins.unlink("xdp", attached.ifindex);
    pins.unlink("tc", attached.ifindex);
    if attached.place == AttachPoint::Clsact || attached.place == AttachPoint::Xdp {
        pins.unfilter(&attached.interface);
    }
}

/// Whether the program in the driver is loaded for these interfaces.
pub(crate) fn xdp_demand(mode: Mode, interfaces: &[String]) -> XdpDemand {
    match mode {
        Mode::Tc => XdpDemand::No,
        Mode::Xdp => XdpDemand::Demanded,
        Mode::Auto if interfaces.iter().any(|interface| may_run(mode, interface).is_ok()) => XdpDemand::Hoped,
        Mode::Auto => XdpDemand::No,
    }
}

/// Whether the program in the driver is to be tried, and why or why not.
fn may_run(mode: Mode, interface: &str) -> Result<String, String> {
    let driver = Driver::of(interface);
    let name = driver.as_ref().map_or_else(|_| "unknown".into(), |driver| driver.name.clone());
    match (mode, driver) {
        (Mode::Tc, _) => Err("as configured".into()),
        (_, Ok(driver)) if driver.is_vlan() => {
            Err("a VLAN; in the driver its frames come by the device below".into())
        }
        (Mode::Xdp, _) => Ok(format!("as configured, driver {name}")),
        (Mode::Auto, Err(error)) => Err(format!("cannot read its driver ({error})")),
        (Mode::Auto, Ok(driver)) => match driver.no_wire().or_else(|| hidden_tags(interface)) {
            Some(why) => Err(why),
            None => Ok(format!("driver {name}")),
        },
    }
}

fn attach_xdp(programs: &mut Programs, pins: &Pins, ifindex: u32) -> Result<(), FastPathError> {
    let program = programs.xdp()?;
    let path = pins.link("xdp", ifindex);
    if let Ok(link) = PinnedLink::from_pin(&path) {
        // Replaces the earlier program atomically, unless the index now belongs to another device.
        let replaced =
            XdpLink::try_from(FdLink::from(link)).ok().and_then(|link| program.attach_to_link(link).ok());
        if let Some(id) = replaced {
            // Its pin holds it.
            let link = program.take_link(id).map_err(FastPathError::when("take the link"))?;
            return FdLink::try_from(link).map(drop).map_err(FastPathError::when("take the link"));
        }
        pins.unlink("xdp", ifindex);
    }
    let id = program
        .attach_to_if_index(ifindex, XdpMode::Driver)
        .map_err(FastPathError::when("attach to the driver"))?;
    let link = program.take_link(id).map_err(FastPathError::when("take the link"))?;
    let link = FdLink::try_from(link).map_err(FastPathError::when("attach by a link (Linux 5.9)"))?;
    link.pin(&path).map(drop).map_err(FastPathError::when(format!("pin {}", path.display())))
}

fn attach_tc(
    programs: &mut Programs,
    pins: &Pins,
    interface: &str,
    ifindex: u32,
) -> Result<AttachPoint, FastPathError> {
    match attach_tcx(programs, pins, interface, ifindex) {
        // Before Linux 6.6, bpf(2) does not know the kind of link.
        Err(error) if error.number() == Some(libc::EINVAL) => {
            attach_clsact(programs, pins, interface).map(|()| AttachPoint::Clsact)
        }
        result => result.map(|()| AttachPoint::Tcx),
    }
}

fn attach_tcx(
    programs: &mut Programs,
    pins: &Pins,
    interface: &str,
    ifindex: u32,
) -> Result<(), FastPathError> {
    let program = programs.tc()?;
    let path = pins.link("tc", ifindex);
    if let Ok(link) = PinnedLink::from_pin(&path) {
        let link = SchedClassifierLink::try_from(FdLink::from(link)).ok();
        if let Some(id) = link.and_then(|link| program.attach_to_link(link).ok()) {
            let link = program.take_link(id).map_err(FastPathError::when("take the link"))?;
            return FdLink::try_from(link).map(drop).map_err(FastPathError::when("take the link"));
        }
        pins.unlink("tc", ifindex);
    }
    // First in the chain: steering and other programs see only what this one passes.
    let options = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program
        .attach_with_options(interface, TcAttachType::Ingress, options)
        .map_err(FastPathError::when(format!("attach to {interface}")))?;
    let link = program.take_link(id).map_err(FastPathError::when("take the link"))?;
    let link = FdLink::try_from(link).map_err(FastPathError::when("take the link"))?;
    link.pin(&path).map(drop).map_err(FastPathError::when(format!("pin {}", path.display())))
}

/// By a filter, which outlives the process without a pin.
fn attach_clsact(programs: &mut Programs, pins: &Pins, interface: &str) -> Result<(), FastPathError> {
    let failed = |error: ProgramError| FastPathError::new(format!("attach to {interface}"), error);
    let program = programs.tc()?;
    // It may exist already. If it cannot be created, attaching fails.
    let _ = qdisc_add_clsact(interface);
    let handle = pins.handle();
    let old = SchedClassifierLink::attached(interface, TcAttachType::Ingress, PRIORITY, handle, None)
        .map_err(FastPathError::when(format!("attach to {interface}")))?;
    let id = match program.attach_to_link(old) {
        Ok(id) => id,
        Err(_) => {
            let options = NlOptions { priority: PRIORITY, handle, classid: None };
            let options = TcAttachOptions::Netlink(options);
            program.attach_with_options(interface, TcAttachType::Ingress, options).map_err(failed)?
        }
    };
    // Dropped, it would end.
    std::mem::forget(program.take_link(id).map_err(failed)?);
    Ok(())
}

/// The interface's index.
fn index(name: &str) -> Result<u32, FastPathError> {
    interface::index(name).ok_or_else(|| FastPathError::NoInterface(name.to_owned()))
}
