# Packages of AOTInductor on the built-in provider, which is a library of its own: packages bind to its symbols, and
# libneml2_capi exports only neml2_*.
add_subdirectory(provider)
list(APPEND rooms package loader packages)
set_source_files_properties(loader/provider_file.cpp PROPERTIES
  COMPILE_DEFINITIONS NEML2_PROVIDER_FILE="${NEML2_PROVIDER_FILE}")
