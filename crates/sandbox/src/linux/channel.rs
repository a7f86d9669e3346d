//! Messages from the supervisor and the command's process to the process that started them.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One message, with at most one open file. The sender lends it, and the receiver owns its copy.
pub(super) enum Message<File> {
    /// The command gave up its rights; its requests are read from this file.
    Confined(File),
    /// It could not be started: the number of the step, and why.
    Failed(i32, Errno),
    /// It ended, with this status as reported by `wait`.
    Exited(i32),
    /// It started more processes than it may, and is being ended.
    TooMany,
    /// Nothing that it started is left.
    Gone,
}

const CONFINED: i32 = 1;
const FAILED: i32 = 2;
const EXITED: i32 = 3;
const TOO_MANY: i32 = 4;
const GONE: i32 = 5;

/// Sends a message; returns whether anybody was there to receive it.
pub(super) fn send(channel: BorrowedFd<'_>, message: Message<BorrowedFd<'_>>) -> bool {
    let (words, file) = match message {
        Message::Confined(file) => ([CONFINED, 0, 0], Some(file)),
        Message::Failed(step, errno) => ([FAILED, step, errno.raw_os_error()], None),
        Message::Exited(status) => ([EXITED, status, 0], None),
        Message::TooMany => ([TOO_MANY, 0, 0], None),
        Message::Gone => ([GONE, 0, 0], None),
    };
    let mut bytes = [0_u8; 12];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if file.is_some() && !beside.push(SendAncillaryMessage::ScmRights(file.as_slice())) {
        return false;
    }
    sendmsg(channel, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL).is_ok()
}

/// The next message; none if nobody is left to send one.
pub(super) fn receive(channel: &OwnedFd) -> Option<Message<OwnedFd>> {
    let mut bytes = [0_u8; 12];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    let received = loop {
        match recvmsg(channel.as_fd(), parts, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other.ok()?,
        }
    };
    if received.bytes != bytes.len() {
        return None;
    }
    let mut words = [0_i32; 3];
    for (word, part) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = i32::from_ne_bytes(part.try_into().ok()?);
    }
    let file = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    match words {
        [CONFINED, ..] => Some(Message::Confined(file?)),
        [FAILED, step, error] => Some(Message::Failed(step, Errno::from_raw_os_error(error))),
        [EXITED, status, _] => Some(Message::Exited(status)),
        [TOO_MANY, ..] => Some(Message::TooMany),
        [GONE, ..] => Some(Message::Gone),
        _ => None,
    }
}
