"""Lines of a text for compilers that keep its arithmetic as IEEE 754 has it.

Bits of a law are its promise, and some flags take the rules away on which it rests: that sums keep
their order, and that there are numbers which are not finite.
"""

from __future__ import annotations

#: What no text is compiled with, as far as a compiler tells its flags: gcc tells all since 12, and
#: before by __GCC_IEC_559, which is 0 without doubles in hardware, too. OpenCL has the same words.
REFUSED = """\
#if defined(__FAST_MATH__) || defined(__FAST_RELAXED_MATH__) || defined(_M_FP_FAST) || \\
    (defined(__USE_FAST_MATH__) && __USE_FAST_MATH__) || \\
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \\
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \\
    defined(__NO_SIGNED_ZEROS__)
#define NEML2_NOT_IEEE
#elif defined(__GCC_IEC_559) && (defined(__x86_64__) || defined(__aarch64__))
#if __GCC_IEC_559 == 0 && __GNUC__ < 12
#define NEML2_NOT_IEEE
#endif
#endif
#ifdef NEML2_NOT_IEEE
#error "this text needs IEEE arithmetic: compile without {flags}"
#endif
"""
#: The flags of C and C++ for that.
FLAGS = (
    "-ffast-math, -funsafe-math-optimizations, -fassociative-math, -freciprocal-math, "
    "-ffinite-math-only, -fno-signed-zeros, /fp:fast and --use_fast_math"
)
#: The same flags of OpenCL.
FLAGS_OF_OPENCL = "-cl-fast-relaxed-math and -cl-finite-math-only"


def precise(action: str) -> str:
    """The lines by which clang, which tells few of its flags, computes precisely all the same.

    Targets that have no such pragma ignore it. A sign of a zero, which is made by a unary minus,
    still goes by the flags.

    Parameters
    ----------
    action : str
        The argument of float_control: "precise, on", to the end of the text; or this with ", push",
        until "pop".
    """
    return (
        "#ifdef __clang__\n"
        "#pragma clang diagnostic push\n"
        '#pragma clang diagnostic ignored "-Wignored-pragmas"\n'
        f"#pragma float_control({action})\n"
        "#pragma clang diagnostic pop\n"
        "#endif\n"
    )


#: A function that clang refuses since 15, of any target, if its flags let sums, quotients or
#: functions have other results. It shows this line; what that says of evaluation ends with the {}.
REFUSED_BY_CLANG = """\
#if defined(__clang__) && __clang_major__ >= 15
{head} void needs_ieee_arithmetic(void) {{
#pragma clang fp eval_method(source) /* this text needs IEEE arithmetic: compile without the flag */
}}
#endif
"""
