//! The macro by which a program lets wharf narrow wasmtime's page scans.

/// Makes the page scans of this program those that wharf needs: define it once, next to `main`. It puts a function of wharf in the place of
/// the C library's `ioctl`, which otherwise does the same. Without it everything works, but calls of plugins with much memory take longer.
/// It does nothing on other systems than Linux.
#[macro_export]
macro_rules! narrow_page_scans {
    () => {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        const _: () = {
            #[allow(unsafe_code, reason = "a symbol of the whole program; not every program refuses it")]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn ioctl(
                fd: ::std::ffi::c_int,
                request: ::std::ffi::c_ulong,
                argument: *mut ::std::ffi::c_void,
            ) -> ::std::ffi::c_int {
                // SAFETY: the caller has promised it.
                unsafe { $crate::ioctl(fd, request, argument) }
            }
        };
    };
}
