//! What the board shows of a call: the parts of its record, shortened.

use std::time::Duration;

use wharf_base::text::escaped;
use wharf_egress::hint::grant;
use wharf_policy::access::grants::hint::{self, Allowed, By};
use wharf_scope::Denial;
use wharf_window::state::{SeenCall, SeenEnded, SeenRefusal, SeenRequest, shown};

use super::record::{Action, CallRecord};

/// Returns what is shown of a call when it begins.
pub fn begun(record: &CallRecord) -> SeenCall {
    let (method, name) = match &record.action {
        Action::List => ("list", ""),
        Action::Request { method, name } => (method.as_str(), name.as_str()),
    };
    SeenCall {
        session: record.request.as_ref().and_then(|facts| facts.session.clone()),
        plugin: record.plugin.clone(),
        name: shown(name),
        method: method.to_owned(),
        bytes_in: record.bytes_in as u64,
        approval: record.approval.map(|approval| approval.as_str().to_owned()),
        ..SeenCall::default()
    }
}

/// Returns how a call ended.
pub fn ended(record: &CallRecord) -> SeenEnded {
    SeenEnded {
        how: record.ended.as_str().to_owned(),
        why: record.refusal.as_deref().map(shown),
        took: micros(record.took),
        bytes_out: record.bytes_out as u64,
    }
}

/// Adds what is known of a call when it has ended.
pub fn add(record: &CallRecord, call: &mut SeenCall) {
    let requests = record.requests.iter().map(|sent| SeenRequest {
        method: shown(&sent.method),
        host: shown(&sent.authority),
        status: sent.status,
        bytes_in: sent.bytes_in,
        bytes_out: sent.bytes_out,
        refused: sent.denied,
    });
    call.requests = requests.collect();
    // Runtimes ask for directories at their start, so that alone is a refusal only where something fails.
    let failed = record.error_type().is_some();
    let denials = record.denials.iter().map(|denied| &denied.0);
    let meant = denials.filter(|denial| failed || !matches!(denial, Denial::NoDirectory { .. }));
    call.refusals = meant.map(|denial| refusal(denial, &record.plugin)).collect();
}

fn refusal(denial: &Denial, plugin: &str) -> SeenRefusal {
    let hint = hint::hint(denial, By::Config, escaped);
    let allow = match hint.allowed {
        Allowed::Never => None,
        Allowed::ByFlag => Some("an option of the command line".to_owned()),
        Allowed::In(table) => Some(format!("{} in the config", table.header(plugin))),
    };
    let grant = match denial {
        Denial::Http(http) => grant(http, escaped),
        Denial::NoDirectory { .. } => None,
    };
    SeenRefusal { text: shown(&hint.text), allow: allow.as_deref().map(shown), grant: grant.as_deref().map(shown) }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
