"""The layout of the region table, in Python and in GLSL."""

import numpy as np
import pytest
from regions import make_region

from vkops import shaders
from vkops.gpu.kernels import layout
from vkops.gpu.kernels.encoding import CPU, GPU
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import CopyPlan, Output, Read, View
from vkops.plan.indexing import IndexTensor, scatter_nd


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


@pytest.mark.parametrize("tuning", [CPU, GPU], ids=["CPU", "GPU"])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_rows_that_indices_move_can_have_more_elements_than_32_bits_count(tuning, size):
    """2^16 indices write rows of 2^20 elements to 4 places: 2^36 elements in all."""
    count, row = 1 << 16, (1 << 20) + 1
    value = Read(0, View((count, row), (0, 0)))
    indices = IndexTensor(1, "i4", View.packed((count, 1)))
    region = scatter_nd(value, indices, View.packed((4, row)))
    plan = CopyPlan(size, (size, 4 * count), (Output(4 * row * size, (region,)),))
    for table in EncodedPlan(plan, tuning)._tables:
        encoded, headers, firsts = table.encoded, [], 0
        for part in table.in_one_heap:
            words = part.words(np.zeros(3, np.uint32))
            header = layout.Header(*map(int, words[: layout.HEADER_WORDS]))
            records = words[layout.HEADER_WORDS :].reshape(header.records, layout.RECORD_WORDS)
            numbers = records[:, layout.word(layout.Head, "first_item")]
            assert header.items <= layout.MAX_ITEMS + layout.MAX_RECORDS * part.kernel.workgroup
            assert not numbers[0]
            assert (numbers <= header.items).all()
            assert (np.diff(numbers.astype(np.int64)) >= 0).all()
            headers.append(header.items)
            firsts += header.records
        assert firsts == len(encoded.records)
        assert sum(headers) >= encoded.items.sum()
