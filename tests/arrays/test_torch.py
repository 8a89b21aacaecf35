"""Tensors of PyTorch."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from packaging.version import Version

import tensorsplit as ts
from tests.refusals import refused_while_tracing

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # other tests run at the same time

PLAN = ts.plan("onnx.Split-18", ("N",), num_outputs=3)
Split = Callable[[Any], list[Any]]
CHANGING: tuple[Split, ...] = (
    lambda x: ts.split(x, num_outputs=3),
    lambda x: ts.split(x, [2, x.shape[0] - 2]),
    lambda x: ts.variadic_split(x, 0, [-1, 2]),
    PLAN,
)


def refused(code: str, call: Callable[[], object]) -> str:
    with pytest.raises(ts.SplitError) as caught:
        call()
    assert caught.value.code == code
    return str(caught.value)


def compiled(split: Split, **options: Any) -> tuple[Split, list[Any]]:
    """The function compiled, and the graphs that it was compiled to."""
    graphs = []

    def keep(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    return torch.compile(split, fullgraph=True, backend=keep, **options), graphs


def called(graph: Any) -> set[str]:
    """The functions that a graph calls, but for arithmetic and indices."""
    nodes = (node for node in graph.graph.nodes if node.op == "call_function")
    modules = ("_operator", "operator", "builtins")
    return {each.target.__name__ for each in nodes if each.target.__module__ not in modules}


class TestViews:
    def test_they_share_memory_and_gradients_flow(self) -> None:
        x = torch.nn.Parameter(torch.arange(24.0).reshape(4, 6))
        parts = ts.split(x, [2, 4], axis=1)
        assert [type(part) for part in parts] == [torch.Tensor] * 2
        assert parts[1].data_ptr() == x.data_ptr() + 2 * x.element_size()
        (parts[0].sum() * 3).backward()
        assert x.grad.equal(torch.tensor([[3.0, 3, 0, 0, 0, 0]] * 4))

    def test_a_dropped_axis(self) -> None:
        parts = ts.split_to_sequence(torch.arange(6).reshape(3, 2), keepdims=0)
        assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]

    def test_vmap_and_forward_derivatives(self) -> None:
        x = torch.arange(12.0).reshape(3, 4)
        double = torch.vmap(lambda row: ts.split(row, [1, 3])[1] * 2)
        assert double(x).equal(x[:, 1:] * 2)
        _, tangent = torch.func.jvp(
            lambda t: ts.split(t, [1, 3], axis=1, copy=True)[0], (x,), (torch.ones_like(x),)
        )
        assert tangent.equal(torch.ones(3, 1))

    @pytest.mark.parametrize("device", ["cpu", "meta"])
    def test_meta_tensors_whatever_the_default_device(self, device: str) -> None:
        with torch.device(device):
            for copy in (False, True):
                parts = ts.split(torch.empty(7, 2, device="meta"), num_outputs=3, copy=copy)
                assert [(tuple(p.shape), p.device.type) for p in parts] == [
                    ((3, 2), "meta"),
                    ((3, 2), "meta"),
                    ((1, 2), "meta"),
                ]
            out = list(torch.empty(7, 2, device="meta").split(3))
            assert ts.split(torch.empty(7, 2, device="meta"), num_outputs=3, out=out)[2] is out[2]
            x = torch.randn(4, device="cpu")
            pooled = ts.split(x, num_outputs=2, out=ts.BufferPool(1 << 20))
            assert torch.cat(pooled).equal(x)


class TestSubclasses:
    def test_one_that_logs_sees_what_is_done(self) -> None:
        class Logged(torch.Tensor):  # type: ignore[misc, name-defined]
            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                seen.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs or {})

        seen: list[str] = []
        x = torch.randn(6, 4).as_subclass(Logged)
        plan = ts.plan("onnx.Split-18", (6, 4), num_outputs=3)
        for _ in range(2):
            for parts in (ts.split(x, [2, 4]), ts.split(x, [2, 4], copy=True), plan(x)):
                assert {type(part) for part in parts} == {Logged}
        assert seen.count("split_with_sizes") == 4
        assert seen.count("split_with_sizes_copy") == 2
        out = [torch.zeros(2, 4).as_subclass(Logged), torch.zeros(4, 4)]
        assert ts.split(x, [2, 4], out=out)[0] is out[0]
        assert torch.cat(out).equal(x)
        refused("TS405", lambda: ts.split(x, [2, 4], out=[x[:2], x[2:]]))
        refused("TS403", lambda: ts.split(x, [2, 4], out=ts.BufferPool(0)))

    def test_fake_tensors(self) -> None:
        fake = pytest.importorskip("torch._subclasses.fake_tensor")
        mode = fake.FakeTensorMode()
        x = mode.from_tensor(torch.randn(6, 4))
        with mode:
            buffers = [torch.empty(2, 4) for _ in range(3)]
            inside = ts.split(torch.empty(6, 4), num_outputs=3, out=buffers)
        for parts in (inside, ts.split(x, num_outputs=3), ts.split(x, num_outputs=3, copy=True)):
            assert [(type(part), tuple(part.shape)) for part in parts] == [
                (fake.FakeTensor, (2, 4))
            ] * 3

    def test_a_row_of_an_expanded_tensor_is_joined_as_it_is(self) -> None:
        row = torch.randn(1, 3).expand(4, 3)[:1]
        assert row.stride() == (0, 1)
        assert ts.join([row], axis=0, copy=False).data_ptr() == row.data_ptr()
        refused("TS314", lambda: ts.join([row, row], axis=0, copy=False))

    def test_a_buffer_that_is_one_of_the_fake_parts(self) -> None:
        fake = pytest.importorskip("torch._subclasses.fake_tensor")
        with fake.FakeTensorMode():
            parts = [torch.empty(2), torch.empty(2)]
            plan = ts.plan("onnx.Split-18", (4,), [2, 2])
            refused("TS402", lambda: plan.join(parts, out=parts[0]))
            whole = torch.empty(4)
            assert plan.join(parts, out=whole) is whole
            pair = ts.plan("onnx.Split-18", (4,), [4, 0])
            refused("TS405", lambda: pair.join([whole, torch.empty(0)], out=whole))

    def test_distributed_ones(self) -> None:
        distributed = pytest.importorskip("torch.distributed")
        if not distributed.is_available():
            pytest.skip("torch without distributed tensors")
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard, distribute_tensor

        store = distributed.HashStore()
        distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
        try:
            whole = torch.randn(6, 4)
            x = distribute_tensor(whole, init_device_mesh("cpu", (1,)), [Shard(0)])
            out = [torch.zeros_like(part) for part in x.split([2, 4])]
            for options in ({}, {"copy": True}, {"out": out}):
                parts = ts.split(x, [2, 4], **options)
                assert {type(part) for part in parts} == {DTensor}
                assert torch.cat([part.full_tensor() for part in parts]).equal(whole)
        finally:
            distributed.destroy_process_group()


class TestCalls:
    def test_equal_ones_are_resolved_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if ts.native.kernel is None:
            pytest.skip("calls are remembered by the kernel")
        eager, resolved = importlib.import_module("tensorsplit.arrays.eager"), []
        bind_values = eager.bind_values

        def counted(record: Any, *arguments: Any) -> Any:
            resolved.append(record)
            return bind_values(record, *arguments)

        monkeypatch.setattr(eager, "bind_values", counted)
        for x in (
            torch.ones(77, 3),
            torch.nn.Parameter(torch.ones(77, 3)),
            torch.ones(77, 3).t().t(),
        ):
            assert [len(part) for part in ts.split(x, [70, 7])] == [70, 7]
        assert len(resolved) == 1
        ts.split(torch.ones(77, 3, dtype=torch.float64), [70, 7])
        ts.split(torch.ones(77, 3), (60, 17))
        assert len(resolved) == 3
        refused("TS204", lambda: ts.split(torch.ones(77, 3).to_sparse(), [70, 7]))
        refused("TS302", lambda: ts.split(torch.ones(78, 3), [70, 7]))


def poisoned(like: Any, dtype: Any) -> Any:
    """A tensor of the bytes of another one, which holds something else."""
    return (like ^ 255).view(dtype)


class TestCopies:
    @pytest.mark.parametrize("size", [64, 1 << 17])
    def test_every_element_type(self, size: int) -> None:
        data = torch.randint(0, 2, (2, size), dtype=torch.uint8)
        wanted = [data[:, :16], data[:, 16:]]
        dtypes = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
        for dtype in (each for each in dtypes if not str(each).startswith(("torch.q", "torch.uq"))):
            x, first = data.view(dtype), 16 // dtype.itemsize
            lengths = [first, x.shape[1] - first]
            out = [poisoned(part, dtype) for part in wanted]
            for options in ({}, {"copy": True}, {"out": out}, {"out": ts.BufferPool(1 << 24)}):
                for _ in range(2):  # the second time, the call is remembered
                    parts = ts.variadic_split(x, 1, lengths, **options)
                    assert [part.dtype for part in parts] == [dtype] * 2
                    for part, expected in zip(parts, wanted, strict=True):
                        assert part.view(torch.uint8).equal(expected)
            for into in ({}, {"out": poisoned(data, dtype)}, {"out": ts.BufferPool(1 << 24)}):
                whole = ts.join(parts[::-1], axis=1, **into)  # not the order in which they lie
                assert whole.dtype == dtype
                assert whole.view(torch.uint8).equal(torch.cat(wanted[::-1], 1))

    def test_types_of_the_same_size_are_not_mixed_up(self) -> None:
        x = torch.arange(8, dtype=torch.int8)
        for dtype in (torch.uint8, torch.bool, torch.int4, torch.int7, torch.float8_e5m2):
            out = [torch.zeros(4, dtype=torch.int8).view(dtype) for _ in range(2)]
            for _ in range(2):
                refused("TS403", lambda: ts.variadic_split(x, 0, [4, 4], out=out))  # noqa: B023
                refused("TS403", lambda: ts.variadic_split(out[0], 0, [2, 2], out=[x[:2], x[2:4]]))  # noqa: B023

    def test_a_plan_that_knows_a_tensor_refuses_others(self) -> None:
        plan = ts.plan("onnx.Split-18", (4, 4), [1, 3])
        x = torch.randn(4, 4)
        for _ in range(2):
            assert plan(x)[1].equal(x[1:])
        assert plan(x.double())[1].equal(x[1:].double())
        refused("TS206", lambda: plan(torch.randn(4, 5)))
        refused("TS204", lambda: plan(x.to_sparse()))
        refused("TS204", lambda: plan(torch.nested.nested_tensor([x])))
        refused("TS201", lambda: plan(x.to(torch.float8_e5m2)))

    @pytest.mark.parametrize("size", [8, 1 << 17])
    def test_under_inference_mode(self, size: int) -> None:
        x = torch.randn(size)
        with torch.inference_mode():
            out = [torch.empty(size // 2), torch.empty(size // 2)]
        for _ in range(2):
            with torch.inference_mode():
                for parts in (
                    ts.split(x, num_outputs=2, out=out),
                    ts.split(x * 1, num_outputs=2, copy=True),
                ):
                    assert torch.cat(parts).equal(x)
            refused("TS404", lambda: ts.split(x, num_outputs=2, out=out))

    @pytest.mark.parametrize("size", [4, 1 << 17])
    def test_negative_and_conjugate_views(self, size: int) -> None:
        x = torch.randn(2 * size, dtype=torch.complex64)
        wanted = -x.imag.clone()
        negative = x.conj().imag
        buffers = torch.zeros(2 * size, dtype=torch.complex64)
        out = list(buffers.conj().imag.split(size))
        for _ in range(2):
            assert torch.cat(ts.split(negative, num_outputs=2, copy=True)).equal(wanted)
            assert torch.cat(ts.split(negative, num_outputs=2, out=out)).equal(wanted)
            assert buffers.imag.equal(-wanted)
            assert torch.cat(
                ts.variadic_split(x.conj(), 0, [size, size], out=list(buffers.split(size)))
            ).equal(x.conj().resolve_conj())

    def test_what_watches_sees_what_is_done(self) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        class Log(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                seen.append(func.__name__)
                return func(*args, **(kwargs or {}))

        seen: list[str] = []
        x = torch.randn(1 << 17)
        out = [torch.empty(1 << 16), torch.empty(1 << 16)]
        for _ in range(2):
            with Log():
                ts.split(x, num_outputs=2, copy=True)
                ts.split(x, num_outputs=2, out=out)
        assert seen.count("copy_.default") == 4
        assert any(name.startswith("split_with_sizes_copy") for name in seen)

    @pytest.mark.parametrize("size", [4, 1 << 16])
    def test_buffers_that_are_not_contiguous(self, size: int) -> None:
        x, held = torch.randn(2, size), torch.zeros(size, 2)
        for _ in range(2):
            ts.split(x, num_outputs=2, out=[held.t()[:1], held.t()[1:]])
        assert held.equal(x.t())

    def test_parts_share_nothing_and_live_as_long_as_needed(self) -> None:
        pool, x = ts.BufferPool(0), torch.randn(2, 1 << 16)
        wanted = x.clone()
        for _ in range(3):
            parts = ts.split(x, num_outputs=2, copy=True)
            pooled = ts.split(x, num_outputs=2, out=pool)
            kept = [part[0, 7:9] for part in (*parts, *pooled)]
            x.zero_()
            del parts, pooled
            for part, row in zip(kept, [0, 1, 0, 1], strict=True):
                assert part.equal(wanted[row, 7:9])
            del kept, part
            assert pool.in_use_bytes == 0
            x.copy_(wanted)

    def test_gradients_flow_through_copies_and_into_buffers(self) -> None:
        for size in (8, 1 << 18):
            x = torch.ones(size, requires_grad=True)
            a, _ = ts.split(x, num_outputs=2, copy=True)
            out = [torch.empty(size // 2), torch.empty(size // 2)]
            ts.split(x, num_outputs=2, out=out)
            pooled = ts.split(x, num_outputs=2, out=ts.BufferPool(1 << 22))
            (a.sum() + 2 * out[1].sum() + 4 * pooled[0].sum()).backward()
            assert (x.grad[0], x.grad[-1]) == (5, 2)

    def test_conjugates(self) -> None:
        x = torch.full((1 << 16, 2), 1 + 2j).conj()
        for parts in (
            ts.split(x, num_outputs=2, copy=True),
            ts.split(
                x,
                num_outputs=2,
                out=[torch.empty(1 << 15, 2, dtype=x.dtype)] * 1
                + [torch.empty(1 << 15, 2, dtype=x.dtype)],
            ),
        ):
            assert all((part == 1 - 2j).all() for part in parts)

    def test_writes_raise_the_versions_that_autograd_checks(self) -> None:
        for size in (8, 1 << 18):
            weight, buffer = torch.ones(size // 2, requires_grad=True), torch.ones(size // 2)
            loss = (weight * buffer).sum()
            ts.split(torch.ones(size), num_outputs=2, out=[buffer, torch.empty(size // 2)])
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()

    @pytest.mark.parametrize("size", [4, 1 << 18])
    def test_buffers_that_do_not_fit(self, size: int) -> None:
        x, half = torch.ones(size), size // 2
        free = torch.empty(half)

        def into(*out: Any) -> Callable[[], object]:
            return lambda: ts.split(x, num_outputs=2, out=list(out))

        refused("TS401", into(free))
        refused("TS402", into(free, torch.empty(size)))
        refused("TS403", into(free, torch.empty(half, dtype=torch.int32)))
        refused("TS403", into(free, torch.empty(half, device="meta")))
        refused("TS403", into(free, free.numpy()))
        refused("TS403", into(free, Mock(torch.Tensor)))
        refused("TS404", into(free, torch.empty(half, requires_grad=True)))
        refused("TS405", into(free, free))
        refused("TS405", into(free, x[half:]))
        refused("TS405", into(free, torch.empty(1).expand(half)))
        refused("TS403", lambda: ts.split(x.numpy(), num_outputs=2, out=[free, free]))

    @pytest.mark.parametrize("size", [1, 2])
    def test_meta_tensors_share_no_memory_though_all_have_the_same_address(self, size: int) -> None:
        out = [torch.empty(size, device="meta")]
        assert ts.split(torch.empty(size, device="meta"), [size], out=out)[0] is out[0]

    def test_a_tensor_given_twice_is_seen_where_memory_is_not_told(self) -> None:
        x, free = torch.empty(8, device="meta"), torch.empty(4, device="meta")
        refused("TS405", lambda: ts.split(x, [4, 4], out=[free, free]))
        refused("TS405", lambda: ts.variadic_split(x, 0, [8, 0], out=[x, x[8:]]))
        calls: list[Split] = [
            lambda x: ts.split(x, [4, 4], out=[x[:4].clone()] * 2),
            lambda x: ts.split(x, [8, 0], out=[x, x[8:].clone()]),
        ]
        for call in calls:
            function, graphs = compiled(call)
            with refused_while_tracing(r"\[TS405\]"):
                function(torch.arange(8))
            assert graphs == []

    @pytest.mark.parametrize("count", [1, 3])
    def test_another_number_of_buffers_in_compiled_code(self, count: int) -> None:
        function, graphs = compiled(lambda x: ts.split(x, [4, 4], out=[x[:4].clone()] * count))
        with refused_while_tracing(r"\[TS401\].*give 2 tensors"):
            function(torch.arange(8))
        assert graphs == []

    def test_the_memory_of_a_pool_is_used_again(self) -> None:
        pool = ts.BufferPool(1 << 20)
        x = torch.arange(1 << 16)
        first = [part.data_ptr() for part in ts.split(x, num_outputs=2, out=pool)]
        assert sorted(part.data_ptr() for part in ts.split(x, num_outputs=2, out=pool)) == sorted(
            first
        )
        refused("TS403", lambda: ts.split(x.to("meta"), num_outputs=2, out=pool))


@pytest.mark.parametrize("length", [4, 1 << 16])
@pytest.mark.parametrize("is_in_order", [False, True])
class TestWhatFollowsOperations:
    """Of a join in the kernel, or a view of what was split, these would see nothing."""

    def test_forward_derivatives(self, length: int, is_in_order: bool) -> None:
        x, along = torch.rand(length), torch.rand(length)
        step = 1 if is_in_order else -1
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, along)
            joined = ts.join(ts.split(dual, [1, length - 1])[::step])
            got = torch.autograd.forward_ad.unpack_dual(joined)
            assert torch.equal(got.tangent, torch.cat([along[:1], along[1:]][::step]))

    def test_a_trace(self, length: int, is_in_order: bool) -> None:
        step = 1 if is_in_order else -1

        def joined(x: Any) -> Any:
            return ts.join([x[:1], x[1:]][::step])

        traced = torch.jit.trace(joined, (torch.rand(length),))
        x = torch.rand(length)
        assert torch.equal(traced(x), torch.cat([x[:1], x[1:]][::step]))

    def test_modes_that_see_functions(self, length: int, is_in_order: bool) -> None:
        x = torch.rand(length)
        parts = [x[:1], x[1:]][:: 1 if is_in_order else -1]
        names = set()

        class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(
                self, func: Any, _: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                names.add(func.__name__)
                return func(*args, **(kwargs or {}))

        with Mode():
            ts.join(parts)
        assert names & {"cat", "concat", "concatenate"}


class TestCompiled:
    def test_one_graph_for_many_sizes(self) -> None:
        for split in CHANGING:
            function, graphs = compiled(split, dynamic=True)
            for size in (9, 12, 8):
                x = torch.arange(size)
                assert list(map(torch.Tensor.tolist, function(x))) == [
                    part.tolist() for part in split(x)
                ]
            assert [called(graph) for graph in graphs] == [{"split_with_sizes"}]

    def test_known_sizes_leave_one_operation(self) -> None:
        for split, name in (
            (lambda x: ts.split(x, [2, 6]), "split_with_sizes"),
            (lambda x: ts.split_to_sequence(x, 3), "split_with_sizes"),
            (lambda x: ts.split_to_sequence(x, keepdims=0), "unbind"),
            (lambda x: ts.split(x, num_outputs=2, copy=True), "split_with_sizes_copy"),
        ):
            function, graphs = compiled(split)
            function(torch.arange(8))
            assert called(graphs[0]) == {name}
            assert len(graphs) == 1

    @pytest.mark.parametrize("dynamic", [True, False])
    def test_errors_are_raised_while_tracing(self, dynamic: bool) -> None:
        for split, text in (
            (lambda x: ts.split(x, [2, 6]), r"\[TS302\] .*sums to 8, but the dimension is 9"),
            (lambda x: ts.split(x, axis=3, num_outputs=2), r"\[TS203\]"),
            (lambda x: ts.openvino.split(x, 0, 2), r"\[TS303\] .*9 is not divisible into 2"),
            (lambda x: ts.split(x, torch.tensor([2, 7])), r"\[TS105\]"),
        ):
            function, graphs = compiled(split, dynamic=dynamic)
            with refused_while_tracing(text):
                function(torch.arange(9))
            assert graphs == []

    def test_what_is_known_only_at_run_time_is_checked_then(self) -> None:
        def places(x: Any) -> Any:
            return x.nonzero()[:, 0]

        for split, lengths, wrong in (
            (lambda x: ts.split(places(x), num_outputs=3), [1, 1, 1], [0, 1, 0]),
            (lambda x: ts.variadic_split(places(x), 0, [1, -1]), [1, 2], [0, 0, 0]),
            (lambda x: ts.split(places(x), [1, places(x).shape[0] - 1]), [1, 2], [0, 0, 0]),
            (lambda x: ts.openvino.split(places(x), 0, 3), [1, 1, 1], [0, 1, 1]),
        ):
            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
                function, _ = compiled(split)
                assert list(map(len, function(torch.tensor([1, 1, 1])))) == lengths
                with pytest.raises(RuntimeError, match="Runtime assertion failed"):
                    function(torch.tensor(wrong))

    @pytest.mark.skipif(
        Version(torch.__version__) < Version("2.11"),
        reason="torch before 2.11 can't follow what sets an attribute of a frozen dataclass",
    )
    def test_the_attributes_of_a_plan(self) -> None:
        plan = ts.plan("onnx.Split-18", (7, 4), num_outputs=3)

        def told(x: Any) -> Any:
            first = plan(x)[0]
            return first, plan.axis, plan.sizes, plan.offsets, plan.output_shapes, plan.keepdims

        function, graphs = compiled(told)
        _, *attributes = function(torch.ones(7, 4))
        assert attributes == [0, (3, 3, 1), (0, 3, 6), ((3, 4), (3, 4), (1, 4)), True]
        assert called(graphs[0]) == {"split_with_sizes"}

    def test_another_plan_is_decided_anew(self) -> None:
        """What is decided while tracing holds for that plan, and not for one of the same shape."""
        plans = [ts.plan("onnx.Split-18", (6,), lengths) for lengths in ([2, 4], [4, 2])]

        def both(x: Any, plan: Any) -> Any:
            return plan(x)[0], plan.join(plan(x))

        function: Any = torch.compile(both, fullgraph=True, backend="eager")
        x = torch.arange(6)
        for plan, length in zip([*plans, *plans], [2, 4, 2, 4], strict=True):
            first, whole = function(x, plan)
            assert len(first) == length
            assert torch.equal(whole, x)

    def test_a_count_that_is_not_known_is_refused(self) -> None:
        function, _ = compiled(lambda x: ts.split_to_sequence(x, 2), dynamic=True)
        with refused_while_tracing(r"\[TS309\]"):
            function(torch.arange(9))


def module(split: Split) -> Any:
    """A module that returns the parts of its input."""
    forward = {"forward": lambda _, x: tuple(split(x))}
    return type("Module", (torch.nn.Module,), forward)()


class TestExport:
    @pytest.mark.parametrize("strict", [True, False])
    def test_dynamic_dimensions_stay_so(self, strict: bool) -> None:
        exported = torch.export.export(
            module(lambda x: ts.split(x, [2, x.shape[0] - 2])),
            (torch.arange(8),),
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
            strict=strict,
        )
        for size in (5, 12):
            assert [len(part) for part in exported.module()(torch.arange(size))] == [2, size - 2]

    def test_lengths_that_can_not_fit(self) -> None:
        with pytest.raises(ts.SplitError) as caught:
            torch.export.export(
                module(lambda x: ts.split(x, [2, 6])),
                (torch.arange(9),),
                dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
                strict=False,
            )
        assert caught.value.code == "TS302"


class TestOnnxExport:
    @pytest.mark.parametrize(
        ("split", "dynamic", "inputs"),
        [
            (lambda x: ts.split(x, num_outputs=4), False, 2),
            (lambda x: ts.split(x, num_outputs=3), False, 2),
            (lambda x: ts.split(x, num_outputs=3), True, 1),  # the engine divides by itself
            (lambda x: ts.split(x, [2, x.shape[0] - 2], copy=True), True, 2),
            (lambda x: ts.split_to_sequence(x, keepdims=0, axis=1), True, 2),
            (lambda x: ts.variadic_split(x, 0, [-1, 2]), True, 2),
        ],
    )
    def test_exactly_one_split(self, split: Split, dynamic: bool, inputs: int) -> None:
        pytest.importorskip("onnxscript")
        onnxruntime = pytest.importorskip("onnxruntime")
        example = torch.arange(24.0).reshape(8, 3)
        dynamic_shapes = ({0: torch.export.Dim.DYNAMIC},) if dynamic else None
        exported = torch.onnx.export(
            module(split), (example,), dynamo=True, dynamic_shapes=dynamic_shapes, verbose=False
        )
        model = exported.model_proto
        (made,) = (node for node in model.graph.node if node.op_type == "Split")
        assert len(made.input) == inputs
        assert not any(node.op_type.startswith("Sequence") for node in model.graph.node)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        for size in (8, 13, 6) if dynamic else (8,):
            x = torch.arange(3.0 * size).reshape(size, 3)
            parts = session.run(None, {session.get_inputs()[0].name: x.numpy()})
            assert [part.tolist() for part in parts] == [part.tolist() for part in split(x)]

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_shapes_of_parts_are_those_of_the_plan(self, axis: int) -> None:
        """What follows in the model asks for them."""
        pytest.importorskip("onnxscript")
        seen = list[Any]()

        def forward(x: Any) -> Any:
            parts = ts.split(x, num_outputs=2, axis=axis)
            seen.append([tuple(map(int, part.shape)) for part in parts])
            return [part + 1 for part in parts]

        x = torch.arange(48.0).reshape(2, 4, 6)
        made = torch.onnx.export(module(forward), (x,), dynamo=True, verbose=False)
        shape = tuple(length // (2 if at == axis else 1) for at, length in enumerate(x.shape))
        assert seen[-1] == [shape, shape]
        assert [
            tuple(dim.dim_value for dim in output.type.tensor_type.shape.dim)
            for output in made.model_proto.graph.output
        ] == [shape, shape]


class TestRefused:
    def test_kinds_of_tensors(self) -> None:
        x = torch.ones(4, 4)
        kinds = {
            "to_dense": x.to_sparse(),
            "sparse_csr": x.to_sparse_csr(),
            "unbind": torch.nested.nested_tensor([x, x], layout=torch.jagged),
            "int_repr": torch.quantize_per_tensor(x, 1.0, 0, torch.quint8),
            "MKL-DNN": x.to_mkldnn(),
            "run its module": torch.nn.LazyLinear(3).weight,
        }
        for text, kind in kinds.items():
            assert text in refused("TS204", lambda: ts.split(kind, num_outputs=2))  # noqa: B023
            out = [torch.empty(2, 4), kind]
            assert text in refused("TS204", lambda: ts.split(x, num_outputs=2, copy=True, out=out))  # noqa: B023

    def test_operands(self) -> None:
        x = torch.ones(6)
        assert len(ts.split(x, torch.tensor([2, 4]), axis=0)) == 2
        refused("TS105", lambda: ts.split(x, torch.tensor([2.0, 4])))
        assert len(ts.split(x, torch.tensor([2, 4]).numpy(), axis=0)) == 2
        refused("TS105", lambda: ts.split(x.numpy(), torch.tensor([2, 4])))
        refused("TS105", lambda: ts.split(x, torch.empty(2, dtype=torch.int64, device="meta")))

    def test_what_everybody_calls_first(self) -> None:
        for x in (torch.ones(6), torch.ones(6).numpy()):
            text = refused("TS106", lambda: ts.split(x, 3))  # type: ignore[call-overload] # noqa: B023
            assert "num_outputs=3" in text
            assert "split_to_sequence" in text


def test_the_exporter_that_traces_makes_one_split() -> None:
    onnx = pytest.importorskip("onnx")
    file = io.BytesIO()

    class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return tuple(ts.split(x, [2, 4], axis=1))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Two(), (torch.ones(4, 6),), file, dynamo=False)
    nodes = onnx.load_from_string(file.getvalue()).graph.node
    assert [node.op_type for node in nodes if node.op_type != "Constant"] == ["Split"]


@pytest.mark.parametrize("size", [12, 1 << 20])
@pytest.mark.parametrize("copy", [False, True])
def test_parts_have_the_derivatives_of_forward_mode(copy: bool, size: int) -> None:
    forward = torch.autograd.forward_ad
    values, tangent = torch.rand(size, 2), torch.rand(size, 2)
    with forward.dual_level():
        parts = ts.split(
            forward.make_dual(values, tangent), [size // 3, size - size // 3], copy=copy
        )
        whole = ts.join(parts, copy=True)
        for found, want in ((whole, tangent), (parts[1], tangent[size // 3 :])):
            assert torch.equal(forward.unpack_dual(found).tangent, want)
        assert torch.equal(forward.unpack_dual(whole).primal, values)
