//! A host on another machine: the sender or the receiver of an experiment in place of a host of its network.
//!
//! ```text
//! namespace of the host:   up0 ── bridge ── an interface of this machine ─── cable ─── interface of the other machine
//! ```

use super::environment::addresses;
use super::interfaces::{Interface, Lent};
use super::recipe::{Environment, Recipe, answers};
use super::request::read;
use crate::failure::{Failure, Result};
use crate::measure::ClockOffset;
use crate::topology::Network;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The recipe that the lab's own hosts use, too.
const RECIPE: &str = include_str!("../../../remote/host-linux.sh");

/// How long an action of one of this machine's hosts may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ends of a path that can be on another machine.
const ENDS: [&str; 2] = ["client", "server"];

const FORM: &str = "client|server=ssh:USER@HOST,recipe=FILE,link=IF,link-there=IF, \
                    or script:FILE in place of ssh and recipe";

/// A host on another machine as it is written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Which end of the path it is: `client` or `server`.
    pub end: String,
    /// What runs on it.
    pub recipe: Recipe,
    /// The interface of this machine that leads to it.
    pub here: Interface,
    /// What it calls its own.
    pub there: String,
}

impl HostRequest {
    /// Reads it.
    ///
    /// # Errors
    /// It is not written as it should be.
    pub fn parse(text: &str) -> Result<Self> {
        let option = "--remote-host";
        let (end, recipe, [here, there]) = read((option, text, FORM), ["link", "link-there"])?;
        if !ENDS.contains(&end.as_str()) {
            let wrong = format!("{option} {text}: {end} is neither client nor server; it is written {FORM}");
            return Err(Failure::Unexpected(wrong));
        }
        Ok(Self { end, recipe, here: Interface::parse(&here), there })
    }

    /// Why it cannot take part, if it cannot.
    ///
    /// # Errors
    /// Its recipe does not run.
    pub fn why_not(&self) -> Result<Option<String>> {
        if !self.here.exists() {
            return Ok(Some(format!("there is no interface {}", self.here.name())));
        }
        Ok(self.recipe.run("why_not", &Environment::new())?.remove("why"))
    }
}

/// A host that sends and receives with programs of its machine.
pub enum Host<'a> {
    /// A host of the network, with the same recipe.
    Here(&'a Network, &'static str),
    /// One on another machine.
    There(&'a RemoteHost),
}

impl Host<'_> {
    /// Runs an action of its recipe; its answer.
    ///
    /// # Errors
    /// It fails, or answers something else.
    pub fn run(&self, action: &str, given: &[(&str, String)]) -> Result<BTreeMap<String, String>> {
        match self {
            Self::Here(network, name) => {
                let file = network.file("host.sh", RECIPE)?;
                let mut shell = Command::new("sh");
                shell.arg(&file).arg(action).envs(given.iter().map(|(name, value)| (*name, value)));
                let finished = network.host(name)?.run(shell, PATIENCE)?.succeeded()?;
                answers(&finished.stdout).ok_or_else(|| {
                    Failure::Unexpected(format!("{action} of {name} answered other than key=value"))
                })
            }
            Self::There(host) => host.run(action, given),
        }
    }
}

/// A host on another machine at work. It is as before, and the interface comes back, when this is dropped.
pub struct RemoteHost {
    recipe: Recipe,
    given: Environment,
    text: String,
    // Dropped after the host was stopped.
    _lent: Lent,
}

impl RemoteHost {
    /// Gives it the addresses of a link of the network's host and these routes, and puts it in that host's place. It has a default route of its own.
    ///
    /// # Errors
    /// It cannot take part, or does not start.
    pub fn start(
        request: &HostRequest,
        network: &Network,
        (host, link): (&str, &str),
        routes: &[&str],
    ) -> Result<Self> {
        if let Some(why) = request.why_not()? {
            return Err(Failure::Unexpected(format!("the {} on another machine: {why}", request.end)));
        }
        let given = Environment::from([
            ("LINK".to_owned(), request.there.clone()),
            ("ADDRESSES".to_owned(), addresses(network, host, &[link])?),
            ("ROUTES".to_owned(), routes.join(" ")),
        ]);
        let version = request.recipe.run("version", &Environment::new())?.remove("version");
        let text =
            format!("{} by {}: {}", request.end, file(&request.recipe.file), version.unwrap_or_default());
        let lent = request.here.lend(network, host, &[link])?;
        // Dropped, it ends what a start that failed left.
        let started = Self { recipe: request.recipe.clone(), given, text, _lent: lent };
        started.recipe.run("start", &started.given)?;
        Ok(started)
    }

    /// What it is, for the commands of a row.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How far its clock is ahead; `None` if it does not tell its time.
    ///
    /// # Errors
    /// It does not answer.
    pub fn clock(&self) -> Result<Option<ClockOffset>> {
        self.recipe.clock_offset(&self.given)
    }

    fn run(&self, action: &str, given: &[(&str, String)]) -> Result<BTreeMap<String, String>> {
        let mut all = self.given.clone();
        all.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.recipe.run(action, &all)
    }
}

fn file(path: &Path) -> String {
    path.display().to_string()
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        if let Err(failure) = self.recipe.run("stop", &self.given) {
            eprintln!("{}: it was not stopped: {failure}", self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::remote::recipe::Transport;

    #[test]
    fn a_remote_host_is_read_and_what_is_wrong_is_named() {
        let text = "client=ssh:root@192.0.2.9,recipe=host-linux.sh,link=eth1,link-there=em0";
        let request = HostRequest::parse(text).unwrap();
        assert_eq!((request.end.as_str(), request.there.as_str()), ("client", "em0"));
        assert_eq!(request.recipe.transport, Transport::Ssh("root@192.0.2.9".to_owned()));
        assert_eq!(request.here, Interface::parse("eth1"));
        for (text, what) in [
            ("router=script:x,link=a,link-there=b", "router is neither client nor server"),
            ("server=script:x,link=a", "there is no link-there"),
            ("server=script:x,inside=a", "inside is unknown"),
        ] {
            let said = HostRequest::parse(text).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains("--remote-host"), "{said}");
        }
    }
}
