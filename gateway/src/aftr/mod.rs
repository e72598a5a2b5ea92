//! The AFTR of a B4: where its name leads, and whether it answers. The gateway and its doctor ask alike.

mod echo;
mod name;
mod name_servers;

pub(crate) use echo::{answers, ask_aftr};
pub(crate) use name::resolve;
