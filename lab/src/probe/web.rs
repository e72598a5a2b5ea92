//! A real web server and a real client: `nginx` and `curl`.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::RunsCommands;
use crate::topology::Network;
use std::time::Duration;

/// A page that was fetched.
#[derive(Clone, Debug)]
pub struct Page {
    /// HTTP status.
    pub status: u32,
    /// Octets of its body.
    pub octets: u64,
    /// Time from the request to the last octet, in seconds.
    pub seconds: f64,
    /// The body.
    pub body: String,
}

/// Starts nginx with its own configuration on a host; it serves `page` at port 80 of `address`
/// (an IPv6 address is in brackets).
pub fn serve_page(network: &Network, host: &str, address: &str, page: &str) -> Result<()> {
    let folder = network.folder().join(format!("nginx-{host}"));
    let www = folder.join("www");
    std::fs::create_dir_all(&www).asking(|| format!("creating {}", www.display()))?;
    let index = www.join("index.html");
    std::fs::write(&index, page).asking(|| format!("writing {}", index.display()))?;
    let at = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {at}/{kind};\n"))
        .concat();
    let configuration = format!(
        "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{ worker_connections 256; }}\n\
         http {{\n  access_log {at}/access.log;\n{temporary}  sendfile on;\n  default_type text/html;\n  \
         server {{ listen {address}:80; root {at}/www; }}\n}}\n"
    );
    let file = network.file(&format!("nginx-{host}.conf"), &configuration)?;
    let mut nginx = command("nginx")?;
    nginx.arg("-p").arg(&folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(file);
    let id = network.start(host, nginx)?;
    interrupt::wait_until(Duration::from_secs(5), "nginx listening", || {
        network.with_process(id, |process| process.must_run())??;
        network.host(host)?.enter(|| std::net::TcpStream::connect(format!("{address}:80")).is_ok())
    })
}

/// Fetches a page with curl.
pub fn fetch(network: &Network, from: &str, url: &str) -> Result<Page> {
    fetch_from(network.host(from)?, network, url)
}

/// The same, wherever curl can run.
pub fn fetch_from(from: &impl RunsCommands, network: &Network, url: &str) -> Result<Page> {
    let body = network.folder().join("fetched");
    let mut curl = command("curl")?;
    curl.args(["-sS", "-g", "--max-time", "10", "--noproxy", "*"]);
    curl.args(["-w", "%{http_code} %{size_download} %{time_total}"]).arg("-o").arg(&body).arg(url);
    let finished = from.run(curl, Duration::from_secs(15))?.succeeded()?;
    let mut words = finished.stdout.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
    let (Some(status), Some(octets), Some(seconds)) = (number(), number(), number()) else {
        return Err(Failure::Unexpected(format!("unexpected output of curl: {:?}", finished.stdout)));
    };
    let body = std::fs::read_to_string(&body).asking(|| format!("reading {}", body.display()))?;
    Ok(Page { status: status as u32, octets: octets as u64, seconds, body })
}
