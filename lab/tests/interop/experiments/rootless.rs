//! A run without root, in a user namespace.

use crate::Interop;
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::results::read;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::os::unix::fs::chown;
use std::process::Command;

pub const TESTS: &[Interop] =
    &[Interop::new("without_root_a_run_in_a_user_namespace_measures", &["sixway", "setpriv"], without_root)];

/// The user that has nothing.
const NOBODY: u32 = 65_534;

fn without_root() -> Result<()> {
    let folder = Network::new(&[])?;
    let home = folder.folder().join("nobody");
    std::fs::create_dir(&home).asking(|| "creating a folder".to_owned())?;
    chown(&home, Some(NOBODY), Some(NOBODY)).asking(|| "giving it away".to_owned())?;
    // Programs of root's folders are copied to where this user may read them.
    let copy = |from: &std::path::Path, name: &str| {
        let to = home.join(name);
        std::fs::copy(from, &to).asking(|| format!("copying {}", from.display())).map(|_| to)
    };
    let lab = copy(std::path::Path::new(env!("CARGO_BIN_EXE_sixway-lab")), "sixway-lab")?;
    let gateway = copy(&sixway()?, "sixway")?;
    let out = home.join("results");
    let done = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(lab)
        .args(["run", "relay-2013", "--quick", "--scale", "0.01", "--repeats", "1", "--set", "hosts=1"])
        .args(["--devices", "kernel,sixway", "--out"])
        .arg(&out)
        .env("SIXWAY", gateway)
        .env("TMPDIR", &home)
        .current_dir(&home)
        .output()
        .asking(|| "starting the lab".to_owned())?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let results = read(&out)?;
    assert!(results.header.machine.rootless && !results.header.machine.bpf, "{:?}", results.header.machine);
    let failed: Vec<_> = results.samples.iter().filter_map(|sample| sample.failed.as_deref()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(results.samples.len(), 2, "the kernel forwards, and Sixway on a TUN device");
    for sample in &results.samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(value("sent") > 0.0 && value("loss") == 0.0, "{sample:#?}");
    }
    Ok(())
}
