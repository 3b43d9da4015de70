//! The system calls that a build of an existing server may not make, which Landlock does not decide about.

use anyhow::Result;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls about other processes, objects of the kernel and the system, which no build needs.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_setsid,
    libc::SYS_setpriority,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Calls that may only be about the process itself, which is 0.
const OF_ITSELF: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls that change the owner, the mode, the times or the attributes of a file. They need no right to write the file, so they would reach
/// every file of the person. In the step that makes the component they do nothing and succeed: programs that copy files expect that.
const UNDONE: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The families of sockets with which packages are fetched: the last is that of the interfaces of this machine, which resolving a name needs.
const FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
/// The bits of the type of a socket that are not flags.
const TYPE_BITS: u64 = 0xf;

/// Filters the calls of this thread and of what it starts. `has_network`: whether it installs packages. `group`: the process group of the build.
pub fn apply(has_network: bool, group: i32) -> Result<()> {
    let mut rules: Vec<(libc::c_long, Vec<SeccompRule>)> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    for call in OF_ITSELF {
        rules.push((*call, vec![all([is(0, Op::Ne, 0)?])?]));
    }
    // A process that left the group would outlive the step.
    rules.push((libc::SYS_setpgid, vec![all([is(1, Op::Ne, u64::try_from(group)?)?])?]));
    let sockets = match has_network {
        false => Vec::new(),
        true => {
            let others = FAMILIES.map(|family| is(0, Op::Ne, family as u64)).into_iter().collect::<Result<Vec<_>>>()?;
            let raw = |family: libc::c_int| {
                all([is(0, Op::Eq, family as u64)?, is(1, Op::MaskedEq(TYPE_BITS), libc::SOCK_RAW as u64)?])
            };
            vec![SeccompRule::new(others)?, raw(libc::AF_INET)?, raw(libc::AF_INET6)?]
        }
    };
    rules.push((libc::SYS_socket, sockets));
    filter(rules, libc::EACCES)?;
    if !has_network {
        filter(UNDONE.iter().map(|call| (*call, Vec::new())).collect(), 0)?;
    }
    Ok(())
}

/// Lets these calls return this error, if one of their rules fits or they have no rules.
fn filter(rules: Vec<(libc::c_long, Vec<SeccompRule>)>, error: i32) -> Result<()> {
    let refuse = SeccompAction::Errno(u32::try_from(error)?);
    let rules = rules.into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?;
    Ok(seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?)
}

fn is(argument: u8, op: Op, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?)
}

fn all<const COUNT: usize>(conditions: [SeccompCondition; COUNT]) -> Result<SeccompRule> {
    Ok(SeccompRule::new(conditions.into())?)
}
