//! Identity providers that change their keys, are flooded with unknown ones, or are unreachable.

use e2e::{Folder, json, together};

use crate::{
    call,
    issuer::{Issuer, Key},
    started, status,
};

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_are_found_and_floods_of_unknown_ones_are_not_looked_for() {
    let (folder, one, two) = (Folder::new(), Key::new("one"), Key::ed("two"));
    let issuer = Issuer::start(&[&one]).await;
    let server = started(&folder, &issuer, "").await;
    assert_eq!(status(&server, &one.token(&issuer.claims())).await, 200);
    let asked = issuer.asked();
    // A key that is newer than the last fetch is found at once.
    issuer.publish(&[&one, &two]);
    assert_eq!(status(&server, &two.token(&issuer.claims())).await, 200);
    assert_eq!(issuer.asked(), asked + 1);
    // Dozens of unknown keys do not cause a fetch each. A token whose key was not looked for is not called invalid.
    let unknown: Vec<String> = (0..40)
        .map(|number| {
            let mut header = one.header();
            header["kid"] = json!(format!("unknown{number}"));
            one.sign(&header, &issuer.claims())
        })
        .collect();
    for token in &unknown {
        let asked = issuer.asked();
        let status = status(&server, token).await;
        assert_eq!(status, if issuer.asked() > asked { 401 } else { 503 });
    }
    // Five at once, and one more every half minute.
    let asked = issuer.asked();
    assert!((5..8).contains(&asked), "{asked}");
    // A token that was found to be invalid is not looked up again, and valid ones are accepted in the meantime.
    assert_eq!(status(&server, &unknown[0]).await, 401);
    let all = together(unknown.iter().map(|token| status(&server, token))).await;
    assert!(all.iter().all(|status| [401, 503].contains(status)), "{all:?}");
    assert!(issuer.asked() <= asked + 1);
    for key in [&one, &two] {
        assert_eq!(status(&server, &key.token(&issuer.with("jti", Some(json!("1"))))).await, 200);
    }
    server.terminate().await;
}

/// A key that is published after the start of wharf is found if wharf has not fetched keys for a while; here it has never fetched any.
#[tokio::test(flavor = "multi_thread")]
async fn keys_from_a_file_and_from_a_url_of_their_own() {
    let (folder, key) = (Folder::new(), Key::ed("file"));
    let issuer = Issuer::start(&[]).await;
    folder.write("config/wharf/keys.json", json!({ "keys": [key.public()] }).to_string());
    let server = started(&folder, &issuer, "jwks_file = \"keys.json\"\nalgorithms = [\"EdDSA\"]").await;
    assert_eq!(status(&server, &key.token(&issuer.claims())).await, 200);
    assert_eq!(issuer.asked(), 0, "nobody is asked");
    // The issuer does not sign with this algorithm.
    let other = Key::new("file");
    assert_eq!(status(&server, &other.token(&issuer.claims())).await, 401);
    server.terminate().await;
    issuer.publish(&[&key]);
    let keys = format!("jwks_url = \"{}/keys\"", issuer.url());
    let server = started(&folder, &issuer, &keys).await;
    assert_eq!(status(&server, &key.token(&issuer.claims())).await, 200);
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_provider_is_down_nobody_loses_a_good_token() {
    let (folder, key) = (Folder::new(), Key::new("one"));
    let issuer = Issuer::start(&[&key]).await;
    issuer.set_down(true);
    let server = started(&folder, &issuer, "").await;
    // Without keys it cannot be checked, so it is neither accepted nor called invalid.
    let token = format!("Bearer {}", key.token(&issuer.claims()));
    let exchange = call(&server, &[("Authorization", &token)]).await;
    assert_eq!((exchange.status(), exchange.header("www-authenticate")), (503, None));
    assert!(exchange.header("retry-after").is_some());
    // Problems that can be found without a key are reported anyway.
    assert_eq!(status(&server, &key.token(&issuer.with("aud", None))).await, 401);
    server.terminate().await;

    issuer.set_down(false);
    let server = started(&folder, &issuer, "").await;
    assert_eq!(status(&server, &key.token(&issuer.claims())).await, 200);
    issuer.set_down(true);
    for number in 0..20 {
        let claims = issuer.with("jti", Some(json!(number.to_string())));
        assert_eq!(status(&server, &key.token(&claims)).await, 200, "the keys that were fetched are good for a day");
    }
    server.terminate().await;
}
