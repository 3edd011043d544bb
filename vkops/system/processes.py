"""Processes: programs with limits, the supervised child, and messages from children."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_MEMORY_CHECK_S = 0.1
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGABRT", "SIGILL")
_KILL = 9  # Windows' Python has no signal.SIGKILL
_FIRST_CRASH = 0xC0000000  # the lowest status of processes that crashed on Windows


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if model := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            return model[1]
    return platform.processor() or platform.machine()


def can_start_threads() -> bool:
    """Whether the system lets this process have one more thread."""
    thread = Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


# -- exit statuses ---------------------------------------------------------------------------------


def describe(status: int) -> str:
    """Describe an exit status, which is minus the number of a signal if one ended the process.

    >>> describe(2), describe(-11), describe(-40), describe(0xC0000005)
    ('exit status 2', 'killed by SIGSEGV', 'killed by signal 40', 'exit status 0xC0000005')
    """
    if status < 0:
        return f"killed by {_signal_name(-status)}"
    return f"exit {crash(status) or f'status {status}'}"


def crash(status: int) -> str:
    """Return the signal or status of a process that crashed; "" if it ended in another way.

    >>> crash(-11), crash(0xC0000005), crash(-15), crash(1)
    ('SIGSEGV', 'status 0xC0000005', '', '')
    """
    if status >= _FIRST_CRASH:
        return f"status 0x{status:X}"
    name = _signal_name(-status)
    return name if status < 0 and name in _CRASHES else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


# -- programs with limits --------------------------------------------------------------------------


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    nbytes: int,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    variables: Mapping[str, str] = {},
) -> tuple[int, bytes]:
    """Run a program, and return its exit status and its output, standard error included.

    ``variables`` are added to its environment. If it takes longer than ``seconds``, it is ended
    together with the programs that it has started. If it needs more memory than ``nbytes``, its
    allocations fail on Linux, which can limit memory; on other systems it is ended as by SIGKILL.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it has not ended in time; ``stdout`` is its output until then.
    """
    if sys.is_finalizing():  # no thread could watch it
        raise OSError(None, "Python is exiting")
    with subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        ended = Event()
        if not _limit_memory(process.pid, nbytes):
            Thread(target=_watch_memory, args=(process.pid, nbytes, ended), daemon=True).start()
        try:
            output, _ = process.communicate(stdin, timeout=seconds)
        except BaseException as error:
            # Not the process alone: if it is a wrapper script, its child would keep the pipe open.
            _end_tree(process.pid)
            if os.name == "nt" and isinstance(error, subprocess.TimeoutExpired):
                error.stdout, _ = process.communicate()  # Windows' Python does not add it
            raise
        finally:
            exceeded = ended.is_set()
            ended.set()
    return -_KILL if exceeded else process.returncode, output


def _limit_memory(pid: int, nbytes: int) -> bool:
    """Limit the memory of a process by the system; return whether the system can do that."""
    try:
        import resource
    except ImportError:
        return False
    if sys.platform == "win32" or not hasattr(resource, "prlimit"):
        return False
    with suppress(OSError):  # it may have ended already
        resource.prlimit(pid, resource.RLIMIT_DATA, (nbytes, nbytes))
    return True


def _watch_memory(pid: int, nbytes: int, ended: Event) -> None:
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while not ended.wait(_MEMORY_CHECK_S):
            tree = [process, *process.children(recursive=True)]
            if max(each.memory_info().rss for each in tree) > nbytes:
                ended.set()
                _end_tree(pid)
                return


def _end_tree(pid: int) -> None:
    """End a process that was started in its own session, and all processes that it started."""
    if sys.platform != "win32" and hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        return
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                each.kill()


# -- the supervised child --------------------------------------------------------------------------


class End(NamedTuple):
    """The exit status of a child, as ``describe`` takes it.

    If it was ``hung``, the status is that of the interrupt that it did not answer.
    """

    status: int
    hung: bool = False


def supervise(work: Callable[[], int], program: str, patience: int) -> End:
    """Do the work in a child process, and pass on signals that should end it.

    The child is forked. On systems without forks, it is a new process that runs the Python text
    ``program`` with the arguments of this one. It is killed if it has not ended ``patience``
    seconds after a signal.
    """
    if hasattr(os, "fork"):
        return _forked(work, patience)
    with subprocess.Popen([sys.executable, "-c", program, *sys.argv[1:]]) as child:
        try:
            return End(child.wait())
        except KeyboardInterrupt:  # the console has sent it to the child as well
            try:
                return End(child.wait(patience))
            except subprocess.TimeoutExpired:
                child.kill()
                return End(-signal.SIGINT, hung=True)


def _forked(work: Callable[[], int], patience: int) -> End:
    if sys.platform == "win32":  # for type checkers
        raise OSError("Windows has no forks")
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    hung = signal.SIGVTALRM  # it ends a process, and nobody else sends it: so it means ``hung``
    parent = os.getpid()
    awaited = (*ending, signal.SIGCHLD, signal.SIGALRM)
    # Block the signals, so that one that comes before ``sigwait`` waits for it. SIGCHLD needs a
    # handler: a signal that is ignored, as it is by default, is discarded even if it is blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if not child:
        if sys.platform == "linux":  # let the kernel end the child if the parent is killed
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have ended before the call of prctl, which then has no effect.
        if os.getppid() != parent:
            os._exit(1)
        # SystemExit runs the ``finally`` blocks of the work, as KeyboardInterrupt does for SIGINT.
        for each in ending[1:]:
            signal.signal(each, lambda received, _: sys.exit(128 + received))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            sys.exit(work())
        finally:  # while the interpreter exits, a handler's exception would only be printed
            for each in ending:
                signal.signal(each, signal.SIG_DFL)
    received: list[int] = []
    while True:
        number = signal.sigwait(awaited)
        if number in ending:
            received.append(number)
            signal.alarm(patience)
            if number != signal.SIGINT:  # the terminal sends SIGINT to the child as well
                os.kill(child, number)
        elif number == signal.SIGALRM:
            os.kill(child, hung)
        else:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                status = os.waitstatus_to_exitcode(status)
                return End(-received[0], hung=True) if status == -hung else End(status)


# -- messages from children ------------------------------------------------------------------------


@contextmanager
def named_pipe(path: Path) -> Iterator[list[bytes]]:
    """Make a named pipe; yields a list of the data that is read from it.

    Raises:
        OSError: the system has no pipes with paths, or it cannot be made.
    """
    if not hasattr(os, "mkfifo"):
        raise OSError("this system has no named pipes that programs can write to as to files")
    os.mkfifo(path)
    received: list[bytes] = []
    # Opening one end waits until the other one is open, so first open both at once.
    end = os.open(path, os.O_RDWR)
    writer = os.open(path, os.O_WRONLY)
    reader = os.open(path, os.O_RDONLY)
    os.close(end)

    def read() -> None:
        while data := os.read(reader, 1 << 20):
            received.append(data)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        # The thread ends when all writers have closed the pipe. Do not wait long: a program in the
        # background may keep it open.
        os.close(writer)
        thread.join(timeout=5.0)
