# Precompiled headers, which NEML2_CAPI_PRECOMPILE turns on: read once instead of by each of a hundred files.
#
#   neml2_capi_precompile(FIRST TARGET ... HEADERS HEADER ...)   targets with the options of the first, which compiles them

function(neml2_capi_precompile first)
  cmake_parse_arguments(PARSE_ARGV 1 with "" "" HEADERS)
  if(NOT NEML2_CAPI_PRECOMPILE)
    return()
  endif()
  if(with_HEADERS)
    target_precompile_headers(${first} PRIVATE ${with_HEADERS})
  endif()
  foreach(target IN LISTS with_UNPARSED_ARGUMENTS)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
  # ccache asks for it.
  foreach(target IN LISTS first with_UNPARSED_ARGUMENTS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  endforeach()
endfunction()
