//! What builds the servers of one language: the SDK, and the packages that it needs, in a folder of the cache. It is installed once for each
//! version of the SDK and each Python, and all servers share it: their builds read it, and write nothing there.

#![expect(clippy::disallowed_methods, reason = "keeps what builds servers in the cache")]

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{
    cache::{self, READY, make_folder},
    locks, project,
};
use crate::authoring::{
    build::{self, Output, Until},
    confinement::Confined,
    project::{Build, Project, Setup},
    template::write,
};
use wharf_base::{failed::OrFailed, program, text};
use wharf_config::config::existing::{self, Language};

/// What builds the servers of one language.
pub struct Tools {
    pub folder: PathBuf,
    language: Language,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Tools {
    pub fn of(language: Language) -> Result<Self> {
        let all = existing::tools().context("there is no home directory to keep what builds servers in")?;
        let (files, mut digest) = (project::tools(language, None)?, Sha256::new());
        for (path, contents) in &files {
            for part in [path.as_os_str().as_encoded_bytes(), contents] {
                digest.update((part.len() as u64).to_le_bytes());
                digest.update(part);
            }
        }
        // It is installed with the first Python on PATH, which another PATH may not have, and another version cannot use.
        let python = program::folders_of_path().find_map(|folder| fs::canonicalize(folder.join("python3")).ok());
        if let (Language::Python, Some(python)) = (language, python) {
            digest.update(python.as_os_str().as_encoded_bytes());
        }
        let folder = all.join(format!("{}-{}", language.as_str(), text::short_digest(digest.finalize())));
        Ok(Self { folder, language, files })
    }

    /// Installs it, unless it is there.
    pub async fn install(&self, until: Until) -> Result<()> {
        let Self { folder, language, files } = self;
        cache::note(folder, None);
        if self.is_installed() {
            return Ok(());
        }
        make_folder(folder.parent().unwrap_or(folder))?;
        let _lock = locks::of_folder(folder).await?;
        // Another wharf may have installed it meanwhile.
        if self.is_installed() {
            return Ok(());
        }
        let title = language.title();
        tracing::info!("installing what builds servers in {title}, once for all of them, in {}", text::path(folder));
        // What a package manager leaves when it is stopped may fail every time.
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| text::path(folder)).or_failed()?;
        }
        make_folder(folder)?;
        files.iter().try_for_each(|(path, contents)| write(&folder.join(path), contents))?;
        let build = Build {
            command: String::new(),
            artifact: folder.join(READY),
            watch: None,
            needs: language.needs(),
            setup: Some(Setup { command: project::setup_of_tools(*language), makes: folder.join(READY) }),
            live: None,
            arguments: String::new(),
        };
        let confined = Confined::new(folder.clone(), None, Vec::new());
        let tools = Project::confined(folder.clone(), language.as_str().to_owned(), build, confined);
        build::ready(&tools, true, (until, Output::Quoted)).await
    }

    /// Whether it can be used. The Python that it was installed with may be gone.
    fn is_installed(&self) -> bool {
        let program = self.language == Language::Node || self.folder.join(project::PYTHON).exists();
        self.folder.join(READY).is_file() && program
    }
}
