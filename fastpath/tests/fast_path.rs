//! The fast path's programs in a real kernel: attached to interfaces, left behind, found again, replaced, taken away.

use crate::support;
use crate::support::peer::{FAR, NEAR, Peer, Sender, ipv4, packet_socket, udp};
use crate::support::{in_namespace, open, wait};
use aya::maps::{HashMap, MapData};
use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::table::Kind;
use sixway_dataplane::nat::{Direction, Inside, NatProtocol, Outside};
use sixway_dataplane::offload::{FastPath as _, OffloadedFlow, mark};
use sixway_fastpath::layout::{Config, Device, KIND_NAT64};
use sixway_fastpath::test_run::{Frame, run_tc, run_xdp, send_xdp};
use sixway_fastpath::{
    Ahead, AttachPoint, FastPath, FastPathError, FastPathWriter, Found, Mode, Rules, STEERING_PROGRAM,
    Settings, Steering, TC_PROGRAM, remove_all,
};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs `body` next to a peer, with a folder for pins that goes with the test's mounts.
fn with_pins(test: &'static str, body: impl FnOnce(&Peer, Settings) + Send + 'static) {
    in_namespace(test, move || {
        // SAFETY: unshare touches no memory; mounts may differ from thread to thread.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        let (none, root) = (std::ptr::null(), c"/".as_ptr());
        // SAFETY: C strings that outlive the call; what is mounted from here on is this thread's.
        assert_eq!(unsafe { libc::mount(none, root, none, flags, none.cast()) }, 0);
        let folder = std::env::temp_dir().join(format!("sixway-{test}-{}", std::process::id()));
        let _gone = Gone(folder.clone());
        let settings = Settings {
            pin_path: folder.join("bpf"),
            gateway: "sixway0".into(),
            mode: Mode::Tc,
            capacity: 100,
            interfaces: vec!["near".into()],
            rules: rules(),
            ..Settings::default()
        };
        let peer = Peer::joined();
        match FastPath::load(&settings) {
            Ok(fast_path) => {
                fast_path.end().unwrap();
                body(&peer, settings);
            }
            Err(error @ FastPathError::NotPermitted { .. }) => sixway_trial::ignore(error),
            Err(error) => panic!("{error}"),
        }
    });
}

/// A folder that is removed at the end.
struct Gone(PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.join("bpf")).output();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rules() -> Rules {
    let mut config = Config::zero();
    let translator = &mut config.translators[0];
    translator.kind = KIND_NAT64;
    translator.length = 96;
    translator.prefix[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
    translator.identity = nat64().number();
    (config.translators_count, config.has_stateful) = (1, 1);
    Rules { config: Box::new(config), tables: Vec::new() }
}

fn nat64() -> Identity {
    Identity::of_nat64("64:ff9b::/96".parse().unwrap())
}

fn flow(number: u16) -> OffloadedFlow {
    OffloadedFlow {
        mechanism: nat64(),
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), number)),
        outside: Outside(Endpoint4::new(NEAR, number)),
        remote: Endpoint4::new(FAR, 53),
    }
}

fn start(settings: &Settings) -> FastPath {
    let mut fast_path = FastPath::load(settings).unwrap();
    fast_path.attach(&settings.interfaces).unwrap();
    fast_path
}

/// What a command says about an interface.
fn says(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Programs at tc ingress by TCX, in their order.
fn at_tcx(interface: &str) -> Vec<(u32, String)> {
    use aya::programs::{SchedClassifier, TcAttachType};
    let (_, programs) = SchedClassifier::query_tcx(interface, TcAttachType::Ingress).unwrap();
    programs.iter().map(|program| (program.id(), program.name_as_str().unwrap().to_owned())).collect()
}

fn names(settings: &Settings) -> Vec<String> {
    let folder = settings.pin_path.join(&settings.gateway);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn it_stands_before_steering_and_outlives_its_process() {
    with_pins("outlives", |_, settings| {
        let tun = open(&Default::default());
        let steering = Steering::attach(
            "gw1",
            &["near"],
            &tun.name,
            &[sixway_fastpath::OwnAddress::of_tunnels(NEAR)],
            &sixway_fastpath::InsideHosts::default(),
        )
        .unwrap();
        let fast_path = start(&settings);
        assert_eq!(fast_path.found(), &Found::Nothing);
        assert_eq!(fast_path.attached()[0].place, AttachPoint::Tcx);
        let names_at_tcx = || at_tcx("near").into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names_at_tcx(), [TC_PROGRAM, STEERING_PROGRAM]);
        drop(fast_path); // as a process that is killed
        assert_eq!(names_at_tcx(), [TC_PROGRAM, STEERING_PROGRAM]);
        drop(steering);
        assert!(remove_all(&settings.pin_path, &settings.gateway).unwrap() >= 8);
        assert_eq!((at_tcx("near").len(), names(&settings).len()), (0, 0));
        assert_eq!(remove_all(&settings.pin_path, &settings.gateway).unwrap(), 0, "there is nothing more");
    });
}

#[test]
fn the_next_process_finds_flows_and_takes_the_programs_place() {
    with_pins("next", |_, settings| {
        let first = start(&settings);
        first.control().enable(true);
        for number in 1..=3 {
            let handle = first.table().arm(&flow(number)).unwrap();
            assert_eq!(first.table().halves_of(handle).map(|slot| first.table().force(slot)), [true; 2]);
        }
        let before = at_tcx("near");
        drop(first);
        let opened = FastPath::open(&settings).unwrap();
        let table = opened.table().unwrap();
        let adopted = table.adopt(|_, flow, _| flow.inside.0.port != 2);
        let mut second = opened.load(&settings).unwrap();
        assert_eq!(second.found(), &Found::Kept);
        assert!(second.control().is_enabled(), "nobody is interrupted");
        assert_eq!((adopted.kept, adopted.refused, second.table().used()), (2, 1, 2));
        assert_eq!(at_tcx("near"), before, "until now, the program of before");
        second.attach(&settings.interfaces).unwrap();
        let after = at_tcx("near");
        assert!(after.len() == 1 && after[0].0 != before[0].0, "{before:?} {after:?}");
        assert_eq!(second.end().unwrap(), 8);
    });
}

#[test]
fn another_size_or_another_gateway_begins_again() {
    with_pins("anew", |_, settings| {
        drop(start(&settings));
        let larger = Settings { capacity: 1_000, ..settings.clone() };
        let fast_path = FastPath::load(&larger).unwrap();
        assert!(
            matches!(fast_path.found(), Found::Replaced(why) if why.contains("flows")),
            "{:?}",
            fast_path.found()
        );
        assert!(at_tcx("near").is_empty(), "what worked on the old maps is gone");
        assert!(!fast_path.control().is_enabled());
        fast_path.control().begin("other", sixway_fastpath::FlowTable::buckets_for(1_000)).unwrap();
        drop(fast_path);
        let fast_path = FastPath::load(&larger).unwrap();
        assert!(matches!(fast_path.found(), Found::Replaced(why) if why.contains("gateway")));
        fast_path.end().unwrap();
    });
}

#[test]
fn programs_are_replaced_in_their_place_and_interfaces_come_and_go() {
    with_pins("replaced", |_, settings| {
        support::ip("link add other type veth peer name end");
        let mut fast_path = start(&settings);
        fast_path.control().enable(true);
        let handle = fast_path.table().arm(&flow(1)).unwrap();
        let before = at_tcx("near");
        let both = ["near".to_owned(), "other".to_owned()];
        fast_path.replace(&rules(), &both).unwrap();
        let after = at_tcx("near");
        assert!(after.len() == 1 && after[0].0 != before[0].0);
        assert_eq!(at_tcx("other").len(), 1);
        assert_eq!(fast_path.table().entries().map(|(handle, ..)| handle).collect::<Vec<_>>(), [handle]);
        fast_path.attach(&both[1..]).unwrap();
        assert_eq!((at_tcx("near").len(), at_tcx("other").len()), (0, 1));
        support::ip("link del other");
        support::ip("link add other type veth peer name end");
        fast_path.attach(&both).unwrap();
        assert_eq!((at_tcx("near").len(), at_tcx("other").len()), (1, 1), "it came back");
        let with_nothing = ["near".to_owned(), "nothing".to_owned(), "other".to_owned()];
        fast_path.replace(&rules(), &with_nothing).unwrap();
        assert_eq!((at_tcx("near").len(), at_tcx("other").len()), (1, 1), "those that are there");
        let left_out = fast_path.left_out();
        assert_eq!((&*left_out[0].interface, left_out[0].ifindex, left_out.len()), ("nothing", None, 1));
        fast_path.end().unwrap();
        assert_eq!((at_tcx("near").len(), at_tcx("other").len()), (0, 0));
    });
}

#[test]
fn in_the_driver_it_stays_too_and_is_replaced() {
    with_pins("driver", |_, settings| {
        let settings = Settings { mode: Mode::Xdp, ..settings };
        let mut fast_path = start(&settings);
        assert_eq!(fast_path.attached()[0].place, AttachPoint::Xdp);
        let program = || {
            let text = says("ip", "-d link show dev near");
            assert!(text.contains("xdp") && !text.contains("xdpgeneric"), "{text}");
            text.split("prog/xdp id ").nth(1).map(|rest| rest.split(' ').next().unwrap().to_owned()).unwrap()
        };
        let before = program();
        assert_eq!(at_tcx("near").len(), 1, "what cannot leave from the driver is carried on there");
        fast_path.replace(&rules(), &settings.interfaces).unwrap();
        let after = program();
        assert_ne!(before, after);
        drop(fast_path);
        assert_eq!(program(), after);
        // One that is at tc ingress alone takes it away.
        let fast_path = start(&Settings { mode: Mode::Tc, ..settings.clone() });
        assert!(!says("ip", "-d link show dev near").contains("prog/xdp"));
        fast_path.end().unwrap();
    });
}

#[test]
fn a_virtual_device_gets_the_program_at_tc_ingress_with_a_reason() {
    with_pins("wire", |_, settings| {
        let fast_path = start(&Settings { mode: Mode::Auto, ..settings.clone() });
        let attached = &fast_path.attached()[0];
        assert_eq!((attached.place, attached.interface.as_str()), (AttachPoint::Tcx, "near"));
        assert!(attached.why.contains("veth"), "{}", attached.why);
        fast_path.end().unwrap();
    });
}

#[test]
fn without_tcx_a_filter_does_it_and_stands_alone() {
    with_pins("clsact", |_, settings| {
        let settings = Settings { clsact: true, ..settings };
        let filters =
            || says("tc", "filter show dev near ingress").matches(&format!("{TC_PROGRAM}:")).count();
        let shown = || says("tc", "filter show dev near ingress");
        let mut fast_path = start(&settings);
        assert_eq!(fast_path.attached()[0].place, AttachPoint::Clsact);
        let one = filters();
        assert!(shown().contains("pref 6 ") && shown().contains(TC_PROGRAM), "{}", shown());
        fast_path.replace(&rules(), &settings.interfaces).unwrap();
        assert_eq!(filters(), one, "{}", shown());
        drop(fast_path);
        let fast_path = start(&settings);
        assert_eq!((filters(), fast_path.found()), (one, &Found::Kept), "it outlives, and is replaced");
        drop(fast_path);
        let elsewhere = start(&Settings { interfaces: vec!["lo".into()], ..settings.clone() });
        assert_eq!(filters(), 0, "the next process hangs elsewhere: {}", shown());
        drop(elsewhere);
        drop(start(&settings));
        remove_all(&settings.pin_path, &settings.gateway).unwrap();
        assert!(!shown().contains(TC_PROGRAM), "{}", shown());
    });
}

/// Three datagrams that have no owner go on to the host, and are counted once each, whatever hooks they come by.
fn goes_on_and_is_counted(peer: &Peer, settings: Settings) {
    let mut rules = rules();
    let near = sixway_link::interface::index("near").unwrap();
    let port = &mut rules.config.ports[0];
    (port.ifindex, port.below, port.tc) = (near, near, 1);
    port.mac = sixway_link::interface::ethernet_address("near").unwrap().unwrap();
    rules.config.ports_count = 1;
    rules.config.absence = 3_600_000;
    let mode = settings.mode;
    let fast_path = start(&Settings { rules, ..settings });
    fast_path.control().enable(true);
    fast_path.control().beat();
    let socket = std::net::UdpSocket::bind((NEAR, 5_000)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let there = peer.inside(|| std::net::UdpSocket::bind((FAR, 0)).unwrap());
    for _ in 0..3 {
        there.send_to(b"hello", (NEAR, 5_000)).unwrap();
        assert_eq!(socket.recv(&mut [0; 100]).unwrap(), 5);
    }
    let counts = fast_path.counts().unwrap();
    let passed: BTreeMap<_, _> = counts.passed().map(|(cause, value)| (cause.name, value)).collect();
    assert_eq!((passed["not_ours"].packets, passed["not_ours"].octets), (3, 99), "{mode:?}: {passed:?}");
    assert_eq!(counts.lost().packets, 0);
    let _ = peer.inside(Sender::new);
    fast_path.end().unwrap();
}

#[test]
fn what_is_not_the_gateways_goes_on_and_is_counted() {
    with_pins("counted", goes_on_and_is_counted);
}

#[test]
fn what_both_hooks_pass_on_is_counted_once() {
    with_pins("once", |peer, settings| {
        goes_on_and_is_counted(peer, Settings { mode: Mode::Xdp, ..settings })
    });
}

/// Sum of one's complement words.
fn sum(octets: &[u8]) -> u32 {
    octets.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Ethernet frames of one flow: inside to outside in IPv6, and what must become of it.
struct Packets {
    six: Vec<u8>,
    four: Vec<u8>,
}

fn packets(flow: &OffloadedFlow, here: [u8; 6], there: [u8; 6]) -> Packets {
    let payload = b"a datagram";
    let length = (8 + payload.len()) as u16;
    let remote6: std::net::Ipv6Addr = format!("64:ff9b::{}", flow.remote.address).parse().unwrap();
    let datagram = |source: u16, addresses: &[&[u8]]| {
        let mut octets =
            [source.to_be_bytes(), flow.remote.port.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
        octets.extend(payload);
        let pseudo: u32 = addresses.iter().map(|address| sum(address)).sum();
        let checksum = !folded(sum(&octets) + pseudo + 17 + u32::from(length));
        octets[6..8].copy_from_slice(&checksum.to_be_bytes());
        octets
    };
    let (inside, remote6) = (flow.inside.0.address.octets(), remote6.octets());
    let mut six =
        [&here[..], &there, &[0x86, 0xdd, 0x60, 0, 0, 0], &length.to_be_bytes(), &[17, 64]].concat();
    six.extend([&inside[..], &remote6, &datagram(flow.inside.0.port, &[&inside, &remote6])].concat());
    let (outside, remote) = (flow.outside.0.address.octets(), flow.remote.address.octets());
    let mut header =
        [&[0x45, 0][..], &(20 + length).to_be_bytes(), &[0, 0, 0, 0, 63, 17, 0, 0], &outside, &remote]
            .concat();
    let checksum = !folded(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let datagram = datagram(flow.outside.0.port, &[&outside, &remote]);
    Packets { six, four: [&there[..], &here, &[8, 0], &header, &datagram].concat() }
}

/// A frame of IPv4 without its identification and the header's checksum, which is true.
fn unnumbered(frame: &[u8]) -> Vec<u8> {
    assert_eq!(folded(sum(&frame[14..34])), 0xffff, "{frame:?}");
    [&frame[..18], &[0; 2], &frame[20..24], &[0; 2], &frame[26..]].concat()
}

/// A host between two networks, both at the far end of the pair, with a TUN device that the translator's packets are routed to.
fn between(peer: &Peer) -> (sixway_link::Tun, Config, [u8; 6], [u8; 6]) {
    use sixway_link::sysctl::Sysctl;
    let tun = open(&Default::default());
    for path in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        Sysctl::set(format!("/proc/sys/net/{path}"), "1").unwrap().keep();
    }
    let mac = |name: &str| sixway_link::interface::ethernet_address(name).unwrap().unwrap();
    let (here, there) = (mac("near"), peer.inside(|| mac("far")));
    let spelt = there.map(|octet| format!("{octet:02x}")).join(":");
    for command in [
        "addr add 2001:db8::ff/64 dev near nodad",
        &format!("neigh replace 2001:db8::1 lladdr {spelt} dev near nud permanent"),
        &format!("neigh replace {FAR} lladdr {spelt} dev near nud permanent"),
        &format!("route add 198.51.100.0/24 dev {}", tun.name),
        &format!("-6 route add 64:ff9b::/96 dev {}", tun.name),
    ] {
        support::ip(command);
    }
    let mut config = *rules().config;
    let near = sixway_link::interface::index("near").unwrap();
    (config.tun, config.tun_mtu) = (sixway_link::interface::index(&tun.name).unwrap(), 1_500);
    (config.idle_tcp, config.idle_udp, config.absence) = (3_600_000, 3_600_000, 3_600_000);
    (config.mtu4, config.mtu6, config.ports_count, config.pools_count) = (1_500, 1_500, 1, 1);
    (config.ports[0].ifindex, config.ports[0].below, config.ports[0].mac) = (near, near, here);
    (config.pools[0].address, config.pools[0].mask) = (u32::from_be_bytes([198, 51, 100, 0]), 0xffff_ff00);
    (tun, config, here, there)
}

#[test]
fn a_flow_is_forwarded_from_its_quiet_point_until_it_is_removed() {
    with_pins("carried", |peer, settings| {
        let (_tun, config, here, there) = between(peer);
        let near = config.ports[0].ifindex;
        let rules = Rules { config: Box::new(config), ..Rules::default() };
        let mut fast_path = start(&Settings { rules, mode: Mode::Xdp, ..settings });
        let device = Device { port: near, vlan: 0, xdp: 1, tc: 1 };
        fast_path.set_devices(&BTreeMap::from([(near, device)])).unwrap();
        fast_path.control().beat();
        fast_path.control().enable(true);
        let outside = Outside(Endpoint4::new([198, 51, 100, 1].into(), 2_000));
        let flow = OffloadedFlow { outside, ..flow(1_000) };
        let Packets { six, four } = packets(&flow, here, there);
        let four = unnumbered(&four);
        let mut writer = FastPathWriter::new(fast_path.table().clone(), Instant::from_secs(100));
        let handle = writer.arm(&flow).unwrap();
        let mark = mark(NatProtocol::Udp, &six[54..]);
        let frame = Frame::new(&six).by(near);
        let ran = run_tc(fast_path.tc().unwrap(), &frame).unwrap();
        assert_eq!((ran.verdict as i32, &ran.octets), (-1, &six), "armed: it is the engine's");
        assert!(!writer.activate(handle, Direction::Out, mark ^ 1), "there are later ones under way");
        assert!(writer.activate(handle, Direction::Out, mark), "it was the last");
        let ran = run_tc(fast_path.tc().unwrap(), &frame).unwrap();
        assert_eq!((ran.verdict, &unnumbered(&ran.octets)), (7, &four), "TC_ACT_REDIRECT");
        let ran = run_xdp(fast_path.xdp().unwrap(), &frame).unwrap();
        assert_eq!((ran.verdict, &unnumbered(&ran.octets)), (4, &four), "XDP_REDIRECT");
        let [out, into] = writer.usage(handle);
        let octets = (six.len() - 14) as u64 * 2;
        assert_eq!((out.packets, out.octets, into.packets), (2, octets, 0));
        assert!(out.last.is_some_and(|last| (99..=101).contains(&last.as_secs())), "{:?}", out.last);
        let hops = fast_path.next_hops().in_use();
        assert!(
            hops.iter().all(|hop| hop.address == FAR && hop.ifindex == near && hop.mac == there),
            "{hops:?}"
        );
        assert_eq!(fast_path.counts().unwrap().of(Kind::Nat64)[0].packets, 2);
        assert_eq!(fast_path.next_hops().free(Duration::ZERO), 1);
        let ran = run_tc(fast_path.tc().unwrap(), &frame).unwrap();
        assert_eq!(ran.verdict, 7, "it is found again");
        assert_eq!(writer.remove(handle)[0].packets, 3);
        let ran = run_tc(fast_path.tc().unwrap(), &frame).unwrap();
        assert_eq!((ran.verdict as i32, &ran.octets), (-1, &six), "removed");
        fast_path.end().unwrap();
    });
}

#[test]
fn no_packet_notices_that_the_programs_are_replaced() {
    with_pins("unnoticed", |peer, settings| {
        let (mut tun, config, here, there) = between(peer);
        let near = config.ports[0].ifindex;
        let rules = Rules { config: Box::new(config), ..Rules::default() };
        let mut fast_path = start(&Settings { rules: rules.clone(), ..settings.clone() });
        let device = Device { port: near, vlan: 0, xdp: 0, tc: 1 };
        fast_path.set_devices(&BTreeMap::from([(near, device)])).unwrap();
        fast_path.control().enable(true);
        let outside = Outside(Endpoint4::new([198, 51, 100, 1].into(), 2_000));
        let flow = OffloadedFlow { outside, ..flow(1_000) };
        let mut writer = FastPathWriter::new(fast_path.table().clone(), Instant(0));
        let handle = writer.arm(&flow).unwrap();
        writer.force(handle);
        let frame = packets(&flow, here, there).six;
        let (sender, receiver) =
            peer.inside(|| (packet_socket("far"), std::net::UdpSocket::bind((FAR, 53)).unwrap()));
        peer.inside(|| support::ip(&format!("route add 198.51.100.0/24 via {NEAR}")));
        room_for_all(&receiver);
        let ends = std::sync::atomic::AtomicBool::new(false);
        let (sent, received) = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut sent = 0;
                while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                    // SAFETY: the frame outlives the call, with its length.
                    let result =
                        unsafe { libc::send(sender.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
                    assert_eq!(result, frame.len() as isize);
                    sent += 1;
                    std::thread::sleep(Duration::from_micros(300));
                }
                sent
            });
            let receiving = scope.spawn(|| {
                receiver.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
                (0u64..).find(|_| receiver.recv(&mut [0; 100]).is_err()).unwrap()
            });
            for _ in 0..2 {
                fast_path.control().beat();
                fast_path.replace(&rules, &settings.interfaces).unwrap();
            }
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
            (sending.join().unwrap(), receiving.join().unwrap())
        });
        assert!(sent > 50, "{sent}");
        assert_eq!((received, writer.usage(handle)[0].packets), (sent, sent));
        assert!(
            !wait(&tun.queues[0], Duration::ZERO) || only_of_the_kernel(&mut tun),
            "one came to the engine"
        );
        fast_path.end().unwrap();
    });
}

/// A reader that does not get the processor for a while loses nothing.
fn room_for_all(socket: &std::net::UdpSocket) {
    let octets: libc::c_int = 16 << 20;
    // SAFETY: the option's value is an int, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const octets).cast(),
            size_of_val(&octets) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Whether what comes by the device does not belong to the flow: the kernel's own multicast.
fn only_of_the_kernel(tun: &mut sixway_link::Tun) -> bool {
    use sixway_link::Link;
    let mut frames: Vec<_> = (0..64).map(|_| sixway_dataplane::Frame::with_capacity(65_600)).collect();
    let count = tun.queues[0].receive(&mut frames).unwrap();
    frames[..count].iter().all(|frame| frame.bytes()[24..].first() == Some(&0xff))
}

#[test]
fn devices_and_paths_are_those_that_were_named_last() {
    with_pins("named", |_, settings| {
        let mut fast_path = start(&settings);
        let device = |port| Device { port, vlan: 0, xdp: 0, tc: 1 };
        let path = |name: &str| settings.pin_path.join(&settings.gateway).join(name);
        let there = |path: &Path| {
            let map = aya::maps::Map::HashMap(MapData::from_pin(path).unwrap());
            let map: HashMap<_, u32, Device> = HashMap::try_from(map).unwrap();
            map.iter().map(Result::unwrap).collect::<BTreeMap<_, _>>()
        };
        for wanted in [vec![1, 2, 3], vec![3, 4], vec![]] {
            let wanted: BTreeMap<_, _> = wanted.into_iter().map(|number| (number, device(number))).collect();
            let before = fast_path.control().generation();
            fast_path.set_devices(&wanted).unwrap();
            assert_eq!(there(&path("devices")), wanted);
            assert_eq!(fast_path.control().generation(), before + 1, "next hops are looked for again");
            fast_path.set_devices(&wanted).unwrap();
            assert_eq!(fast_path.control().generation(), before + 1, "nothing has changed");
        }
        fast_path.set_narrow_paths(&[NEAR, FAR]).unwrap();
        fast_path.set_narrow_paths(&[FAR]).unwrap();
        let map = aya::maps::Map::HashMap(MapData::from_pin(path("narrow_paths")).unwrap());
        let map: HashMap<_, [u8; 4], u8> = HashMap::try_from(map).unwrap();
        assert_eq!(map.keys().map(Result::unwrap).collect::<Vec<_>>(), [FAR.octets()]);
        fast_path.end().unwrap();
    });
}

#[test]
fn frames_run_through_the_programs_without_a_wire() {
    with_pins("frames", |_, settings| {
        let settings = Settings { mode: Mode::Xdp, ..settings };
        let mut fast_path = start(&settings);
        let near = sixway_link::interface::index("near").unwrap();
        let mut frame = vec![2; 12];
        frame.extend([8, 0]);
        frame.extend(ipv4(FAR, NEAR, 17, true, &udp(b"a datagram")));
        let ran = run_tc(fast_path.tc().unwrap(), &Frame::new(&frame)).unwrap();
        assert_eq!((ran.verdict as i32, ran.octets), (-1, frame.clone()), "TC_ACT_UNSPEC: it is not enabled");
        let ran = run_xdp(fast_path.xdp().unwrap(), &Frame::new(&frame).by(near)).unwrap();
        assert_eq!((ran.verdict, ran.octets), (2, frame.clone()), "XDP_PASS");
        send_xdp(fast_path.xdp().unwrap(), &Frame::new(&frame).by(near), 100, 0).unwrap();
        fast_path.end().unwrap();
    });
}

/// What is mounted at a folder, the last one first.
fn mounted(folder: &Path) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/mounts").unwrap();
    let there = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let source = words.next()?;
        (words.next()? == folder.to_str()?).then_some(source)
    };
    table.lines().rev().filter_map(there).collect()
}

#[test]
fn who_ends_last_unmounts_what_a_gateway_mounted() {
    with_pins("unmounted", |_, settings| {
        let path = &settings.pin_path;
        let other = Settings { gateway: "sixway1".into(), interfaces: vec!["lo".into()], ..settings.clone() };
        let (one, two) = (start(&settings), start(&other));
        assert_eq!(mounted(path), ["sixway-made"]);
        one.end().unwrap();
        assert_eq!(mounted(path), ["sixway-made"], "the other one's pins are in it");
        // That one is killed, and cleared up after.
        drop(two);
        assert_eq!(mounted(path), ["sixway-made"]);
        remove_all(path, "sixway1").unwrap();
        assert!(mounted(path).is_empty() && !path.exists());

        // A folder that was there stays.
        std::fs::create_dir(path).unwrap();
        start(&settings).end().unwrap();
        assert!(mounted(path).is_empty() && path.exists());

        // One that begins keeps it, though nothing is pinned yet.
        let one = start(&settings);
        let begins = FastPath::open(&other).unwrap();
        std::fs::remove_dir(path.join("sixway1")).unwrap();
        one.end().unwrap();
        assert_eq!(mounted(path), ["sixway"]);
        drop(begins);
        remove_all(path, "nobody").unwrap();
        assert!(mounted(path).is_empty());
    });
}

#[test]
fn what_somebody_else_mounted_stays() {
    with_pins("others", |_, settings| {
        let path = &settings.pin_path;
        std::fs::create_dir_all(path).unwrap();
        assert!(Command::new("mount").args(["-t", "bpf", "bpf"]).arg(path).status().unwrap().success());
        start(&settings).end().unwrap();
        assert_eq!(mounted(path), ["bpf"]);
        // A folder of it is not unmounted either.
        let within = path.join("within");
        start(&Settings { pin_path: within.clone(), ..settings.clone() }).end().unwrap();
        assert_eq!((mounted(path).len(), within.exists()), (1, true));
    });
}

#[test]
fn a_full_map_of_narrow_paths_takes_others_in_the_place_of_some() {
    with_pins("narrow", |_, settings| {
        let mut one = start(&settings);
        let ends = |first: u32| (first..first + 4_096).map(Ipv4Addr::from_bits).collect::<Vec<_>>();
        for first in [1_000, 1_001, 6_000] {
            one.set_narrow_paths(&ends(first)).unwrap();
        }
        one.end().unwrap();
    });
}

#[test]
fn nothing_is_pinned_where_others_may_change_it() {
    use std::os::unix::fs::{PermissionsExt, chown};
    with_pins("others-own", |_, settings| {
        start(&settings).end().unwrap();
        let folder = settings.pin_path.join(&settings.gateway);
        let refused = || {
            let error = FastPath::open(&settings).unwrap_err().to_string();
            assert!(error.contains("other users may change what is pinned there"), "{error}");
        };
        std::fs::create_dir_all(&settings.pin_path).unwrap();
        assert!(
            Command::new("mount")
                .args(["-t", "bpf", "bpf"])
                .arg(&settings.pin_path)
                .status()
                .unwrap()
                .success()
        );
        std::fs::create_dir(&folder).unwrap();
        chown(&folder, Some(65_534), None).unwrap();
        refused();
        chown(&folder, Some(0), None).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        refused();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        start(&settings).end().unwrap();
    });
}

/// The last number that the kernel gave to a program.
fn newest() -> u32 {
    aya::programs::loaded_programs().filter_map(|program| Some(program.ok()?.id())).max().unwrap()
}

#[test]
fn what_was_loaded_ahead_is_attached_if_it_is_what_would_be_loaded() {
    with_pins("ahead", |_, settings| {
        assert!(Ahead::load(&settings).unwrap().is_none() && !settings.pin_path.exists(), "nobody runs");
        drop(start(&settings));
        let larger = Settings { capacity: 1_000, ..settings.clone() };
        assert!(Ahead::load(&larger).unwrap().is_none(), "another size");
        // Whether nothing is loaded any more when the other process has made way.
        let is_hung = |settings: &Settings, ahead: Option<Ahead>| {
            assert!(ahead.is_some());
            let newest = newest();
            let fast_path = FastPath::open(settings).unwrap().with(ahead).load(settings);
            fast_path.unwrap().attach(&settings.interfaces).unwrap();
            at_tcx("near")[0].0 <= newest
        };
        let before = at_tcx("near");
        let ahead = Ahead::load(&settings).unwrap();
        assert_eq!(at_tcx("near"), before, "the one of before goes on");
        assert!(is_hung(&settings, ahead));
        assert_ne!(at_tcx("near"), before);

        let mut others = settings.clone();
        others.rules.config.absence = 1;
        assert!(!is_hung(&others, Ahead::load(&settings).unwrap()), "other rules");
        let both = Settings { mode: Mode::Xdp, ..settings.clone() };
        assert!(!is_hung(&both, Ahead::load(&settings).unwrap()), "another hook");
        let ahead = Ahead::load(&settings).unwrap();
        remove_all(&settings.pin_path, &settings.gateway).unwrap();
        drop(start(&settings));
        assert!(!is_hung(&settings, ahead), "other maps");

        // What is left is adopted by a process that needs nothing else, and removed by any.
        let left = |settings: &Settings, by: &Settings| {
            Ahead::load(by).unwrap().unwrap().leave().unwrap();
            let pinned = || std::fs::read_dir(settings.pin_path.join(&settings.gateway)).unwrap();
            let ahead = |entry: std::io::Result<std::fs::DirEntry>| {
                entry.unwrap().file_name().to_string_lossy().starts_with("ahead_")
            };
            assert!(pinned().any(ahead));
            let newest = newest();
            FastPath::load(settings).unwrap().attach(&settings.interfaces).unwrap();
            assert!(!pinned().any(ahead));
            at_tcx("near")[0].0 <= newest
        };
        let mut counting = settings.clone();
        counting.rules.config.identification = 77;
        assert!(left(&settings, &settings) && left(&settings, &counting));
        assert!(left(&both, &both), "both hooks");
        assert!(!left(&settings, &others) && !left(&both, &settings));
        remove_all(&settings.pin_path, &settings.gateway).unwrap();
    });
}
