"""A law as one C file, which a program is linked with: its kernels, and its artifact without them.

The library then opens no file and loads no code, so that it runs in a static program, and
without a dynamic loader.
"""

from __future__ import annotations

import re
from pathlib import Path

from neml2_capi.kernels.arithmetic import FLAGS, REFUSED, REFUSED_BY_CLANG, precise
from neml2_capi.kernels.build import require_sources
from neml2_capi.kernels.folder import C, KernelError, in_single_precision, read_metadata
from neml2_capi.kernels.packed import kernels_alone
from neml2_capi.kernels.tables import identifier, kernel_set
from neml2_capi.kernels.variables import with_variables_apart

_INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)
#: What a kernel defines for itself: prepare, run, kernel_inputs.
_OWN = re.compile(r"^(?:static|FUNCTION)\b[^(\[=;]*?(\w+) ?[(\[=]", re.MULTILINE)

_HEAD = """\
/* {name}: a material law, to link into a program with libneml2_capi: kernels, and the artifact.
 *
 *     neml2_source neml2_source_of_{name}(void);
 *
 *     const neml2_source source = neml2_source_of_{name}();
 *     neml2_model_open(&model, &source);
 *
 * Compile it by gcc or clang with -O2 -Wno-psabi -fno-math-errno -fno-trapping-math; and with
 * -march=x86-64-v3 if all processors have AVX2. The bits are the same. By neml2-capi static.
 */
"""
#: Behind what clang is told of precise arithmetic, which lets it fuse products with sums.
_UNFUSED = """\
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
"""


def linked(root: Path, name: str, real: str = "float64") -> str:
    """The text of the file.

    Parameters
    ----------
    root : Path
        The folder of an artifact, or its metadata file.
    name : str
        Of the law; `neml2_source_of_NAME` returns its source.
    real : str
        The leaf of the artifact, "float64" or "float32", whatever its kernels compute in.

    Returns
    -------
    str
        C99 with GCC's vectors.

    Raises
    ------
    KernelError
        There are no kernels of this type, a graph of the model has none, or a file was changed.
    """
    root = root if root.is_dir() else root.parent
    archive = kernels_alone(root, real, objects=False)
    if archive is None:
        raise KernelError(
            f"{root} has no kernels in {real}: compile the model with "
            "neml2-capi compile INPUT.i --kernels auto"
        )
    folder = root / "kernels" / real
    document = read_metadata(folder)
    require_sources(folder, document)
    name = identifier(name)
    names = [kernel["name"] for kernel in document["kernels"]]
    parts = [_HEAD.format(name=name) + REFUSED.format(flags=FLAGS) + precise("precise, on")]
    parts += [_UNFUSED, REFUSED_BY_CLANG.format(head="static inline __attribute__((unused))")]
    parts.append('#include "neml2_capi.h"\n')
    if in_single_precision(document):
        parts.append("#define NEML2_KERNEL_FLOAT\n#define NEML2_KERNEL_LANES 8\n")
    headers = _Headers(folder)
    parts.append(headers.into('#include "neml2_kernel.h"\n#include "functions.h"\n'))
    for kernel in document["kernels"]:
        text = (folder / kernel["source"]).read_text(encoding="utf-8")
        text = headers.into(with_variables_apart(text))
        parts.append(_apart(text, identifier(kernel["name"])))
    listed = headers.into(kernel_set(document["model"], names))
    listed = listed.partition("\nconst neml2_kernel_set")[0]
    parts.append(re.sub(r"^extern .*\n", "", listed, flags=re.MULTILINE))
    parts += [
        f"static const unsigned char archive[{len(archive)}] = {{",
        *_numbers(archive),
        "};\n",
    ]
    parts += [
        f"neml2_source neml2_source_of_{name}(void);",
        f"neml2_source neml2_source_of_{name}(void) {{",
        "  const neml2_source source = {.size = sizeof source, .content = archive, "
        ".content_size = sizeof archive,",
        f"                               .dtype = NEML2_{real.upper()}, .kernels = &set}};",
        "  return source;\n}\n",
    ]
    return "\n".join(parts)


class _Headers:
    """The headers of kernels, each once: of their folder, else of this package."""

    def __init__(self, folder: Path) -> None:
        self._folders, self._known = (folder, C), set[str]()

    def into(self, text: str) -> str:
        """A text with the headers that it includes in it."""
        return _INCLUDE.sub(self._header, text)

    def _header(self, found: re.Match[str]) -> str:
        name = found[1]
        if name in self._known:
            return ""
        self._known.add(name)
        file = next(folder / name for folder in self._folders if (folder / name).is_file())
        return self.into(file.read_text(encoding="utf-8"))


def _apart(text: str, kernel: str) -> str:
    """A kernel whose names no other kernel of the file has."""
    own = dict.fromkeys(_OWN.findall(text))
    text = re.sub(r"#define (run_\w+) 0", r"#undef \1\n\g<0>", text)
    text = text.replace("#define NEML2_KERNEL_FLOAT\n", "").replace(
        "\nconst neml2_kernel ", "\nstatic const neml2_kernel "
    )
    names = [f"#define {name} {kernel}_{name}" for name in own]
    return "\n".join([*names, text, *(f"#undef {name}" for name in own), ""])


def _numbers(content: bytes) -> list[str]:
    return [",".join(map(str, content[at : at + 40])) + "," for at in range(0, len(content), 40)]
