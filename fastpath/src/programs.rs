//! Loading the programs: their constants, their own maps, and those that are pinned.

use crate::bpf;
use crate::error::FastPathError;
use crate::patience::patiently;
use crate::pins::Pins;
use crate::program_names::{TC_PROGRAM, XDP_PROGRAM};
use crate::settings::{Rules, Table};
use crate::stamp::Stamp;
use aya::maps::{Map, MapData};
use aya::programs::{ProgramError, SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use aya_obj::programs::XdpAttachType;
use std::io;
use std::os::fd::AsFd;

/// The compiled program for the driver, an aligned ELF file, for callers that load it themselves.
pub static XDP_OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/fastpath_xdp.bpf.o"));
/// The same of the program at tc ingress.
pub static TC_OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/fastpath_tc.bpf.o"));

/// Both programs, loaded. Programs attached by a pinned link stay attached when this is dropped.
#[derive(Debug)]
pub(crate) struct Programs {
    tc: Source<SchedClassifier>,
    /// The program for the driver, or why there is none.
    xdp: Result<Source<Xdp>, String>,
}

/// Where a program is from.
#[derive(Debug)]
enum Source<P> {
    /// This process loaded it.
    Object(Ebpf),
    /// The previous process loaded it.
    Pin(P),
}

/// Whether the program in the driver is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum XdpDemand {
    /// Not loaded: no interface needs it.
    No,
    /// Loaded if possible.
    Hoped,
    /// Loading must succeed.
    Demanded,
}

/// Why there is no program for the driver.
const UNWANTED: &str = "no interface needed it";

/// Both programs with their maps, not loaded yet.
#[derive(Debug)]
pub(crate) struct Objects {
    tc: Ebpf,
    xdp: Option<Ebpf>,
    xdp_demand: XdpDemand,
}

impl Objects {
    /// Creates their maps, and the pinned ones if they do not exist.
    pub fn open(
        rules: &Rules,
        pins: &Pins,
        buckets: u32,
        xdp_demand: XdpDemand,
    ) -> Result<Self, FastPathError> {
        let tc = object(TC_OBJECT, TC_PROGRAM, rules, pins, buckets)?;
        let xdp = match xdp_demand {
            XdpDemand::No => None,
            XdpDemand::Hoped | XdpDemand::Demanded => {
                Some(object(XDP_OBJECT, XDP_PROGRAM, rules, pins, buckets)?)
            }
        };
        Ok(Self { tc, xdp, xdp_demand })
    }

    /// Loads both in parallel: the verifier takes about a second for each.
    pub fn load(self) -> Result<Programs, FastPathError> {
        let Self { mut tc, mut xdp, xdp_demand } = self;
        let (at_tc, in_driver) = std::thread::scope(|scope| {
            let in_driver = xdp.as_mut().map(|xdp| scope.spawn(|| verify_xdp(xdp)));
            let at_tc = verify_tc(&mut tc);
            let in_driver =
                in_driver.map(|thread| thread.join().unwrap_or_else(|_| Err(strange(XDP_PROGRAM))));
            (at_tc, in_driver)
        });
        at_tc?;
        let xdp = match (xdp, in_driver) {
            (Some(xdp), Some(Ok(()))) => Ok(Source::Object(xdp)),
            (_, Some(Err(error))) if xdp_demand == XdpDemand::Demanded => return Err(error),
            (_, Some(Err(error))) => Err(error.to_string()),
            _ => Err(UNWANTED.into()),
        };
        Ok(Programs { tc: Source::Object(tc), xdp })
    }
}

impl Programs {
    /// What identifies the programs that [`Objects::open`] makes: their code, their rules, and the kernel's numbers of the pinned maps.
    pub fn stamp(rules: &Rules, xdp_demand: XdpDemand, pins: &Pins) -> Stamp {
        let mut config = rules.config.clone();
        // Only the secret of the identifications differs; programs with another one are as good.
        config.identification = 0;
        Stamp::of((TC_OBJECT, XDP_OBJECT, config.octets(), &rules.tables, xdp_demand, pins.numbers()))
    }

    /// Programs with this stamp that the previous process left.
    pub fn left(pins: &Pins, stamp: Stamp, xdp_demand: XdpDemand) -> Option<Self> {
        let tc = SchedClassifier::from_pin(pins.ahead("tc", stamp)).ok()?;
        let xdp = Xdp::from_pin(pins.ahead("xdp", stamp), XdpAttachType::Interface);
        let xdp = match (xdp, xdp_demand) {
            (_, XdpDemand::No) => Err(UNWANTED.into()),
            (Ok(xdp), _) => Ok(Source::Pin(xdp)),
            // Loading it reports why it failed.
            (Err(_), XdpDemand::Hoped | XdpDemand::Demanded) => return None,
        };
        Some(Self { tc: Source::Pin(tc), xdp })
    }

    /// Leaves them to another process.
    pub fn pin(&mut self, pins: &Pins, stamp: Stamp) -> Result<(), FastPathError> {
        let failed = || FastPathError::when("pin the programs");
        self.tc()?.pin(pins.ahead("tc", stamp)).map_err(failed())?;
        match self.xdp {
            Ok(_) => self.xdp()?.pin(pins.ahead("xdp", stamp)).map_err(failed()),
            Err(_) => Ok(()),
        }
    }

    pub fn tc(&mut self) -> Result<&mut SchedClassifier, FastPathError> {
        match &mut self.tc {
            Source::Object(object) => tc_program(object),
            Source::Pin(program) => Ok(program),
        }
    }

    pub fn xdp(&mut self) -> Result<&mut Xdp, FastPathError> {
        match &mut self.xdp {
            Ok(Source::Object(object)) => xdp_program(object),
            Ok(Source::Pin(program)) => Ok(program),
            Err(why) => Err(FastPathError::Refused {
                doing: format!("load {XDP_PROGRAM}"),
                error: io::Error::other(why.clone()).into(),
            }),
        }
    }
}

fn verify_tc(object: &mut Ebpf) -> Result<(), FastPathError> {
    let program = tc_program(object)?;
    patiently(|| program.load()).map_err(FastPathError::when(format!("load {TC_PROGRAM}")))
}

fn verify_xdp(object: &mut Ebpf) -> Result<(), FastPathError> {
    let program = xdp_program(object)?;
    patiently(|| program.load()).map_err(FastPathError::when(format!("load {XDP_PROGRAM}")))
}

fn tc_program(object: &mut Ebpf) -> Result<&mut SchedClassifier, FastPathError> {
    let program = object.program_mut(TC_PROGRAM).ok_or_else(|| strange(TC_PROGRAM))?;
    program.try_into().map_err(|error: ProgramError| FastPathError::new(TC_PROGRAM, error))
}

fn xdp_program(object: &mut Ebpf) -> Result<&mut Xdp, FastPathError> {
    let program = object.program_mut(XDP_PROGRAM).ok_or_else(|| strange(XDP_PROGRAM))?;
    program.try_into().map_err(|error: ProgramError| FastPathError::new(XDP_PROGRAM, error))
}

/// Reads an object, makes its maps and fills its own.
fn object(
    octets: &[u8],
    name: &str,
    rules: &Rules,
    pins: &Pins,
    buckets: u32,
) -> Result<Ebpf, FastPathError> {
    let mut loader = EbpfLoader::new();
    loader.override_global("config", &*rules.config, true).map_max_entries("flows", buckets);
    for table in &rules.tables {
        let rows = u32::try_from(table.rows.len()).unwrap_or(u32::MAX);
        loader.map_max_entries(table.map, rows.max(1));
    }
    for (map, path) in pins.maps() {
        loader.map_pin_path(map, path);
    }
    let object = loader.load(octets).map_err(FastPathError::when(format!("load {name}")))?;
    for table in &rules.tables {
        fill(&object, table)?;
    }
    Ok(object)
}

fn fill(object: &Ebpf, table: &Table) -> Result<(), FastPathError> {
    let map = object.map(table.map).and_then(data).ok_or_else(|| strange(table.map))?;
    let failed = |error: io::Error| FastPathError::new(format!("fill map {}", table.map), error);
    let info = map.info().map_err(FastPathError::when(format!("look at map {}", table.map)))?;
    let (key_size, value_size) = (info.key_size() as usize, info.value_size() as usize);
    for (key, value) in &table.rows {
        if (key.len(), value.len()) != (key_size, value_size) {
            return Err(failed(io::ErrorKind::InvalidData.into()));
        }
        bpf::update(map.fd().as_fd(), key, value).map_err(failed)?;
    }
    Ok(())
}

/// The map itself, of the kinds that are filled.
fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::LpmTrie(map) | Map::HashMap(map) | Map::Array(map) => Some(map),
        _ => None,
    }
}

/// The object file lacks an expected program or map.
fn strange(name: &str) -> FastPathError {
    let error = io::Error::new(io::ErrorKind::InvalidData, "not in the compiled program");
    FastPathError::Refused { doing: format!("find {name}"), error: error.into() }
}
