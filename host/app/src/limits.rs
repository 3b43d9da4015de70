//! Generates docs/limits.md, the table of all bounded resources that clients or plugins share, from the rules that are declared next to
//! the pools.

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read the sources and write the table")]
mod tests {
    use std::{env, fmt::Write, fs, path::Path};

    use wharf_base::places::PoolRule;

    use wharf_egress::{connect, line};
    use wharf_plugins::{
        approvals::{self, kept, remembered, ticket},
        plugins::served,
        tasks,
        telemetry::metrics,
    };
    use wharf_policy::auth;
    use wharf_serve::{
        client::{news, seat},
        transport::http,
    };

    const FILE: &str = "docs/limits.md";
    /// The environment variable that makes the test write the file.
    const WRITE: &str = "WRITE_LIMITS";

    /// All rules, in the order of the table. A rule that is not here fails the test.
    const RULES: &[&PoolRule] = &[
        // Clients over HTTP.
        &http::connections::CONNECTIONS,
        &seat::UNDER_WAY,
        &seat::WAITING,
        &http::sessions::OPEN,
        &http::listens::LISTENING,
        &http::resume::KEPT_STREAMS,
        // Replicas.
        &wharf_cluster::ASKED,
        &news::NEWS,
        // The calls of one plugin.
        &wharf_schema::CHECKS,
        &served::RESULTS,
        &served::TASKS,
        // Tasks and approvals.
        &tasks::KEPT,
        &tasks::RUNNING,
        &approvals::COMMANDS,
        &approvals::WAITING,
        &remembered::REMEMBERED,
        &ticket::USED,
        &kept::FILE,
        // Tokens.
        &auth::ASKED,
        &auth::WAITING_TO_ASK,
        &auth::FETCHES,
        &auth::GOOD,
        &auth::BAD,
        // Outgoing HTTP of plugins, and their metrics.
        &connect::CONNECTIONS,
        &connect::LOOK_UPS,
        &line::REQUESTS,
        &line::ALL_REQUESTS,
        &metrics::SERIES,
        &metrics::PLUGINS,
    ];

    /// The files that bound something with a plain semaphore, and why no client can use it up for others.
    const SEMAPHORES: &[(&str, &str)] = &[
        ("host/serve/src/client/outbox.rs", "the messages of one client that wait to be read"),
        ("host/plugins/src/plugins/install.rs", "plugins that are asked for their lists when they are loaded"),
        ("host/serve/src/transport/http/admin.rs", "connections for metrics, at an address of their own"),
        (
            "host/plugins/src/audit/writer.rs",
            "lines that wait to be written; a call that finds no room for its line is refused",
        ),
        (
            "host/sandbox/src/bounds/runtime.rs",
            "threads for guests, which all calls use by turns of a few milliseconds",
        ),
        ("host/sandbox/src/compile/child.rs", "memory of compilers, which only the operator's plugins use"),
        ("host/sandbox/src/wasi/traffic.rs", "requests of one call"),
        ("host/window/src/socket.rs", "windows of the user who started the process"),
        ("host/window/src/page/mod.rs", "connections of the user's own browser to the page"),
        (
            "host/window/src/page/shared.rs",
            "pages of the user's own browser that are kept up to date, and what these read",
        ),
    ];

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn table() -> String {
        let mut table = "# Limits\n\n\
            What clients and plugins share is bounded, and no client or plugin can use all of it. A client is a principal: an API key, a user, a\n\
            certificate, or a user of this machine at a Unix socket. Clients without credentials, and those that share one token, are told apart\n\
            by their address, so behind a proxy that `trusted_proxies` does not name, all of them are one client. The client of `wharf run`, which\n\
            serves no other client, may use everything.\n\n\
            A client that holds *n* places gets another one only while *n* is less than three times the number of free places. So a single client\n\
            can hold three quarters of a pool, two greedy clients three sevenths each, and ten greedy clients together leave one place in 31 free\n\
            for clients that hold few. The last eighth of a pool is for clients that hold less than one place in 64, or no place, so greedy clients\n\
            that come one after the other leave it free. A pool of fewer than four places reserves nothing; waiting clients take turns.\n\n\
            Memory has no places. A client gets more bytes of `total_host_memory_mib` only while it holds no more of them than are free: a single\n\
            client can hold a half, two greedy clients a third each; the last eighth is for clients that hold little. docs/operations.md says\n\
            what this memory is used for. Of `total_memory_mib`, the memory of guests, the calls of one client hold at most three times what is\n\
            free, as in all pools of places. What replicas store for clients in Redis, `memory_mib` in `[cluster]`, is shared by the same rule.\n\n\
            This table is generated from the code: `WRITE_LIMITS=1 cargo test -p wharf-app --lib the_table_of_limits`.\n\n\
            | what | how many | share for each | given back | while a person is asked | when the client is gone | makes room |\n\
            |---|---|---|---|---|---|---|\n"
            .to_owned();
        for PoolRule { of, number, taker, until, asking, gone, gives_way, .. } in
            RULES.iter().copied().chain(wharf_sandbox::RULES)
        {
            writeln!(table, "| {of} | {number} | {taker} | {until} | {asking} | {gone} | {gives_way} |").unwrap();
        }
        table
    }

    #[test]
    fn the_table_of_limits_says_what_the_code_does() {
        let (path, made) = (root().join(FILE), table());
        if env::var_os(WRITE).is_some() {
            fs::write(&path, &made).unwrap();
        }
        assert!(fs::read_to_string(&path).unwrap_or_default() == made, "{FILE} is old; run this with {WRITE}=1");
    }

    /// Every source file of the host, by its path from the root.
    fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn no_pool_is_without_a_rule() {
        let mut files = Vec::new();
        sources(&root().join("host"), &mut files);
        let own = "host/app/src/limits.rs";
        let (mut rules, mut problems) = (0, Vec::new());
        for (name, text) in files.iter().filter(|(name, _)| name != own) {
            rules += text
                .lines()
                .filter(|line| line.starts_with("pub static") && line.contains(": PoolRule = PoolRule {"))
                .count();
            let bare = text.contains("Semaphore::new(");
            let listed = SEMAPHORES.iter().any(|(file, _)| file == name);
            if bare && !listed {
                problems
                    .push(format!("{name}: use `Places`, or say in {own} why no client can use this up for others"));
            }
            if !bare && listed {
                problems.push(format!("{name} has no semaphore; remove it from the list in {own}"));
            }
        }
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            rules,
            RULES.len() + wharf_sandbox::RULES.len(),
            "the list in {own} has to contain each `pub static …: PoolRule`"
        );
    }
}
