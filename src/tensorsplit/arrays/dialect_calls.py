"""Functions that split arrays as other libraries do."""

from __future__ import annotations

from typing import Any, Protocol, overload

from tensorsplit import arrays
from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.prepared import PreparedSplit
from tensorsplit.arrays.remembered import left_as_it_is
from tensorsplit.arrays.typed import ArrayT, DialectOperand, Flag, Out, PartT_co, TensorOf
from tensorsplit.core.errors import UNKNOWN_OPERAND, SplitError, called
from tensorsplit.core.records import operator_named
from tensorsplit.core.records.names import DialectName, OperatorName


class DialectCall(Protocol):
    """The result of `like`: a function that splits as another library does."""

    @overload
    def __call__(
        self,
        input: TensorOf[PartT_co],
        *given: DialectOperand,
        copy: Flag = ...,
        out: Out = ...,
        **operands: DialectOperand,
    ) -> list[PartT_co]: ...
    @overload
    def __call__(
        self,
        input: ArrayT,
        *given: DialectOperand,
        copy: Flag = ...,
        out: Out = ...,
        **operands: DialectOperand,
    ) -> list[ArrayT]: ...


@left_as_it_is
def like(dialect: DialectName | OperatorName) -> DialectCall:
    """Return a function that splits an array of any library as a dialect does.

    Args:
        dialect: What to split like: ``torch.chunk``, ``numpy.array_split``, ``ncnn.Slice``, ...

    Returns:
        A function of the array and the dialect's operands, in the order of its document or by
        name. `copy` and `out` are as in `split`. It returns the parts as a list of arrays of the
        library of the array, views where the library has them.

    Raises:
        SplitError: TS101 for a dialect that does not exist. The function: TS102 to TS107 for
            operands, TS201 to TS309 if the parts would not partition the axis, TS401 to TS405 for
            `out`.

    Example:
        >>> [len(part) for part in ts.like("torch.chunk")(np.arange(5), 4)]
        [2, 2, 1]

    See Also:
        ``docs/seven-into-three.md``
    """
    with called(operator="dialect"):
        record = operator_named(dialect)

    def call(
        input: object, *given: object, copy: Flag = False, out: Out = None, **operands: object
    ) -> list[Any]:
        names = record.operands[: len(given)]
        twice = next((name for name in names if name in operands), None)
        if twice is not None or len(names) < len(given):
            problem = f"{len(given)} operands are given by position"
            fix = f"give each once: {', '.join(record.operands)}"
            raise SplitError(
                UNKNOWN_OPERAND, problem, fix, operator=record.id, parameter=twice or "operands"
            )
        values = dict(zip(names, given, strict=True)) | operands
        library = arrays.library_of(input, record.id, record.inputs[0].name)
        intent = bind_values(record, values, library)
        plan = PreparedSplit.of(intent, library.shape(input), library.unknown)
        return arrays.execute(plan, input, library, copy, out)

    return left_as_it_is(call)
