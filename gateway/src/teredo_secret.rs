//! The secret of a Teredo client, as its file has it.

use crate::config::TeredoClient;
use ring::hmac;
use sixway_control::teredo_client::Secret;
use sixway_control::teredo_server::ClientKey;
use std::io;

/// The secret that a client's server knows; `None`: it has none.
///
/// # Errors
/// The file cannot be read, or is empty; the text names it.
pub fn teredo_secret(client: &TeredoClient) -> io::Result<Option<Secret>> {
    let Some((id, file)) = client.client_id.as_ref().zip(client.secret_file.as_ref()) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(file)?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        let what = "its first line is empty; write the secret there";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, line.as_bytes());
    let key = ClientKey::new(move |octets| {
        let mut value = [0; 20];
        value.copy_from_slice(hmac::sign(&key, octets).as_ref());
        value
    });
    Ok(Some(Secret { client: id.as_bytes().to_vec(), key }))
}
