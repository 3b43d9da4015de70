//! The expiry of certificates: those of clients, and wharf's own.

use std::time::{Duration, SystemTime};

use e2e::{Folder, PATIENCE, Server, given, http::Over, json};
use http_body_util::BodyExt;
use hyper::{Response, StatusCode, body::Incoming, client::conn::http1::SendRequest};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::{
    authority::{Authority, Made, dns, write},
    keeps::{Body, connected, request},
};

/// Starts a wharf that requests client certificates of these authorities.
async fn asking(folder: &Folder, authority: &Authority, accepted: &[&Authority]) -> Server {
    write(folder, &authority.localhost());
    folder.write("config/wharf/ca.pem", pems(accepted));
    folder.config(&format!(
        "[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\n{}",
        given("g", &json!({}), "")
    ));
    let over = Over::Tls(authority.client(None, &[]));
    Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), over).await
}

fn pems(authorities: &[&Authority]) -> String {
    authorities.iter().map(|authority| authority.pem()).collect()
}

/// Opens a connection with this certificate.
async fn showing(server: &mut Server, authority: &Authority, made: &Made) -> SendRequest<Body> {
    server.over = Over::Tls(authority.client(Some(made), &[]));
    connected(server).await
}

/// Opens a connection with this certificate, and on it a stream that waits for changes.
async fn listening(server: &mut Server, authority: &Authority, made: &Made) -> (SendRequest<Body>, Response<Incoming>) {
    let mut client = showing(server, authority, made).await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let stream = client.send_request(request(server, listen, "subscriptions/listen")).await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    (client, stream)
}

async fn text(response: Response<Incoming>) -> String {
    let body = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap().to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

/// Asks for the list of tools on this connection.
async fn list(client: &mut SendRequest<Body>, server: &Server) -> Response<Incoming> {
    client.ready().await.unwrap();
    client.send_request(request(server, json!({}), "tools/list")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_counts_no_more_on_its_connection() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let mut server = asking(&folder, &authority, &[&authority]).await;
    let ends = SystemTime::now() + Duration::from_secs(8);
    let (mut client, stream) = listening(&mut server, &authority, &authority.make_until(&[dns("agent")], ends)).await;
    // The server ends the stream.
    text(stream).await;
    assert!(SystemTime::now() > ends - Duration::from_secs(1));
    let answer = list(&mut client, &server).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let said = text(answer).await;
    assert!(said.contains("the client certificate has expired"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_accepted_any_more_is_disconnected() {
    let (folder, authority, other) = (Folder::new(), Authority::new(), Authority::new());
    let mut server = asking(&folder, &authority, &[&authority, &other]).await;
    let mut kept = showing(&mut server, &authority, &authority.make(&[dns("agent")])).await;
    text(list(&mut kept, &server).await).await;
    let (ended, stream) = listening(&mut server, &authority, &other.make(&[dns("agent")])).await;
    folder.write("config/wharf/ca.pem", pems(&[&authority]));
    server.wait_for_log("whose certificate is not accepted any more").await;
    // The connection is closed in the middle of it.
    let cut = timeout(PATIENCE, stream.into_body().collect()).await.unwrap();
    assert!(cut.is_err() || ended.is_closed());
    assert_eq!(list(&mut kept, &server).await.status(), StatusCode::OK, "others go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_hear_of_the_end_of_a_certificate() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let day = Duration::from_secs(24 * 60 * 60);
    let good = authority.make_until(&[dns("localhost")], SystemTime::now() + 30 * day);
    write(&folder, &good);
    folder.config(&format!("[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{}", given("g", &json!({}), "")));
    let over = Over::Tls(authority.client(None, &[]));
    let server = Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), over).await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let check = async |expected: &str, succeeds: bool| {
        let output = folder.run(&["check"], &[]).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(expected), "{expected}: {said}");
        assert_eq!(output.status.success(), succeeds, "{said}");
    };
    check("the certificate is valid until ", true).await;
    server.signal(Signal::HUP);
    server.wait_for_log("the certificate is valid until ").await;
    write(&folder, &authority.make_until(&[dns("localhost")], SystemTime::now() + 3 * day));
    server.wait_for_log("renew it").await;
    check("renew it", true).await;
    write(&folder, &authority.make_until(&[dns("localhost")], SystemTime::now() - day));
    server.wait_for_log("clients refuse it").await;
    check("FAILED: ", false).await;
    folder.write("config/wharf/cert.pem", &good.pem);
    check("cannot be used together", false).await;
}
