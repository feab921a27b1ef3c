"""Lengths of arrays on a device, which the faces of C++ and Fortran know."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from native import CXX, FORTRAN, INCLUDE, LINK, MODULES, command
from opencl_queue import Context
from test_opencl import cache_of_pocl, caches, with_text  # noqa: F401

pytestmark = pytest.mark.native

# Columns [6][100]: an array of 550 elements ends within the last component of the points.
CPP = r"""
#include <cstdio>
#include "neml2_capi_experimental.hpp"
extern "C" int refused(const char* path, void* queue) try {
  const neml2::Model model(neml2::Source(path).device(neml2::opencl()));
  neml2::Call call(model);
  std::vector<double> strain(600), stress(600);
  neml2::use_device_memory(call, queue, NEML2_MEMORY_ADDRESSES, 100);
  call.bind_input("strain", strain, 1);
  int found = 0;
  for (const std::size_t size : {500u, 550u}) try {
      call.bind_output("stress", neml2::Span(stress.data(), size), 1).run_or_throw(100);
    } catch (const neml2::Error& error) {
      std::puts(error.what());
      if (error.status() == NEML2_ERROR_SHAPE && error.subject() == "stress") ++found;
    }
  call.bind_output("stress", stress, 1);
  neml2::use_host_memory(call);
  call.bind_input("strain", strain).bind_output("stress", stress);
  return call.run(100) == NEML2_OK ? found : -1;
} catch (const neml2::Error& error) {
  std::puts(error.what());
  return -1;
}
"""

FORTRAN_TEXT = """
integer(c_int) function refused(path, length, queue) result(found) bind(c)
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_call, neml2_device_opencl, neml2_error_shape, neml2_model, neml2_view
  use neml2_capi_experimental, only: neml2_call_memory_set
  implicit none(type, external)
  character(kind=c_char), intent(in) :: path(*)
  integer(c_int), value :: length
  type(c_ptr), value :: queue
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(600), stress(600)
  character(length) :: name
  integer(int32) :: stat
  integer :: i
  do i = 1, length
    name(i:i) = path(i)
  end do
  strain = 0
  call model%load(name, device=neml2_device_opencl)
  call evaluation%create(model)
  call neml2_call_memory_set(evaluation, queue=queue, component_stride=100_int64)
  call evaluation%bind_input("strain", neml2_view(strain), stride=1)
  found = 0
  call evaluation%bind_output("stress", neml2_view(stress(:500)), stat, stride=1)
  if (stat == neml2_error_shape) found = found + 1
  call evaluation%bind_output("stress", neml2_view(stress(:550)), stat, stride=1)
  if (stat == 0) call evaluation%run(100, stat)
  if (stat == neml2_error_shape) found = found + 1
  call neml2_call_memory_set(evaluation)
  call evaluation%bind_input("strain", neml2_view(strain), stride=6)
  call evaluation%bind_output("stress", neml2_view(stress), stride=6)
  call evaluation%run(100, stat)
  if (stat /= 0) found = -1
end function refused
"""


@pytest.mark.full("compiles a program")
def test_a_column_that_is_too_short_is_refused_in_cpp(tmp_path: Path) -> None:
    source, built = tmp_path / "columns.cpp", tmp_path / "columns.so"
    source.write_text(CPP)
    command(CXX, "-std=c++17", "-fPIC", "-shared", f"-I{INCLUDE}", source, "-o", built, *LINK)
    root = str(with_text(tmp_path / "artifact")).encode()
    queue = Context().queue()
    assert ctypes.CDLL(str(built)).refused(root, queue.handle) == 2


@pytest.mark.full("compiles a program")
@pytest.mark.skipif(not FORTRAN, reason="there is no gfortran")
def test_a_column_that_is_too_short_is_refused_in_fortran(tmp_path: Path) -> None:
    source, built = tmp_path / "columns.f90", tmp_path / "columns.so"
    source.write_text(FORTRAN_TEXT)
    words = ("-fPIC", "-shared", f"-J{tmp_path}", *LINK)
    command(FORTRAN or "", *MODULES, source, "-o", built, *words)
    root = str(with_text(tmp_path / "artifact")).encode()
    queue = Context().queue()
    assert ctypes.CDLL(str(built)).refused(root, len(root), queue.handle) == 2
