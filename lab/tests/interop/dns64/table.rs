//! The table of what each says: [`sixway_lab::dns64::table`].

use super::{programs, start};
use crate::Interop;
use sixway_lab::dns64::Server;
use sixway_lab::dns64::table::{CASES, words};
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] = &[
    Interop::new("unbound_says_what_the_table_says", programs!("unbound"), || says_so(Server::Unbound)),
    Interop::new("bind_says_what_the_table_says", programs!("named"), || says_so(Server::Bind)),
    Interop::new("pdns_recursor_says_what_the_table_says", programs!("pdns_recursor"), || {
        says_so(Server::Recursor)
    }),
    Interop::new("sixway_says_what_the_table_says", programs!("sixway"), || says_so(Server::Sixway)),
];

fn says_so(server: Server) -> Result<()> {
    let (running, _) = start(server)?;
    let asker = running.asker()?;
    let mut differ = Vec::new();
    for case in CASES {
        let said = asker
            .ask(case.name, case.kind, case.flags)
            .map_or_else(|failure| failure.to_string(), |reply| words(&reply));
        let written = case.of(server);
        if said != written {
            differ.push(format!(
                "{} ({} {} {}): {said:?}, not {written:?}",
                case.what, case.name, case.kind, case.flags
            ));
        }
    }
    match differ.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{}:\n  {}", server.name(), differ.join("\n  ")))),
    }
}
