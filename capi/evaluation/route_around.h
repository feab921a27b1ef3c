// A route that does something before or after another one.
#pragma once

#include "capi/evaluation/route.h"

namespace neml2_capi::model {

// Gives what the other route gives, in its chunks and ranges.
class RouteAround : public Route {
 public:
  // The route must outlive it.
  explicit RouteAround(const Route& route) : route_(route) {}

  bool gives(const Request& request, const Options& options) const override { return route_.gives(request, options); }
  void check(const Options& options, std::int64_t points) const override { route_.check(options, points); }
  ChunkSize chunk_size(const Options& options, const Request& request) const override {
    return route_.chunk_size(options, request);
  }
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override {
    return route_.end_of_range(options, bindings, begin, size);
  }

 protected:
  const Route& route_;
};

}  // namespace neml2_capi::model
