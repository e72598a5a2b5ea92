//! The kind of guest that devices run in, which is one in a process.

use crate::device::card::{Card, Realm};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::failure::{Asking as _, Failure, Result};
use crate::guest::{self, Accelerator};
use crate::kernel_peer::{self, Console, Features, Tap};
use crate::namespace::command;
use crate::results::Machine;
use std::sync::OnceLock;

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// User-Mode Linux: a kernel as a process, with Debian's configuration for it.
    Uml,
    /// QEMU that translates instructions, with Debian's kernel for virtual machines.
    Qemu,
    /// The same kernel on this machine's CPU.
    Kvm,
}

static CHOSEN: OnceLock<Kind> = OnceLock::new();

impl Kind {
    /// The one that is used without a choice.
    pub const USUAL: Self = Self::Qemu;

    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Uml, Self::Qemu, Self::Kvm];

    /// As it is written on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uml => "uml",
            Self::Qemu => "qemu",
            Self::Kvm => "kvm",
        }
    }

    /// The one that devices run in.
    pub fn chosen() -> Self {
        *CHOSEN.get_or_init(|| Self::USUAL)
    }

    /// Lets devices run in this kind of guest, before any was examined.
    ///
    /// # Errors
    /// There is no kind of this name, or devices were examined before.
    pub fn choose(name: &str) -> Result<()> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| {
            Failure::Unexpected(format!("{name:?} is not a kind of guest: use uml, qemu or kvm"))
        })?;
        match *CHOSEN.get_or_init(|| kind) == kind {
            true => Ok(()),
            false => Err(Failure::Unexpected("another kind of guest is in use already".to_owned())),
        }
    }

    /// Why there can be no such guest here, if there cannot.
    pub fn why_not(self) -> Option<String> {
        match self {
            Self::Uml => kernel_peer::why_not().map(str::to_owned),
            Self::Qemu => guest::why_not(Accelerator::Tcg),
            Self::Kvm => guest::why_not(Accelerator::Kvm),
        }
    }

    /// The guest's kernel, in one line.
    ///
    /// # Errors
    /// It does not say.
    pub fn version(self) -> Result<String> {
        match self {
            Self::Uml => {
                let said = command("linux.uml")?.arg("--version").output();
                let said = said.asking(|| "linux.uml --version".to_owned())?;
                Ok(format!("User-Mode Linux {}", String::from_utf8_lossy(&said.stdout).trim()))
            }
            Self::Qemu | Self::Kvm => {
                let version = guest::image_version();
                let version =
                    version.ok_or_else(|| Failure::Unexpected("there is no guest's kernel".to_owned()))?;
                Ok(format!("Linux {version} in QEMU ({})", self.name()))
            }
        }
    }

    /// A script that loads these modules of the guest's kernel, and all that they need, while it runs.
    ///
    /// # Errors
    /// The kernel has no such module, or is User-Mode Linux, which gets its modules when it boots.
    pub fn loading(self, modules: &[&str]) -> Result<String> {
        match self {
            Self::Uml => Err(Failure::Unexpected("User-Mode Linux loads modules when it boots".to_owned())),
            Self::Qemu | Self::Kvm => {
                let files = guest::module_files(modules)?;
                // One that is loaded already is refused.
                Ok(files.iter().map(|file| format!("busybox insmod {} || :\n", file.display())).collect())
            }
        }
    }

    /// Boots one in the namespace of the place's host, with these modules and kernel command line parameters.
    ///
    /// # Errors
    /// It does not start.
    pub fn boot(self, place: &Place, taps: &[Tap], modules: &[&'static str], words: &str) -> Result<Console> {
        let accelerator = match self {
            Self::Uml if !words.is_empty() => {
                return Err(Failure::Unexpected(format!("User-Mode Linux has no {words}")));
            }
            Self::Uml => {
                let features = Features { modules: modules.to_vec(), instead: None, memory: MEMORY };
                return kernel_peer::boot(&place.network, place.host, taps, &features);
            }
            Self::Qemu => Accelerator::Tcg,
            Self::Kvm => Accelerator::Kvm,
        };
        guest::boot(&place.network, place.host, taps, modules, (accelerator, MEMORY), words)
    }
}

/// Of a guest, in MiB.
const MEMORY: u32 = 192;

/// The card of a device in a guest of the chosen kind.
pub fn card(name: &'static str, what: &'static str, programs: &'static [&'static str]) -> Card {
    let needs = Needs { programs, memory_mb: 512, ..Needs::NAMESPACE };
    Card { name, what, realm: Realm::Guest(Kind::chosen().name()), needs }
}

/// Why a device in a guest cannot run here, if it cannot.
pub fn cannot_run(card: &Card, here: &Machine) -> Option<String> {
    card.needs.lacking(here).or_else(|| Kind::chosen().why_not())
}
