//! The recipes that come with the lab: parsed, and run with programs that only write down how they were called.

use super::environment::data;
use super::recipe::{ACTIONS, Environment, HOST_ACTIONS, Recipe, Transport};
use crate::device::task::{Nat44, SiteGateway, Task, TaskKind};
use crate::failure::Failure;
use crate::programs::make_executable;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote");
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "sh")).collect()
}

/// Whether it is a recipe of a host, and not of a device.
fn is_host(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("host-"))
}

#[test]
fn recipes_define_every_action() {
    let files = shipped();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let parsed = Command::new("sh").arg("-n").arg(&file).output().unwrap();
        assert!(parsed.status.success(), "{}: {parsed:?}", file.display());
        let text = std::fs::read_to_string(&file).unwrap();
        let actions = if is_host(&file) { &HOST_ACTIONS[..] } else { &ACTIONS[..] };
        for action in actions {
            assert!(text.contains(&format!("\n{action}() {{")), "{} has no {action}", file.display());
        }
        assert!(text.ends_with("\n\"$1\"\n"), "{} does not call its action", file.display());
    }
}

#[test]
fn every_recipe_says_what_it_is_and_which_tasks_it_can_do() {
    for file in shipped().into_iter().filter(|file| !is_host(file)) {
        let recipe = Recipe { transport: Transport::Local, file: file.clone() };
        let about = recipe.run("about", &Environment::new()).unwrap();
        assert!(!about["what"].is_empty(), "{}", file.display());
        for task in about["tasks"].split(',') {
            assert!(TaskKind::ALL.iter().any(|kind| kind.key() == task), "{}: {task}", file.display());
        }
        // This machine has another system.
        let why = recipe.run("why_not", &Environment::new()).unwrap();
        let is_linux = file.ends_with("linux.sh");
        assert!(is_linux || why["why"].len() > 5, "{}: {why:?}", file.display());
    }
}

fn of_pairs(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What a recipe calls at its start, with these programs, and their arguments.
fn calls(name: &str, programs: &[&str], given: &Environment) -> Vec<String> {
    calls_of("start", name, programs, given)
}

fn calls_of(action: &str, name: &str, programs: &[&str], given: &Environment) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("sixway-recipe-{}-{action}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for program in programs {
        let path = folder.join(program);
        let read = if ["pfctl", "ssh"].contains(program) { "cat >>\"$LOG\"\n" } else { "" };
        let text = format!("#!/bin/sh\necho \"{program} $*\" >>\"$LOG\"\n{read}");
        std::fs::write(&path, text).unwrap();
        make_executable(&path).unwrap();
    }
    let log = folder.join("log");
    let mut environment = given.clone();
    // Where some keep what they have changed.
    environment.insert("SIXWAY_RECIPE_STATE".to_owned(), folder.display().to_string());
    environment.insert("PATH".to_owned(), format!("{}:/usr/bin:/bin", folder.display()));
    environment.insert("LOG".to_owned(), log.display().to_string());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote").join(name);
    Recipe { transport: Transport::Local, file }.run(action, &environment).unwrap();
    let lines = std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    lines
}

const RELAY: &[(&str, &str)] = &[
    ("TASK", "6to4-relay"),
    ("ADDRESS", "80.64.79.254"),
    ("INSIDE", "em0"),
    ("OUTSIDE", "em1"),
    ("INSIDE_ADDRESSES", "80.64.79.254/24"),
    ("OUTSIDE_ADDRESSES", "2a02:a50::1/64"),
    ("ROUTES", "2001:738:2c01:8001:ffff:0:a00:0/105,2a02:a50::2"),
];

#[test]
fn freebsd_becomes_the_relay_of_the_paper() {
    let expected = [
        "sysctl -e net.inet.ip.forwarding net.inet6.ip6.forwarding",
        "sysctl net.inet.ip.forwarding=1 net.inet6.ip6.forwarding=1",
        "ifconfig em0 inet 80.64.79.254/24 alias",
        "ifconfig em1 inet6 2a02:a50::1/64 alias",
        "ifconfig em0 up",
        "ifconfig em1 up",
        "route add -inet6 2001:738:2c01:8001:ffff:0:a00:0/105 2a02:a50::2",
        "ifconfig stf0 create",
        "ifconfig stf0 inet6 2002:5040:4ffe::1 prefixlen 16 alias",
        "ifconfig stf0 up",
    ];
    assert_eq!(calls("freebsd-stf.sh", &["sysctl", "ifconfig", "route"], &of_pairs(RELAY)), expected);
}

#[test]
fn netbsd_becomes_the_relay_of_the_paper() {
    let said = calls("netbsd-stf.sh", &["sysctl", "ifconfig", "route"], &of_pairs(RELAY));
    let first = ["sysctl -n net.inet.ip.forwarding", "sysctl -n net.inet6.ip6.forwarding"];
    assert_eq!(said[..2], first);
    assert_eq!(said[2], "sysctl -q -w net.inet.ip.forwarding=1 net.inet6.ip6.forwarding=1");
    assert_eq!(said.last().unwrap(), "ifconfig stf0 inet6 2002:5040:4ffe::1 prefixlen 16 alias");
    assert_eq!(said.len(), 10, "{said:#?}");
}

#[test]
fn pf_translates_as_in_the_papers() {
    let programs = ["sysctl", "ifconfig", "route", "pfctl"];
    let common = [("INSIDE", "em0"), ("OUTSIDE", "em1")];
    let nat64 = [("TASK", "nat64"), ("PREFIX", "fdb9:a0ab:af17:ffff:ffff:ffff::/96"), ("STATES", "40000")];
    let said = calls("openbsd-pf-af-to.sh", &programs, &of_pairs(&[&common[..], &nat64].concat()));
    let rules = [
        "pfctl -q -f -",
        "set limit states 40000",
        "pass",
        "pass in quick on em0 inet6 from any to fdb9:a0ab:af17:ffff:ffff:ffff::/96 af-to inet from (em1)",
    ];
    assert!(said.windows(rules.len()).any(|lines| lines == rules), "{said:#?}");
    // With an address of its own, as in gateway-2012, and with that of its interface.
    for (pool, own) in [(&["192.0.2.9"][..], "192.0.2.9"), (&[], "(em1)")] {
        let said = calls("openbsd-pf-rdr-to.sh", &programs, &given(&common, &nat44(pool)));
        let rules = [
            format!("match out on em1 inet from 192.168.0.0/16 nat-to {own}"),
            format!("pass in quick on em1 inet proto ipv6 to {own} rdr-to 192.168.2.1"),
        ];
        assert!(said.windows(rules.len()).any(|lines| lines == rules), "{said:#?}");
    }
}

/// A NAT with a tunnel's end behind it.
fn nat44(pool: &[&str]) -> Task {
    let pool = pool.iter().map(|address| (*address).to_owned()).collect();
    let tunnel_end = Some(Ipv4Addr::new(192, 168, 2, 1));
    Task::Nat44(Nat44 { inside: vec!["192.168.0.0/16".to_owned()], pool, tunnel_end })
}

/// What a recipe is given of a task by the lab, and these.
fn given(others: &[(&str, &str)], task: &Task) -> Environment {
    let mut all = data(task);
    all.insert("TASK".to_owned(), task.kind().key());
    all.extend(of_pairs(others));
    all
}

#[test]
fn linux_passes_a_tunnel_through_its_nat() {
    let programs = ["sysctl", "ip", "nft", "radvd"];
    let common = [("INSIDE", "recipe0"), ("OUTSIDE", "recipe1")];
    let rules = |task: &Task, end: &str| -> Vec<String> {
        let said = calls("linux.sh", &programs, &given(&common, task));
        said.into_iter().filter(|line| line.ends_with(end)).collect()
    };
    let arrives = "nft add rule ip sixway_recipe arriving iifname recipe1 ip protocol 41 dnat to 192.168.2.1";
    assert_eq!(rules(&nat44(&["192.0.2.9"]), "dnat to 192.168.2.1"), [arrives]);
    let site = SiteGateway {
        address: Ipv4Addr::new(192, 168, 1, 1),
        relay: Ipv4Addr::new(192, 0, 2, 2),
        inside: vec!["192.168.0.0/16".to_owned()],
        nat: Some(Ipv4Addr::new(192, 0, 2, 9)),
    };
    let leaves =
        "nft add rule ip sixway_recipe leaving ip saddr 192.168.0.0/16 oifname recipe1 snat to 192.0.2.9";
    assert_eq!(rules(&Task::SiteGateway(site.clone()), "192.0.2.9"), [leaves]);
    let tunnels = "ip tunnel add sixway6 mode sit remote any local 192.168.1.1 ttl 64";
    let advertises = "-m none -u root";
    assert_eq!(rules(&Task::SiteGateway(site.clone()), "ttl 64"), [tunnels]);
    assert_eq!(rules(&Task::SiteGateway(site), advertises).len(), 1);
}

#[test]
fn ios_gets_the_commands_of_a_6to4_router() {
    let router = [
        ("TASK", "6to4-router"),
        ("ADDRESS", "192.0.2.1"),
        ("RELAY", "192.0.2.9"),
        ("INSIDE", "Gi0/0"),
        ("OUTSIDE", "Gi0/1"),
        ("INSIDE_ADDRESSES", "2002:c000:201:1::1/64"),
        ("OUTSIDE_ADDRESSES", "192.0.2.1/25"),
        ("ROUTES", "10.0.0.0/8,192.0.2.3"),
        ("IOS_HOST", "admin@192.0.2.200"),
    ];
    let expected = [
        "ssh -o BatchMode=yes -o ConnectTimeout=10 admin@192.0.2.200",
        "configure terminal",
        "ipv6 unicast-routing",
        "interface Gi0/0",
        " ipv6 address 2002:c000:201:1::1/64",
        " no shutdown",
        "interface Gi0/1",
        " ip address 192.0.2.1 255.255.255.128",
        " no shutdown",
        "ip route 10.0.0.0 255.0.0.0 192.0.2.3",
        "interface Tunnel2002",
        " ipv6 address 2002:c000:0201::1/128",
        " tunnel source Gi0/1",
        " tunnel mode ipv6ip 6to4",
        "ipv6 route 2002::/16 Tunnel2002",
        "ipv6 route ::/0 2002:c000:0209::1",
        "end",
    ];
    assert_eq!(calls("ios-6to4.sh", &["ssh"], &of_pairs(&router)), expected);
}

#[test]
fn a_second_start_does_not_note_what_the_first_one_has_changed() {
    for (name, said) in [
        ("linux.sh", "$IS"),
        ("freebsd-stf.sh", "net.inet.ip.forwarding=$IS"),
        ("netbsd-stf.sh", "$IS"),
        ("openbsd-pf-af-to.sh", "$IS"),
        ("openbsd-pf-rdr-to.sh", "$IS"),
    ] {
        let folder = std::env::temp_dir().join(format!("sixway-recipe-twice-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let answer = format!("case $1 in -n | -e) echo {said} ;; *) echo \"$*\" >>\"$LOG\" ;; esac\n");
        let idle = ["ip", "nft", "ifconfig", "route", "pfctl"].map(|program| (program, ""));
        for (program, does) in idle.into_iter().chain([("sysctl", answer.as_str())]) {
            let path = folder.join(program);
            std::fs::write(&path, format!("#!/bin/sh\n{does}")).unwrap();
            make_executable(&path).unwrap();
        }
        let log = folder.join("log");
        let run = |action: &str, is: &str| {
            let [path, state] =
                [format!("{0}:/usr/bin:/bin", folder.display()), folder.display().to_string()];
            let log = log.display().to_string();
            let given = of_pairs(&[
                ("PATH", &path),
                ("SIXWAY_RECIPE_STATE", &state),
                ("LOG", &log),
                ("IS", is),
                ("TASK", "forwarder"),
                ("INSIDE", "in0"),
                ("OUTSIDE", "out0"),
            ]);
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote").join(name);
            Recipe { transport: Transport::Local, file }.run(action, &given).unwrap();
        };
        run("start", "0");
        run("start", "1");
        std::fs::write(&log, "").unwrap();
        run("stop", "1");
        let restored = std::fs::read_to_string(&log).unwrap();
        let is_noted = folder.join("sixway-recipe.in0").exists();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            restored
                .lines()
                .next()
                .is_some_and(|line| line.ends_with("forward=0") || line.ends_with("forwarding=0")),
            "{restored}"
        );
        assert!(!restored.contains("=1") && !is_noted, "{restored}");
    }
}

/// What IOS's recipe says about the CPU, with this folder for its state.
fn cpu_of_ios(run: &Path) -> Result<Environment, Failure> {
    let ssh = run.join("ssh");
    std::fs::write(&ssh, "#!/bin/sh\necho 'CPU utilization for five seconds: 50%/3%; one minute: 9%'\n")
        .unwrap();
    make_executable(&ssh).unwrap();
    let path = format!("{}:/usr/bin:/bin", run.display());
    let run = run.display().to_string();
    let environment = of_pairs(&[("PATH", &path), ("XDG_RUNTIME_DIR", &run), ("IOS_HOST", "a")]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote/ios-6to4.sh");
    Recipe { transport: Transport::Local, file }.run("cpu", &environment)
}

#[test]
fn the_cpu_time_of_ios_is_kept_in_a_folder_that_nobody_else_can_write() {
    let run = std::env::temp_dir().join(format!("sixway-recipe-cpu-{}", std::process::id()));
    let (kept, other) = (run.join("sixway-ios"), run.join("other"));
    std::fs::create_dir_all(&other).unwrap();
    std::os::unix::fs::symlink(&other, &kept).unwrap();
    let by_link = cpu_of_ios(&run).unwrap_err().to_string();
    std::fs::remove_file(&kept).unwrap();
    let first = cpu_of_ios(&run).unwrap();
    // A hundred seconds ago it was at 7 ns.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    std::fs::write(kept.join("cpu"), format!("7 {}\n", now - 100)).unwrap();
    let later: u64 = cpu_of_ios(&run).unwrap()["busy_ns"].parse().unwrap();
    // Some shells run a command in an index.
    std::fs::write(kept.join("cpu"), format!("a[$(touch$IFS{}/ran)] 1\n", run.display())).unwrap();
    let odd = cpu_of_ios(&run).unwrap();
    let ran = run.join("ran").exists();
    std::fs::remove_dir_all(&run).unwrap();
    assert!(by_link.contains("is not a folder of this user alone"), "{by_link}");
    assert_eq!((first["busy_ns"].as_str(), odd["busy_ns"].as_str(), ran), ("0", "0", false));
    assert!((50_000_000_007..60_000_000_000).contains(&later), "{later}");
}

/// PowerShell is not here: that its scripts are valid is not tested.
#[test]
fn windows_gets_addresses_routes_and_an_iperf3_server_and_loses_them() {
    let host = [
        ("WINDOWS_HOST", "administrator@192.0.2.7"),
        ("LINK", "Ethernet 2"),
        ("ADDRESSES", "10.1.0.2/24 2001:db8:a::2/64"),
        ("ROUTES", "10.2.0.0/24,10.1.0.1"),
        ("TARGET", "2001:db8:c::2"),
        ("OCTETS", "1400"),
        ("COUNT", "20"),
        ("TRANSPORT", "udp"),
        ("DURATION", "3"),
    ];
    let of = |action| calls_of(action, "host-windows.sh", &["ssh"], &of_pairs(&host));
    let place = |lines: &[String], start: &str| {
        let found = lines.iter().position(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("{start} is not in {lines:#?}"))
    };
    let start = of("start");
    assert_eq!(
        start[0],
        "ssh -o BatchMode=yes -o ConnectTimeout=10 administrator@192.0.2.7 powershell -NoProfile -NonInteractive -Command \
         \"& ([ScriptBlock]::Create([Console]::In.ReadToEnd()))\""
    );
    assert_eq!(start[1], "$ErrorActionPreference = \"Stop\"");
    let in_order = [
        "Remove-NetRoute -InterfaceAlias 'Ethernet 2' -DestinationPrefix '10.2.0.0/24' -NextHop '10.1.0.1' -Confirm:$false",
        "Remove-NetIPAddress -InterfaceAlias 'Ethernet 2' -IPAddress '10.1.0.2' -Confirm:$false",
        "$ErrorActionPreference = \"Stop\"",
        "Set-NetIPInterface -InterfaceAlias 'Ethernet 2' -DadTransmits 0",
        "New-NetIPAddress -InterfaceAlias 'Ethernet 2' -IPAddress '10.1.0.2' -PrefixLength 24 -PolicyStore ActiveStore",
        "New-NetIPAddress -InterfaceAlias 'Ethernet 2' -IPAddress '2001:db8:a::2' -PrefixLength 64 -PolicyStore ActiveStore",
        "New-NetRoute -InterfaceAlias 'Ethernet 2' -DestinationPrefix '10.2.0.0/24' -NextHop '10.1.0.1' -PolicyStore ActiveStore",
        "$server = Invoke-CimMethod -ClassName Win32_Process -MethodName Create",
    ];
    let mut after = 2;
    for line in in_order {
        after += place(&start[after..], line) + 1;
    }
    // What it removes before it starts is what it removes at its end.
    let stop = of("stop");
    assert!(stop.len() > 10, "{stop:#?}");
    assert_eq!(stop[2..], start[2..stop.len()]);
    place(&of("clock"), "\"ns=\" + (([DateTime]::UtcNow.Ticks - 621355968000000000) * 100)");
    let trips = of("round_trips");
    place(&trips, "$data = New-Object byte[] 1400");
    place(&trips, "$times = foreach ($number in 1..20) {");
    place(&trips, "$reply = $ping.Send('2001:db8:c::2', 1000, $data)");
    let said =
        place(&of("send"), "$said = iperf3 -c 2001:db8:c::2 --connect-timeout 3000 -u -b 0 -l 1400 -t 3 -J");
    assert_eq!(said, 2);
}
