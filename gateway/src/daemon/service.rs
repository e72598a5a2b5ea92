//! Notifications of the service manager (sd_notify(3)). Without one, there are none.

use sd_notify::NotifyState;

/// Sends it; a failure is only logged.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("the service manager was not notified: {error}");
    }
}

/// The gateway is ready, in this process.
pub(super) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::MainPid(std::process::id()), NotifyState::Watchdog]);
}

/// The gateway reads its configuration again, and will be ready again.
pub(super) fn reloading() {
    tell(&[NotifyState::Reloading]);
}

/// The gateway ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// All workers answer.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// The service that a process is part of, or this one (`"self"`), by its control groups.
pub(super) fn of_process(process: &str) -> Option<String> {
    let groups = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    unit_in(&groups).map(str::to_owned)
}

/// The service in the text of `/proc/PID/cgroup`, where systemd keeps its groups: the unified hierarchy, or its own.
fn unit_in(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let path = line.strip_prefix("0::").or_else(|| Some(line.split_once(":name=systemd:")?.1))?;
        path.rsplit('/').next().filter(|unit| unit.ends_with(".service"))
    })
}

#[cfg(test)]
mod tests {
    use super::unit_in;

    #[test]
    fn the_service_of_a_process_is_read_from_its_control_groups() {
        let unified = "0::/system.slice/system-sixway.slice/sixway@home.service\n";
        assert_eq!(unit_in(unified), Some("sixway@home.service"));
        let hybrid = "4:memory:/x.service\n1:name=systemd:/system.slice/sixway@home.service\n0::/\n";
        assert_eq!(unit_in(hybrid), Some("sixway@home.service"));
        assert_eq!(unit_in("0::/user.slice/user-0.slice/session-3.scope\n"), None);
    }
}
