//! How often each caller may use what its roles grant, and how often all callers together may use a plugin.

use std::time::{SystemTime, UNIX_EPOCH};

use e2e::{Value, json};

use crate::roles::{Place, config};

/// The outcome of a call: if it was refused, the time of the next try and the reason.
struct Refused {
    after: u64,
    why: String,
}

async fn echo(place: &Place, token: &str, tool: &str) -> Result<(), Refused> {
    let params = json!({ "name": tool, "arguments": { "message": "hello", "code": "x" } });
    let mut exchange = place.send(token, "tools/call", params).await;
    if exchange.status() == 200 {
        return Ok(());
    }
    assert_eq!(exchange.status(), 429);
    let after: u64 = exchange.header("retry-after").unwrap().parse().unwrap();
    let error = exchange.json().await["error"].clone();
    assert_eq!((&error["code"], &error["data"]["retryAfter"]), (&json!(429), &json!(after)));
    Err(Refused { after, why: error["message"].as_str().unwrap().to_owned() })
}

/// Seconds until the hour or day ends.
fn left_of(seconds: u64) -> u64 {
    seconds - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % seconds
}

/// Makes wharf read its config, for the `nth` time since the start.
async fn reload(place: &Place, roles: &str, nth: usize) {
    place.folder.config(&config(&place.issuer, &place.srv, roles));
    place.server.wait_for_nth_log("the config was reloaded", nth).await;
}

const DAY: u64 = 24 * 60 * 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_role_gives_each_of_its_callers_so_many_calls() {
    let roles = "[roles.all]\nwhen = \"anyone\"\nplugins = [\"*\"]\nlimits = { calls_per_minute = 3 }\n";
    let place = Place::with(roles).await;
    let (ann, ben) = (place.ann(), place.ben());
    for _ in 0..3 {
        assert!(echo(&place, &ann, "echo_echo").await.is_ok());
    }
    let Refused { after, why } = echo(&place, &ann, "echo_echo").await.err().unwrap();
    assert!((1..=20).contains(&after), "{after}");
    let expected = format!("your role allows 3 calls a minute, and all of them are used up; try again in {after} s");
    assert_eq!(why, expected);
    // Lists are not calls, and other callers have their own quota.
    assert!(!place.names(&ann, "tools/list").await.is_empty());
    assert!(echo(&place, &ben, "echo_echo").await.is_ok());
    place.server.terminate().await;
}

/// Ann's calls of one tool are used up for the day. Those of another tool are not, nor are Ben's; and the refused calls have not used up
/// the role's total.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_a_quota_of_its_own() {
    let of = |calls: u32| {
        format!(
            "[roles.all]\nwhen = \"anyone\"\nplugins = [\"*\"]\n\
             limits = {{ calls_per_day = 6, of = [{{ tools = [\"echo_ec*\"], calls_per_day = {calls} }}] }}\n"
        )
    };
    let place = Place::with(&of(2)).await;
    let before = left_of(DAY);
    let (ann, ben) = (place.ann(), place.ben());
    for _ in 0..2 {
        assert!(echo(&place, &ann, "echo_echo").await.is_ok());
    }
    for _ in 0..5 {
        let Refused { after, why } = echo(&place, &ann, "echo_echo").await.err().unwrap();
        assert!(after <= before && after + 120 > before, "{after} of {before}");
        assert!(why.starts_with("your role allows 2 calls of this kind a day, and all of them are used up"), "{why}");
        assert!(why.ends_with(&format!("try again in {after} s, at 00:00 UTC")), "{why}");
    }
    assert!(echo(&place, &ben, "echo_echo").await.is_ok());
    assert!(echo(&place, &ann, "show_about").await.is_ok());
    // Neither unrelated changes, nor changes of another role, nor of these numbers reset the counts.
    reload(&place, &format!("{}[limits]\ntimeout_ms = 29000\n", of(2)), 1).await;
    assert!(echo(&place, &ann, "echo_echo").await.is_err());
    reload(&place, &format!("[roles.none]\nwhen = {{ group = \"none\" }}\nplugins = [\"files\"]\n{}", of(2)), 2).await;
    assert!(echo(&place, &ann, "echo_echo").await.is_err());
    reload(&place, &of(3), 3).await;
    assert!(echo(&place, &ann, "echo_echo").await.is_ok());
    assert!(echo(&place, &ann, "echo_echo").await.is_err());
    // Four calls were counted, so two of six are left.
    for _ in 0..2 {
        assert!(echo(&place, &ann, "show_about").await.is_ok());
    }
    let Refused { why, .. } = echo(&place, &ann, "show_about").await.err().unwrap();
    assert!(why.starts_with("your role allows 6 calls a day,"), "{why}");
    place.server.terminate().await;
}

/// A plugin may be called so many times in all, by all callers together, whatever their roles allow.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_takes_so_many_calls_of_all_callers_together() {
    let limits = |roles: &str| format!("{roles}[plugins.echo.limits]\ncalls_per_day = 3\n");
    let roles = "[roles.all]\nwhen = \"anyone\"\nplugins = [\"*\"]\nlimits = { calls_per_day = 2 }\n";
    let place = Place::with(&limits(roles)).await;
    let (ann, ben) = (place.ann(), place.ben());
    for token in [&ann, &ann, &ben] {
        assert!(echo(&place, token, "echo_echo").await.is_ok());
    }
    let Refused { after, why } = echo(&place, &ben, "echo_echo").await.err().unwrap();
    assert!(after <= DAY, "{after}");
    assert_eq!(
        why,
        format!(
            "the plugin `echo` takes 3 calls a day of all callers together, and all of them are used up; try again in {after} s, at 00:00 UTC"
        )
    );
    // The refused call did not count for Ben.
    assert!(echo(&place, &ben, "show_about").await.is_ok());
    assert!(echo(&place, &ben, "show_about").await.is_err());
    place.server.terminate().await;
}

/// A call with a question counts as two: the request with the answer runs the plugin again.
#[tokio::test(flavor = "multi_thread")]
async fn each_round_of_a_call_counts() {
    let roles = "[roles.all]\nwhen = \"anyone\"\nplugins = [\"*\"]\nlimits = { calls_per_day = 2 }\n";
    let place = Place::with(roles).await;
    let ann = place.ann();
    let ask = async |params: Value| {
        let mut exchange = place.send_able(&ann, "tools/call", params, json!({ "elicitation": {} })).await;
        (exchange.status(), exchange.json().await)
    };
    let mut params = json!({ "name": "job_t", "arguments": { "ask": [["a"]] } });
    let (status, asked) = ask(params.clone()).await;
    assert_eq!((status, &asked["result"]["resultType"]), (200, &json!("input_required")), "{asked}");
    params["inputResponses"] = json!({ "a": { "action": "accept", "content": { "v": "x" } } });
    if let Some(state) = asked["result"].get("requestState") {
        params["requestState"] = state.clone();
    }
    assert_eq!(ask(params.clone()).await.0, 200);
    assert_eq!(ask(params).await.0, 429);
    place.server.terminate().await;
}
