"""The workloads as data."""

from __future__ import annotations

import numpy as np
import pytest

from tensorsplit import SplitError
from tensorsplit.bench.workloads import WORKLOADS, Workload, choose_workloads


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))
def test_the_parts_make_up_the_axis(workload: Workload) -> None:
    assert sum(workload.sizes) == workload.shape[workload.axis]
    stops = [index[workload.axis].stop for index in workload.indices]
    assert stops[-1] == workload.shape[workload.axis]
    assert [index[workload.axis].start for index in workload.indices[1:]] == stops[:-1]


def test_the_splits_that_speed_is_promised_for_are_among_them() -> None:
    splits = {(each.shape, each.dtype, each.axis, each.sizes) for each in WORKLOADS.values()}
    assert ((8, 512, 2304), "float32", 2, (768, 768, 768)) in splits
    assert ((2160, 3840, 3), "uint8", 2, (1, 1, 1)) in splits
    assert ((65536, 64), "float32", 1, (1,) * 64) in splits
    assert len(WORKLOADS["ragged"].sizes) == 96
    assert len(set(WORKLOADS["ragged"].sizes)) > 30
    assert {"transposed", "sliced", "reversed"} < {each.layout for each in WORKLOADS.values()}
    kinds = {np.dtype(each.dtype).kind for each in WORKLOADS.values()}
    assert kinds == set("fuicO")


def test_patterns_choose_in_the_order_of_the_table() -> None:
    assert [each.name for each in choose_workloads(("tiny", "rgb*"))] == ["rgb", "rgba", "tiny"]
    assert choose_workloads(()) == list(WORKLOADS.values())


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SplitError, match=r"\[TS703\].*'rbg'.*attention"):
        choose_workloads(("rbg",))
