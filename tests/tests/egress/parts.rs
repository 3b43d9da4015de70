//! Idle connections of plugins are closed in favour of requests of other plugins.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use e2e::{Folder, Pipe, Value, json, plugin, scaled, text};

use crate::{connected, web::Web};

async fn begin_many(pipe: &mut Pipe, plugin: &str, web: &Web, times: usize) -> Value {
    let arguments = json!({ "url": web.url("/slow"), "times": times });
    pipe.begin("tools/call", json!({ "name": format!("{plugin}_many"), "arguments": arguments })).await
}

async fn until_requested(web: &Web, requests: usize) {
    web.seen.until(|seen| seen.requests.load(Ordering::SeqCst) >= requests).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_of_two_plugins_give_way_to_a_third() {
    let (folder, web) = (Folder::new(), Web::start().await);
    let mut config = String::from("[limits]\nhttp_at_once = 64\nhttp_requests = 1000\n");
    for id in ["a", "b", "c"] {
        config.push_str(&format!(
            "[plugins.{id}]\npath = {:?}\n[plugins.{id}.grants]\nhttp = [{{ url = \"{}\", methods = \"any\", private = true }}]\n",
            plugin("outgoing"),
            web.url("")
        ));
    }
    folder.config(&config);
    let mut pipe = connected(&folder, &[]).await;
    // Two plugins open all connections that they can get at once, and leave them idle.
    for (id, before) in [("a", 0), ("b", 64)] {
        web.release.send_replace(false);
        let begun = begin_many(&mut pipe, id, &web, 64).await;
        until_requested(&web, before + 48).await;
        web.release.send_replace(true);
        assert_eq!(text(&pipe.answer(&begun).await.unwrap()), "{\"200\":64}", "{id}");
    }
    let (kept, mut took) = (web.connections(), Vec::new());
    // So many were busy at once; the others may have used one of those again.
    assert!(kept >= 48 + 48, "{kept}");
    for _ in 0..20 {
        let began = Instant::now();
        let sent = pipe.call("c_send", json!({ "url": web.url("/ok") })).await;
        assert!(text(&sent).contains("\"status\":200"), "{sent}");
        took.push(began.elapsed());
    }
    took.sort();
    assert!(took[19] <= scaled(Duration::from_millis(250)), "{took:?}");
    // The third plugin gets as many as it needs, since those of the others are idle.
    web.release.send_replace(false);
    let began = Instant::now();
    let begun = begin_many(&mut pipe, "c", &web, 32).await;
    until_requested(&web, 128 + 20 + 32).await;
    assert!(began.elapsed() < scaled(Duration::from_secs(3)), "{:?}", began.elapsed());
    web.release.send_replace(true);
    assert_eq!(text(&pipe.answer(&begun).await.unwrap()), "{\"200\":32}");
    // The first two plugins still work.
    let again = begin_many(&mut pipe, "a", &web, 64).await;
    assert_eq!(text(&pipe.answer(&again).await.unwrap()), "{\"200\":64}");
    pipe.close().await;
}
