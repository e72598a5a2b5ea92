//! The program without shared libraries, and the container image that contains nothing else. The manual's own commands start it.

use crate::{Interop, STATIC};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::process::Finished;
use sixway_lab::topology::{Network, client_gateway_server};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_static_program_needs_no_library_and_runs_alone",
        &[STATIC, "readelf", "chroot"],
        the_program_runs_alone,
    ),
    Interop::new("an_image_forwards_as_the_manual_starts_it", NEEDS, || {
        forwards(command_with("--network host")?)
    }),
    Interop::new("an_image_forwards_with_a_read_only_proc_sys_as_the_manual_starts_it", NEEDS, || {
        forwards(command_with("--sysctl")?)
    }),
];

const NEEDS: &[&str] = &[STATIC, "podman", "unshare", "ping"];

/// How long podman may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVER: &str = "64:ff9b::203.0.113.2";

/// A tunnel whose remote end is a name.
const TUNNEL: &str = "[[tunnel]]\nname = \"bob\"\nlocal = \"203.0.113.1\"\nremote = \"bob.example\"\n\
                      prefixes = [\"2001:db8:b0b::/48\"]\n";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where `make static` links it.
pub fn static_program() -> PathBuf {
    project().join("target/static/sixway")
}

fn run(command: Command) -> Result<Finished> {
    let network = Network::new(&["host"])?;
    network.host("host")?.run(command, PATIENCE)
}

fn the_program_runs_alone() -> Result<()> {
    let mut readelf = command("readelf")?;
    readelf.args(["--wide", "--program-headers", "--dynamic"]).arg(static_program());
    let parts = run(readelf)?.succeeded()?.stdout;
    assert!(parts.contains("LOAD"), "{parts}");
    for needless in ["INTERP", "(NEEDED)"] {
        assert!(!parts.contains(needless), "{parts}");
    }
    let network = Network::new(&["host"])?;
    let root = network.folder().join("root");
    std::fs::create_dir(&root).asking(|| "a folder".into())?;
    std::fs::copy(static_program(), root.join("sixway")).asking(|| "copying the program".into())?;
    let mut chroot = command("chroot")?;
    chroot.arg(root).args(["/sixway", "--version"]);
    let said = network.host("host")?.run(chroot, PATIENCE)?.succeeded()?.stdout;
    assert!(said.starts_with("sixway "), "{said}");
    Ok(())
}

/// The words of the manual's command with this in it, behind `podman run`.
fn command_with(words: &str) -> Result<Vec<String>> {
    let manual = project().join("docs/operations.md");
    let text = std::fs::read_to_string(&manual).asking(|| manual.display().to_string())?;
    let text = text.replace("\\\n", " ");
    let commands = text.lines().filter_map(|line| line.trim().strip_prefix("podman run "));
    let mut found = commands.filter(|command| command.contains(words));
    match (found.next(), found.next()) {
        (Some(command), None) => Ok(command.split_whitespace().map(str::to_owned).collect()),
        _ => Err(Failure::Unexpected(format!("no single `podman run` with {words} in the manual"))),
    }
}

/// A network with an image of its own, built as `make container` does.
struct Containers {
    network: Network,
}

impl Containers {
    fn build() -> Result<Self> {
        let containers = Self { network: client_gateway_server()? };
        let mut build = containers.podman()?;
        build.args(["build", "-q", "-t", "sixway", "-f"]).arg(project().join("packaging/Containerfile"));
        build.arg(project().join("target/static"));
        containers.on_gateway(build)?.succeeded()?;
        Ok(containers)
    }

    fn on_gateway(&self, command: Command) -> Result<Finished> {
        self.network.host("gateway")?.run(command, PATIENCE)
    }

    /// With images and containers of this network's own. Debian 12's crun refuses a host with both versions of control groups, so that it
    /// sees one; the containers have none.
    fn podman(&self) -> Result<Command> {
        let folder = self.network.folder();
        let mut podman = command("unshare")?;
        let script = "mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec podman \"$@\"";
        podman.args(["--mount", "sh", "-c", script, "podman"]);
        podman.arg("--root").arg(folder.join("images")).arg("--runroot").arg(folder.join("containers"));
        podman.arg("--tmpdir").arg(folder.join("podman"));
        podman.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]);
        Ok(podman)
    }

    fn name(&self) -> String {
        format!("sixway-{}", self.network.suffix())
    }

    /// The manual's command with this configuration: in the foreground, in the gateway's network, with a name service that only a
    /// loaded module could offer.
    fn run(&self, words: &[String], configuration: &str) -> Result<Command> {
        let settings = self.network.folder().join("etc");
        std::fs::create_dir(&settings).asking(|| "a folder".into())?;
        std::fs::write(settings.join("sixway.toml"), configuration).asking(|| "the configuration".into())?;
        let names = self.network.file("nsswitch.conf", "hosts: absent\ngroup: absent\n")?;
        let mut run = self.podman()?;
        run.args(["run", "--cgroups", "disabled", "--log-driver", "none"]);
        // Podman's own are higher than root may have on some machines.
        run.args(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]);
        run.args(["--add-host", "bob.example:203.0.113.2", "-v"]);
        run.arg(format!("{}:/etc/nsswitch.conf:ro", names.display()));
        let network = format!("ns:/run/netns/{}", self.network.host("gateway")?.name());
        let mut previous = "";
        for word in words {
            match (previous, &**word) {
                (_, "-d") => continue,
                ("--name", _) => run.arg(self.name()),
                ("--network", _) => run.arg(&network),
                (_, volume) if volume.starts_with("/etc/sixway:") => {
                    run.arg(format!("{}{}", settings.display(), volume.trim_start_matches("/etc/sixway")))
                }
                (_, word) => run.arg(word),
            };
            previous = word;
        }
        Ok(run)
    }
}

fn forwards(words: Vec<String>) -> Result<()> {
    let containers = Containers::build()?;
    let network = &containers.network;
    let nat64 = NAT64.replace("pool = \"main\"\n", "pool = \"main\"\nreverse_path = \"loose\"\n");
    let run = containers.run(&words, &format!("{nat64}{TUNNEL}"))?;
    let id = network.start("gateway", run)?;
    let said = |id| network.with_process(id, |process| [process.stdout(), process.stderr()].concat());
    interrupt::wait_until(PATIENCE, "the container's \"ready\"", || {
        network.with_process(id, sixway_lab::process::Process::must_run)??;
        Ok(said(id)?.contains("ready in"))
    })?;
    let trips = ping(network.host("client")?, SERVER, 3, 56, Duration::from_millis(20))?;
    assert_eq!(trips.answered, 3, "{}", said(id)?);
    interrupt::wait_until(PATIENCE, "the name of the tunnel's remote end", || {
        Ok(said(id)?.contains("bob: bob.example is 203.0.113.2"))
    })?;
    // What the image lacks is named.
    assert!(said(id)?.contains("nft not found"), "{}", said(id)?);
    let mut show = containers.podman()?;
    show.args(["exec", &containers.name(), "sixway", "show"]);
    let shown = containers.on_gateway(show)?.succeeded()?.stdout;
    assert!(shown.contains("nat64"), "{shown}");
    let mut reload = containers.podman()?;
    reload.args(["kill", "-s", "HUP", &containers.name()]);
    containers.on_gateway(reload)?.succeeded()?;
    interrupt::wait_until(PATIENCE, "the reloaded gateway's \"ready\"", || {
        network.with_process(id, sixway_lab::process::Process::must_run)??;
        Ok(said(id)?.matches("ready in").count() > 1)
    })?;
    let trips = ping(network.host("client")?, SERVER, 3, 56, Duration::from_millis(20))?;
    assert_eq!(trips.answered, 3, "{}", said(id)?);
    let mut stop = containers.podman()?;
    stop.args(["stop", &containers.name()]);
    containers.on_gateway(stop)?.succeeded()?;
    interrupt::wait_until(PATIENCE, "the container's end", || {
        Ok(!network.with_process(id, sixway_lab::process::Process::runs)??)
    })?;
    let links = network.host("gateway")?.ip("-brief link")?;
    assert!(!links.contains("sixway0"), "{links}{}", said(id)?);
    remove(&containers)
}

/// Its mounts end before the folder is removed.
fn remove(containers: &Containers) -> Result<()> {
    let mut remove = containers.podman()?;
    remove.args(["rm", "--force", "--all"]);
    containers.on_gateway(remove)?.succeeded().map(drop)
}
