//! API keys, and opaque tokens.

use std::time::Instant;

use e2e::{
    Folder, PATIENCE, Server,
    folder::{stderr, stdout},
    json,
};

use crate::{
    call, introspecting,
    issuer::{Issuer, Key},
    status,
};

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_shown_once_and_revoked() {
    let folder = Folder::new();
    folder.plugin("echo");
    folder.config(
        "[auth]\nscopes = [\"mcp\"]\nkeys_file = \"keys.toml\"\n\
         [roles.ci]\nwhen = { key = \"ci\" }\nplugins = [\"*\"]\n[roles.other]\nwhen = { scope = \"echo\" }\ntools = [\"echo\"]\n\
         [plugins.echo]\npath = \"../../plugins/echo.wasm\"\nprefix = \"\"\n",
    );
    let keys = async |arguments: &[&str]| folder.run(&[&["keys"], arguments].concat(), &[]).await;
    let mut all = Vec::new();
    for arguments in
        [&["new", "ci"][..], &["new", "ci", "--days", "30"], &["new", "robot", "--scope", "echo"], &["new", "idle"]]
    {
        let made = keys(arguments).await;
        assert!(made.status.success(), "{}", stderr(&made));
        assert!(stderr(&made).contains("shown only this once"), "{}", stderr(&made));
        all.push(stdout(&made).trim().to_owned());
    }
    let [one, two, robot, idle] = all.as_slice() else { panic!("four keys") };
    assert!(one.starts_with("whk_ci_") && robot.starts_with("whk_robot_") && one != two);
    let listed = stdout(&keys(&["list"]).await);
    assert_eq!(listed.lines().filter(|line| line.starts_with("ci ")).count(), 2, "{listed}");
    let file = std::fs::read_to_string(folder.join("config/wharf/keys.toml")).unwrap();
    for key in &all {
        assert!(!listed.contains(&key[8..]) && !file.contains(&key[12..]), "only digests are kept");
    }
    assert!(keys(&["new", "Big"]).await.status.code() == Some(2));

    let server = Server::start(&folder, &[]).await;
    for (key, expected) in [(one, 200), (two, 200), (robot, 200), (idle, 403), (&format!("{one}0"), 401)] {
        assert_eq!(status(&server, key).await, expected, "{key}");
    }
    let changed = one.replace("whk_ci_", "whk_cj_");
    let exchange = call(&server, &[("Authorization", &format!("Bearer {changed}"))]).await;
    let challenge = exchange.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer realm=\"wharf\", error=\"invalid_token\""), "{challenge}");
    assert!(!challenge.contains("resource_metadata"), "there is nowhere to log in: {challenge}");
    let exchange = call(&server, &[]).await;
    assert_eq!((exchange.status(), exchange.header("www-authenticate")), (401, Some("Bearer realm=\"wharf\"")));
    // Two keys of one id are valid during a rotation.
    let digits =
        listed.lines().find(|line| line.contains("does not expire")).unwrap().split_whitespace().nth(1).unwrap();
    let revoked = keys(&["revoke", "ci", "--sha256", digits]).await;
    assert_eq!(stdout(&revoked).trim(), format!("revoked ci {digits}"));
    let began = Instant::now();
    while status(&server, one).await != 401 {
        assert!(began.elapsed() < PATIENCE, "it is still good");
    }
    assert_eq!(status(&server, two).await, 200);
    assert_eq!(keys(&["revoke", "none"]).await.status.code(), Some(1));
    let log = server.terminate().await.2;
    assert!(!log.contains(&one[10..]) && !log.contains(&two[10..]), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_is_asked_about_tokens_that_say_nothing() {
    let (folder, key) = (Folder::new(), Key::ed("one"));
    let issuer = Issuer::start(&[&key]).await;
    introspecting(&folder, &issuer, "wh:arf");
    let server = Server::start(&folder, &[]).await;
    issuer.know("good", issuer.claims());
    issuer.know("nameless", issuer.with("iss", None));
    for (token, claims) in [
        ("other-audience", issuer.with("aud", Some(json!("https://other.example")))),
        ("no-audience", issuer.with("aud", None)),
        ("expired", issuer.with("exp", Some(json!(7)))),
        ("endless", issuer.with("exp", None)),
        ("nobody", issuer.with("sub", None)),
        ("bound", issuer.with("cnf", Some(json!({ "jkt": "x" })))),
        ("other-issuer", issuer.with("iss", Some(json!("https://evil.example")))),
    ] {
        issuer.know(token, claims);
        assert_eq!(status(&server, token).await, 401, "{token}");
    }
    assert_eq!(status(&server, "good").await, 200);
    assert_eq!(status(&server, "nameless").await, 200);
    assert_eq!(status(&server, "unknown").await, 401);
    assert_eq!(status(&server, &key.token(&issuer.claims())).await, 200, "signed tokens are checked as ever");
    // Encoded as the standard requires, so that a colon in the name does not separate name and secret.
    assert_eq!(issuer.asked_as().unwrap(), "wh%3Aarf:a%20secret%20of%20wharf%26co%3D");
    // A token that is known to be valid is not introspected again for a while.
    let asked = issuer.introspected();
    assert_eq!(status(&server, "good").await, 200);
    assert_eq!(issuer.introspected(), asked);
    issuer.set_down(true);
    let exchange = call(&server, &[("Authorization", "Bearer another")]).await;
    assert_eq!((exchange.status(), exchange.header("www-authenticate")), (503, None));
    assert_eq!(status(&server, "good").await, 200);
    issuer.set_down(false);
    assert_eq!(status(&server, "another").await, 401);
    let log = server.terminate().await.2;
    assert!(!log.contains("a secret of wharf") && !log.contains("a%20secret"), "{log}");
}
