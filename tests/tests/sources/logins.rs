//! Logins for registries: from docker's config, its helpers, and `[sources]`.

use base64::{Engine, engine::general_purpose::STANDARD};
use e2e::json;

use super::{fake::Login, *};

const PASSWORD: &str = "a long password of a test";

#[tokio::test(flavor = "multi_thread")]
async fn logins_are_those_of_docker_and_of_the_config() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", None).await;
    let digest = fake::sha256(&std::fs::read(folder.join("made/version-a.wasm")).unwrap());
    let (source, address) = (registry.source("tools/v:1.0.0"), registry.address().to_string());
    let add = ["add", &source, "--digest", &digest];
    for login in [Login::Basic("ann", PASSWORD), Login::Token("ann", PASSWORD)] {
        registry.wants(login.clone());
        let said = failed(&folder, &add).await;
        assert!(said.contains(&format!("run `docker login {address}`")), "{login:?}: {said}");

        let auth = |user: &str, password: &str| STANDARD.encode(format!("{user}:{password}"));
        let docker = |auth: String| json!({ "auths": { &address: { "auth": auth } } }).to_string();
        folder.write("home/.docker/config.json", docker(auth("ann", "wrong")));
        let said = failed(&folder, &add).await;
        assert!(said.contains("login") && !said.contains("wrong\""), "{login:?}: {said}");
        folder.write("home/.docker/config.json", docker(auth("ann", PASSWORD)));
        registry.seen();
        done(&folder, &add).await;
        if let Login::Token(..) = login {
            let passwords: Vec<String> = registry
                .seen()
                .into_iter()
                .filter(|(_, authorization)| authorization.as_ref().is_some_and(|value| value.starts_with("Basic")))
                .map(|(request, _)| request)
                .collect();
            assert_eq!(passwords, ["GET /token"], "the password goes to the server for tokens only");
        }
        done(&folder, &["remove", "v"]).await;
        std::fs::remove_file(folder.home().join(".docker/config.json")).unwrap();
    }

    // A helper of docker.
    folder.write("home/.docker/config.json", json!({ "credHelpers": { &address: "test" } }).to_string());
    // Helpers read the registry's name first. One that does not may be gone before the name is written.
    let helper = format!("#!/bin/sh\nread -r registry\necho '{{\"Username\":\"ann\",\"Secret\":\"{PASSWORD}\"}}'\n");
    folder.write("bin/docker-credential-test", helper);
    folder.set_mode("bin/docker-credential-test", 0o755);
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let output = folder.run(&add, &[("PATH", &path)]).await;
    assert!(output.status.success(), "{}", e2e::folder::stderr(&output));
    done(&folder, &["remove", "v"]).await;
    folder.write("bin/docker-credential-test", "#!/bin/sh\nread -r registry\necho secret-of-helper >&2; exit 1\n");
    let output = folder.run(&add, &[("PATH", &path)]).await;
    let said = e2e::folder::stderr(&output);
    assert!(
        said.contains("the credential helper that docker's config names") && !said.contains("secret-of-helper"),
        "{said}"
    );

    // The config.
    std::fs::remove_file(folder.home().join(".docker/config.json")).unwrap();
    folder.write("password", PASSWORD);
    folder.set_mode("password", 0o600);
    folder.config(&format!(
        "[secrets]\nregistry = {{ file = \"{}\" }}\n[sources.logins]\n\"{address}\" = {{ user = \"ann\", secret = \"registry\" }}\n",
        folder.join("password").display()
    ));
    done(&folder, &add).await;
    // Where a blob is elsewhere, the login stays behind.
    std::fs::remove_dir_all(folder.home().join(".local/share/wharf/store")).unwrap();
    registry.wants(Login::Basic("ann", PASSWORD));
    let elsewhere = Fake::start().await;
    elsewhere.put_blob(&std::fs::read(folder.join("made/version-a.wasm")).unwrap());
    registry.fails(fake::Fault::Redirect(elsewhere.url("/elsewhere/{}")));
    done(&folder, &["lock", "fetch"]).await;
    assert!(elsewhere.seen().iter().all(|(_, authorization)| authorization.is_none()));
}
