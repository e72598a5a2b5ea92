//! A file by FTP: `vsftpd` and curl.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::Process;
use crate::programs::make_executable;
use crate::topology::Network;
use std::net::{IpAddr, Ipv6Addr, TcpStream};
use std::time::Duration;

/// A server of one file, over IPv4 and IPv6. It runs until the network goes.
///
/// # Errors
/// vsftpd is not installed, or does not start.
pub fn serve_file(network: &Network, host: &str, octets: u64) -> Result<()> {
    let folder = network.folder().join(format!("ftp-{host}"));
    let (www, empty) = (folder.join("www"), folder.join("empty"));
    for folder in [&www, &empty] {
        std::fs::create_dir_all(folder).asking(|| format!("creating {}", folder.display()))?;
    }
    let file = std::fs::File::create(www.join("file")).asking(|| "creating the file".to_owned())?;
    file.set_len(octets).asking(|| "writing the file".to_owned())?;
    // The server changes to a user of its own.
    for folder in [network.folder(), &folder, &www, &empty] {
        make_executable(folder)?;
    }
    let text = format!(
        "listen=NO\nlisten_ipv6=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nno_anon_password=YES\n\
         anon_root={}\nsecure_chroot_dir={}\nseccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nxferlog_enable=NO\n",
        www.display(),
        empty.display()
    );
    let mut vsftpd = command("vsftpd")?;
    vsftpd.arg(network.file(&format!("vsftpd-{host}.conf"), &text)?);
    let process = network.start(host, vsftpd)?;
    interrupt::wait_until(Duration::from_secs(5), "vsftpd listening", || {
        network.with_process(process, Process::must_run)??;
        network.host(host)?.enter(|| TcpStream::connect((IpAddr::V6(Ipv6Addr::LOCALHOST), 21)).is_ok())
    })
}

/// Fetches the file: octets, and seconds from the beginning of the session to the last octet.
///
/// # Errors
/// The file does not come.
pub fn fetch_file(network: &Network, from: &str, server: IpAddr) -> Result<(u64, f64)> {
    let host = if server.is_ipv6() { format!("[{server}]") } else { server.to_string() };
    let mut curl = command("curl")?;
    curl.args(["-sS", "-g", "--max-time", "120", "--noproxy", "*", "-o", "/dev/null"]);
    curl.args(["-w", "%{size_download} %{time_total}", &format!("ftp://{host}/file")]);
    let finished = network.host(from)?.run(curl, Duration::from_secs(130))?.succeeded()?;
    let mut words = finished.stdout.split_whitespace().map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(Ok(octets)), Some(Ok(seconds))) => Ok((octets as u64, seconds)),
        _ => Err(Failure::Unexpected(format!("unexpected output of curl: {:?}", finished.stdout))),
    }
}
