// The state of points in a file, by which a run continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capi/model/model.h"
#include "capi/values/points.h"

namespace neml2_capi::model {

// Position of a run: its step and time, as the caller counts them.
struct Position {
  std::int64_t step = 0;
  double time = 0;
};

// Writes the inputs that are carried from step to step, and replaces the file when all is in it. Throws Error:
// NEML2_ERROR_MISSING if one is not bound, NEML2_ERROR_FILE if the file cannot be written.
void save(const Model& model, const std::vector<Points>& inputs, std::int64_t points, const std::filesystem::path& path,
          const Position& position);

// Writes what save() kept into the bound arrays. Throws Error, and has then written nothing: NEML2_ERROR_MISSING if an
// input is not bound, NEML2_ERROR_FILE if the file cannot be read or is damaged, NEML2_ERROR_ARTIFACT if it is of
// another artifact or of other views of the law, NEML2_ERROR_SHAPE if it is of other points, NEML2_ERROR_NAME for other variables.
Position load(const Model& model, const std::vector<Points>& inputs, std::int64_t points,
              const std::filesystem::path& path);

}  // namespace neml2_capi::model
