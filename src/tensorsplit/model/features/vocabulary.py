"""The vocabulary: the features that a node or a model may have, each in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

Features: TypeAlias = dict[str, object]
"""Features that are there, by name; the value is True, or what the feature names: a tuple
where these are several, as of types that calls of a function differ in."""

REJOINED = "rejoined"
"""The feature of a Split that stays as it is until all other nodes are lowered."""

NODE_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "operator": "uses the operator {}",
        "version": "uses the version {}",
        "element_type": "has data of type {}",
        "wide_values": "has data of type {}",
        "count_on_dynamic_axis": "uses num_outputs, and the length of the axis is not known",
        "count_with_empty_part": "uses num_outputs, and its last part is empty (D2)",
        "unseen_empty_axis": "gives no lengths, and splits an axis of length 0, which the engine"
        " does not know before it runs",
        "uneven_count_on_negative_axis": "uses num_outputs on an axis that counts from the back,"
        " and its parts may be uneven",
        "count": "uses num_outputs",
        "equal_parts": "gives no lengths, and has equal parts",
        "equal_parts_alike": "gives no lengths, and neither does another Split of a similar tensor"
        " on the same axis, which has another number of parts",
        "runtime_lengths": "has lengths that are known only at run time",
        "lengths_of_constants": "has lengths that nodes calculate from constants alone",
        "checked_lengths": "has lengths that nodes made by lowering check",
        "unchecked_lengths": "splits an axis of which the length is not known, at an opset where no"
        " node can check the lengths",
        "uncounted_lengths": "has lengths whose values and number are known only at run time",
        "uneven_float_lengths": "has an input of floats for the lengths, which differ",
        "float_lengths": "has an input of floats for the lengths, which may not be those of equal"
        " parts",
        "external_lengths": "has lengths that are external data",
        "uneven_count": "uses num_outputs, and its parts are not equal",
        "omitted_lengths": "uses num_outputs, and has an input for the lengths that has no name",
        "omitted_uneven_lengths": "uses num_outputs for parts that may not be equal, and has an"
        " input for the lengths that has no name",
        "overridable_lengths": "has lengths that are a default, which can be overridden (D20)",
        "chunks": "gives one length for all parts",
        "runtime_axis": "has an axis that is known only at run time",
        "negative_axis": "counts the axis from the back",
        "unnamed_output": "has an output without a name",
        "keepdims_ignored": "sets keepdims to 0, and gives split, so that the axis stays (D8)",
        "keepdims_of_call": "takes keepdims from calls of its function, and gives split (D8)",
        "keepdims_0": "drops the axis of the parts",
        "unknown_number_of_parts": "has a sequence of an unknown number of tensors",
        "runtime_sequence_index": "has a position in a sequence that is known only at run time"
        " (D19)",
        "listed_position": "has a position in a sequence that is a list of one number",
        "inserted_last": "has a position, which may be the one after the last tensor",
        "input_taken_out": "takes an input of the model, or a tensor from around a body, out of a"
        " sequence, at a constant position",
        "taken_apart": "gives a sequence to SequenceAt or ConcatFromSequence",
        "joined": "gives a sequence to ConcatFromSequence",
        "later_parts": "has parts after the first that are used",
        "misplaced_strings": "has strings that are used in a part of a known shape, which does not"
        " begin where the data does",
        "body": "is in a body of {}",
        REJOINED: "has parts that are all joined again in order, and lengths that may not fit",
        "unread_parts": "has constant lengths that may not fit, and of its parts only shapes are"
        " used, or one of length 0",
        "no_parts": "gives a sequence without tensors",
        "empty_lengths": "has a list of lengths without elements",
        "sequence_in_body": "takes a sequence into a body, or gives one out",
        "identity_before_14": "is an Identity of a sequence at an opset where it takes tensors"
        " only",
        "sequence_in_body_before_13": "takes a sequence into a body, or gives one out, at an opset"
        " where bodies take tensors only",
        "map_in_map": "is a SequenceMap in the body of a SequenceMap",
        "call_in_map": "is a SequenceMap whose body calls a function",
        "joined_for_nodes": "joins the tensors of a sequence, and nodes use the result",
        "captured_sequence": "uses a sequence that was made outside of the body around it",
        "optional": "makes or takes an optional value",
        "unsorted_axes": "is a Squeeze or Unsqueeze before opset 11 with axes that are not in"
        " order, or count from the back",
        "training_mode": "is a Dropout that is in training mode, or whose mode is not written as"
        " a constant",
        "copied_zero": "is a Reshape that copies a dimension of 0 beside a length that is"
        " calculated",
        "empty_end": "leaves out its last input by an empty name",
        "narrow_indices": "has indices that are fewer than the data along another axis",
        "no_coordinates": "has indices of no numbers, which stand for all of the data",
        "one_index": "is a OneHot of one number",
        "unfilled_mask": "is a Dropout before opset 12 whose mask is used",
        "ties": "is a TopK that gives the indices of equal elements, too",
        "moved_axis": "is an Einsum that moves one axis of an operand, and a dimension may be 0",
        "drops_given": "is a Dropout of an input of the model, of a tensor from around a body, or"
        " of what the body is given and gives out",
        "constant_form": "is a Constant that gives {}",
        "constant_form_before_13": "is a Constant before opset 13 that gives {}",
        "sparse_initializer": "takes an initializer that is written as a sparse tensor",
        "unused_in_loop": "is a loop that carries a tensor whose shape changes, and that nothing"
        " uses afterwards",
        "of_constants": "calculates a tensor from constants alone, whose shape is known only then",
        "rounds_may_be_0": "is a Loop whose number of rounds may be 0 or below, and of which more"
        " is used than what it carries on",
        "ranked_condition": "is an If whose condition has more than one axis",
        "output_in_branch": "is an If whose branches read what the graph gives out, at a place at"
        " which they give out something themselves",
        "uneven_branches": "is an If before opset 11 whose branches give different shapes",
        "undeclared_round": "is a Loop whose body does not declare that the number of the round is"
        " a scalar",
        "undeclared_condition": "is a Loop without a condition, whose body does not declare that"
        " the condition is a scalar",
        "empty_body_input": "is a Loop or a Scan whose body declares an input of shape (0)",
        "undeclared_inputs": "is a Loop or Scan whose body does not declare the rank of what such a"
        " node reads",
        "undeclared_rows": "is a Scan whose body does not declare the type of a row",
        "undeclared_results": "is a SequenceMap whose body does not declare the types of what it"
        " gives",
        "uneven_rows": "is a Loop that collects tensors whose shape may differ from round to round",
        "ignored_condition": "is a Loop without a condition, whose body gives one that may not"
        " hold",
        "reads_condition": "is a Loop whose body reads its condition, which the body passes on, or"
        " the loop is given none",
        "gives_inputs": "is a Loop or a Scan whose body gives out an input of its own as it is",
        "given_as_is": "has a body that gives out as it is {}",
        "wrong_unrun": "has code that never runs, and is wrong ({})",
        "used_wrong_unrun": "has code that never runs, and is wrong ({})",
        "used_result": "is an If that gives a tensor of a shape known only at run time to nodes, or"
        " to an output",
        "lost_result": "is an If in a body on a constant condition, and nodes read what it gives"
        " beside a Shape",
        "lost_operand": "is an If on a constant condition whose branch reads a tensor of which only"
        " the shape is read before",
        "shortened_loop": "is an If on a constant condition, around a Loop without a condition that"
        " carries nothing",
        "strings_passed_on": "is an Identity of strings",
        "strings_repeated": "is an Expand or a Tile of strings",
        "strings_sliced": "is a Slice of strings",
        "small_shift": "shifts integers of 8 bits to the right",
        "inexact_shift": "shifts integers that may be below 0 or have 32 bits to the right, or"
        " integers of 64 bits",
        "limited_result": "calculates integers of 8 bits",
        "open_planes": "is a GlobalLpPool of data of which the batch or the channels are not known",
        "places_in_a_number": "is a NonZero of one number",
        "small_quotient": "is a Div of integers of 8 or 4 bits",
        "floored_quotient": "is a Divide of integers that rounds down, of which one may be below 0",
        "partly_indexed": "is a StridedSlice that adds an axis and drops one, and does not list all"
        " axes of its data",
        "fused_quotient": "is a Div of integers, one constant, the other from a reduction, a matrix"
        " product or a Resize",
        "unit_quotient": "is a Div of 1 by int32 or int64, and only a Mul reads the quotient",
        "folded_quotient": "is a Div of constant integers, whose quotient is below 0 and not exact",
        "abs_of_shapes": "is an Abs of what is calculated from shapes and constants",
        "equal_below_0": "is an Equal of a constant below 0 and what is calculated from shapes and"
        " may be below 0",
        "abs_of_joined": "is an Abs of a Concat that other nodes use as well, or that joins what is"
        " calculated from shapes",
        "ignored_axes": "is a ReduceL1, ReduceLogSum or ReduceLogSumExp by some axes, at opset"
        " 13 to 17",
        "softmax_of_rows": "is a Softmax at opset 11 or 12, along several axes",
        "scales_of_rows": "is a QLinearMatMul with scales for the rows of its first factor",
        "scales_of_columns": "is a QLinearMatMul with scales for the columns of its second factor",
        "choice": "has the attribute {}",
        "aligned_to_end": "is a causal Attention with a past, whose queries may be more or fewer"
        " than its new keys",
        "open_groups": "is an Attention of four axes, whose numbers of heads are known only at run"
        " time",
        "row_mask": "is an Attention whose mask has one row for all queries",
        "small_rows": "takes or gives rows of {}",
        "zero_points_of_weights": "is a ConvInteger whose weights have several zero points",
        "unpooled_shape": "is a MaxUnpool that is given the shape of its result",
        "short_mask": "is an Attention whose mask is for the first keys alone",
        "pulled_axes": "is a reduction of what an Unsqueeze gives, along other axes than are added:"
        " from the back or kept, with axes added after them",
        "ignored_list": "is a Gather by a constant list along the axis that an Unsqueeze adds to"
        " its data, both axes counted from the same end",
        "compared_extreme": "is a ReduceMax or ReduceMin of floats, and an Equal or IsInf reads the"
        " result",
        "window": "is an Attention whose keys are those of a window",
        "fed_frames": "is an STFT that is not given the step and the length of frames as constants",
        "guessed_frames": "is an STFT without a length of frames, by a window of another length"
        " than the signal divided by the step",
        "real_frames": "is an STFT of real numbers by a window, with onesided = 0",
        "squeezed_constant": "is a Squeeze of a constant, by axes that are known only at run time",
        "columns_of_volumes": "is a Col2Im of images of another rank than 2",
        "fed_padding": "is a Pad by a value that is known only at run time",
        "fed_bounds": "is a Slice by bounds that are known only at run time",
        "omitted_sampling": "is a RoiAlign that leaves out how many samples it takes",
        "late_window": "is a MaxPool with ceil_mode = 1 of which one more window may start beyond"
        " the data",
        "floored_floats": "is a Mod of floats without fmod = 1",
        "ignored_class": "is a NegativeLogLikelihoodLoss that ignores a class",
        "symmetric_blocks": "is a QuantizeLinear in blocks without a zero point",
        "cut_to_bfloat16": "is a Cast to bfloat16 of data whose shape is known only at run time",
        "beyond_float8": "is a Cast to float8 that saturates",
        "rounded_to_float16": "gives float8 of numbers that float16 may not hold",
        "rounded_powers": "is a Cast to float8e8m0 that does not round to the nearest",
        "open_columns": "is a product, by a transposed factor or of integers, whose number of"
        " columns is known only at run time, and a constant list is added to it or multiplies it",
        "open_same": "is a ConvTranspose whose padding follows from auto_pad, of data of open"
        " dimensions",
        "unmoved": "is an Einsum that gives what it reads",
        "sampled_volume": "is a GridSample of data of another rank than 4",
        "open_channels": "is a QuantizeLinear with scales along an axis that may not be the last,"
        " and whose dimension is known only at run time",
        "along_third": "is a QuantizeLinear by constant scales along axis 2 of data whose shape is"
        " known only in part",
        "uncounted_scales": "is a QuantizeLinear along an axis of a known dimension, by scales or"
        " zero points whose number is known only at run time",
        "part_to_bool": "is a Cast to bool of a part of a Split, or of what a TopK or LSTM gives",
        "later_part_to_bool": "is a Cast to bool of a part of a Split into equal parts, or of what"
        " a MaxPool, Unique, GRU or RNN gives, not of the first",
        "left_out": "is a Reshape or a Transpose of what a reduction gives without its axes, to a"
        " length of 1 where one of these was",
        "scaled_integers": "is a reduction of integers of three axes along the second, or the last"
        " two, and only a Neg, or a node with one constant number, reads the result",
        "one_of_parts": "takes its axes, or its one scale, from one of several parts",
        "given_back": "is a QuantizeLinear to 16 bits by constants, and only a DequantizeLinear by"
        " the same constants reads what it gives",
        "given_back_in_bfloat16": "is a DequantizeLinear to bfloat16 of what a QuantizeLinear"
        " gives, to 16 bits or by a scale that is calculated",
        "data_in_bytes": "is a product by a constant matrix of at most 8 bits, given back for this"
        " node alone by one scale, or along its columns",
        "factor_around_body": "is such a product in a body, by a constant from around it",
        "moved_signed": "is a DequantizeLinear of int8 by a zero point at opset 21 or later, of"
        " int32, or of 4 bits before a MaxPool, and what a Transpose, Reshape, Slice, Squeeze,"
        " Unsqueeze or MaxPool makes of its result is not quantised again",
        "turned_by_channels": "is a Transpose with an order, not quantised again, of what a"
        " DequantizeLinear gives back of int32 by a list and a zero point",
        "joined_by_channels": "is an AveragePool between a DequantizeLinear and a QuantizeLinear of"
        " 8 bits, one of them by a list; or a GlobalAveragePool, LeakyRelu or Sigmoid, by channels",
        "moved_without_zero_point": "is a DequantizeLinear of int8 or int32 without a zero point"
        " before opset 21, and what a Transpose, Reshape, Slice, Squeeze, Unsqueeze or MaxPool"
        " makes of its result is not quantised again",
        "unscaled": "is a QuantizeLinear to 16 bits by a scale of 1 and a zero point of 0, of what"
        " is not limited to whole numbers that these hold",
        "rounded_once": "is a DequantizeLinear of what a QuantizeLinear gives, and only a"
        " QuantizeLinear to the same type by other constants reads its result",
        "moved_into_body": "is a DequantizeLinear, and a body reads what a Transpose, Reshape,"
        " Slice, Squeeze, Unsqueeze or MaxPool makes of its result",
        "constant_given_back": "is an Add, Mul or Sub of what two DequantizeLinear give after a"
        " QuantizeLinear to 8 bits, one of them, of a Sub the first, of a constant",
        "shared_zero_point": "is a ReduceSum, an Einsum or a Pad of what a DequantizeLinear of 8"
        " bits gives, and other nodes give back by its zero point, too",
        "rounded_extreme": "is a QuantizeLinear to 8 bits by constants of what follows from a"
        " ReduceMax or ReduceMin; one whose result only one DequantizeLinear reads has a zero point"
        " that is not 0, or a list of scales",
        "odd_zero_point": "quantises by a zero point that is odd, or known only at run time",
        "many_repeated": "is a Tile that may repeat more than two of four axes or more, by counts"
        " that are known only at run time",
        "joined_groups": "is a GroupNormalization of a known shape, and an Add, Mul or the like"
        " reads its result and what other nodes calculate",
        "grouped_in_body": "is a GroupNormalization of a known shape in a body",
        "empty_range": "is a Range that may be empty, its limit on the other side of its start",
        "turned_beside_recurrence": "is a Transpose by [1, 0, 2] of what an LSTM, GRU or RNN reads",
        "strings_gathered": "is a Gather of strings on an axis that may not be the last",
        "strings_in_loop": "is a loop that carries strings, or uses or gives out strings that are"
        " used",
        "no_rows": "is a Scan or TensorIterator without rows",
        "empty_rows_may_be_0": "is a Scan of rows without elements, whose number may be 0",
        "rows_may_be_0": "is a Scan or TensorIterator whose number of rows may be 0",
        "if_in_scan": "is in an If in a Scan",
        "scan_in_scan": "is a Scan in the body of a Scan",
        "captured_in_scan": "is a Scan whose body uses values from around it, not constants",
        "default_in_scan": "is a Scan whose body uses an input with a default",
        "overwritten": "is a loop whose body takes a tensor from around it into a Softmax, a"
        " normalization, a RotaryEmbedding, a ScatterElements or a ScatterND, or calculates rows"
        " from a view of it",
        "carries_number": "is a Loop that carries the number of its round as it is",
        "shares_states": "is a loop that carries a row, or what it carries elsewhere, as it is, or"
        " what it calculates where one of them was",
        "back_to_largest": "is a Slice to the largest integer, whose step may be below 0",
        "long_slice": "is a Slice of a tensor with a dimension above 2^24",
        "limited_slice": "is a Slice, by bounds that are known only at run time or are such as"
        " [-3:3], on an axis of which only the largest length is known, as of what another Slice"
        " gives",
        "unseen_axes": "is a Slice of data of a known shape, by constant bounds along axes that are"
        " known only at run time",
        "measured_element": "is a Shape or Size of an element of a list whose length is not known",
        "measured_shape": "is a Size of a Shape whose dimensions are known",
        "unknown_rank": "gives, or takes from an input, a tensor whose rank is known only at run"
        " time",
        "scalar_or_list": "is an If that gives a scalar in one branch and a list in the other",
        "unseen_operand": "reads weights, axes, counts or a single number whose shape is known only"
        " at run time",
        "uncounted_sizes": "is a Resize to sizes whose number is known only at run time",
        "peepholes": "is an LSTM with peepholes, its last input",
        "batch_first": "is a GRU, LSTM or RNN with layout 1",
        "list_of_slopes": "is a PRelu of data of three axes or more by a list of slopes",
        "omitted_zero_point": "has the second of two zero points, and not the first",
        "axis_from_back": "is a whole DFT along an axis that counts from the back",
        "one_sided": "is a DFT that gives one half of the result",
        "from_one_side": "is an inverse DFT of one half of a result",
        "real_or_complex": "is a DFT of what is known only at run time to be real or complex",
        "transformed_axis": "is a DFT along another axis than 1, which is an input",
        "vector_first": "is an integer product of a vector and a matrix, in that order",
        "compressed_whole": "is a Compress without an axis, of data or a condition whose shape is"
        " not known",
        "flattened": "is a Flatten by an axis of 2 or higher, of data that may have no elements",
        "lost_dimension": "is a Squeeze or an Unsqueeze of data without elements, one dimension of"
        " which is not known, or a Transpose, or an Einsum, that changes the place of axes of"
        " length 1",
        "chosen_condition": "chooses between booleans, one of them the condition itself",
        "lost_in_rows": "puts rows or parts without elements together on a new axis, one dimension"
        " of which is not known",
        "rotation": "turns data as a rotary embedding does, by factors of one column, from parts"
        " that are not its second half and its first, or in a loop that reads the data again",
        "overwritten_queries": "is an attention of as many heads as queries, of which either the"
        " queries or the result are transposed",
        "misshapen": "is a Reshape of data without elements to a shape that is calculated",
        "calculated_from_nothing": "calculates from data without elements",
        "empty_planes": "is a convolution, a pool or a GridSample of no channels, or of data"
        " or weights without elements along a spatial axis",
        "sum_of_nothing": "is a product of integers along an axis without elements",
        "slices_of_nothing": "is a Unique of slices without elements",
        "batch_may_be_0": "is a recurrent layer whose batch may be 0",
        "steps_may_be_0": "is a recurrent layer that may have no steps",
        "state_may_stay": "is a recurrent layer with a first state that may have no steps",
        "expanded_to_nothing": "is an Expand to a dimension of 0 of one that is 1",
        "top_of_none": "is a TopK of 0 elements",
        "top_may_be_none": "is a TopK whose number of elements is known only at run time",
        "expanded_from_nothing": "is an Expand of data without elements",
        "taken_from_nothing": "is a Gather of data without elements, whose shape is known",
        "takes_nothing": "is a Gather without indices, or a Compress by a constant without True",
        "empty_constant": "takes, or gives out of its graph, a constant without elements",
        "packed_constant": "splits a constant whose elements are smaller than a byte",
        "unread_rows": "is a Scan or TensorIterator of whose rows nothing that it gives"
        " is calculated",
        "hidden_rows": "is a Loop that may have no round, whose body does not declare the shape of"
        " rows that follow from a sequence or a Loop",
        "undeclared_ranks": "is a Scan whose body does not declare the shape of what follows from a"
        " sequence, a Loop, lengths known only at run time, or an operator of which no rank is"
        " found",
        "unranked_in_scan": "is a Scan whose body gives a tensor of which the rank is not known",
        "scanned_across": "is a loop along another axis than the first, of what may be empty",
        "empty_in_loop": "has a dimension of 0, in a Loop",
        "empty_axis": "splits an axis of length 0",
        "empty_part": "has a part of length 0",
        "uninferred_in_function": "is a MeanVarianceNormalization in a function",
        "overload_in_function": "calls an overload of a function from within another function",
        "unused": "is a Split that nothing uses, with lengths that may not fit",
        "vendor_operator": "is of the domain org.openvinotoolkit",
        "declared_parts": "has parts of which only the shapes are used, and are declared",
        "dynamic_axis": "splits an axis of which the length is not known",
        "constant_lengths_on_dynamic_axis": "has constant lengths, and the length of the axis is"
        " not known",
        "equal_parts_on_dynamic_axis": "gives no lengths, and the length of the axis is not known",
        "computed_lengths": "has lengths that nodes made by lowering calculate",
        "open_remainder": "has a length of -1, and the length of the axis is not known",
    }
)
"""The features of a node, each with what such a node is or does; ``{}`` is the feature's value.

Those of more than yes or no are the types of operators and elements. `wide_values` is there for
int64, uint64 and double (D16); `computed_lengths` is not a node's own feature.
"""

MODEL_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "opset": "is at opset {}",
        "sequence_input": "has a sequence as an input",
        "sequence_output": "has a sequence as an output",
        "local_function": "has functions of its own",
        "function_opset": "has a function that is written for another opset",
        "named_domain": "has nodes of the domain ai.onnx, by that name",
        "named_domain_inside": "has nodes of the domain ai.onnx, by that name, in a body or"
        " a function",
        "passing_function": "has a function that gives out an input as it is, or one value twice",
        "shortened_call": "has a call of a function that lacks the last outputs",
        "duplicate_node_name": "has two nodes of one name in a graph or function",
        "empty_input": "has an input of shape (0)",
        "unranked_input": "has an input of unknown rank",
        "constant_in_words": "has constants of bfloat16, uint32 or float8, not written as bytes",
        "unread_initializer": "has an initializer that no node reads, of complex numbers or of a"
        " type of few bits",
        "unread_strings": "has an initializer of strings without elements that no node reads",
        "overridable_initializer": "has an input with a default (D20)",
        "calculated_integers": "has nodes, made by lowering, that calculate whole numbers above"
        " 2^24",
        "runtime_checks": "has nodes, made by lowering, that check values known only at run time",
    }
)
"""The features of a model, each with what such a model is or does; ``{}`` is the value."""


def seen_feature(name: str, value: object) -> str:
    """Return a feature in words, such as ``uses num_outputs``."""
    text = ", ".join(value) if isinstance(value, tuple) else value
    return (NODE_FEATURES.get(name) or MODEL_FEATURES[name]).format(text)
