"""Fuzzing: whatever comes in, the result is right or a VkopsError says why there is none.

A *target* (one module each in ``targets``) makes inputs, which are bytes, and tries them. An input is
made from a number and nothing else, so the same numbers are the same cases on every machine and
every Python. That is why this is a mutator of our own: atheris has no wheel for Python 3.10, and is
not reproduced by a number; Hypothesis takes longer to make a case than vkops to refuse it.

    python -m fuzz run pure --cases 1000000     in this folder's parent; see docs/reliability.md
"""
