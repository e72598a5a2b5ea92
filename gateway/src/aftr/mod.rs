//! The AFTR of a B4: the addresses of its name, and whether it answers. Used by the gateway and by `doctor`.

mod echo;
mod name;
mod name_servers;

pub(crate) use echo::{answers, ask_aftr};
pub(crate) use name::resolve;
