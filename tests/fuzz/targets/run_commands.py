"""Command lines that run something on a device."""

import adapters

from fuzz.targets.commands import WORDS
from fuzz.targets.commands import Target as Commands


class Target(Commands):
    commands = (["run"], ["run"], ["run"], ["devices"], ["shader", "run", "scale.comp"])
    words = (
        *WORDS, "split.json", "join.json", "transpose.json", "shader.json", "initial_values.json",
        "-i", "-r", "-t", "-I", "-w", "-v", "0", "1", "2", "-1", "3", "0.5", "x", "10", "-a", "nobody",
        "--expect", "gpu", "--print_commands", "-p", "--input", "data/thirds.npy", "--random", "--seed",
        "--output", "y.npz", "--output_path", "out", "-s", "-S", "--queue_type", "direct", "--groups",
        "--push", "--post_dispatch_barriers", "none", "-q", "-x", "-e", "--fill",
    )  # fmt: skip

    def __init__(self):
        super().__init__()
        self.adapter = adapters.wanted()[0].name

    def arguments(self, choices):
        result = super().arguments(choices)
        is_run = result[0] == "run"
        return [*result, "-a", self.adapter] if is_run and not choices.one_in(8) else result
