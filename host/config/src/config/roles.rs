//! `[roles.NAME]`: to whom a role applies, and what it gives.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};

use super::{bounds::calls, raw};
use wharf_base::{pattern::Pattern, quota::Quota, text::toml_header};
use wharf_policy::{
    access::capability::Access,
    roles::{MAX_ROLES, Role, Roles, Selection, ceiling::Ceiling, condition::Condition, rate_limits::RateLimits},
};

/// The maximum number of tables in `limits.of` of a role.
const MAX_LIMIT_TABLES: usize = 64;

pub fn resolve(raw: Vec<(String, raw::Role)>, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Arc<Roles>> {
    ensure!(raw.len() <= MAX_ROLES, "there are more than {MAX_ROLES} roles");
    let all = raw.into_iter().map(|(name, raw)| {
        let header = toml_header(&["roles", &name]);
        role(name, raw, absolute).context(header)
    });
    Ok(Arc::new(Roles::new(all.collect::<Result<_>>()?)))
}

fn role(name: String, raw: raw::Role, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Role> {
    let raw::Role { when, plugins, tools, prompts, resources, step_up, roots, limits } = raw;
    let when = conditions(when)?;
    let selection = selection(plugins, tools, prompts, resources)?;
    ensure!(
        !selection.is_empty(),
        "it gives nothing: name `plugins`, `tools`, `prompts` or `resources`; plugins = [\"*\"] is everything"
    );
    ensure!(
        !step_up || when.iter().any(|condition| !condition.scopes.is_empty()),
        "`step_up` tells callers which scopes they lack, and `when` names no scope"
    );
    let ceiling = match roots {
        None => None,
        Some(raw::RoleRoots { within, access }) => {
            let within = within.as_deref().map(absolute).transpose()?;
            let ceiling = Ceiling::new(within.as_deref().map(Path::new), access.unwrap_or(Access::ReadWrite));
            Some(ceiling.context("`roots`")?)
        }
    };
    let rate_limits = rate_limits(&name, limits).context("`limits`")?;
    Ok(Role { name, when, selection, step_up, ceiling, rate_limits })
}

/// Parses lists of names, and of beginnings of names followed by `*`.
pub fn selection(
    plugins: Option<Vec<String>>,
    tools: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    resources: Option<Vec<String>>,
) -> Result<Selection> {
    let patterns = |key: &str, names: Option<Vec<String>>| -> Result<Option<Vec<Pattern>>> {
        let Some(names) = names else { return Ok(None) };
        for name in &names {
            let beginning = name.strip_suffix('*').unwrap_or(name);
            ensure!(!beginning.contains('*'), "`{key}`: `{name}` has a `*` that is not at its end");
        }
        Ok(Some(names.into_iter().map(Pattern::new).collect()))
    };
    Ok(Selection {
        plugins: patterns("plugins", plugins)?,
        tools: patterns("tools", tools)?,
        prompts: patterns("prompts", prompts)?,
        resources: patterns("resources", resources)?,
    })
}

fn rate_limits(role: &str, raw: raw::RoleLimits) -> Result<RateLimits> {
    let raw::RoleLimits { calls_per_minute, calls_per_hour, calls_per_day, concurrency, of } = raw;
    ensure!(of.len() <= MAX_LIMIT_TABLES, "`of` has more than {MAX_LIMIT_TABLES} tables");
    let limits = calls([calls_per_minute, calls_per_hour, calls_per_day, concurrency]);
    let of = of.into_iter().map(|raw| part(role, raw).context("`of`")).collect::<Result<Vec<_>>>()?;
    let names: HashSet<&str> = of.iter().map(|(_, quota)| quota.name.as_str()).collect();
    ensure!(names.len() == of.len(), "`of` names the same twice; put its limits into one table");
    Ok(RateLimits { whole: Quota { name: format!("role {role:?}"), limits }, of })
}

fn part(role: &str, raw: raw::LimitsOf) -> Result<(Selection, Quota)> {
    let raw::LimitsOf {
        plugins,
        tools,
        prompts,
        resources,
        calls_per_minute,
        calls_per_hour,
        calls_per_day,
        concurrency,
    } = raw;
    let selection = selection(plugins, tools, prompts, resources)?;
    ensure!(!selection.is_empty(), "it selects nothing: name `plugins`, `tools`, `prompts` or `resources`");
    let limits = calls([calls_per_minute, calls_per_hour, calls_per_day, concurrency]);
    ensure!(
        limits.is_limited(),
        "it limits nothing: set `calls_per_minute`, `calls_per_hour`, `calls_per_day` or `concurrency`"
    );
    let name = format!("role {role:?}, {selection}");
    Ok((selection, Quota { name, limits }))
}

fn conditions(raw: raw::When) -> Result<Vec<Condition>> {
    match raw {
        raw::When::Word(word) if word == "anyone" => Ok(vec![Condition::default()]),
        raw::When::Word(word) => {
            anyhow::bail!(
                "`when`: `{word}` is not \"anyone\"; conditions stand in a table, such as {{ scope = \"files:read\" }}"
            )
        }
        raw::When::One(one) => Ok(vec![condition(*one)?]),
        raw::When::Any(all) => {
            ensure!(!all.is_empty(), "`when` is empty, so the role would apply to nobody");
            all.into_iter().map(condition).collect()
        }
    }
}

fn condition(raw: raw::Condition) -> Result<Condition> {
    let raw::Condition { scope, group, issuer, subject, claim, client, key, cert, uid } = raw;
    let scopes = match scope {
        None => Vec::new(),
        Some(raw::Words::One(scope)) => vec![scope],
        Some(raw::Words::All(scopes)) => scopes,
    };
    for scope in &scopes {
        super::auth::check_scope(scope).context("`when`")?;
    }
    let groups = group.map(|group| ("groups".to_owned(), group));
    let condition = Condition {
        scopes,
        issuer,
        subject,
        claims: claim.into_iter().chain(groups).collect(),
        client,
        key,
        certificate: cert,
        uid,
    };
    ensure!(condition != Condition::default(), "`when` has an empty table; for everybody, write \"anyone\"");
    ensure!(
        condition.subject.is_none() || condition.issuer.is_some(),
        "`when`: a `subject` is ambiguous without the `issuer` that assigned it; add `issuer`"
    );
    Ok(condition)
}
