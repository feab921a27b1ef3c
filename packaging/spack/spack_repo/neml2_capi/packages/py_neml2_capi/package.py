from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyNeml2Capi(PythonPackage):
    """Runs the compiled material models of NEML2 from Python, without torch."""

    homepage = "https://pypi.org/project/neml2_capi/"
    pypi = "neml2_capi/neml2_capi-1.0.0rc1.tar.gz"

    license("MIT", checked_by="neml2_capi")

    # Zeros until the release is published: `spack checksum py-neml2-capi` tells the true one.
    version("1.0.0rc1", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("cli", default=True, description="What the command neml2-capi needs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.11:1", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja", type="build")
    depends_on("nlohmann-json@3.11.2:3", type="build")
    depends_on("py-cffi@1.15:", type="run")
    depends_on("py-numpy@1.24:", type="run")
    with when("+cli"):
        depends_on("py-click@8.1:", type="run")
        depends_on("py-rich@13:", type="run")
        depends_on("py-f90nml@1.4:", type="run")
        depends_on("py-tomli@2:", type="run", when="^python@:3.10")
