//! Missing entries never grant access: roles that the config does not have, or no longer has.

use e2e::{
    Folder, Server,
    folder::{stderr, stdout},
    json,
};

use crate::{
    EVERYBODY, RESOURCE,
    issuer::{Issuer, Key},
    roles::{Place, TWO, config},
    status,
};

/// A config with a login must define who may use what.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_without_roles_lets_nobody_in() {
    let (folder, key) = (Folder::new(), Key::ed("one"));
    let issuer = Issuer::start(&[&key]).await;
    folder.plugin("echo");
    folder.write("config/wharf/keys.toml", "");
    let people = format!(
        "[http]\npublic_url = \"{RESOURCE}\"\n[auth]\nscopes = [\"mcp\"]\n[[auth.issuers]]\nurl = \"{}\"\n",
        issuer.url()
    );
    let programs = "[auth]\nkeys_file = \"keys.toml\"\n".to_owned();
    let echo = "[plugins.echo]\npath = \"../../plugins/echo.wasm\"\nprefix = \"\"\n";
    for auth in [people.clone(), programs] {
        folder.config(&format!("{auth}{echo}"));
        for arguments in [&["check"][..], &["serve", "--listen", "127.0.0.1:0"], &["run"]] {
            let refused = folder.run(arguments, &[]).await;
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains("there are no [roles.*]"), "{arguments:?}: {said}");
            assert!(said.contains("add [roles.everybody] with when = \"anyone\" and plugins = [\"*\"]"), "{said}");
        }
        folder.config(&format!("{auth}{EVERYBODY}{echo}"));
        let checked = folder.run(&["check"], &[]).await;
        assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
    }
    folder.config(&format!("{people}{EVERYBODY}{echo}"));
    let server = Server::start(&folder, &[]).await;
    assert_eq!(status(&server, &key.token(&issuer.claims())).await, 200);
    server.terminate().await;
}

/// A file without the roles, as when an editor has saved only its head, revokes nothing and grants nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_without_the_roles_of_before_is_not_used() {
    let place = Place::with(TWO).await;
    let (ann, ben) = (place.ann(), place.ben());
    let nobody = place.token("eve", json!({}));
    let whole = config(&place.issuer, &place.srv, "");
    let no_login = &whole[whole.find("[roots]").unwrap()..];
    for (nth, less) in (1..).zip([whole.as_str(), no_login, ""]) {
        place.folder.config(less);
        let said = place.server.wait_for_nth_log("the config is not used, the last valid one stays", nth).await;
        assert!(said.contains("ERROR"), "{said}");
        let why = if less.is_empty() { "the file contains no settings" } else { "no [roles.*]" };
        assert!(said.contains(why), "{said}");
        assert_eq!(status_of(&place, &nobody).await, 403);
        let of_ben = place.names(&ben, "tools/list").await;
        assert!(of_ben.iter().all(|name| name.starts_with("echo_")), "{of_ben:?}");
        assert_eq!(place.call(&ann, "echo_echo", json!({ "message": "x" })).await["error"]["code"], -32602);
    }
    // The intended config, written out.
    place.folder.config(&config(&place.issuer, &place.srv, EVERYBODY));
    place.server.wait_for_log("the config was reloaded").await;
    assert_eq!(status_of(&place, &nobody).await, 200);
    // The roles are restored.
    place.folder.config(&config(&place.issuer, &place.srv, TWO));
    place.server.wait_for_nth_log("the config was reloaded", 2).await;
    assert_eq!(status_of(&place, &nobody).await, 403);
    place.server.terminate().await;
}

/// Removing a key from a role grants more, so a config that was truncated within a role is not used either.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_lost_what_narrowed_it_is_not_used() {
    let role = "[roles.all]\nwhen = \"anyone\"\nplugins = [\"*\"]\n";
    let place = Place::with(&format!("{role}tools = [\"echo_*\"]\nlimits = {{ calls_per_day = 1000 }}\n")).await;
    let ann = place.ann();
    for (nth, (less, key)) in (1..).zip([
        (format!("{role}limits = {{ calls_per_day = 1000 }}\n"), "`tools`"),
        (format!("{role}tools = [\"echo_*\"]\n"), "`limits`"),
    ]) {
        place.folder.config(&config(&place.issuer, &place.srv, &less));
        let said = place.server.wait_for_nth_log("the config is not used, the last valid one stays", nth).await;
        assert!(said.contains("ERROR") && said.contains(key), "{said}");
        let named = place.names(&ann, "tools/list").await;
        assert!(named.iter().all(|name| name.starts_with("echo_")), "{named:?}");
    }
    // The intended config, written out.
    let wide = format!("{role}tools = [\"*\"]\nlimits = {{ calls_per_day = 2000 }}\n");
    place.folder.config(&config(&place.issuer, &place.srv, &wide));
    place.server.wait_for_log("the config was reloaded").await;
    assert!(place.names(&ann, "tools/list").await.iter().any(|name| !name.starts_with("echo_")));
    place.server.terminate().await;
}

async fn status_of(place: &Place, token: &str) -> u16 {
    place.send(token, "tools/list", json!({})).await.status()
}

/// A role opens no roots in a folder that does not exist, and this is reported.
#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_role_that_is_not_there_is_said() {
    let roles = format!(
        "{TWO}[roles.none]\nwhen = \"anyone\"\nplugins = [\"files\"]\nroots = {{ within = \"SRV/gone/{{sub}}\" }}\n"
    );
    let place = Place::with(&roles).await;
    let said = place.server.wait_for_log("of [roles.none] is not there").await;
    assert!(said.contains("WARN") && said.contains("srv/gone "), "{said}");
    assert!(!place.server.log().contains("[roles.reader] is not there"), "its folder is there");
    let checked = place.folder.run(&["check"], &[]).await;
    assert!(stdout(&checked).contains("srv/gone does not exist, so the role opens no roots"), "{}", stdout(&checked));
    // It is reported again for the next config to which it applies.
    let more = roles.replace("[roles.none]", "[roles.also]");
    place.folder.config(&config(&place.issuer, &place.srv, &more));
    place.server.wait_for_log("of [roles.also] is not there").await;
    place.server.terminate().await;
}

/// Roles are judged by what they give: one that is written with other keys and gives less is used at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_narrowed_by_other_keys_is_used() {
    let role = "[roles.all]\nwhen = \"anyone\"\n";
    let place = Place::with(&format!("{role}plugins = [\"echo\"]\nlimits = {{ calls_per_day = 1000 }}\n")).await;
    let ann = place.ann();
    assert!(place.names(&ann, "tools/list").await.iter().any(|name| name == "echo_echo"));
    let narrowed =
        [("tools = [\"echo_echo\", \"echo_none\"]\n", 1), ("tools = [\"echo_none\"]\n", 0), ("plugins = []\n", 0)];
    for (nth, (now, tools)) in (1..).zip(narrowed) {
        place.folder.config(&config(&place.issuer, &place.srv, &format!("{role}{now}")));
        place.server.wait_for_nth_log("the config was reloaded", nth).await;
        assert_eq!(place.names(&ann, "tools/list").await.len(), tools, "{now}");
    }
    place.server.terminate().await;
}
