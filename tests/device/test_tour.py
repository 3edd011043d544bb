"""The programs in examples/."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT, SLANG, outcome

from vkops.system import pictures


def run(adapter, name, *arguments):
    """What an example prints; it ends well."""
    variables = {"VKOPS_EXPECT": adapter.name, "VKOPS_ADAPTER": adapter.name}
    status, printed, errors = outcome(f"examples/{name}", *arguments, cwd=ROOT, **variables)
    assert (status, errors) == (0, ""), printed
    return printed


def test_the_tour_checks_everything_and_says_where(adapter):
    summary = run(adapter, "tour.py").partition("Summary\n")[2]
    assert re.search(rf"where +{re.escape(adapter.name)}, Vulkan 1\.", summary)
    assert re.search(r"results +8 of 8 movements", summary)
    models = len(list((ROOT / "examples").glob("*.json")))
    assert re.search(rf"models +{models} of {models} example models ran", summary)


def test_the_sample_models_of_pydirectml(adapter):
    lines = run(adapter, "sample_models.py").splitlines()
    assert [line.split()[0] for line in lines] == ["candy", "squeezenet", "superres"]
    assert all(line.endswith("equal to the result of NumPy") for line in lines)


@pytest.mark.parametrize(
    "program",
    [
        "blur.py",
        "blur.py OUT/in.png OUT/blurred.png",
        pytest.param("edges.py", marks=SLANG),
        pytest.param("edges.py OUT/in.png OUT/edges.jpg", marks=SLANG),
        "game_of_life.py 20",
        "mandelbrot.py OUT/mandelbrot.png 60",
        "matrix_product.py 70",
        "n_body.py 20",
        "radix_sort.py 1",
        "radix_sort.py 5001",
    ],
)
def test_a_program_with_shaders_has_the_results_of_numpy(adapter, program, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    (tmp_path / "in.png").write_bytes(pictures.encoded(pixels, ".png"))
    name, *arguments = program.replace("OUT", str(tmp_path)).split()
    assert adapter.name in run(adapter, name, *arguments).splitlines()[-1]
    for file in arguments:
        if file.startswith(str(tmp_path)):
            assert len(pictures.read(io.BytesIO(Path(file).read_bytes()))) >= 40
