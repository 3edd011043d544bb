"""Random operators on two devices of different drivers: the same bytes on both, and NumPy's.

A program, since a process's drivers are settled when it starts: NAME NAME FIRST COUNT.
"""

import json
import sys
from random import Random

import operator_table
from operator_cases import Runner

import vkops


def run(names, numbers):
    """Run the operators of those numbers on the adapters of those names."""
    with vkops.Device(names[0]) as one, vkops.Device(names[1]) as other:
        runner = Runner(one, other)
        for number in numbers:
            runner.run(operator_table.random_case(Random(number)))
        runner.compare()
        return {"adapters": [one.name, other.name], "operators": runner.count}


if __name__ == "__main__":
    first, count = map(int, sys.argv[3:])
    print(json.dumps(run(sys.argv[1:3], range(first, first + count))))
