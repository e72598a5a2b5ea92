//! The appliance: its menu, and the image that `make image` builds, booted by emulated computers.
//!
//! ```text
//! host ─────────────── gateway: a computer with the image ─────────────── server
//! by DHCP, 2001:db8:1::2    eth1: LAN                 eth0: WAN    203.0.113.2, 2001:db8:f::2, 1.2.3.4
//! ```

use crate::site_ipv6::lease;
use crate::{IMAGE, Interop};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::guest::{Computer, Start};
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Tap, plug};
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, ping, serve_page};
use sixway_lab::process::Finished;
use sixway_lab::programs::{UEFI, make_executable};
use sixway_lab::topology::Network;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("the_appliances_menu_stores_correct_answers", &["busybox"], answers_are_stored),
    Interop::new("the_appliances_menu_says_what_is_wrong_and_asks_again", &["busybox"], wrong_answers),
    Interop::new("the_appliance_executes_nothing_of_its_settings", &["busybox"], settings_are_data),
];

/// The image as a file.
pub const SIZES: &[Interop] =
    &[Interop::new("the_appliances_image_is_as_small_as_its_page_says", &[IMAGE], is_small)];

/// Those that boot it.
pub const BOOTS: &[Interop] = &[
    Interop::new(
        "an_appliance_boots_from_a_stick_and_forwards_again_after_a_power_cut",
        &[IMAGE, "qemu-system-x86_64", "dnsmasq", "kea-dhcp6", "radvd", "busybox", "ping", "curl", "nginx"],
        from_a_stick,
    ),
    Interop::new(
        "an_appliance_starts_by_its_kernel_with_settings_on_the_command_line",
        &[IMAGE, "qemu-system-x86_64", "busybox", "ping", "curl", "nginx"],
        by_command_line,
    ),
    Interop::new(
        "an_appliance_boots_with_uefi_and_secure_boot",
        &[IMAGE, "qemu-system-x86_64", UEFI[0]],
        by_uefi,
    ),
];

/// How long a start takes at most: emulated, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_secs(15);

/// The least that it is to run in, in MiB.
const LEAST: u32 = 128;

/// With all that a site can have, so that it does not have to read its programs again and again.
const ENOUGH: u32 = 192;
/// GRUB, which UEFI starts, needs more.
const UEFI_MEMORY: u32 = 384;

/// A server of the IPv4 Internet, and how IPv6 hosts address it.
const FAR4: &str = "1.2.3.4";
const FAR6: &str = "64:ff9b::102:304";
const SERVER6: &str = "2001:db8:f::2";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What `make image` builds.
pub fn image(file: &str) -> PathBuf {
    project().join("target/image").join(file)
}

/// What fits on a stick of 64 MB, which `make image` holds to as well.
const MOST: u64 = 64_000_000;

fn is_small() -> Result<()> {
    let path = image("sixway.img");
    let size = std::fs::metadata(&path).asking(|| format!("looking at {}", path.display()))?.len();
    assert!(size <= MOST, "{size} octets are more than {MOST}");
    let page = project().join("docs/appliance.md");
    let text = std::fs::read_to_string(&page).asking(|| format!("reading {}", page.display()))?;
    let row = format!("| `sixway.img` | {:.1} MB ({} MiB), fixed |", size as f64 / 1e6, size >> 20);
    assert!(text.contains(&row), "the page does not say {row}");
    let script = project().join("packaging/build-image");
    let text = std::fs::read_to_string(&script).asking(|| format!("reading {}", script.display()))?;
    assert!(text.lines().any(|line| line == format!("MOST={MOST}")), "make image has another bound");
    Ok(())
}

/// The menu without a computer: two interfaces of a made-up `/sys`, and a `sixway` that does nothing.
struct Menu {
    network: Network,
    folder: PathBuf,
}

impl Menu {
    fn new() -> Result<Self> {
        let network = Network::new(&["box"])?;
        let folder = network.folder().join("menu");
        let menu = Self { network, folder };
        for (name, address) in [("eth0", "52:54:00:00:00:01"), ("eth1", "52:54:00:00:00:02")] {
            menu.write(&format!("net/{name}/address"), &format!("{address}\n"))?;
            menu.write(&format!("net/{name}/device/vendor"), "")?;
        }
        menu.write("cmdline", "quiet\n")?;
        menu.write("store/empty", "")?;
        menu.write("run/empty", "")?;
        let program = "#!/bin/sh\ncase $1 in down) cat \"$STORE/appliance.conf\" >\"$RUN/applied\" ;; *) echo shown ;; esac\n";
        menu.write("bin/sixway", program)?;
        make_executable(&menu.folder.join("bin/sixway"))?;
        Ok(menu)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).asking(|| format!("creating {}", folder.display()))?;
        std::fs::write(&path, text).asking(|| format!("writing {}", path.display()))
    }

    /// Runs a script of the appliance with these lines as input.
    fn run(&self, script: &str, lines: &[&str]) -> Result<Finished> {
        self.write("input", &format!("{}\n", lines.join("\n")))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = command("busybox")?;
        shell.args(["sh", "-c", "exec <\"$INPUT\"; . \"$1\"", "menu"]);
        shell.arg(project().join("packaging/appliance").join(script));
        shell.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        shell.env("LIBRARY", project().join("packaging/appliance"));
        shell.env("SOCKET", self.folder.join("input"));
        for (name, file) in
            [("INPUT", "input"), ("STORE", "store"), ("NET", "net"), ("CMDLINE", "cmdline"), ("RUN", "run")]
        {
            shell.env(name, self.folder.join(file));
        }
        self.network.host("box")?.run(shell, SHORT)
    }

    fn stored(&self) -> Result<String> {
        let path = self.folder.join("store/appliance.conf");
        std::fs::read_to_string(&path).asking(|| format!("reading {}", path.display()))
    }
}

fn answers_are_stored() -> Result<()> {
    let menu = Menu::new()?;
    // Everything as proposed.
    let said = menu.run("menu", &["1", "", "", "", "", "", "", "", "", "", "", ""])?.succeeded()?.stdout;
    assert!(said.contains("shown") && said.contains("Set up: eth1 inside, eth0 outside"), "{said}");
    let by_default = "wan=52:54:00:00:00:01\nlan=52:54:00:00:00:02\nwan4=dhcp\ndns=\nlan4=192.168.1.1/24\nipv6=native\n\
                      wan6=auto\nlan6=delegated\ndhcp=yes\nipv6_mostly=no\n";
    assert_eq!(menu.stored()?, by_default);
    // By hand, with the interfaces exchanged; then with a tunnel.
    let by_hand = [
        "1",
        "eth1",
        "eth0",
        "203.0.113.1/24 203.0.113.2",
        "203.0.113.2 2001:db8:f::2",
        "10.0.0.1/16",
        "1",
        "2001:db8:f::1/64 2001:db8:f::2",
        "2001:db8:1::1/64",
        "no",
        "yes",
    ];
    menu.run("menu", &by_hand)?.succeeded()?;
    assert_eq!(
        menu.stored()?,
        "wan=52:54:00:00:00:02\nlan=52:54:00:00:00:01\nwan4=203.0.113.1/24,203.0.113.2\n\
         dns=203.0.113.2,2001:db8:f::2\nlan4=10.0.0.1/16\nipv6=native\nwan6=2001:db8:f::1/64,2001:db8:f::2\n\
         lan6=2001:db8:1::1/64\ndhcp=no\nipv6_mostly=no\n"
    );
    menu.run("menu", &["1", "", "", "", "", "", "2", "2001:db8::/32 0 192.0.2.1", "", ""])?.succeeded()?;
    assert!(menu.stored()?.contains("\nipv6=6rd:2001:db8::/32,0,192.0.2.1\n"), "{}", menu.stored()?);
    menu.run("menu", &["1", "", "", "", "", "", "3", "192.0.2.9", "", ""])?.succeeded()?;
    assert!(menu.stored()?.contains("\nipv6=6to4:192.0.2.9\n"), "{}", menu.stored()?);
    Ok(())
}

/// Each with what is said about it; the last answer of a question is correct.
const WRONG: [(&str, &str); 22] = [
    ("1", ""),
    ("eth7", "there is no interface eth7; there are eth0,eth1"),
    ("eth0", ""),
    ("eth0", "eth0 is the interface to the provider"),
    ("eth1;reboot", "only letters, digits"),
    ("eth1", ""),
    ("203.0.113.1/24", "write dhcp, or ADDRESS/LENGTH"),
    ("203.0.113.1/33 203.0.113.2", "the length in 203.0.113.1/33 is not 8 to 32"),
    ("203.0.113.1/7 203.0.113.2", "the length in 203.0.113.1/7 is not 8 to 32"),
    ("203.0.113.1/24 203.0.113.1", "the router 203.0.113.1 is not a neighbour"),
    ("203.0.113.1/24 203.0.113.2.9", "203.0.113.2.9 is not an IPv4 address"),
    ("203.0.113.1/24 203.0.114.2", "the router 203.0.114.2 is not a neighbour"),
    ("203.0.113.1/24 203.0.113.256", "203.0.113.256 is not an IPv4 address"),
    ("203.0.113.1/24 203.0.113.2", ""),
    ("", "without DHCP, DNS servers have to be written"),
    ("2001:db8::g", "2001:db8::g is not an IP address"),
    ("2001:db8:::1", "2001:db8:::1 is not an IP address"),
    ("2001::db8::1", "2001::db8::1 is not an IP address"),
    ("2001:db8::1", ""),
    ("192.168.1.1/30", "the length in 192.168.1.1/30 is not 8 to 29"),
    ("192.168.1.1/24", ""),
    ("5", "write 1, 2, 3 or 4"),
];

fn wrong_answers() -> Result<()> {
    let menu = Menu::new()?;
    let mut lines: Vec<&str> = WRONG.iter().map(|(line, _)| *line).collect();
    lines.extend(["2", "2001:db8::/32,40,192.0.2.1", "2001:db8::/32,0,x", "2001:db8::/32,0,192.0.2.1"]);
    lines.extend(["perhaps", "yes", "no"]);
    let said = menu.run("menu", &lines)?.succeeded()?.stdout;
    let further =
        ["the mask length 40 is not 0 to 32", "the relay x is not an IPv4 address", "write yes or no"];
    for wrong in WRONG.iter().map(|(_, wrong)| *wrong).chain(further) {
        assert!(said.contains(wrong), "{wrong} in {said}");
    }
    // The last answer was not to store it.
    assert!(menu.stored().is_err() && said.contains("Not running"), "{said}");
    Ok(())
}

/// A stored file is read line by line: a command in it is not executed, an unknown key is ignored, and a fault is named.
fn settings_are_data() -> Result<()> {
    let menu = Menu::new()?;
    let trap = menu.folder.join("run/trap");
    let text =
        format!("wan=$(touch {0})\nlan=`touch {0}`\nPATH=/\nKEYS=wan\nlan4=192.168.1.1/24\n", trap.display());
    menu.write("store/appliance.conf", &text)?;
    let said = menu.run("menu", &["3"])?.succeeded()?.stdout;
    assert!(!trap.exists() && said.contains("lan4=192.168.1.1/24"), "{said}");
    assert!(said.contains("wan=\n") && !said.contains("touch"), "{said}");
    menu.write("net/eth1/address", "52:54:00:00:00:0a\n")?;
    menu.write("store/appliance.conf", "wan=eth0\nlan=52:54:00:00:00:0A\ndhcp=perhaps\n")?;
    let said = menu.run("menu", &["3"])?.succeeded()?.stdout;
    assert!(said.contains("Not running: write yes or no"), "{said}");
    // Kernel command line parameters come first.
    menu.write("store/appliance.conf", "wan=eth0\nlan=eth1\n")?;
    menu.write("cmdline", "quiet sixway.wan=eth1 sixway.lan=eth0 sixway.ipv6=6to4:1.2.3\n")?;
    let said = menu.run("menu", &["3"])?.succeeded()?.stdout;
    assert!(said.contains("wan=eth1\nlan=eth0\n"), "{said}");
    assert!(said.contains("Not running: the relay 1.2.3 is not an IPv4 address"), "{said}");
    Ok(())
}

/// The provider's and the LAN's network, and the computer's ends: the provider's first.
fn home() -> Result<(Network, Vec<Tap>)> {
    let network = Network::new(&["host", "gateway", "server"])?;
    network.link(("host", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    let taps = vec![plug(&network, "gateway", "out0")?, plug(&network, "gateway", "in0")?];
    for (host, device, address) in [
        ("host", "up0", "2001:db8:1::2/64"),
        ("server", "up0", "203.0.113.2/24"),
        ("server", "up0", "2001:db8:f::2/64"),
        ("server", "lo", "1.2.3.4/32"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("host", "default via 2001:db8:1::1")?;
    network.route("server", "2001:db8:1::/64 via 2001:db8:f::1")?;
    serve_page(&network, "server", FAR4, "from the server")?;
    Ok((network, taps))
}

/// Waits until the IPv6 host reaches an address.
fn reaches(network: &Network, address: &str) -> Result<()> {
    interrupt::wait_until(PATIENCE, &format!("an answer of {address}"), || {
        let trips = ping(network.host("host")?, address, 1, 56, Duration::from_millis(20));
        Ok(trips.is_ok_and(|trips| trips.answered == 1))
    })
}

/// The host leases its IPv4 address from the computer.
fn has_lease(network: &Network) -> Result<()> {
    let told = lease(network)?;
    let value = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let (Some(address), Some("192.168.1.1")) = (value("ip"), value("router")) else {
        return Err(Failure::Unexpected(told));
    };
    network.address("host", "up0", &format!("{address}/24"))?;
    network.route("host", "default via 192.168.1.1")
}

/// The host fetches by NAT44 and by NAT64, and pings.
fn forwards(network: &Network) -> Result<()> {
    reaches(network, SERVER6)?;
    reaches(network, FAR6)?;
    for server in [FAR4, "[64:ff9b::102:304]"] {
        assert_eq!(fetch(network, "host", &format!("http://{server}/"))?.body, "from the server");
    }
    for address in [FAR4, FAR6, SERVER6] {
        assert_eq!(ping(network.host("host")?, address, 5, 1_000, Duration::from_millis(50))?.answered, 5);
    }
    Ok(())
}

/// DHCP servers, and router advertisements: the provider's address is 203.0.113.1 and 2001:db8:f::1, and the LAN's prefix is delegated.
fn provide(network: &Network) -> Result<()> {
    let folder = network.folder();
    network.forwards("server")?;
    let mut dnsmasq = command("dnsmasq")?;
    dnsmasq.args([
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--port=0",
        "--interface=up0",
        "--bind-interfaces",
    ]);
    dnsmasq.args([
        "--dhcp-range=203.0.113.1,203.0.113.1,1h",
        "--dhcp-option=3,203.0.113.2",
        "--dhcp-option=6,203.0.113.2",
    ]);
    dnsmasq.arg(format!("--dhcp-leasefile={}", folder.join("provider.leases").display()));
    dnsmasq.arg(format!("--pid-file={}", folder.join("provider.pid").display()));
    network.start("server", dnsmasq)?;
    let managed =
        "interface up0 { AdvSendAdvert on; AdvManagedFlag on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; };\n";
    let file = network.file("radvd.conf", managed)?;
    let mut radvd = command("radvd")?;
    radvd.args(["--nodaemon", "--logmethod", "stderr", "--pidfile"]).arg(folder.join("radvd.pid"));
    network.start("server", {
        radvd.arg("--config").arg(file);
        radvd
    })?;
    let six = format!(
        r#"{{ "Dhcp6": {{
  "interfaces-config": {{ "interfaces": [ "up0" ] }},
  "lease-database": {{ "type": "memfile", "persist": false }},
  "data-directory": {folder:?},
  "subnet6": [ {{ "id": 1, "subnet": "2001:db8:f::/64", "interface": "up0",
    "pools": [ {{ "pool": "2001:db8:f::1 - 2001:db8:f::1" }} ],
    "pd-pools": [ {{ "prefix": "2001:db8:1::", "prefix-len": 64, "delegated-len": 64 }} ] }} ]
}} }}"#
    );
    let file = network.file("kea-dhcp6.json", &six)?;
    let mut kea = command("kea-dhcp6")?;
    kea.arg("-c").arg(file);
    for variable in ["KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR", "KEA_DHCP_DATA_DIR"] {
        kea.env(variable, folder);
    }
    network.start("server", kea).map(drop)
}

/// Set up by the menu with DHCP, a delegated prefix and IPv6-mostly. After the power cut nobody types anything.
fn from_a_stick() -> Result<()> {
    let (network, taps) = home()?;
    provide(&network)?;
    let stick = network.folder().join("stick.img");
    std::fs::copy(image("sixway.img"), &stick).asking(|| "copying the image".to_owned())?;
    let mut computer = Computer::start(&network, "gateway", Start::Bios(&stick), &taps, ENOUGH)?;
    let menu = computer.hear("Choice: ", PATIENCE)?;
    assert!(menu.contains("Not running: the appliance is not set up yet"), "{menu}");
    for (line, question) in [
        ("1", "Interface to the provider"),
        (&taps[0].address, "Interfaces of the LAN"),
        (&taps[1].address, "IPv4 at eth"),
        ("dhcp", "DNS servers"),
        ("", "IPv4 of eth"),
        ("192.168.1.1/24", "IPv6 ["),
        ("1", "IPv6 at eth"),
        ("auto", "IPv6 of eth"),
        ("delegated", "DHCP for IPv4 hosts"),
        ("yes", "IPv6-mostly"),
        ("yes", "Store this and start"),
    ] {
        computer.write_line(line)?;
        computer.hear(question, SHORT)?;
    }
    computer.write_line("yes")?;
    let shown = computer.hear("Choice: ", PATIENCE)?;
    assert!(shown.contains("nat64") && shown.contains("192.168.1.1/24"), "{shown}");
    let available = shown
        .lines()
        .find_map(|line| line.strip_suffix(" MB of it available")?.rsplit(' ').next()?.parse::<u32>().ok());
    assert!(available.is_some_and(|available| available >= ENOUGH / 4), "{shown}");
    has_lease(&network)?;
    forwards(&network)?;
    computer.cut_power()?;
    let mut computer = Computer::start(&network, "gateway", Start::Bios(&stick), &taps, ENOUGH)?;
    let menu = computer.hear("Choice: ", PATIENCE)?;
    assert!(menu.contains("Set up: eth"), "{menu}");
    forwards(&network)
}

/// Nothing is typed but what switches it off.
fn by_command_line() -> Result<()> {
    let (network, taps) = home()?;
    let words = format!(
        "quiet console=ttyS0 sixway.wan={} sixway.lan={} sixway.wan4=203.0.113.1/24,203.0.113.2 sixway.dns=203.0.113.2 \
         sixway.wan6=2001:db8:f::1/64,2001:db8:f::2 sixway.lan6=2001:db8:1::1/64",
        taps[0].address, taps[1].address
    );
    let (kernel, files) = (image("vmlinuz"), image("initrd.img"));
    let start = Start::Kernel(&kernel, &files, &words);
    let mut computer = Computer::start(&network, "gateway", start, &taps, LEAST)?;
    reaches(&network, SERVER6)?;
    has_lease(&network)?;
    forwards(&network)?;
    computer.hear("Choice: ", SHORT)?;
    computer.write_line("9")?;
    computer.hear("Power off", SHORT)?;
    computer.write_line("yes")?;
    interrupt::wait_until(PATIENCE, "the end of the computer", || Ok(!computer.is_on()?))
}

/// The firmware starts what is signed alone, and so does the kernel with its modules.
fn by_uefi() -> Result<()> {
    let (network, taps) = home()?;
    let stick = network.folder().join("stick.img");
    std::fs::copy(image("sixway.img"), &stick).asking(|| "copying the image".to_owned())?;
    let mut computer = Computer::start(&network, "gateway", Start::SecureUefi(&stick), &taps, UEFI_MEMORY)?;
    computer.hear("Choice: ", PATIENCE)?;
    computer.write_line("7")?;
    computer.write_line("dmesg | grep 'ecure boot'")?;
    computer.hear("ecure boot enabled", SHORT)?;
    computer.write_line("exit")?;
    computer.hear("Choice: ", SHORT)?;
    computer.write_line("1")?;
    // Modules of both cards were loaded.
    let said = computer.hear("Interface to the provider", SHORT)?;
    assert!(said.contains("e1000") && said.contains("virtio_net"), "{said}");
    Ok(())
}
