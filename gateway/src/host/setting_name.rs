//! How kernel settings are named in messages.

use std::path::Path;

/// A setting as sysctl(8) names it.
pub(super) fn setting_name(path: &Path) -> String {
    let name = path.strip_prefix("/proc/sys").unwrap_or(path);
    name.to_string_lossy().replace('/', ".")
}
