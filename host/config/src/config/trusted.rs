//! The files that wharf would trust without being told of a config.

#![expect(clippy::disallowed_methods, reason = "the default config is read here")]

use std::path::PathBuf;

use super::{
    approvals, audit,
    default_paths::{absolute, default_paths},
    listen::ListenAddress,
    raw, state,
};

/// Returns the paths that wharf would trust if it were started without the name of a config: the default file, whether or not it
/// exists, the plugins and the audit log that it names, and the file of remembered approvals.
pub fn trusted_by_default() -> Vec<PathBuf> {
    let mut trusted = Vec::new();
    for file in default_paths() {
        // A text that cannot be parsed names no plugins, but the path of the file is trusted all the same.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if let (Ok(raw), Some(base)) = (raw::parse(&text), file.parent()) {
            let plugins = raw.plugins.0.iter().filter_map(|(_, plugin)| plugin.path.clone());
            let dropped_in = raw.plugin_dir.iter().map(|folder| format!("{folder}/*"));
            trusted.extend(plugins.chain(dropped_in).filter_map(|path| absolute(&path, Some(base)).ok()));
            let log = raw.audit.iter().filter_map(|audit| absolute(&audit.file, Some(base)).ok());
            trusted.extend(log.flat_map(|log| audit::trusted(&log)));
        }
        // Its address does not matter, since what is kept for a file belongs to the file.
        if let Some(files) = state::files(Some(&file), &ListenAddress::Unix(PathBuf::new())) {
            trusted.extend([files.key, files.sessions]);
        }
        trusted.push(file);
    }
    trusted.extend(approvals::trusted());
    trusted
}
