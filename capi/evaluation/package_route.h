// What routes over packages have in common: how many points a run of one may take.
#pragma once

#include <cstdint>

#include "capi/evaluation/route.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

class PackageRoute : public Route {
 public:
  void check(const Options& options, std::int64_t points) const override;

 protected:
  explicit PackageRoute(const Model& model) : model_(model) {}

  // `bytes_per_point`: what the package that has most reads and writes.
  ChunkSize chunk_of(const Options& options, const Request& request, std::int64_t bytes_per_point) const;

  const Model& model_;
};

}  // namespace neml2_capi::model
