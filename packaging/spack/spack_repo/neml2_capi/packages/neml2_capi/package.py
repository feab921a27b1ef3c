from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Neml2Capi(CMakePackage):
    """Runs the compiled material models of NEML2 from C, C++ and Fortran, without libtorch."""

    homepage = "https://pypi.org/project/neml2_capi/"
    url = "https://pypi.io/packages/source/n/neml2_capi/neml2_capi-1.0.0rc1.tar.gz"

    license("MIT", checked_by="neml2_capi")

    # Zeros until the release is published: `spack checksum neml2-capi` tells the true one.
    version("1.0.0rc1", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    generator("ninja")

    # Fortran programs compile the module themselves, which is installed as a source.
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("nlohmann-json@3.11.2:3", type="build")

    conflicts("%gcc@:9", msg="the library is written in C++20")
    conflicts("%clang@:12", msg="the library is written in C++20")

    def cmake_args(self):
        return [self.define("NEML2_CAPI_TESTS", False)]
