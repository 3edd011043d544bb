"""The submissions in a RenderDoc capture, read with RenderDoc's own program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from vkops.errors import DeviceError
from vkops.system.vulkan import how_to_install

_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A vkQueueSubmit: its time by the monotonic clock in ns, and its dispatches and copies."""

    time: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.commands) or "no dispatch"


def submissions(path: Path) -> list[Submission]:
    """Read the submissions of a capture in order."""
    with TemporaryDirectory() as folder:
        xml = Path(folder, "capture.xml")
        command = ["renderdoccmd", "convert", "-f", str(path), "-c", "xml", "-o", str(xml)]
        try:
            environment = {**os.environ, "RENDERDOC_TEMP": folder}
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                env=environment,
            )
            chunks = ElementTree.parse(xml).iterfind("chunks/chunk")
        except FileNotFoundError as error:
            raise DeviceError(
                "renderdoccmd, which reads captures, is not on PATH "
                f"({how_to_install('renderdoccmd')})"
            ) from error
        except subprocess.CalledProcessError as error:
            reason = " ".join(error.stderr.split())
            raise DeviceError(f"{path}: renderdoccmd cannot read it: {reason}") from error
        except (OSError, subprocess.TimeoutExpired, ElementTree.ParseError) as error:
            raise DeviceError(f"{path}: renderdoccmd cannot read it: {error}") from error
    return list(_submissions(chunks))


def _submissions(chunks: Iterable[ElementTree.Element]) -> Iterator[Submission]:
    recorded: dict[str, list[str]] = {}
    for chunk in chunks:
        name = chunk.get("name")
        commands = recorded.get(_text(chunk, "ResourceId[@name='commandBuffer']"), [])
        if name == "vkBeginCommandBuffer":
            recorded[_text(chunk, "ResourceId[@name='CommandBuffer']")] = []
        elif name == "vkCmdDispatch":
            groups = tuple(int(_text(chunk, f"uint[@name='{axis}']")) for axis in "xyz")
            commands.append(f"vkCmdDispatch{groups}")
        elif name == "vkCmdCopyBuffer":
            regions = _text(chunk, "uint[@name='regionCount']")
            commands.append(f"vkCmdCopyBuffer ({regions} regions)")
        elif name == "vkQueueSubmit":
            buffers = chunk.iterfind(".//array[@name='pCommandBuffers']/ResourceId")
            submitted = [command for b in buffers for command in recorded.get(b.text or "", [])]
            yield Submission(int(chunk.get("timestamp", 0)), tuple(submitted))


def _text(chunk: ElementTree.Element, path: str) -> str:
    return chunk.findtext(path) or ""
