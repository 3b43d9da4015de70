//! Counts calls towards limits: in this process, or over all replicas. While Redis does not answer, each replica allows its share of each
//! limit, or none, as the operator says.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use wharf_protocol::RpcError;

use super::failed::{Failed, Said, Why};
use crate::client::{context::Context, server::Server};
use wharf_base::{
    principal::Principal,
    quota::{Quota, QuotaLimits, SharedTurn, Span, Spent, Turn},
    text::hex,
};
use wharf_cluster::{Cluster, Counted, Limit};

/// Why a call was not counted.
pub enum NotCounted<'q> {
    /// A limit is used up.
    Spent(&'q Quota, Spent),
    /// Redis does not answer, and the operator wants no calls then.
    Silent,
}

impl<'q> NotCounted<'q> {
    /// Returns the refusal. `spent`: makes it for a limit that is used up.
    pub fn or(self, spent: impl FnOnce(&'q Quota, Spent) -> Failed) -> Failed {
        match self {
            Self::Spent(quota, used) => spent(quota, used),
            Self::Silent => refused(),
        }
    }
}

/// Returns the refusal of a call that cannot be counted now.
pub fn refused() -> Failed {
    let text = "calls have limits here that count over several servers, and these cannot be counted now; nothing was run; try again in a moment";
    Failed { why: Why::Refused, said: Said::Rpc(RpcError::unavailable(text)) }
}

/// Counts a call towards all these quotas, or towards none of them.
pub async fn count<'q>(
    ctx: &Context,
    quotas: impl IntoIterator<Item = (&'q Quota, Option<&'q Principal>)>,
) -> Result<Option<Turn>, NotCounted<'q>> {
    let Some(cluster) = &ctx.server.cluster else {
        return ctx.server.quotas.begin(quotas).map_err(|(quota, spent)| NotCounted::Spent(quota, spent));
    };
    let quotas: Vec<_> = quotas.into_iter().filter(|(quota, _)| quota.limits.is_limited()).collect();
    if quotas.is_empty() {
        return Ok(None);
    }
    // Boxed, so that the futures of requests stay small.
    Box::pin(over_all(&ctx.server, cluster, quotas)).await
}

async fn over_all<'q>(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    quotas: Vec<(&'q Quota, Option<&'q Principal>)>,
) -> Result<Option<Turn>, NotCounted<'q>> {
    let limits: Vec<Limit> = quotas.iter().map(|(quota, caller)| limit(quota, *caller)).collect();
    let counted = cluster.count(&limits).await;
    if let Ok((_, used)) = &counted {
        // Without Redis, this replica goes on from here.
        let replicas = cluster.replicas();
        for ((quota, caller), used) in quotas.iter().zip(used) {
            let part = |calls: u32| calls.div_ceil(replicas);
            server.quotas.know(quota, *caller, (part(used.hours), part(used.days)), used.refilled_after);
        }
    }
    match counted.map(|(counted, _)| counted) {
        Ok(Counted::Yes) => {
            let names: Vec<String> =
                limits.into_iter().filter(|limit| limit.at_once > 0).map(|limit| limit.name).collect();
            let turn = Arc::new(Counts { server: Arc::clone(server), names });
            Ok((!turn.names.is_empty()).then(|| server.quotas.shared_turn(turn)))
        }
        Ok(Counted::Spent { limit, span, after_ms }) => {
            let Some((quota, _)) = quotas.get(limit) else { return Err(NotCounted::Silent) };
            let QuotaLimits { per_minute, per_hour, per_day, at_once } = quota.limits;
            let (span, most) = match span {
                0 => (Span::AtOnce, at_once),
                1 => (Span::Minute, per_minute),
                2 => (Span::Hour, per_hour),
                _ => (Span::Day, per_day),
            };
            let (most, after) = (most.unwrap_or(NonZeroU32::MIN), Duration::from_millis(after_ms));
            Err(NotCounted::Spent(quota, Spent { most, span, after }))
        }
        Err(_) => {
            let shares: Vec<(Quota, Option<&Principal>)> =
                quotas.iter().map(|(quota, caller)| (share(quota, cluster.replicas()), *caller)).collect();
            let counted = server.quotas.begin(shares.iter().map(|(quota, caller)| (quota, *caller)));
            counted.map_err(|(share, spent)| {
                let whole = quotas.iter().find(|(quota, _)| quota.name == share.name);
                whole.map_or(NotCounted::Silent, |(quota, _)| NotCounted::Spent(quota, spent))
            })
        }
    }
}

fn limit(quota: &Quota, caller: Option<&Principal>) -> Limit {
    let number = |limit: Option<NonZeroU32>| limit.map_or(0, NonZeroU32::get);
    let QuotaLimits { per_minute, per_hour, per_day, at_once } = quota.limits;
    // A name of a quota has no line breaks.
    let whose = caller.map(|caller| format!("{}\n{caller}", quota.name));
    Limit {
        name: hex(&Sha256::digest(whose.as_deref().unwrap_or(&quota.name))),
        per_minute: number(per_minute),
        per_hour: number(per_hour),
        per_day: number(per_day),
        at_once: number(at_once),
    }
}

/// Returns the share of one replica.
fn share(quota: &Quota, replicas: u32) -> Quota {
    let part =
        |limit: Option<NonZeroU32>| limit.map(|limit| NonZeroU32::new(limit.get().div_ceil(replicas)).unwrap_or(limit));
    let QuotaLimits { per_minute, per_hour, per_day, at_once } = quota.limits;
    let limits = QuotaLimits {
        per_minute: part(per_minute),
        per_hour: part(per_hour),
        per_day: part(per_day),
        at_once: part(at_once),
    };
    Quota { name: quota.name.clone(), limits }
}

/// A call that is counted as running over all replicas.
struct Counts {
    server: Arc<Server>,
    names: Vec<String>,
}

impl SharedTurn for Counts {
    fn set_running(&self, running: bool) {
        if let Some(cluster) = self.server.cluster.clone() {
            let names = self.names.clone();
            // If this is lost, the call counts until this replica stops, or a day has passed without a call.
            self.server.tracker.spawn(async move { cluster.count_running(&names, if running { 1 } else { -1 }).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_alone_allows_its_share_but_never_nothing() {
        let limits = |numbers: [u32; 4]| {
            let [per_minute, per_hour, per_day, at_once] = numbers.map(NonZeroU32::new);
            QuotaLimits { per_minute, per_hour, per_day, at_once }
        };
        for (whole, replicas, part) in [([60, 0, 7, 1], 3, [20, 0, 3, 1]), ([60, 10, 7, 2], 1, [60, 10, 7, 2])] {
            let share = share(&Quota { name: "q".into(), limits: limits(whole) }, replicas);
            assert_eq!(share.limits, limits(part));
        }
    }

    #[test]
    fn callers_have_limits_of_their_own() {
        let quota = Quota { name: "q".into(), limits: QuotaLimits::default() };
        let (ann, ben) = (Principal::from("ann"), Principal::from("ben"));
        let names = [None, Some(&ann), Some(&ben)].map(|caller| limit(&quota, caller).name);
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    }
}
