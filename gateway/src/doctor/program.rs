//! Programs that are asked, bounded in time.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_millis(5);

/// Runs a program to its end, with this input; what it printed.
///
/// # Errors
/// It is not installed, failed (its own words), or did not end.
pub(super) fn run(command: &mut Command, input: &[u8]) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |what: String| format!("{name}: {what}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = input.to_vec();
    std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let read = |from: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            from.map(|from| from.take(16 << 20).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let said = read(stdout.map(|it| Box::new(it) as _));
    let complained = read(stderr.map(|it| Box::new(it) as _));
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
            break status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed("it does not finish".into()));
        }
        std::thread::sleep(STEP);
    };
    let said = said.join().unwrap_or_default();
    if status.success() {
        return Ok(said);
    }
    let complained = complained.join().unwrap_or_default();
    let line = complained.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim();
    Err(failed(line.to_owned()))
}
