"""The operators of torch that kernels know: to add one is to add a line to OPERATORS.

Each line maps the name of an operator to a function of the arrays of the graph, here `a`, and of
the operator's own arguments. Tensors are arrays of nodes; a view of torch is a view here.
Elementwise operators have a table of their own, and so have torch's derivatives.
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
    "aten.add.Tensor": does.add,
    "aten.add.Scalar": does.add,
    "aten.sub.Tensor": does.sub,
    "aten.sub.Scalar": does.sub,
    "aten.rsub.Scalar": lambda a, x, y, alpha=1: does.sub(a, y, x, alpha),
    "aten.rsub.Tensor": lambda a, x, y, alpha=1: does.sub(a, y, x, alpha),
    "aten.mul.Tensor": lambda a, x, y: a.mul(x, y),
    "aten.mul.Scalar": lambda a, x, y: a.mul(x, y),
    "aten.div.Tensor": lambda a, x, y: a.div(x, y),
    "aten.div.Scalar": lambda a, x, y: a.div(x, y),
    "aten.neg.default": lambda a, x: a.neg(x),
    "aten.reciprocal.default": lambda a, x: a.div(1.0, x),
    "aten.rsqrt.default": lambda a, x: a.div(1.0, a.function("sqrt", x)),
    "aten.square.default": lambda a, x: a.mul(x, x),
    "aten.pow.Tensor_Scalar": lambda a, x, y: a.pow(x, y),
    "aten.pow.Tensor_Tensor": lambda a, x, y: a.pow(x, y),
    "aten.pow.Scalar": lambda a, x, y: a.pow(x, y),
    **{
        f"aten.float_power.{v}": lambda a, x, y: a.pow(x, y)
        for v in ("Tensor_Tensor", "Tensor_Scalar", "Scalar")
    },
    "neml2.opaque_pow.default": lambda a, x, y: a.pow(x, y),
    # Comparisons and choices
    "aten.gt.Scalar": lambda a, x, y: a.gt(x, y),
    "aten.gt.Tensor": lambda a, x, y: a.gt(x, y),
    "aten.lt.Scalar": lambda a, x, y: a.gt(y, x),
    "aten.lt.Tensor": lambda a, x, y: a.gt(y, x),
    "aten.ge.Scalar": lambda a, x, y: a.ge(x, y),
    "aten.ge.Tensor": lambda a, x, y: a.ge(x, y),
    "aten.le.Scalar": lambda a, x, y: a.ge(y, x),
    "aten.le.Tensor": lambda a, x, y: a.ge(y, x),
    "aten.eq.Scalar": lambda a, x, y: a.eq(x, y),
    "aten.eq.Tensor": lambda a, x, y: a.eq(x, y),
    "aten.ne.Scalar": lambda a, x, y: a.not_(a.eq(x, y)),
    "aten.ne.Tensor": lambda a, x, y: a.not_(a.eq(x, y)),
    "aten.logical_not.default": lambda a, x: a.not_(x),
    "aten.logical_and.default": lambda a, x, y: a.and_(x, y),
    "aten.logical_or.default": lambda a, x, y: a.or_(x, y),
    "aten.bitwise_not.default": lambda a, x: a.not_(x),
    "aten.bitwise_and.Tensor": lambda a, x, y: a.and_(x, y),
    "aten.bitwise_or.Tensor": lambda a, x, y: a.or_(x, y),
    "aten.__and__.Tensor": lambda a, x, y: a.and_(x, y),
    "aten.__or__.Tensor": lambda a, x, y: a.or_(x, y),
    **{f"aten.any.{v}": lambda a, *args: a.any(*args) for v in ("default", "dim", "dims")},
    **{f"aten.all.{v}": lambda a, *args: a.all(*args) for v in ("default", "dim", "dims")},
    "aten.where.self": lambda a, c, x, y: a.where(c, x, y),
    "aten.where.ScalarSelf": lambda a, c, x, y: a.where(c, x, y),
    "aten.where.ScalarOther": lambda a, c, x, y: a.where(c, x, y),
    "aten.where.Scalar": lambda a, c, x, y: a.where(c, x, y),
    "aten.masked_fill.Tensor": lambda a, x, c, y: a.where(c, y, x),
    "aten.masked_fill.Scalar": lambda a, x, c, y: a.where(c, y, x),
    "aten.searchsorted.Tensor": does.search,
    "aten.gather.default": lambda a, x, axis, index, **_: a.gather(x, axis, index),
    # Sums
    "aten.sum.default": lambda a, x, **_: a.sum(x),
    "aten.sum.dim_IntList": lambda a, *args, **more: a.sum(*args, **more),
    "aten.mean.default": lambda a, x, **_: a.mean(x),
    "aten.mean.dim": lambda a, *args, **more: a.mean(*args, **more),
    "aten.prod.default": lambda a, x, **_: a.prod(x),
    "aten.prod.dim_int": lambda a, *args, **more: a.prod(*args, **more),
    "aten.amax.default": lambda a, *args: a.amax(*args),
    "aten.amin.default": lambda a, *args: a.amin(*args),
    "aten.linalg_vector_norm.default": lambda a, *args, **_: a.norm(*args),
    "aten.dot.default": lambda a, x, y: a.matmul(x, y),
    "aten.mv.default": lambda a, x, y: a.matmul(x, y),
    "aten.mm.default": lambda a, x, y: a.matmul(x, y),
    "aten.bmm.default": lambda a, x, y: a.matmul(x, y),
    "aten.matmul.default": lambda a, x, y: a.matmul(x, y),
    "aten.addmm.default": does.addmm,
    "aten.baddbmm.default": does.addmm,
    "aten.linear.default": lambda a, x, w, b=0.0: a.add(a.matmul(x, w.T), b),
    "aten.einsum.default": lambda a, equation, operands, **_: a.einsum(equation, operands),
    "aten.cross.default": lambda a, x, y, axis=-1: a.cross(x, y, axis),
    "aten.linalg_cross.default": lambda a, x, y, dim=-1: a.cross(x, y, dim),
    "aten.diff.default": lambda a, x, n=1, axis=-1: np.asarray(
        a.sub(x[does.along(x, axis, slice(1, None))], x[does.along(x, axis, slice(None, -1))])
    ),
    # Linear systems
    "aten.linalg_solve.default": does.no_solver,
    "aten._linalg_solve_ex.default": does.no_solver,
    "aten.linalg_lu_solve.default": does.no_solver,
    "aten.linalg_lu_factor.default": does.no_solver,
    "aten.linalg_inv.default": does.no_solver,
    "aten.linalg_inv_ex.default": does.no_solver,
    # Making tensors
    "aten.eye.default": does.eye,
    "aten.eye.m": does.eye,
    "aten.zeros.default": lambda a, shape, **_: a.full(shape, 0.0),
    "aten.ones.default": lambda a, shape, **_: a.full(shape, 1.0),
    "aten.full.default": lambda a, shape, value, **_: a.full(shape, value),
    "aten.empty.memory_format": lambda a, shape, **_: a.full(shape, 0.0),
    "aten.empty_permuted.default": lambda a, shape, order, **_: a.full(shape, 0.0),
    "aten.zeros_like.default": lambda a, x, **_: a.full(x.shape, 0.0),
    "aten.ones_like.default": lambda a, x, **_: a.full(x.shape, 1.0),
    "aten.full_like.default": lambda a, x, value, **_: a.full(x.shape, value),
    "aten.empty_like.default": lambda a, x, **_: a.full(x.shape, 0.0),
    "aten.new_zeros.default": lambda a, x, shape, **_: a.full(shape, 0.0),
    "aten.new_empty.default": lambda a, x, shape, **_: a.full(shape, 0.0),
    "aten.new_empty_strided.default": lambda a, x, shape, strides, **_: a.full(shape, 0.0),
    "aten.empty_strided.default": lambda a, shape, strides, **_: a.full(shape, 0.0),
    "aten.new_ones.default": lambda a, x, shape, **_: a.full(shape, 1.0),
    "aten.new_full.default": lambda a, x, shape, value, **_: a.full(shape, value),
    "aten.scalar_tensor.default": lambda a, value, **_: a.array(value),
    "prims.scalar_tensor.default": lambda a, value, **_: a.array(value),
    "aten.arange.default": does.arange,
    "aten.arange.start": does.arange,
    "aten.arange.start_step": does.arange,
    "aten.linspace.default": does.linspace,
    # The same numbers
    "aten.alias.default": does.same,
    "aten.detach.default": does.same,
    "aten.detach_.default": does.same,
    "aten.contiguous.default": does.same,
    "aten.lift_fresh_copy.default": does.copy,
    "aten.clone.default": does.copy,
    "aten.to.dtype": does.to,
    "aten.to.dtype_layout": does.to,
    "aten.to.device": lambda a, x, device, dtype, *_, **__: does.to(a, x, dtype),
    "aten.to.other": does.same,
    "aten.type_as.default": does.same,
    "aten._to_copy.default": does.to,
    "prims.convert_element_type.default": does.to,
    # Shapes
    "aten.sym_size.int": does.size,
    "aten.view.default": does.reshape,
    "aten.reshape.default": does.reshape,
    "aten._unsafe_view.default": does.reshape,
    "aten.flatten.using_ints": lambda a, x, first=0, last=-1: x.reshape(
        *x.shape[:first], -1, *x.shape[last % x.ndim + 1 :]
    ),
    "aten.expand.default": does.expand,
    "aten.expand_as.default": lambda a, x, y: np.broadcast_to(x, y.shape),
    "aten.broadcast_to.default": does.expand,
    "aten.repeat.default": lambda a, x, counts: np.tile(x, counts),
    "aten.unsqueeze.default": does.unsqueeze,
    "aten.squeeze.default": does.squeeze,
    "aten.squeeze.dim": does.squeeze,
    "aten.squeeze.dims": does.squeeze,
    "aten.permute.default": lambda a, x, axes: x.transpose(axes),
    "aten.transpose.int": lambda a, x, first, second: np.swapaxes(x, first, second),
    "aten.t.default": lambda a, x: x.T,
    "aten.mT.default": lambda a, x: np.swapaxes(x, -1, -2),
    "aten.movedim.int": lambda a, x, source, target: np.moveaxis(x, source, target),
    "aten.movedim.intlist": lambda a, x, source, target: np.moveaxis(x, source, target),
    # Parts
    "aten.slice.Tensor": does.slice_,
    "aten.narrow.default": lambda a, x, axis, start, n: does.slice_(a, x, axis, start, start + n),
    "aten.select.int": does.select,
    "aten.split.Tensor": does.split,
    "aten.split_with_sizes.default": does.split,
    "aten.unbind.int": lambda a, x, axis=0: list(np.moveaxis(x, axis, 0)),
    "aten.index.Tensor": does.index_,
    "aten.index_select.default": does.index_select,
    "aten.diagonal.default": does.diagonal,
    "aten.stack.default": lambda a, parts, axis=0: np.stack(parts, axis=axis),
    "aten.cat.default": does.cat,
    "aten.concat.default": does.cat,
    "aten.constant_pad_nd.default": does.pad,
    "aten.flip.default": lambda a, x, axes: np.flip(x, axes),
    "aten.roll.default": lambda a, x, shifts, axes: np.roll(x, shifts, axes),
    "aten.diag_embed.default": does.diag_embed,
    "aten.select_backward.default": does.into_zeros,
    "aten.slice_backward.default": lambda a, x, shape, axis, start, end, step: does.into_zeros(
        a, x, shape, axis, slice(start, end, step)
    ),
    "aten.select_scatter.default": does.scatter,
    "aten.slice_scatter.default": lambda a, x, y, axis=0, start=None, end=None, step=1: (
        does.scatter(a, x, y, axis, slice(start, end, step))
    ),
    "aten.as_strided.default": does.strided,
    "aten.as_strided_scatter.default": does.strided_scatter,
    "aten.diagonal_scatter.default": does.diagonal_scatter,
    "aten.index_put.default": does.index_put,
    "aten.scatter_add.default": does.scatter_add,
    # Written in place
    "aten.fill_.Scalar": does.assign,
    "aten.fill_.Tensor": does.assign,
    "aten.copy_.default": does.assign,
    "aten.copy.default": lambda a, x, y, *_: np.array(np.broadcast_to(y, x.shape), dtype=object),
    "aten.zero_.default": lambda a, x: does.assign(a, x, 0.0),
    "aten.add_.Tensor": lambda a, x, y, alpha=1: does.assign(a, x, does.add(a, x, y, alpha)),
    "aten.sub_.Tensor": lambda a, x, y, alpha=1: does.assign(a, x, does.sub(a, x, y, alpha)),
    "aten.mul_.Tensor": lambda a, x, y: does.assign(a, x, a.mul(x, y)),
    "aten.div_.Tensor": lambda a, x, y: does.assign(a, x, a.div(x, y)),
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
