"""The layout of the region table, in Python and in GLSL."""

import pytest
from regions import make_region

from vkops import shaders
from vkops.gpu.kernels import layout
from vkops.gpu.kernels.encoding import CPU
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import CopyPlan, Output


def test_the_shaders_include_the_declared_layout():
    committed = (shaders.source_dir() / "layout.glsl").read_text()
    assert committed == layout.glsl(), "write it again: python -m vkops.gpu.kernels.layout"


def test_words_of_a_record():
    assert layout.word(layout.Head, "src") == 2
    assert layout.word(layout.Segment, "source") == 11
    assert layout.word(layout.Digit, "size") + 4 * layout.MAX_DIGITS == layout.RECORD_WORDS
    table_words = layout.HEADER_WORDS + layout.MAX_RECORDS * layout.RECORD_WORDS
    assert 0 <= layout.TABLE_BYTES // 4 - table_words < layout.RECORD_WORDS


def test_every_vector_has_four_words_at_most():
    assert max(len(vector._fields) for vector in sum(layout.RECORD, ())) == 4
    assert len(layout.Header._fields) == 4  # the host writes it as a whole


@pytest.mark.parametrize(("count", "dispatches"), [(3, 1), (4, 1), (5, 2), (8, 2)])
def test_a_table_holds_as_many_records_as_it_can(monkeypatch, count, dispatches):
    monkeypatch.setattr(layout, "MAX_RECORDS", 4)
    regions = [make_region((3,), 4 * i, (1,), (0, 3 * (count - 1 - i), (1,))) for i in range(count)]
    plan = CopyPlan(4, (12 * count,), (Output(16 * count, tuple(regions)),))
    (table,) = EncodedPlan(plan, CPU)._tables
    assert len(table.in_one_heap) == dispatches
