# The bill of materials of a wheel: what is compiled into its libraries. PEP 770 gives it a place in the wheel.

if(NOT SKBUILD_METADATA_DIR)
  return()
endif()

file(STRINGS ${NLOHMANN_JSON_INCLUDE}/nlohmann/detail/abi_macros.hpp versions REGEX "define NLOHMANN_JSON_VERSION_")
string(REGEX REPLACE "[^0-9;]" "" json_version "${versions}")
string(REPLACE ";" "." json_version "${json_version}")

set(runtime_component "")
if(NEML2_CAPI_CXX_RUNTIME)
  set(runtime_component ",
    {
      \"type\": \"library\",
      \"bom-ref\": \"${NEML2_CAPI_CXX_RUNTIME}\",
      \"name\": \"${NEML2_CAPI_CXX_RUNTIME}\",
      \"version\": \"${CMAKE_CXX_COMPILER_VERSION}\",
      \"licenses\": [{\"expression\": \"Apache-2.0 WITH LLVM-exception\"}],
      \"purl\": \"pkg:github/llvm/llvm-project@llvmorg-${CMAKE_CXX_COMPILER_VERSION}\"
    }")
endif()
configure_file(cmake/sbom.cdx.json.in ${PROJECT_BINARY_DIR}/neml2_capi.cdx.json @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/neml2_capi.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT wheel
  EXCLUDE_FROM_ALL)
