"""Definitions in the words of a language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from neml2_capi.header.definitions import Definition


def _underscored(words: str) -> dict[str, str]:
    return {word: f"{word}_" for word in words.split()}


#: Words of a language that are none of C: names get an underscore.
OF_CPP = _underscored(
    "and asm bitand bitor bool catch class compl concept constexpr decltype delete explicit export "
    "friend mutable namespace new noexcept not nullptr operator or private protected public "
    "requires this throw try typeid typename using virtual wchar_t xor"
)
_OF_OPENCL = _underscored(
    "bool complex constant event_t generic global half imaginary kernel local pipe private quad "
    "read_only read_write sampler_t size_t uchar uint ulong ushort write_only"
)
_OPENCL_TYPES = {"int32_t": "int", "uint64_t": "ulong"}


#: What stands for words of both languages: a function, loops, and arrays of the caller.
_WORDS_OF_CPP = {
    "FUNCTION": "NEML2_FUNCTION static",
    "INLINE": "NEML2_FUNCTION static",
    "ROLLED": "NEML2_ROLLED",
    "UNROLLED": "NEML2_UNROLLED",
    "GLOBAL ": "",
}
_WORDS_OF_OPENCL = {
    "FUNCTION": "NEML2_FUNCTION",
    "INLINE": "NEML2_FUNCTION",
    "ROLLED": "#pragma unroll 1",
    "UNROLLED": "#pragma unroll",
    "GLOBAL ": "__global ",
}


def in_cpp(definition: Definition) -> str:
    """A member of `struct law`; tables stand in the function that reads them."""
    text = _with_words(definition.renamed(OF_CPP), _WORDS_OF_CPP)
    tables = [f"\n  static const {t.type} {t.name}[] = {t.values};" for t in definition.tables]
    return text.replace(") {", f") {{{''.join(tables)}", 1)


def in_opencl(definition: Definition) -> str:
    """A function of the program, with the tables that it reads before it."""
    names = {t.name: f"{definition.name}_{t.name}" for t in definition.tables}
    made = definition.renamed({**_OF_OPENCL, **names})
    tables = [
        f"__constant {_OPENCL_TYPES.get(t.type, t.type)} {t.name}[] = {t.values};"
        for t in made.tables
    ]
    return "\n".join([*tables, _with_words(made, _WORDS_OF_OPENCL)])


def _with_words(definition: Definition, words: Mapping[str, str]) -> str:
    """The text behind its comment, in the words of a language."""
    text = re.sub(rf"\b({'|'.join(words)})", lambda m: words[m[0]], definition.text)
    return f"{definition.comment}\n{text}" if definition.comment else text
