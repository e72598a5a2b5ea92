//! FTP through NAT44 and NAT64: a real server and real clients, active and passive, both ways, and with TLS.

use crate::Interop;
use crate::counters::counter;
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::programs::make_executable;
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::{Ipv6Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "ftp_is_active_and_passive_behind_nat44",
        &["sixway", "vsftpd", "curl", "ftp", "lftp"],
        nat44,
    ),
    Interop::new("ftp_is_active_and_passive_behind_nat64", &["sixway", "vsftpd", "curl", "lftp"], nat64),
    Interop::new("a_web_page_in_a_browser_opens_no_port_by_ftp", &["sixway", "vsftpd", "curl"], page),
    Interop::new("ftp_with_tls_passes_unchanged", &["sixway", "vsftpd", "curl", "openssl"], secured),
];

/// A large file.
const OCTETS: usize = 32 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves a folder with a large file, to which anyone may write; the folder.
fn serve(network: &Network, more: &str) -> Result<PathBuf> {
    let folder = network.folder().join("ftp");
    let (www, empty) = (folder.join("www"), folder.join("empty"));
    let incoming = www.join("incoming");
    for folder in [&incoming, &empty] {
        std::fs::create_dir_all(folder).asking(|| "creating folders".to_owned())?;
    }
    std::fs::write(www.join("file"), content()).asking(|| "writing the file".to_owned())?;
    for folder in [network.folder(), &folder, &www, &empty] {
        make_executable(folder)?;
    }
    std::fs::set_permissions(&incoming, std::fs::Permissions::from_mode(0o777))
        .asking(|| "opening the folder".to_owned())?;
    let text = format!(
        "listen=NO\nlisten_ipv6=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nno_anon_password=YES\n\
         anon_root={}\nsecure_chroot_dir={}\nseccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nxferlog_enable=NO\n\
         write_enable=YES\nanon_upload_enable=YES\nanon_umask=022\n{more}",
        www.display(),
        empty.display()
    );
    let mut vsftpd = command("vsftpd")?;
    vsftpd.arg(network.file("vsftpd.conf", &text)?);
    let process = network.start("server", vsftpd)?;
    interrupt::wait_until(Duration::from_secs(5), "vsftpd listening", || {
        network.with_process(process, Process::must_run)??;
        network.host("server")?.enter(|| TcpStream::connect((Ipv6Addr::LOCALHOST, 21)).is_ok())
    })?;
    Ok(incoming)
}

fn content() -> Vec<u8> {
    (0..OCTETS).map(|at| (at ^ at >> 9 ^ at >> 17) as u8).collect()
}

/// Fetches the large file by curl with these arguments, and compares it.
fn fetches(network: &Network, host: &str, arguments: &[&str]) -> Result<()> {
    let path = network.folder().join("fetched");
    let mut curl = curl()?;
    curl.args(arguments).arg("-o").arg(&path).arg(format!("ftp://{host}/file"));
    network.host("client")?.run(curl, PATIENCE)?.succeeded()?;
    let fetched = std::fs::read(&path).asking(|| "reading what was fetched".to_owned())?;
    assert!(fetched == content(), "{arguments:?}: {} octets", fetched.len());
    Ok(())
}

/// Stores the large file by curl with these arguments, under a name of its own.
fn stores(
    network: &Network,
    host: &str,
    (incoming, name): (&PathBuf, &str),
    arguments: &[&str],
) -> Result<()> {
    let path = network.folder().join("to-store");
    std::fs::write(&path, content()).asking(|| "writing what is stored".to_owned())?;
    let mut curl = curl()?;
    curl.args(arguments).arg("-T").arg(&path).arg(format!("ftp://{host}/incoming/{name}"));
    network.host("client")?.run(curl, PATIENCE)?.succeeded()?;
    let stored = std::fs::read(incoming.join(name)).asking(|| "reading what was stored".to_owned())?;
    assert!(stored == content(), "{arguments:?}: {} octets", stored.len());
    Ok(())
}

fn curl() -> Result<Command> {
    let mut curl = command("curl")?;
    curl.args(["-sS", "-g", "--max-time", "50", "--noproxy", "*"]);
    Ok(curl)
}

fn nat44() -> Result<()> {
    let network = crate::nat44::network()?;
    let configuration =
        format!("{}ftp_alg = true\nfiltering = \"address-and-port-dependent\"\n", crate::nat44::SIXWAY);
    run_sixway(&network, &configuration)?;
    let (host, incoming) = (crate::nat44::SERVER, serve(&network, "")?);
    for (number, arguments) in
        [&["--ftp-port", "-"][..], &["--ftp-port", "-", "--disable-eprt"], &["--disable-epsv"], &[]]
            .into_iter()
            .enumerate()
    {
        fetches(&network, host, arguments)?;
        stores(&network, host, (&incoming, &format!("of-curl-{number}")), arguments)?;
    }
    assert!(counter(&network, "ftp.mappings.made")? >= 4);
    assert_eq!(counter(&network, "ftp.mappings.refused")?, 0);
    let mut lftp = command("lftp")?;
    lftp.args(["-e", "set net:max-retries 1; set ftp:passive-mode no; cls /; bye", host]);
    let listed = network.host("client")?.run(lftp, PATIENCE)?.succeeded()?.stdout;
    assert!(listed.contains("file"), "{listed}");
    let script = format!("open {host}\nuser anonymous x\npassive off\nbinary\nls\nquit\n");
    let mut ftp = command("sh")?;
    let path = network.file("ftp-script", &script)?;
    ftp.args(["-c", &format!("ftp -n -v -A < {}", path.display())]);
    let listed = network.host("client")?.run(ftp, PATIENCE)?.stdout;
    assert!(listed.contains("incoming"), "{listed}");
    Ok(())
}

fn nat64() -> Result<()> {
    let network = client_gateway_server()?;
    let keys = "pool = \"main\"\nftp_alg = true\nfiltering = \"address-and-port-dependent\"\n";
    run_sixway(&network, &NAT64.replace("pool = \"main\"\n", keys))?;
    let (host, incoming) = (format!("[{}]", crate::nat64::SERVER), serve(&network, "")?);
    for (number, arguments) in [&["--ftp-port", "-"][..], &[]].into_iter().enumerate() {
        fetches(&network, &host, arguments)?;
        stores(&network, &host, (&incoming, &format!("of-curl-{number}")), arguments)?;
    }
    // EPSV and its reply, or EPRT, of each of the four.
    assert!(counter(&network, "ftp.lines.changed")? >= 6);
    assert!(counter(&network, "ftp.mappings.made")? >= 2);
    let mut lftp = command("lftp")?;
    lftp.args(["-e", "set net:max-retries 1; set ftp:passive-mode no; cls /; bye", &host]);
    let listed = network.host("client")?.run(lftp, PATIENCE)?.succeeded()?.stdout;
    assert!(listed.contains("file"), "{listed}");
    let mut quoting = curl()?;
    quoting.args(["-v", "-Q", "ALGS STATUS64", "-I", &format!("ftp://{host}/file")]);
    let said = network.host("client")?.run(quoting, PATIENCE)?.stderr;
    assert!(said.contains("216 EPSVEPRT"), "{said}");
    Ok(())
}

fn secured() -> Result<()> {
    let network = client_gateway_server()?;
    run_sixway(&network, &NAT64.replace("pool = \"main\"\n", "pool = \"main\"\nftp_alg = true\n"))?;
    let (key, certificate) = (network.folder().join("key.pem"), network.folder().join("certificate.pem"));
    let mut openssl = command("openssl")?;
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout"]);
    openssl.arg(&key).arg("-out").arg(&certificate);
    network.host("server")?.run(openssl, PATIENCE)?.succeeded()?;
    let host = format!("[{}]", crate::nat64::SERVER);
    serve(
        &network,
        &format!(
            "ssl_enable=YES\nallow_anon_ssl=YES\nrequire_ssl_reuse=NO\nrsa_cert_file={}\nrsa_private_key_file={}\n",
            certificate.display(),
            key.display()
        ),
    )?;
    fetches(&network, &host, &["--ssl-reqd", "-k"])?;
    assert_eq!(counter(&network, "ftp.lines.changed")?, 0);
    assert_eq!(counter(&network, "ftp.connections.made")?, 1);
    Ok(())
}

/// The server greets, and the client sends a form with a line that looks like a command.
fn page() -> Result<()> {
    let network = crate::nat44::network()?;
    run_sixway(&network, &format!("{}ftp_alg = true\n", crate::nat44::SIXWAY))?;
    serve(&network, "")?;
    let form = network.file("form", "a=b\r\nPORT 192,168,1,2,78,32\r\n")?;
    let mut posting = curl()?;
    posting.args(["--http0.9", "--max-time", "3", "--data-binary"]).arg(format!("@{}", form.display()));
    posting.arg(format!("http://{}:21/", crate::nat44::SERVER));
    let said = network.host("client")?.run(posting, PATIENCE)?.stdout;
    assert!(said.starts_with("220 "), "{said}");
    assert_eq!(counter(&network, "ftp.connections.made")?, 1);
    assert_eq!(counter(&network, "ftp.connections.unread")?, 1);
    assert_eq!(counter(&network, "ftp.mappings.made")?, 0);
    Ok(())
}
