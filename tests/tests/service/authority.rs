//! A certificate authority that issues certificates for servers and clients.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use e2e::Folder;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer},
};

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub struct Made {
    pub pem: String,
    pub key_pem: String,
    pub der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn make(&self, names: &[SanType]) -> Made {
        self.made(names, CertificateParams::default())
    }

    /// A certificate that expires at this time.
    pub fn make_until(&self, names: &[SanType], until: SystemTime) -> Made {
        let mut params = CertificateParams::default();
        let since = until.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(since.as_secs());
        self.made(names, params)
    }

    fn made(&self, names: &[SanType], mut params: CertificateParams) -> Made {
        let key = KeyPair::generate().unwrap();
        params.subject_alt_names = names.to_vec();
        let made = params.signed_by(&key, &self.0).unwrap();
        Made { pem: made.pem(), key_pem: key.serialize_pem(), der: made.der().clone(), key_der: key.serialize_der() }
    }

    /// A certificate for `localhost`.
    pub fn localhost(&self) -> Made {
        self.make(&[dns("localhost")])
    }

    /// Trusts this authority, presents this certificate, and supports these protocols.
    pub fn client(&self, shows: Option<&Made>, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match shows {
            None => builder.with_no_client_auth(),
            Some(made) => {
                let key = PrivateKeyDer::Pkcs8(made.key_der.clone().into());
                builder.with_client_auth_cert(vec![made.der.clone()], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

pub fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// Writes the files of a server; only the owner may read the key.
pub fn write(folder: &Folder, made: &Made) {
    folder.write("config/wharf/key.pem", &made.key_pem);
    folder.set_mode("config/wharf/key.pem", 0o600);
    folder.write("config/wharf/cert.pem", &made.pem);
}
