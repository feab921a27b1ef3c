"""A compiled law as one text, for programs and devices that inline it."""

from neml2_capi.header.write import LANGUAGES, header

__all__ = ["LANGUAGES", "header"]
