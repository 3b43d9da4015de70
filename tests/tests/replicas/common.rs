//! Three replicas, and a client of theirs whose every connection goes to the next one.

use std::time::Instant;

use e2e::{Folder, PATIENCE, Redis, Server, Session, Turns, Value, given, json, plugin};

/// The replicas, each with the state that it keeps in a folder of its own.
pub struct Replicas {
    pub redis: Redis,
    pub all: Vec<Server>,
    /// The folders come last, so that they outlive their servers.
    pub folders: Vec<Folder>,
}

/// `showcase`, which may ask, `reach`, which reads roots, and `g`, which does what its arguments say.
fn plugins(code: &std::path::Path, given_more: &str) -> String {
    format!(
        "[roots]\nwithin = [{code:?}]\n\
         [plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\", \"sampling\"]\n\
         [plugins.reach]\npath = {:?}\nprefix = \"\"\n[plugins.reach.grants]\nroots = \"read\"\n{}",
        plugin("showcase"),
        plugin("reach"),
        given("g", &json!({ "task": "optional" }), given_more)
    )
}

pub const STATE_KEY: &str = "07f307f307f307f307f307f307f307f307f307f307f307f307f307f307f307f3";

impl Replicas {
    pub async fn start(number: usize) -> Self {
        Self::with(number, "", "limits = { timeout_ms = 60000 }").await
    }

    /// `more`: further lines at the top of the config; `given_more`: further lines of the plugin `g`.
    pub async fn with(number: usize, more: &str, given_more: &str) -> Self {
        let folder = Folder::new();
        let redis = Redis::start(&folder).await;
        let cluster = format!("redis = \"redis://{}\"\n", redis.address);
        let mut replicas = Self::of(redis, number, more, |_| cluster.clone(), given_more).await;
        replicas.folders.push(folder);
        replicas
    }

    /// `cluster`: the lines of `[cluster]` for each replica, without its name.
    pub async fn of(
        redis: Redis,
        number: usize,
        more: &str,
        cluster: impl Fn(usize) -> String,
        given_more: &str,
    ) -> Self {
        let folders: Vec<Folder> = (0..number).map(|_| Folder::new()).collect();
        folders[0].write("code/note.txt", "of a root");
        let mut replicas = Self { redis, all: Vec::new(), folders };
        for (at, folder) in replicas.folders.iter().enumerate() {
            let (plugins, cluster) = (plugins(&replicas.folders[0].join("code"), given_more), cluster(at));
            folder.config(&format!(
                "{more}\n[protocol]\nstate_keys = [{{ env = \"STATE_KEY\" }}]\n\
                 [secrets]\nredis = {{ env = \"REDIS_PASSWORD\" }}\n\
                 [cluster]\n{cluster}name = \"r{at}\"\n{plugins}"
            ));
            replicas.all.push(start(folder).await);
        }
        replicas
    }

    /// Starts one more replica, with the config of the first one.
    pub async fn one_more(&mut self) -> &Server {
        self.another("", "").await
    }

    /// Starts one more replica, with the config of the first one, in which this text is replaced.
    pub async fn another(&mut self, text: &str, by: &str) -> &Server {
        let (first, folder) = (self.folders[0].join("config/wharf/wharf.toml"), Folder::new());
        let config = std::fs::read_to_string(first).unwrap().replace(text, by);
        folder.config(&config.replace("name = \"r0\"", "name = \"more\""));
        self.all.push(start(&folder).await);
        self.folders.push(folder);
        self.all.last().expect("it was added")
    }

    /// Returns a server whose every connection goes to the next replica. It replaces the first one, which goes on.
    pub fn in_turns(&mut self) -> &Server {
        let addresses: Vec<_> = self.all.iter().map(|server| server.address).collect();
        self.all[0].over = Turns::of(addresses);
        &self.all[0]
    }

    /// A path that only a root gives.
    pub fn note(&self) -> std::path::PathBuf {
        self.folders[0].join("code/note.txt")
    }
}

/// The password of the user at Redis, where there is one.
pub const PASSWORD: &str = "a-password-of-redis";

pub async fn start(folder: &Folder) -> Server {
    let environment = [("STATE_KEY", STATE_KEY), ("REDIS_PASSWORD", PASSWORD)];
    let server = Server::start_with(folder, &[], &environment).await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    server
}

pub fn able() -> Value {
    json!({ "elicitation": {}, "roots": { "listChanged": true } })
}

pub async fn ping(session: &mut Session<'_>) -> u16 {
    session.begin("ping", json!({})).await.1.status()
}

/// Waits until the replica has heard that the session has ended, which another one has answered already.
pub async fn has_ended(session: &mut Session<'_>) {
    let began = Instant::now();
    loop {
        match ping(session).await {
            404 => return,
            status => assert_eq!(status, 200),
        }
        assert!(began.elapsed() < PATIENCE, "it has not heard of the end");
    }
}
