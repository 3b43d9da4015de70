//! Parses the JSON in what plugins return, once there is a place and memory for it.

use wharf_base::heavy::heavy;
use wharf_plugins::{
    bridge::{HoldsJson, Paid, Unpaid},
    plugins::served::Served,
};

use super::failed::{Failed, Why, defect};
use crate::client::context::Context;

/// Converts an answer of a plugin. What that takes is held until the answer is written.
pub async fn converted<A: HoldsJson, T>(
    ctx: &Context,
    served: &Served,
    answer: A,
    convert: impl FnOnce(A, &Paid) -> Result<T, String>,
) -> Result<T, Failed> {
    let paid = pay(ctx, served, &answer).await?;
    let converted = heavy(paid.bytes(), || convert(answer, &paid));
    ctx.hold(paid);
    converted.map_err(|problem| defect(served, &problem))
}

/// Waits for a place among the plugin's large results, if there is much JSON, and charges the client for its trees.
pub async fn pay(ctx: &Context, served: &Served, json: &impl HoldsJson) -> Result<Paid, Failed> {
    let charge = |bytes| ctx.server.ledger.message(&ctx.server.ledger.client(ctx.party()), bytes);
    match Paid::pay(json, &served.results, (ctx.party(), served.config.limits.timeout), charge).await {
        Ok(paid) => Ok(paid),
        Err(Unpaid::Turn) => Err(defect(served, "too many large results wait to be checked")),
        Err(Unpaid::Memory(full)) => Err(Failed::new(
            Why::Busy,
            format!(
                "The plugin `{}` returned JSON for which there is not enough memory: {full} (a share of \
                 total_host_memory_mib in [limits]).",
                served.config.id
            ),
        )),
    }
}
