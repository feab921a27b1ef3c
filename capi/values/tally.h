// Outcome of the points of an evaluation.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "capi/base/error.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::model {

// Number of points that ended with each status, and the first that did.
struct Tally {
  std::int64_t count[4] = {};
  std::int64_t first[4] = {};
  // Reason of a user's operator, at the first of the points where one failed.
  std::string reason;
  std::int64_t reason_at = 0;
  std::int32_t cause = NEML2_CAUSE_NONE;  // of the same
  // Errors of several devices, in the order of their points.
  std::vector<Error> parts;

  // Adds one point, or so many from it on.
  void add(std::int32_t status, std::int64_t point, std::int64_t points = 1) {
    if (count[status] == 0) first[status] = point;
    count[status] += points;
  }
  // Adds consecutive points.
  void add(const Vector<std::int32_t>& status, std::int64_t begin) {
    std::int32_t any = 0;
    for (std::int32_t each : status) any |= each;
    if (any == NEML2_OK)
      add(NEML2_OK, begin, std::ssize(status));
    else
      for (std::int32_t each : status) add(each, begin++);
  }
  void note(const char* why, std::int64_t point, std::int32_t because) {
    if (!reason.empty() && reason_at <= point) return;
    reason = why;
    reason_at = point;
    cause = because;
  }
  // Counts the points from `begin` on, instead of from 0.
  void shift(std::int64_t begin) {
    for (std::int64_t& each : first) each += begin;
    reason_at += begin;
  }
  // Adds other points.
  void add(const Tally& other) {
    if (!other.reason.empty()) note(other.reason.c_str(), other.reason_at, other.cause);
    for (int status = 0; status < 4; ++status) {
      if (other.count[status] > 0 && (count[status] == 0 || other.first[status] < first[status]))
        first[status] = other.first[status];
      count[status] += other.count[status];
    }
  }
  std::int32_t worst() const {
    std::int32_t status = NEML2_SINGULAR;
    while (status > NEML2_OK && count[status] == 0) --status;
    return status;
  }
  // Returns the message, where the worst is not NEML2_OK.
  std::string message(std::int64_t points) const;
};

}  // namespace neml2_capi::model
