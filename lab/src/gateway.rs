//! A gateway on a host of a network: `sixway run`, `sixway run --takeover` and `sixway show`.

use crate::failure::Result;
use crate::fast_path::{self, Hook, make_ready_for_xdp};
use crate::interrupt;
use crate::sixway::{sixway, socket};
use crate::topology::Network;
use std::process::Command;
use std::time::Duration;

/// Starts `sixway run` on the host "gateway"; see [`run_sixway_on`].
pub fn run_sixway(network: &Network, configuration: &str) -> Result<u32> {
    run_sixway_on(network, "gateway", configuration)
}

/// Starts `sixway run` on a host with this configuration, which has a section `[gateway]`, and waits until it says that it is
/// ready. Its name and socket are the network's and the host's own, so that any number of them can run on one machine.
pub fn run_sixway_on(network: &Network, host: &str, configuration: &str) -> Result<u32> {
    launch(network, host, configuration, (&[], None))
}

/// The same with this `PATH`: without programs that it would run otherwise.
///
/// # Errors
/// It does not become ready.
pub fn run_sixway_with_path(network: &Network, host: &str, configuration: &str, path: &str) -> Result<u32> {
    launch(network, host, configuration, (&[], Some(path)))
}

/// Starts a `sixway run --takeover` that replaces the one running on the host "gateway", and waits until it is ready.
pub fn take_over(network: &Network, configuration: &str) -> Result<u32> {
    launch(network, "gateway", configuration, (&["--takeover"], None))
}

/// The same on another host.
///
/// # Errors
/// It does not become ready.
pub fn take_over_on(network: &Network, host: &str, configuration: &str) -> Result<u32> {
    launch(network, host, configuration, (&["--takeover"], None))
}

fn launch(
    network: &Network,
    host: &str,
    configuration: &str,
    (words, path): (&[&str], Option<&str>),
) -> Result<u32> {
    let (name, socket) = (network.gateway_name(host), socket(network, host));
    let configuration = fast_path::as_demanded(network, host, configuration)?;
    let own = format!("[gateway]\nname = {name:?}\nadmin_socket = {socket:?}\n");
    let file = network.file(&format!("sixway-{host}.toml"), &configuration.replace("[gateway]\n", &own))?;
    let mut run = Command::new(sixway()?);
    run.arg("run").args(words).arg("-c").arg(file);
    if let Some(path) = path {
        run.env("PATH", path);
    }
    let id = network.start(host, run)?;
    fast_path::account_for(network, id, &socket)?;
    interrupt::wait_until(Duration::from_secs(10), "sixway's \"ready\"", || {
        network.with_process(id, |process| {
            process.must_run()?;
            Ok(process.stdout().contains("ready") || process.stderr().contains("ready"))
        })?
    })?;
    Ok(id)
}

/// `sixway show` for the gateway that [`run_sixway`] started in this network.
pub fn show(network: &Network, words: &[&str]) -> Result<Command> {
    show_on(network, "gateway", words)
}

/// `sixway` with these words, of the gateway on the host "gateway".
pub fn ask(network: &Network, words: &[&str]) -> Result<Command> {
    ask_on(network, "gateway", words)
}

/// The same of the one on another host.
///
/// # Errors
/// There is no `sixway`.
pub fn ask_on(network: &Network, host: &str, words: &[&str]) -> Result<Command> {
    let mut ask = Command::new(sixway()?);
    ask.args(words).arg("--socket").arg(socket(network, host));
    Ok(ask)
}

/// The same for the one that [`run_sixway_on`] started on a host.
pub fn show_on(network: &Network, host: &str, words: &[&str]) -> Result<Command> {
    let mut show = Command::new(sixway()?);
    show.arg("show").args(words).arg("--socket").arg(socket(network, host));
    Ok(show)
}

/// Starts Sixway on the host "gateway" with the fast path at this hook; its process id.
pub fn run_on_fast_path(network: &Network, hook: Hook, configuration: &str) -> Result<u32> {
    run_ready_for(network, hook, &format!("{configuration}{}", hook.section()))
}

/// The same with a configuration that has the section already.
pub fn run_ready_for(network: &Network, hook: Hook, configuration: &str) -> Result<u32> {
    if hook == Hook::Xdp {
        make_ready_for_xdp(network, "gateway")?;
    }
    run_sixway(network, configuration)
}
