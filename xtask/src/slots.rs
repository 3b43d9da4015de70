//! `cargo xtask check slots`: checks that no data of one call reaches the next, however the call ends, also when memory is swapped out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    run, say,
    tree::{cargo, guests},
};

/// The size of the swap file in MiB. It is larger than the memory of all calls of the check together.
const SWAP_MIB: u64 = 1024;

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    guests()?;
    let wants_swap = rest.iter().any(|argument| argument == "--swap");
    let _swap = if wants_swap { Swap::on(&root.join("target/swap"))? } else { None };
    cargo(["test", "--test", "slots", "--"].into_iter().chain(rest.iter().map(String::as_str)))
}

/// A swap file that is in use until this is dropped.
struct Swap(PathBuf);

impl Swap {
    /// Creates a swap file and turns it on. Returns `None` if the machine has swap already.
    fn on(file: &Path) -> Result<Option<Self>> {
        let known = fs::read_to_string("/proc/swaps").context("cannot read which swap is in use")?;
        if known.lines().count() > 1 {
            return Ok(None);
        }
        say("making a swap file, which needs root");
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=1M", "status=none"]).arg(format!("count={SWAP_MIB}"));
        run(dd.arg(format!("of={}", file.display())))?;
        run(Command::new("chmod").arg("600").arg(file))?;
        run(Command::new("mkswap").arg("--quiet").arg(file))?;
        run(Command::new("swapon").arg(file)).context("cannot turn on the swap file that `--swap` needs")?;
        Ok(Some(Self(file.to_path_buf())))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("swapoff").arg(&self.0)) {
            say(&format!("{} is still in use as swap: {error:#}", self.0.display()));
        }
        fs::remove_file(&self.0).ok();
    }
}
