"""File descriptors that one process gives to another process of the same user."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import struct
import sys
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from tempfile import mkdtemp
from time import monotonic

IS_POSSIBLE = sys.platform == "linux"
"""Whether the system passes descriptors on, and says who asks; elsewhere nothing calls this module.
"""

TOKEN_BYTES = 32

_PATIENCE_S = 5.0
"""Seconds to wait for a message of the other side once it is connected."""

_LOOK_S = 0.2
"""Seconds between the checks whether the offer is still wanted."""

_folders: dict[str, int] = {}  # with sockets, and the processes that made them


@atexit.register
def _remove_folders() -> None:
    for folder, process in list(_folders.items()):
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


def offer(
    descriptor: int, token: bytes, proof: bytes, is_wanted: Callable[[], bool], seconds: float
) -> str:
    """Give a descriptor to the first process that knows the token; return the path of a socket.

    A thread waits for that process, at most for ``seconds`` and as long as ``is_wanted`` returns
    true; then it closes the descriptor. The other side gets ``proof``, by which it knows that this
    is the right process. Only processes of the same user can connect: socket and folder belong to
    that user alone, and the kernel says which user is at the other end.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    folder = mkdtemp(prefix="vkops-")  # which only this user may enter
    _folders[folder] = os.getpid()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        path = os.path.join(folder, "socket")
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        arguments = listener, folder, descriptor, token, proof, is_wanted, monotonic() + seconds
        start_new_thread(_serve, arguments)
    except (OSError, RuntimeError) as error:
        _end(listener, folder)
        raise OSError(f"{folder}: {error}") from error
    return path


def _serve(
    listener: socket.socket,
    folder: str,
    descriptor: int,
    token: bytes,
    proof: bytes,
    is_wanted: Callable[[], bool],
    until: float,
) -> None:
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        listener.settimeout(_LOOK_S)
        while is_wanted() and monotonic() < until:
            with suppress(OSError):  # nobody is there, or has ended meanwhile
                other, _ = listener.accept()
                with other:
                    if _is_own(other) and compare_digest(other.recv(TOKEN_BYTES), token):
                        socket.send_fds(other, [proof], [descriptor])
                        return
    finally:
        os.close(descriptor)
        _end(listener, folder)


def _end(listener: socket.socket, folder: str) -> None:
    listener.close()
    shutil.rmtree(folder, ignore_errors=True)
    _folders.pop(folder, None)


def fetch(path: str, token: bytes, proof: bytes) -> int:
    """Return the descriptor that a process of the same user offers, if it has the proof.

    Raises:
        OSError: there is no such offer any more, or it has another proof.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.settimeout(_PATIENCE_S)
        other.connect(path)
        if not _is_own(other):
            raise OSError("another user offers it")
        other.send(token)
        said, descriptors, _, _ = socket.recv_fds(
            other, len(proof), 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        )
    if len(descriptors) == 1 and compare_digest(said, proof):
        return descriptors[0]
    for each in descriptors:
        os.close(each)
    raise OSError("the other process offers something else, or nothing")


def _is_own(other: socket.socket) -> bool:
    """Whether a process of the same user is at the other end; it must answer in time."""
    if sys.platform != "linux":
        raise NotImplementedError
    other.settimeout(_PATIENCE_S)
    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user: int = struct.unpack("3i", credentials)[1]
    return user == os.getuid()
