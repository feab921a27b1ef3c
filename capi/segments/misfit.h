// Error of an artifact whose packages and metadata do not fit each other.
#pragma once

#include <string>

#include "capi/base/error.h"

namespace neml2_capi::model {

// Returns the error of a problem, a sentence of several pieces without its full stop; the remedy follows.
template <class... Pieces>
Error misfit(const std::string& subject, const Pieces&... problem) {
  return Error(NEML2_ERROR_ARTIFACT, subject,
               join(problem...,
                    ". The folder mixes files of different compilations, or the sub-batch sites of a value were lost "
                    "between segments: compile the model again, with neml2-capi compile."));
}

}  // namespace neml2_capi::model
