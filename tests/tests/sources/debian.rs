//! Debian's registry, over TLS and with passwords: what is published there comes back.

use std::process::Stdio;

use e2e::{PATIENCE, Pipe, debian::program, json, text};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
    time::timeout,
};

use super::*;

const PASSWORD: &str = "a long password of a test";
/// The bcrypt hash of the password, as `htpasswd -B` writes it.
const USERS: &str = "ann:$2b$04$HyHlnanv7zHWoVHgYrSMjeLEY.0RM1sWwHnOuAQ.C4/h3H60FeG2e\n";

struct Registry {
    _child: Child,
    port: u16,
}

/// Starts the registry with a certificate that `authority.pem` in the folder has issued.
async fn start(folder: &Folder) -> Registry {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let (mut params, key) = (CertificateParams::default(), KeyPair::generate().unwrap());
    params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    let certificate = params.signed_by(&key, &authority).unwrap();
    folder.write("authority.pem", authority.pem());
    let certificate = folder.write("registry.pem", certificate.pem());
    let key = folder.write("registry.key", key.serialize_pem());
    let users = folder.write("users", USERS);
    let data = folder.join("data");
    // A port that was free a moment ago. Another process may take it meanwhile, so this is tried more than once.
    for _ in 0..5 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:{port}', tls: {{certificate: {}, key: {}}}}}\nauth: {{htpasswd: {{realm: test, path: {}}}}}\n",
            data.display(),
            certificate.display(),
            key.display(),
            users.display()
        );
        let config = folder.write("registry.yml", config);
        let mut command = program("docker-registry", "usr/bin/docker-registry");
        command
            .arg("serve")
            .arg(config)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("docker-registry: run `cargo xtask test`, which gets it");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let began = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("listening on 127.0.0.1") {
                    return true;
                }
            }
            false
        };
        if timeout(PATIENCE, began).await.unwrap_or(false) {
            // The server must not wait for a reader of its output.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Registry { _child: child, port };
        }
    }
    panic!("docker-registry does not start");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_over_tls_with_a_password_comes_back() {
    let folder = Folder::new();
    let registry = start(&folder).await;
    let (place, source) =
        (format!("localhost:{}", registry.port), format!("oci://localhost:{}/tools/v:1.0.0", registry.port));
    key(&folder, "acme");
    folder.write("password", PASSWORD);
    folder.set_mode("password", 0o600);
    let component = folder.plugin_as("version-a", "made/v.wasm");
    let publish = ["publish", &source, component.to_str().unwrap(), "--key", "acme.pem"];
    let said = failed(&folder, &publish).await;
    assert!(said.contains("certificate"), "an unknown authority is not trusted: {said}");

    let trusts = format!("[egress]\nca = [\"{}\"]\n", folder.join("authority.pem").display());
    folder.config(&trusts);
    let said = failed(&folder, &publish).await;
    assert!(said.contains(&format!("run `docker login {place}`")), "{said}");
    let login = |file: &str| {
        format!(
            "{trusts}[secrets]\nregistry = {{ file = \"{}\" }}\n[sources]\nallow = [\"{place}/tools/\"]\n\
             [sources.logins]\n\"{place}\" = {{ user = \"ann\", secret = \"registry\" }}\n",
            folder.join(file).display()
        )
    };
    folder.write("wrong", "another long password");
    folder.set_mode("wrong", 0o600);
    folder.config(&login("wrong"));
    let said = failed(&folder, &publish).await;
    assert!(said.contains("the login is wrong") && !said.contains("another long"), "{said}");

    folder.config(&login("password"));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    done(&folder, &publish).await;
    done(&folder, &["add", &format!("oci://{place}/tools/v"), "--signer", "key=acme.pub"]).await;
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");
    let said = done(&folder, &["update", "--dry-run"]).await;
    assert!(said.contains("v: 1.0.0 is up to date"), "{said}");

    // The signature is found again from an empty store.
    std::fs::remove_dir_all(folder.home().join(".local/share/wharf/store")).unwrap();
    assert!(done(&folder, &["lock", "fetch"]).await.contains("1 fetched"));
    done(&folder, &["lock", "verify"]).await;
    let said = failed(&folder, &["add", &format!("oci://{place}/private/other"), "--signer", "key=acme.pub"]).await;
    assert!(said.contains("is not in `allow` of [sources]"), "{said}");
}
