//! Redis over TLS, as a user who may do what docs/replicas.md lists and no more, and what operators are told if something of that is wrong.

use e2e::{Folder, Redis, Server, json, text};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

use super::common::{PASSWORD, Replicas, able, start};

const DOCS: &str = include_str!("../../../docs/replicas.md");
/// The beginning of the command in the docs, up to the rights.
const SETUSER: &str = "ACL SETUSER wharf on >PASSWORD ";

/// The rights in the docs.
fn rights() -> Vec<&'static str> {
    let (_, rest) = DOCS.split_once(SETUSER).expect("the docs have the command");
    let (rights, _) = rest.split_once('\n').expect("it ends");
    rights.split_whitespace().collect()
}

/// Gives the user these rights and no others.
async fn allow(redis: &Redis, rights: &[&str]) {
    let password = format!(">{PASSWORD}");
    let mut words: Vec<&[u8]> = vec![b"ACL", b"SETUSER", b"wharf", b"reset", b"on", password.as_bytes()];
    words.extend(rights.iter().map(|right| right.as_bytes()));
    assert_eq!(redis.command(&words).await, b"+OK\r\n", "{rights:?}");
}

/// Writes the certificate of an authority as `NAME.pem`, and one that it has issued for `localhost` with its key.
fn authority(folder: &Folder, name: &str) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    let made = params.signed_by(&key, &authority).unwrap();
    folder.write(&format!("{name}.pem"), authority.pem());
    folder.write(&format!("{name}-cert.pem"), made.pem());
    folder.write(&format!("{name}-key.pem"), key.serialize_pem());
}

const LOGIN: &str = "user = \"wharf\"\npassword_secret = \"redis\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_over_tls_as_a_user_with_the_rights_that_the_docs_list() {
    let folder = Folder::new();
    authority(&folder, "ca");
    let redis = Redis::start_with_tls(&folder, &folder.join("ca-cert.pem"), &folder.join("ca-key.pem")).await;
    allow(&redis, &rights()).await;
    let cluster = format!(
        "redis = \"rediss://localhost:{}\"\nca_file = {:?}\n{LOGIN}",
        redis.tls.expect("a port").port(),
        folder.join("ca.pem")
    );
    let given = "confirm = \"all\"\nlimits = { calls_per_hour = 100, timeout_ms = 60000 }";
    let mut replicas = Replicas::of(redis, 2, "", |_| cluster.clone(), given).await;
    let note = replicas.note();
    let server = replicas.in_turns();
    // A session with questions, roots, settings, a subscription, a task, an approval for the session, and limits.
    let mut session = server.legacy("2025-11-25", able()).await;
    let root = format!("file://{}", note.parent().unwrap().display());
    session.answer_with(move |method, params| match method {
        "roots/list" => Some(json!({ "roots": [{ "uri": root }] })),
        "elicitation/create" if params["requestedSchema"]["properties"]["remember"].is_object() => {
            Some(json!({ "action": "accept", "content": { "remember": "session" } }))
        }
        "elicitation/create" => Some(json!({ "action": "accept", "content": { "v": "Ada" } })),
        _ => None,
    });
    for round in 0..3 {
        assert_eq!(text(&session.call("read", json!({ "path": note })).await), "of a root", "{round}");
        assert_eq!(text(&session.call("g_t", json!({ "ask": [["name"]] })).await), "name", "{round}");
        session.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
        session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
        let call = json!({ "name": "g_t", "arguments": { "text": "done" }, "task": { "ttl": 60_000 } });
        let made = session.request("tools/call", call).await.unwrap();
        let id = made["task"]["taskId"].clone();
        assert_eq!(text(&session.request("tasks/result", json!({ "taskId": id })).await.unwrap()), "done");
        session.request("tasks/list", json!({})).await.unwrap();
    }
    assert_eq!(session.delete().await.status(), 204);
    for server in &replicas.all {
        let log = server.log();
        assert!(!log.contains("Redis refuses") && !log.contains("Redis does not answer"), "{log}");
        assert!(!log.contains("no messages"), "{log}");
    }
}

/// Starts one replica with these settings, and returns it once its log has said what is wrong.
async fn told(folder: &Folder, cluster: &str, expected: &[&str]) -> Server {
    folder.config(&format!(
        "[protocol]\nstate_keys = [{{ env = \"STATE_KEY\" }}]\n[secrets]\nredis = {{ env = \"REDIS_PASSWORD\" }}\n\
         [cluster]\nname = \"r\"\n{cluster}\n{}",
        e2e::given("g", &json!({}), "")
    ));
    let server = start(folder).await;
    for part in expected {
        server.wait_for_log(part).await;
    }
    assert!(!server.log().contains(PASSWORD), "{}", server.log());
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_tls_is_said_with_what_to_do() {
    let folder = Folder::new();
    authority(&folder, "ca");
    authority(&folder, "other");
    let redis = Redis::start_with_tls(&folder, &folder.join("ca-cert.pem"), &folder.join("ca-key.pem")).await;
    allow(&redis, &rights()).await;
    let (plain, tls) = (redis.address.port(), redis.tls.expect("a port").port());
    let ca = |name: &str| format!("ca_file = {:?}\n", folder.join(name));
    for (cluster, expected) in [
        (format!("redis = \"rediss://localhost:{tls}\"\n{}", ca("other.pem")), "set `ca_file` in [cluster]"),
        (format!("redis = \"rediss://127.0.0.1:{tls}\"\n{}", ca("ca.pem")), "as the certificate of Redis has it"),
        (
            format!("redis = \"rediss://localhost:{plain}\"\n{}", ca("ca.pem")),
            "check that this port of Redis speaks TLS",
        ),
    ] {
        let folder = Folder::new();
        let server = told(&folder, &format!("{cluster}{LOGIN}"), &["Redis does not answer", expected]).await;
        // Calls go on.
        let call = json!({ "name": "g_t", "arguments": { "text": "done" } });
        assert_eq!(text(&server.modern("tools/call", call, json!({})).await.unwrap()), "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_user_is_said_and_mended_without_a_restart() {
    let folder = Folder::new();
    let redis = Redis::start(&folder).await;
    let cluster = format!("redis = \"redis://{}\"\n{LOGIN}", redis.address);
    // There is no such user yet.
    let server = told(&folder, &cluster, &["Redis does not answer", "check `user` and `password_secret`"]).await;
    allow(&redis, &rights()).await;
    server.wait_for_log("Redis answers again").await;
    drop(server);
    // Without a command of the scripts, nothing can be shared.
    let without = |gone: &'static str| [rights(), vec![gone]].concat();
    allow(&redis, &without("-evalsha")).await;
    let server = told(&folder, &cluster, &["Redis does not answer", "docs/replicas.md lists"]).await;
    allow(&redis, &rights()).await;
    server.wait_for_log("Redis answers again").await;
    drop(server);
    // Without others, what needs them is not shared, and the rest goes on.
    for (gone, command) in [("-hget", "user executing the script"), ("resetchannels", "channel")] {
        allow(&redis, &without(gone)).await;
        let server = told(&folder, &cluster, &[]).await;
        let mut session = server.legacy("2025-11-25", able()).await;
        session.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
        let line = server.wait_for_log("docs/replicas.md lists").await;
        assert!(line.to_lowercase().contains(command), "{line}");
        assert_eq!(text(&session.call("g_t", json!({ "text": "done" })).await), "done");
    }
}
