//! Signatures of minisign.

use minisign_verify::Error;

use crate::{
    artifact::{Artifact, Signed},
    refused::Reason,
    trusted::Trusted,
};

/// Verifies a file of minisign. It has no proof of its time: the comment that it signs is what its signer says.
pub fn verify(artifact: &Artifact<'_>, bytes: &[u8], trusted: &[Trusted]) -> Result<(usize, Signed), Reason> {
    let unreadable = || Reason::Unreadable("neither a sigstore bundle (JSON) nor a signature of minisign".to_owned());
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    let signature = minisign_verify::Signature::decode(text).map_err(|_| unreadable())?;
    let mut reason = Reason::OtherKey;
    for (place, one) in trusted.iter().enumerate() {
        let Trusted::Minisign(key) = one else { continue };
        for (covers, bytes) in artifact.candidates() {
            match key.key.verify(bytes, &signature, false) {
                Ok(()) => return Ok((place, Signed { signer: key.signer(), covers, at: None })),
                Err(Error::UnexpectedKeyId) => {}
                Err(Error::UnexpectedAlgorithm) => {
                    reason = Reason::Unreadable("it is in minisign's legacy form; sign again without `-l`".to_owned());
                }
                // The number of the key is right, so it is this key's signature of other bytes, or nobody's.
                Err(_) => reason = Reason::Forged("it is not this key's signature of this artifact".to_owned()),
            }
        }
    }
    Err(reason)
}
