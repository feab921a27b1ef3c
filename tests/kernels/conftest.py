"""The fixtures of the tests of kernels."""

from kernel_setup import any_cc, built, captured, cc

__all__ = ["any_cc", "built", "captured", "cc"]
