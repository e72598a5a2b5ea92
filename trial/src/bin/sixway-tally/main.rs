//! `sixway-tally EXCEPTIONS COMMAND...`: runs the command, which is a run of tests by cargo; what it prints passes through, and at its end it prints how
//! many tests of each kind ran, passed, failed and were ignored, how long they took, and which took longest.
//!
//! With `SIXWAY_STRICT=1` a test that was ignored makes it fail, unless the file of exceptions names the test; and so does an exception for a test that
//! was not ignored.

mod exceptions;
mod kind;
mod tally;
mod times;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, ExitCode};
use std::time::Instant;
use tally::Tally;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, program, arguments @ ..] = words.as_slice() else {
        eprintln!("usage: sixway-tally EXCEPTIONS COMMAND...");
        return ExitCode::from(2);
    };
    match run(file, Command::new(program).args(arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sixway-tally: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run(file: &str, command: &mut Command) -> io::Result<bool> {
    let strict = std::env::var("SIXWAY_STRICT").is_ok_and(|value| !["", "0"].contains(&value.as_str()));
    let exceptions = exceptions::read(&std::fs::read_to_string(file)?).map_err(io::Error::other)?;
    // One pipe for both, so that the names of binaries, which cargo tells by standard error, come before their tests.
    let (lines, ours) = io::pipe()?;
    command.stdout(ours.try_clone()?).stderr(ours);
    // Harnesses of ours append to it how long each test took.
    let path = std::env::temp_dir().join(format!("sixway-times-{}", std::process::id()));
    let mut told = File::create_new(&path).and_then(|_| File::open(&path))?;
    command.env("SIXWAY_TIMES", &path);
    let mut child = command.spawn()?;
    // The command holds the pipe's other end, too.
    command.stdout(io::stdout()).stderr(io::stderr());
    let mut tally = Tally::new(at_once());
    let start = Instant::now();
    let mut out = io::stdout();
    for line in BufReader::new(lines).split(b'\n') {
        let line = line?;
        out.write_all(&line)?;
        out.write_all(b"\n")?;
        tally.read(&String::from_utf8_lossy(&line), start.elapsed(), || {
            let mut more = String::new();
            // What cannot be read is missing in the report.
            let _ = told.read_to_string(&mut more);
            more
        });
    }
    let ended_well = child.wait()?.success();
    let _ = std::fs::remove_file(&path);
    let faults = if strict { tally.faults(&exceptions) } else { Vec::new() };
    write!(out, "\n{tally}")?;
    for fault in &faults {
        writeln!(out, "strict: {fault}")?;
    }
    writeln!(out, "{}", tally.last_line())?;
    Ok(ended_well && faults.is_empty())
}

/// Tests that the standard harness runs at a time.
fn at_once() -> usize {
    let said = std::env::var("RUST_TEST_THREADS").ok().and_then(|text| text.parse().ok());
    said.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
