# A libtorch that is found at run time.
if(NOT packages IN_LIST NEML2_CAPI_BACKENDS)
  message(FATAL_ERROR "The backend libtorch runs packages: set NEML2_CAPI_BACKENDS to 'packages;libtorch'.")
endif()
list(APPEND rooms libtorch)
