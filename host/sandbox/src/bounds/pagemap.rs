//! Changes the page scans (`PAGEMAP_SCAN`, Linux 6.7) by which wasmtime finds what a call has written: to pages that exist, and to as many as
//! the memory may keep (`idle`).
//!
//! wasmtime asks for pages that are `WRITTEN`. Newer kernels (seen on 6.18) report a page that was never touched as `WRITTEN` too, so
//! each reset wrote over a mebibyte of untouched memory and gave the rest back: a fresh call took three times as long. This adds the
//! condition that the page is `PRESENT` or `SWAPPED`. Every page that holds something is one of the two: the kernel counts swapped pages
//! and pages that it is moving at that moment as `SWAPPED`.
//!
//! wasmtime's request is out of reach, so a program puts [`ioctl`] in the place of the C library's function, by `narrow_page_scans!`. It
//! passes everything on unchanged but for scans with exactly wasmtime's conditions. Remove it once wasmtime asks for this itself.

use std::{
    cell::Cell,
    ffi::{c_int, c_long, c_ulong, c_void},
    slice::from_raw_parts,
};

use crate::bounds::idle::{IDLE, Reset, Turns};

thread_local! {
    /// The reset that this thread continues at an address, because there was no room for all regions that the last scan found.
    static UNFINISHED: Cell<Option<(u64, Reset)>> = const { Cell::new(None) };
    static TURNS: Turns = const { Turns::new() };
}

const PAGE_BYTES: u64 = 4096;

/// `PAGEMAP_SCAN`, as `linux/fs.h` defines it: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: c_ulong = 0xc060_6610;

const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const PFNZERO: u64 = 1 << 5;

/// `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

impl Scan {
    /// Whether it is wasmtime's scan for what a guest has written.
    fn is_for_written_pages(&self) -> bool {
        self.flags == 0
            && self.category_inverted == PFNZERO | FILE
            && self.category_mask == WRITTEN | PFNZERO | FILE
            && self.category_anyof_mask == 0
    }

    /// Begins or continues the reset of a memory.
    fn reset(&self) -> Option<Reset> {
        match UNFINISHED.take() {
            Some((next, reset)) if next == self.start => Some(reset),
            _ => {
                let pages = self.end.saturating_sub(self.start) / PAGE_BYTES;
                IDLE.begin(self.start, pages, self.max_pages).map(|reset| TURNS.with(|turns| turns.next(reset)))
            }
        }
    }

    /// Ends the reset after a scan that found `regions`, unless wasmtime scans on. wasmtime gives back the memory behind the last scan.
    fn goes_on(&self, mut reset: Reset, regions: &[[u64; 3]]) {
        let bytes: u64 = regions.iter().map(|[from, to, _]| to.saturating_sub(*from)).sum();
        reset.keep(bytes / PAGE_BYTES);
        if regions.len() as u64 == self.vec_len && self.walk_end < self.end {
            UNFINISHED.set(Some((self.walk_end, reset)));
        } else {
            IDLE.end(reset);
        }
    }
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// The number of the system call.
const IOCTL: c_long = if cfg!(target_arch = "x86_64") { 16 } else { 29 };

/// A request that only [`ioctl`] below knows: it writes `true` to its argument. The kernel refuses it, as it does any with this descriptor.
const ARE_YOU_THERE: c_ulong = 0x7768_6172;
const NO_FILE: c_int = -1;

/// Whether the program has put [`ioctl`] in the place of the C library's function.
pub(crate) fn is_in_place() -> bool {
    mod process {
        unsafe extern "C" {
            pub(super) fn ioctl(fd: super::c_int, request: super::c_ulong, ...) -> super::c_int;
        }
    }
    let mut answer = false;
    // SAFETY: the C library's function refuses this descriptor, and ours writes a `bool`.
    unsafe { process::ioctl(NO_FILE, ARE_YOU_THERE, &raw mut answer) };
    answer
}

/// What `narrow_page_scans!` puts in the place of the C library's function.
///
/// # Safety
///
/// The same as for the system call.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if fd == NO_FILE && request == ARE_YOU_THERE {
        // SAFETY: only `is_in_place` makes this request.
        unsafe { argument.cast::<bool>().write(true) };
        return 0;
    }
    // Musl declares the request as `int`, so only its lower half counts.
    if request & 0xffff_ffff == PAGEMAP_SCAN {
        // SAFETY: with this request, the argument points to a scan, to which the kernel writes as well.
        if let Some(scan) = unsafe { argument.cast::<Scan>().as_mut() }
            && scan.is_for_written_pages()
        {
            scan.category_anyof_mask = PRESENT | SWAPPED;
            if let Some(reset) = scan.reset() {
                // wasmtime gives back the memory behind the pages that the scan finds. 0 would mean any number.
                scan.max_pages = reset.left().max(1);
                // SAFETY: the arguments are those of the caller but for the number of pages.
                let found = unsafe { syscall(IOCTL, fd, request, argument) };
                match usize::try_from(found) {
                    // SAFETY: the kernel has written this many regions.
                    Ok(found) => scan.goes_on(reset, unsafe { from_raw_parts(scan.vec as *const [u64; 3], found) }),
                    Err(_) => IDLE.end_unknown(reset),
                }
                return found as c_int;
            }
        }
    }
    // SAFETY: the arguments go to the kernel as the caller passed them. The result of `ioctl` is an `int`.
    unsafe { syscall(IOCTL, fd, request, argument) as c_int }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "/proc/self/pagemap is not a file of any plugin or client")]

    use std::{fs::File, os::fd::AsRawFd};

    use super::*;

    crate::narrow_page_scans!();

    const PAGE: usize = 4096;

    #[test]
    fn a_program_that_puts_it_in_place_is_told_from_others() {
        assert!(is_in_place());
    }

    /// Scans as wasmtime does, and returns the numbers of the pages that are reported. `None`: the kernel cannot scan.
    fn scanned(memory: &[u8]) -> Option<Vec<usize>> {
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let start = memory.as_ptr() as u64;
        let mut regions = [[0_u64; 3]; 64];
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end: start + memory.len() as u64,
            walk_end: 0,
            vec: regions.as_mut_ptr() as u64,
            vec_len: regions.len() as u64,
            max_pages: 0,
            category_inverted: PFNZERO | FILE,
            category_mask: WRITTEN | PFNZERO | FILE,
            category_anyof_mask: 0,
            return_mask: 0,
        };
        // SAFETY: the scan and the regions live until the call returns.
        let found = unsafe { ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, (&raw mut scan).cast()) };
        let found = usize::try_from(found).ok()?;
        let pages = regions[..found].iter().flat_map(|[from, to, _]| {
            let page = |address: u64| (address - start) as usize / PAGE;
            page(*from)..page(*to)
        });
        Some(pages.collect())
    }

    #[test]
    fn written_pages_are_reported_and_untouched_ones_are_not() {
        // So large that the allocator takes it from the system for this test. The system may give it out in pages of 2 MiB.
        const PAGES: usize = 16 << 10;
        let mut memory = vec![0_u8; (PAGES + 1) * PAGE];
        let offset = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[offset..][..PAGES * PAGE];
        memory[5 * PAGE] = 1;
        memory[9 * PAGE] = 1;
        assert_eq!(std::hint::black_box(memory[20 * PAGE]), 0);
        if let Some(pages) = scanned(memory) {
            assert!(pages.contains(&5) && pages.contains(&9), "{pages:?}");
            assert!(pages.iter().all(|page| *page < 1024), "{} of {PAGES} pages", pages.len());
        }
    }
}
