//! What a command may ask of the kernel: filters for seccomp.

use super::calls;
use crate::SandboxError;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// `AUDIT_ARCH_*`: the kernel's name for this architecture in filters.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Four programs, which are installed in this order. If two refuse, the later one's error counts.
pub(super) struct Filters {
    /// Lets through what is listed. The rest does not exist (`ENOSYS`), so that libraries fall back to older calls.
    pub(super) known: BpfProgram,
    /// Has some of the permitted calls checked outside.
    pub(super) asked: Vec<libc::sock_filter>,
    /// Answers some calls as unsupported: `EOPNOTSUPP`.
    pub(super) unsupported: BpfProgram,
    /// Refuses calls that are known to be harmful, or harmful with certain arguments: `EPERM`.
    pub(super) refused: BpfProgram,
}

impl Filters {
    /// Builds the filters with or without the network.
    ///
    /// # Errors
    /// When they cannot be compiled.
    pub(super) fn of(network: bool) -> Result<Self, SandboxError> {
        let listed = calls::KNOWN.iter().chain(calls::ASKED).map(|call| (*call, vec![]));
        let mut known: Rules = listed.collect();
        let mut refused: Rules = calls::REFUSED.iter().map(|call| (*call, vec![])).collect();
        for call in calls::NETWORK {
            if network { &mut known } else { &mut refused }.insert(*call, vec![]);
        }
        refused.extend(arguments(network).map_err(unavailable)?);
        Ok(Self {
            known: program(known, libc::ENOSYS, SeccompAction::Allow)?,
            asked: asking(calls::ASKED),
            unsupported: program(
                calls::UNSUPPORTED.iter().map(|call| (*call, vec![])).collect(),
                0,
                SeccompAction::Errno(libc::EOPNOTSUPP as u32),
            )?,
            refused: program(refused, 0, SeccompAction::Errno(libc::EPERM as u32))?,
        })
    }
}

/// The set-user-id and set-group-id bits of a file.
const SET_ID: u64 = 0o6000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `unlisted` is the error of calls that are not in the rules; 0 lets them through.
fn program(rules: Rules, unlisted: i32, listed: SeccompAction) -> Result<BpfProgram, SandboxError> {
    let unlisted = match unlisted {
        0 => SeccompAction::Allow,
        error => SeccompAction::Errno(error as u32),
    };
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(unavailable)?;
    let filter = SeccompFilter::new(rules, unlisted, listed, architecture).map_err(unavailable)?;
    BpfProgram::try_from(filter).map_err(unavailable)
}

/// Calls that are refused only with some arguments.
fn arguments(network: bool) -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let mut rules = vec![
        // An untraced process is not counted; a new namespace has capabilities of its own.
        (libc::SYS_clone, any_bit(0, calls::CLONE)?),
        // Another process of the same user must not be slowed, bound or limited to death.
        (libc::SYS_prlimit64, vec![rule([other_than(0, 0)?, other_than(2, 0)?])?]),
        (libc::SYS_setpriority, vec![rule([other_than(0, 0)?])?, rule([other_than(1, 0)?])?]),
        (libc::SYS_ioprio_set, vec![rule([other_than(0, 1)?])?, rule([other_than(1, 0)?])?]),
        // A socket that is connected from birth stays so; a datagram socket could send elsewhere.
        (
            libc::SYS_socketpair,
            vec![
                rule([other_than(0, libc::AF_UNIX as u64)?])?,
                rule([masked(1, 0xF, libc::SOCK_DGRAM as u64)?])?,
                rule([masked(1, 0xF, libc::SOCK_RAW as u64)?])?,
            ],
        ),
        (libc::SYS_ioctl, vec![none_of(1, calls::CONTROLS)?]),
        (libc::SYS_fcntl, any_of(1, calls::FILE_CONTROLS)?),
        // A file must not be created with another's rights: set-user-id and set-group-id.
        (libc::SYS_openat, any_bit(3, SET_ID)?),
        (libc::SYS_mknodat, any_bit(2, SET_ID)?),
    ];
    for call in calls::ABOUT_A_PROCESS {
        rules.push((*call, vec![rule([other_than(0, 0)?])?]));
    }
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_open, any_bit(2, SET_ID)?),
        (libc::SYS_creat, any_bit(1, SET_ID)?),
        (libc::SYS_mknod, any_bit(1, SET_ID)?),
    ]);
    if network {
        let internet =
            [other_than(0, libc::AF_INET as u64)?, other_than(0, libc::AF_INET6 as u64)?];
        rules.push((libc::SYS_socket, vec![rule(internet)?]));
    } else {
        rules.push((libc::SYS_sendto, vec![rule([other_than(4, 0)?])?]));
    }
    Ok(rules)
}

type Made<T> = Result<T, seccompiler::BackendError>;

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Made<SeccompRule> {
    SeccompRule::new(conditions.into())
}

fn other_than(argument: u8, value: u64) -> Made<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, value)
}

/// One rule for each bit: any of them is enough.
fn any_bit(argument: u8, bits: u64) -> Made<Vec<SeccompRule>> {
    let each = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
    each.map(|bit| rule([masked(argument, bit, bit)?])).collect()
}

/// Matches an argument of 32 bits that has none of these values; the kernel ignores its upper bits.
fn none_of(argument: u8, values: &[libc::Ioctl]) -> Made<SeccompRule> {
    let other_than = |value: &libc::Ioctl| {
        let value = u64::from(*value as u32);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
    };
    SeccompRule::new(values.iter().map(other_than).collect::<Made<_>>()?)
}

/// Matches any of these values, with one rule for each.
fn any_of(argument: u8, values: &[i32]) -> Made<Vec<SeccompRule>> {
    let each = values.iter().map(|value| u64::from(*value as u32));
    each.map(|value| rule([masked(argument, u32::MAX.into(), value)?])).collect()
}

fn masked(argument: u8, mask: u64, value: u64) -> Made<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
}

/// A program that has these calls checked outside and lets through the rest. The crate that compiles the others does
/// not support that.
fn asking(calls: &[i64]) -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // `struct seccomp_data`: the number of the call at 0, the architecture at 4.
    let mut program = vec![
        step(LOAD, 0, 0, 4),
        step(EQUAL, 1, 0, ARCHITECTURE),
        step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, 0, 0, 0),
    ];
    for call in calls {
        program.push(step(EQUAL, 0, 1, *call as u32));
        program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

fn unavailable(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Unavailable(format!("the system call filters cannot be compiled: {error}"))
}
