//! Reads and writes messages, one per line. What is done with them is in `pipe`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    task::JoinSet,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wharf_protocol::{Id, Malformed, RpcError, long::IdSearch};

use super::pipe::{Pipe, PipeClient};
use crate::client::{
    outbox::{Messages, Outbox},
    server::{DRAIN_TIMEOUT, Server},
};
use wharf_base::{
    ledger::{Account, Full, Incoming, message_bytes, no_room},
    party::Party,
};

/// The maximum number of bytes that wait to be written. Senders of more wait for room.
const MAX_QUEUED_BYTES: u32 = 16 << 20;
/// The maximum number of messages in one write.
const MAX_MESSAGES_PER_WRITE: usize = 64;

/// How long a client that reads nothing delays the end after its last request was answered.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a client until the input ends, the output breaks, or wharf stops. When the input ends, the requests under way are answered
/// first, each within its own limit; in the other cases they have a second to finish.
/// `party`: the party on whose account the client's requests take places.
pub async fn serve<R, W>(server: &Arc<Server>, client: PipeClient, party: Party, input: R, output: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let accounts = server.ledger.client(party);
    let ledger = Arc::clone(&server.ledger);
    let (outbox, receiver) = Outbox::new(MAX_QUEUED_BYTES, Account::clone(&accounts));
    let mut writer = JoinSet::new();
    let written = CancellationToken::new();
    // RAII guard: also cancels the token if the writer panics.
    let guard = written.clone().drop_guard();
    writer.spawn(async move {
        write(receiver, output).await;
        drop(guard);
    });
    let limit = server.startup.message_bytes;
    let stop = server.stop.clone();
    let pipe = Pipe::new(Arc::clone(server), outbox.clone(), client, accounts.clone(), true);
    let mut input = BufReader::with_capacity(64 * 1024, input);
    loop {
        let mut line = Vec::new();
        let mut incoming = ledger.incoming(&accounts);
        let read = tokio::select! {
            read = async {
                // While the client does not read its answers, no more of its requests are read.
                outbox.ready().await;
                read_line(&mut input, &mut line, limit, &mut incoming).await
            } => read,
            () = outbox.closed() => break,
            () = stop.cancelled() => break,
        };
        match read {
            Ok(Line::Whole) => {
                // A line that came in pieces has room for more, which its request would keep.
                line.shrink_to_fit();
                let taken = pipe.take(line, incoming.into_charge(), party, || Ok::<_, Infallible>(None)).await;
                // The number of requests is not limited here, so this cannot fail.
                taken.unwrap_or_default();
            }
            Ok(Line::Refused(why, id)) => {
                let error = match why {
                    Why::NoRoom(full) => no_room(&full),
                    Why::TooLong => RpcError::invalid_request(format!("the message is longer than {limit} bytes")),
                };
                pipe.refuse(Malformed { id, error }).await;
            }
            Ok(Line::End) => break,
            Err(error) => {
                tracing::warn!("stdin: {error}");
                break;
            }
        }
    }
    // The client cannot answer questions any more, but waits for what it requested. The writer ends when all outboxes are dropped.
    let tracker = pipe.abandon();
    drop((pipe, outbox));
    finish(tracker, &stop, &written).await;
}

/// Waits until all requests are answered and all answers are written. If wharf stops or the output breaks, they have a second. `written`:
/// cancelled when the writer has ended.
async fn finish(tracker: TaskTracker, stop: &CancellationToken, written: &CancellationToken) {
    let answered = async {
        tracker.wait().await;
        tokio::time::timeout(UNREAD_TIMEOUT, written.cancelled()).await.ok();
    };
    let cut_short = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = written.cancelled() => {}
        }
        tokio::time::sleep(DRAIN_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        () = answered => {}
        () = cut_short => tracing::info!("stopped with requests under way"),
    }
}

enum Line {
    Whole,
    /// The line is refused. Only the id of its message is known, if it was found.
    Refused(Why, Option<Id>),
    End,
}

enum Why {
    TooLong,
    NoRoom(Full),
}

/// Reads up to the end of a line. A refused line is discarded.
async fn read_line<R: AsyncBufRead + Unpin>(
    input: &mut R,
    line: &mut Vec<u8>,
    limit: usize,
    incoming: &mut Incoming<'_>,
) -> std::io::Result<Line> {
    let mut refused: Option<(Why, IdSearch)> = None;
    loop {
        let available = input.fill_buf().await?;
        let at_end = available.is_empty();
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        match &mut refused {
            Some((_, search)) => search.feed(piece),
            None => {
                // A line that arrived in one read is charged only once, at its end, together with what handling it takes.
                let whole = end.is_some() && line.is_empty();
                let why = if line.len() + piece.len() > limit {
                    Some(Why::TooLong)
                } else if whole {
                    None
                } else {
                    incoming.cover(line.len() + piece.len()).err().map(Why::NoRoom)
                };
                match why {
                    None => line.extend_from_slice(piece),
                    Some(why) => {
                        let mut search = IdSearch::default();
                        search.feed(line);
                        search.feed(piece);
                        *line = Vec::new();
                        refused = Some((why, search));
                    }
                }
            }
        }
        let taken = piece.len() + usize::from(end.is_some());
        input.consume(taken);
        if end.is_some() || at_end {
            return Ok(match refused {
                Some((why, search)) => Line::Refused(why, search.id()),
                // A last line without an end is a message too.
                None if at_end && line.is_empty() => Line::End,
                None => paid(line, incoming),
            });
        }
    }
}

/// Charges for a complete line and what handling it takes. Refuses the line if there is no room.
fn paid(line: &[u8], incoming: &mut Incoming<'_>) -> Line {
    match incoming.cover(message_bytes(line)) {
        Ok(()) => Line::Whole,
        Err(full) => {
            let mut search = IdSearch::default();
            search.feed(line);
            Line::Refused(Why::NoRoom(full), search.id())
        }
    }
}

/// Appends a message as a line. U+2028 and U+2029, which are only in strings, are written as escapes: Node.js reads lines that end there too.
fn append_line(bytes: &mut Vec<u8>, message: &[u8]) {
    // Most messages have no byte that these begin with.
    if message.contains(&0xe2) {
        let mut rest = message;
        while let Some(at) = rest.windows(3).position(|three| matches!(three, [0xe2, 0x80, 0xa8 | 0xa9])) {
            bytes.extend_from_slice(rest.get(..at).unwrap_or_default());
            let first = rest.get(at + 2) == Some(&0xa8);
            bytes.extend_from_slice(if first { br"\u2028" } else { br"\u2029" });
            rest = rest.get(at + 3..).unwrap_or_default();
        }
        bytes.extend_from_slice(rest);
    } else {
        bytes.extend_from_slice(message);
    }
    bytes.push(b'\n');
}

/// Writes the queued messages, as many as wait in one write.
async fn write<W: AsyncWrite + Unpin>(mut queue: Messages, mut output: W) {
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    while queue.recv_many(&mut messages, MAX_MESSAGES_PER_WRITE).await > 0 {
        bytes.clear();
        for message in &messages {
            append_line(&mut bytes, message.text.as_bytes());
        }
        if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
            // The client does not read any more. Returning closes the queue, which all senders notice.
            return;
        }
        // Messages make room in the queue only when they are written.
        messages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_only_at_its_end_for_node_too() {
        for (message, expected) in [
            ("{}", "{}\n"),
            ("\"a\u{2028}b\u{2029}\u{2028}\"", "\"a\\u2028b\\u2029\\u2028\"\n"),
            ("\"\u{2026} \u{2027}\u{202a} \u{20a8}\"", "\"\u{2026} \u{2027}\u{202a} \u{20a8}\"\n"),
        ] {
            let mut bytes = Vec::new();
            append_line(&mut bytes, message.as_bytes());
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
