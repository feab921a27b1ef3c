"""Definitions in the words of a language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from neml2_capi.header.definitions import Definition


def _underscored(words: str) -> dict[str, str]:
    return {word: f"{word}_" for word in words.split()}


#: Words of a language that are none of C: names get an underscore.
OF_CPP = _underscored(
    "alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const_cast consteval constexpr constinit decltype "
    "delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public reinterpret_cast requires static_assert "
    "static_cast template this thread_local throw true try typeid typename using virtual wchar_t "
    "xor xor_eq"
)
#: Macros and words of compilers, and macros of C's headers, that stand for something else.
_MACROS = "errno i386 linux typeof unix"
#: What no member is called: words of the language, macros, and what the text calls something else.
NO_MEMBERS = {*OF_CPP, *_MACROS.split(), "x", "p", "y", "parameters"}
_OF_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 "
    "exp2 expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 "
    "j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint "
    "nextafter nexttoward pow remainder remquo rint round scalb scalbln scalbn significand sin "
    "sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn"
)
_OF_SYSTEMS = (
    "abort abs access alarm atof atoi calloc clock close connect div errno exit fork free getenv "
    "index kill labs ldiv link main malloc memcpy open pause pipe printf puts qsort raise rand "
    "random read remove rename rindex select send signal signgam sleep std sync system time times "
    "truncate wait write"
)
#: What a host may have in no namespace, functions of C: no namespace is called so.
GLOBALS = {
    *(f"{name}{end}" for name in _OF_MATH.split() for end in ("", "f", "l")),
    *_OF_SYSTEMS.split(),
    *_MACROS.split(),
}
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


def commented(text: str) -> str:
    """A text that ends no comment of C, begins none, and stays in its line."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return re.sub(r"\*(?=/)|/(?=\*)", r"\g<0> ", shown).replace("??/", "? ?/")


def _with_words(definition: Definition, words: Mapping[str, str]) -> str:
    """The text behind its comment, in the words of a language."""
    text = re.sub(rf"\b({'|'.join(words)})", lambda m: words[m[0]], definition.text)
    return f"{definition.comment}\n{text}" if definition.comment else text
