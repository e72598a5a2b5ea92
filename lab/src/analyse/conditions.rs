//! The conditions of two runs: what they were asked for, and the machine.

use crate::results::{Asked, Header, Machine};

/// Memory that differs by more than this share is that of another machine.
const MEMORY: f64 = 0.1;

/// A condition that is not the same in two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: &'static str,
    /// In the first run and in the second one.
    pub values: [String; 2],
    /// Whether it changes what is measured, so that a change of a value says nothing about the program.
    pub changes_the_measurement: bool,
}

impl Difference {
    /// In one line.
    pub fn text(&self) -> String {
        let [first, second] = &self.values;
        format!("{}: {first} in the first run, {second} in the second one", self.what)
    }
}

/// All differences of two runs that figures depend on.
pub(super) fn differences(first: &Header, second: &Header) -> Vec<Difference> {
    let of = |what, value: fn(&Header) -> String, changes_the_measurement| {
        let values = [value(first), value(second)];
        (values[0] != values[1]).then_some(Difference { what, values, changes_the_measurement })
    };
    let memory = of("memory", |header| format!("{} MiB", header.machine.memory_mb), false);
    [
        of("scale", |header| header.asked.scale.to_string(), false),
        of("quick", |header| yes_or_no(header.asked.quick), false),
        of("set", |header| settings(&header.asked), true),
        of("pinned to CPUs", |header| yes_or_no(header.asked.pin), true),
        of("guest", |header| header.asked.guest.clone().unwrap_or_else(|| "the usual one".to_owned()), true),
        of("other machines", |header| others(&header.asked), true),
        of("frequency governor", |header| governor(&header.machine), false),
        of("without root", |header| yes_or_no(is_rootless(header)), true),
        of("kernel", |header| header.machine.kernel.clone(), false),
        memory.filter(|_| has_other_memory(&first.machine, &second.machine)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Devices and hosts on other machines, as they were given.
fn others(asked: &Asked) -> String {
    let all = [&asked.remote[..], &asked.remote_hosts].concat();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

fn governor(machine: &Machine) -> String {
    machine.governor.clone().unwrap_or_else(|| "not visible".to_owned())
}

/// In what two machines differ, if they do. One with another kernel is another machine, and so is a user namespace.
pub(super) fn different_machines(first: &Header, second: &Header) -> Option<String> {
    let (a, b) = (&first.machine, &second.machine);
    let cpus = |machine: &Machine| format!("{} × {}", machine.cpus, machine.cpu);
    if cpus(a) != cpus(b) {
        return Some(format!("the machines differ ({}; {})", cpus(a), cpus(b)));
    }
    if a.kernel != b.kernel {
        return Some(format!("the kernels differ ({}; {})", a.kernel, b.kernel));
    }
    if has_other_memory(a, b) {
        return Some(format!("the memory differs ({} MiB; {} MiB)", a.memory_mb, b.memory_mb));
    }
    (is_rootless(first) != is_rootless(second)).then(|| "only one of them had root".to_owned())
}

fn is_rootless(header: &Header) -> bool {
    header.machine.rootless || header.asked.rootless
}

fn has_other_memory(a: &Machine, b: &Machine) -> bool {
    let (less, more) = (a.memory_mb.min(b.memory_mb) as f64, a.memory_mb.max(b.memory_mb) as f64);
    more > less * (1.0 + MEMORY)
}

fn settings(asked: &Asked) -> String {
    let all: Vec<_> = asked.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(" ") }
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(machine: Machine, asked: Asked) -> Header {
        Header { machine, asked, ..Header::default() }
    }

    fn machine() -> Machine {
        Machine {
            cpus: 2,
            cpu: "A".to_owned(),
            kernel: "6.1".to_owned(),
            memory_mb: 1_000,
            ..Machine::default()
        }
    }

    #[test]
    fn each_condition_that_differs_is_named() {
        let usual = header(machine(), Asked { scale: 0.02, pin: true, ..Asked::default() });
        assert_eq!(differences(&usual, &usual), []);
        let set = [("hosts".to_owned(), "1,4".to_owned())].into();
        let asked = Asked {
            scale: 0.1,
            quick: true,
            set,
            guest: Some("kvm".to_owned()),
            rootless: true,
            remote: vec!["a=script:x".to_owned()],
            remote_hosts: vec!["client=script:y".to_owned()],
            ..Asked::default()
        };
        let governor = Some("powersave".to_owned());
        let kernel = "6.18".to_owned();
        let other = header(Machine { kernel, memory_mb: 2_000, governor, ..machine() }, asked);
        let lines: Vec<_> = differences(&usual, &other).iter().map(Difference::text).collect();
        assert_eq!(
            lines,
            [
                "scale: 0.02 in the first run, 0.1 in the second one",
                "quick: no in the first run, yes in the second one",
                "set: nothing in the first run, hosts=1,4 in the second one",
                "pinned to CPUs: yes in the first run, no in the second one",
                "guest: the usual one in the first run, kvm in the second one",
                "other machines: none in the first run, a=script:x client=script:y in the second one",
                "frequency governor: not visible in the first run, powersave in the second one",
                "without root: no in the first run, yes in the second one",
                "kernel: 6.1 in the first run, 6.18 in the second one",
                "memory: 1000 MiB in the first run, 2000 MiB in the second one",
            ]
        );
        let all = differences(&usual, &other);
        let grave: Vec<_> = all.iter().filter(|it| it.changes_the_measurement).map(|it| it.what).collect();
        assert_eq!(grave, ["set", "pinned to CPUs", "guest", "other machines", "without root"]);
    }

    #[test]
    fn another_kernel_memory_or_namespace_is_another_machine() {
        let said = |other: Machine| {
            let headers = [machine(), other].map(|machine| header(machine, Asked::default()));
            different_machines(&headers[0], &headers[1])
        };
        assert_eq!(said(machine()), None);
        // A kernel reserves some.
        assert_eq!(said(Machine { memory_mb: 1_100, ..machine() }), None);
        let memory = said(Machine { memory_mb: 1_101, ..machine() });
        assert_eq!(memory.as_deref(), Some("the memory differs (1000 MiB; 1101 MiB)"));
        assert!(said(Machine { memory_mb: 900, ..machine() }).is_some());
        let kernel = said(Machine { kernel: "6.18".to_owned(), ..machine() });
        assert_eq!(kernel.as_deref(), Some("the kernels differ (6.1; 6.18)"));
        let rootless = said(Machine { rootless: true, ..machine() });
        assert_eq!(rootless.as_deref(), Some("only one of them had root"));
        let cpus = said(Machine { cpus: 4, ..machine() });
        assert_eq!(cpus.as_deref(), Some("the machines differ (2 × A; 4 × A)"));
    }
}
