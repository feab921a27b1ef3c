"""The operators of torch that kernels know: to add one is to add a line to OPERATORS.

Each line maps the name of an operator, of all its variants or of one, to a function of the arrays
of the graph, here `a`, and of the operator's own arguments. Tensors are arrays of nodes; a view of
torch is a view here. Elementwise operators have a table of their own, and so have torch's
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi.kernels import handlers as does
from neml2_capi.kernels.backward import BACKWARD
from neml2_capi.kernels.elementwise import ELEMENTWISE

OPERATORS: dict[str, Callable[..., Any]] = {
    **ELEMENTWISE,
    **BACKWARD,
    # Arithmetic
    "aten.add": does.add,
    "aten.sub": does.sub,
    "aten.rsub": lambda a, x, y, alpha=1: does.sub(a, y, x, alpha),
    "aten.mul": lambda a, x, y: a.mul(x, y),
    "aten.div.Tensor": lambda a, x, y: a.div(x, y),
    "aten.div.Scalar": lambda a, x, y: a.div(x, y),
    "aten.neg": lambda a, x: a.neg(x),
    "aten.reciprocal": lambda a, x: a.div(1.0, x),
    "aten.rsqrt": lambda a, x: a.div(1.0, a.function("sqrt", x)),
    "aten.square": lambda a, x: a.mul(x, x),
    "aten.pow": lambda a, x, y: a.pow(x, y),
    "neml2.opaque_pow": lambda a, x, y: a.pow(x, y),
    # Comparisons and choices
    "aten.gt": lambda a, x, y: a.gt(x, y),
    "aten.lt": lambda a, x, y: a.gt(y, x),
    "aten.ge": lambda a, x, y: a.ge(x, y),
    "aten.le": lambda a, x, y: a.ge(y, x),
    "aten.eq": lambda a, x, y: a.eq(x, y),
    "aten.ne": lambda a, x, y: a.not_(a.eq(x, y)),
    "aten.logical_not": lambda a, x: a.not_(x),
    "aten.logical_and": lambda a, x, y: a.and_(x, y),
    "aten.logical_or": lambda a, x, y: a.or_(x, y),
    "aten.bitwise_not": lambda a, x: a.not_(x),
    "aten.bitwise_and": lambda a, x, y: a.and_(x, y),
    "aten.bitwise_or": lambda a, x, y: a.or_(x, y),
    "aten.__and__": lambda a, x, y: a.and_(x, y),
    "aten.__or__": lambda a, x, y: a.or_(x, y),
    "aten.any": lambda a, *args: a.any(*args),
    "aten.all": lambda a, *args: a.all(*args),
    "aten.where": lambda a, c, x, y: a.where(c, x, y),
    "aten.masked_fill": lambda a, x, c, y: a.where(c, y, x),
    "aten.searchsorted": does.search,
    "aten.gather": lambda a, x, axis, index, **_: a.gather(x, axis, index),
    # Sums
    "aten.sum": lambda a, *args, **more: a.sum(*args, **more),
    "aten.mean": lambda a, *args, **more: a.mean(*args, **more),
    "aten.prod": lambda a, *args, **more: a.prod(*args, **more),
    "aten.amax": lambda a, *args: a.amax(*args),
    "aten.amin": lambda a, *args: a.amin(*args),
    "aten.dot": lambda a, x, y: a.matmul(x, y),
    "aten.mv": lambda a, x, y: a.matmul(x, y),
    "aten.mm": lambda a, x, y: a.matmul(x, y),
    "aten.bmm": lambda a, x, y: a.matmul(x, y),
    "aten.matmul": lambda a, x, y: a.matmul(x, y),
    "aten.cross": lambda a, x, y, axis=-1: a.cross(x, y, axis),
    "aten.linalg_cross": lambda a, x, y, dim=-1: a.cross(x, y, dim),
    # Linear systems
    "aten.linalg_solve": does.no_solver,
    "aten._linalg_solve_ex": does.no_solver,
    "aten.linalg_lu_solve": does.no_solver,
    "aten.linalg_lu_factor": does.no_solver,
    "aten.linalg_inv": does.no_solver,
    "aten.linalg_inv_ex": does.no_solver,
    # Making tensors
    "aten.eye": does.eye,
    "aten.zeros": lambda a, shape, **_: a.full(shape, 0.0),
    "aten.ones": lambda a, shape, **_: a.full(shape, 1.0),
    "aten.full": lambda a, shape, value, **_: a.full(shape, value),
    "aten.empty": lambda a, shape, **_: a.full(shape, 0.0),
    "aten.empty_permuted": lambda a, shape, order, **_: a.full(shape, 0.0),
    "aten.zeros_like": lambda a, x, **_: a.full(x.shape, 0.0),
    "aten.ones_like": lambda a, x, **_: a.full(x.shape, 1.0),
    "aten.full_like": lambda a, x, value, **_: a.full(x.shape, value),
    "aten.empty_like": lambda a, x, **_: a.full(x.shape, 0.0),
    "aten.new_zeros": lambda a, x, shape, **_: a.full(shape, 0.0),
    "aten.new_empty": lambda a, x, shape, **_: a.full(shape, 0.0),
    "aten.new_empty_strided": lambda a, x, shape, strides, **_: a.full(shape, 0.0),
    "aten.empty_strided": lambda a, shape, strides, **_: a.full(shape, 0.0),
    "aten.new_ones": lambda a, x, shape, **_: a.full(shape, 1.0),
    "aten.new_full": lambda a, x, shape, value, **_: a.full(shape, value),
    "aten.scalar_tensor": lambda a, value, **_: a.array(value),
    "prims.scalar_tensor": lambda a, value, **_: a.array(value),
    "aten.arange": does.arange,
    # The same numbers
    "aten.alias": does.same,
    "aten.detach": does.same,
    "aten.detach_": does.same,
    "aten.contiguous": does.same,
    "aten.lift_fresh_copy": does.copy,
    "aten.clone": does.copy,
    "aten.to.dtype": does.to,
    "aten.to.dtype_layout": does.to,
    "aten.to.device": lambda a, x, device, dtype, *_, **__: does.to(a, x, dtype),
    "aten.to.other": does.same,
    "aten._to_copy": does.to,
    "prims.convert_element_type": does.to,
    # Shapes
    "aten.sym_size": does.size,
    "aten.view": does.reshape,
    "aten.reshape": does.reshape,
    "aten._unsafe_view": does.reshape,
    "aten.expand": does.expand,
    "aten.broadcast_to": does.expand,
    "aten.unsqueeze": does.unsqueeze,
    "aten.squeeze": does.squeeze,
    "aten.permute": lambda a, x, axes: x.transpose(axes),
    "aten.transpose": lambda a, x, first, second: np.swapaxes(x, first, second),
    "aten.t": lambda a, x: x.T,
    "aten.mT": lambda a, x: np.swapaxes(x, -1, -2),
    "aten.movedim": lambda a, x, source, target: np.moveaxis(x, source, target),
    # Parts
    "aten.slice": does.slice_,
    "aten.select": does.select,
    "aten.split": does.split,
    "aten.split_with_sizes": does.split,
    "aten.unbind": lambda a, x, axis=0: list(np.moveaxis(x, axis, 0)),
    "aten.index": does.index_,
    "aten.diagonal": does.diagonal,
    "aten.stack": lambda a, parts, axis=0: np.stack(parts, axis=axis),
    "aten.cat": does.cat,
    "aten.concat": does.cat,
    "aten.constant_pad_nd": does.pad,
    "aten.flip": lambda a, x, axes: np.flip(x, axes),
    "aten.select_backward": does.into_zeros,
    "aten.slice_backward": lambda a, x, shape, axis, start, end, step: does.into_zeros(
        a, x, shape, axis, slice(start, end, step)
    ),
    "aten.select_scatter": does.scatter,
    "aten.slice_scatter": lambda a, x, y, axis=0, start=None, end=None, step=1: does.scatter(
        a, x, y, axis, slice(start, end, step)
    ),
    "aten.as_strided": does.strided,
    "aten.as_strided_scatter": does.strided_scatter,
    "aten.diagonal_scatter": does.diagonal_scatter,
    "aten.index_put": does.index_put,
    "aten.scatter_add": does.scatter_add,
    # Written in place
    "aten.fill_": does.assign,
    "aten.copy_": does.assign,
    "aten.copy": lambda a, x, y, *_: np.broadcast_to(a.array(y), x.shape).copy(),
    "aten.zero_": lambda a, x: does.assign(a, x, 0.0),
    "aten.add_": lambda a, x, y, alpha=1: does.assign(a, x, does.add(a, x, y, alpha)),
    "aten.sub_": lambda a, x, y, alpha=1: does.assign(a, x, does.sub(a, x, y, alpha)),
    "aten.mul_": lambda a, x, y: does.assign(a, x, a.mul(x, y)),
    "aten.div_": lambda a, x, y: does.assign(a, x, a.div(x, y)),
}

#: Operators that check something, and return nothing that a kernel needs.
CHECKS = frozenset(
    {
        "aten._assert_tensor_metadata.default",
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
    }
)
