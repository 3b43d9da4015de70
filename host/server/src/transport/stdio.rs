//! One pipe: a message per line in, a message per line out. What the messages mean is in `pipe`.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
    task::JoinSet,
};
use wharf_protocol::{Malformed, RpcError};

use super::pipe::{Client, Pipe};
use crate::{
    base::ledger::{Full, Incoming, message_bytes, no_room},
    client::{
        outbox::{Outbox, Queued},
        server::Server,
    },
};

/// How many bytes may wait to be written; who has more to say waits too.
const QUEUED_BYTES: u32 = 16 << 20;
/// The room for a line that is kept from one to the next.
const LINE_BYTES: usize = 64 << 10;
/// Messages that are written at once, if there are so many.
const AT_ONCE: usize = 64;
/// How long requests under way may take to finish when the input has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// Serves a client until the input ends, the output breaks, or wharf stops; then requests under way have a second to finish.
pub async fn serve<R, W>(server: &Arc<Server>, client: Client, input: R, output: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let share = server.ledger.client(&client.principal.to_string());
    let ledger = Arc::clone(&server.ledger);
    let (outbox, receiver) = Outbox::new(QUEUED_BYTES, share.account.clone());
    let mut writer = JoinSet::new();
    writer.spawn(write(receiver, output));
    let limit = server.startup.message_bytes;
    let stop = server.stop.clone();
    let pipe = Pipe::new(Arc::clone(server), outbox.clone(), client, true);
    let mut input = BufReader::with_capacity(64 * 1024, input);
    let mut line = Vec::new();
    loop {
        // Of a long line, the room is given back.
        line.clear();
        line.shrink_to(LINE_BYTES);
        let mut incoming = ledger.incoming(&share.account);
        let read = tokio::select! {
            read = async {
                // Who reads no answers is not asked for more requests.
                outbox.ready().await;
                read_line(&mut input, &mut line, limit, &mut incoming).await
            } => read,
            () = outbox.closed() => break,
            () = stop.cancelled() => break,
        };
        match read {
            Ok(Line::Whole) => {
                let taken = pipe.take(&line, incoming.into_charge(), || Ok::<_, Infallible>(None)).await;
                // Here nothing is counted, so nothing is refused.
                taken.unwrap_or_default();
            }
            Ok(Line::NoRoom(full)) => pipe.refuse(Malformed { id: None, error: no_room(&full) }).await,
            Ok(Line::TooLong) => {
                let error = RpcError::invalid_request(format!("the line is longer than {limit} bytes"));
                pipe.refuse(Malformed { id: None, error }).await;
            }
            Ok(Line::End) => break,
            Err(error) => {
                tracing::warn!("stdin: {error}");
                break;
            }
        }
    }
    // What is under way may finish and be written; the writer ends when all who write are gone.
    let tracker = pipe.end();
    drop((pipe, outbox));
    let drained = async {
        tracker.wait().await;
        // A writer that panicked has nothing left to write.
        writer.join_next().await;
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("stopped with requests under way");
    }
}

enum Line {
    Whole,
    TooLong,
    NoRoom(Full),
    End,
}

/// Reads up to a line's end; of a line that is refused, nothing is kept.
async fn read_line<R: AsyncBufRead + Unpin>(
    input: &mut R,
    line: &mut Vec<u8>,
    limit: usize,
    incoming: &mut Incoming<'_>,
) -> std::io::Result<Line> {
    let mut refused = None;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            // A last line without an end is a message too.
            let whole = if line.is_empty() { Line::End } else { paid(line, incoming) };
            return Ok(refused.unwrap_or(whole));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if refused.is_none() {
            // A line that is there as a whole is paid for once, when it is known what will be made of it.
            let whole = end.is_some() && line.is_empty();
            refused = if line.len() + taken > limit {
                Some(Line::TooLong)
            } else if whole {
                None
            } else {
                incoming.cover(line.len() + taken).err().map(Line::NoRoom)
            };
            match refused {
                Some(_) => *line = Vec::new(),
                None => line.extend_from_slice(available.get(..taken).unwrap_or_default()),
            }
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(refused.unwrap_or_else(|| paid(line, incoming)));
        }
    }
}

/// A line that is there, if there is room for what will be made of it.
fn paid(line: &[u8], incoming: &mut Incoming<'_>) -> Line {
    incoming.cover(message_bytes(line)).map_or_else(Line::NoRoom, |()| Line::Whole)
}

/// Writes what is queued, as much at once as there is.
async fn write<W: AsyncWrite + Unpin>(mut queue: mpsc::UnboundedReceiver<Queued>, mut output: W) {
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    while queue.recv_many(&mut messages, AT_ONCE).await > 0 {
        bytes.clear();
        for message in &messages {
            bytes.extend_from_slice(message.text.as_bytes());
            bytes.push(b'\n');
        }
        if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
            // Nobody reads any more: the queue closes, and everybody notices.
            return;
        }
        // Only what is written makes room.
        messages.clear();
    }
}
