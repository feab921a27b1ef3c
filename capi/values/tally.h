// Counts of the points of an evaluation, and what is known of those that failed.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "capi/base/error.h"
#include "capi/tensor/tensor.h"
#include "capi/values/counts.h"
#include "capi/values/exceeded.h"

namespace neml2_capi::model {

struct Tally : Counts {
  // Reason of a user's operator, at the first point that failed by one.
  std::string reason;
  std::int64_t reason_at = 0;
  std::int32_t cause = NEML2_CAUSE_NONE;  // of the same
  bool solved_by_caller = false;
  bool judged_by_caller = false;  // whose solver gave statuses, too
  bool rescue_failed = false;     // at a point, so that its solve did
  bool has_no_rescue = false;     // where points were evaluated: a device
  bool has_own_search = false;    // likewise: the line search is the artifact's
  Vector<Exceeded> exceeded;      // bounds, whether or not points failed for them
  // Errors of several devices, in the order of their points.
  std::vector<Error> parts;

  // Adds one point, or so many from it on.
  void add(std::int32_t status, std::int64_t point, std::int64_t points = 1) {
    if (count[status] == 0) first[status] = point;
    count[status] += points;
  }
  // Adds one point, in any order.
  void add_one(std::int32_t status, std::int64_t point) {
    if (count[status]++ == 0 || point < first[status]) first[status] = point;
  }
  // Leaves the points whose solve failed out.
  void forget_failed() {
    count[NEML2_NOT_CONVERGED] = count[NEML2_SINGULAR] = 0;
    failed = {};
    reason.clear();
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
  // Adds consecutive points of a solve, which took so many iterations and ended with these norms.
  void add(const Vector<std::int32_t>& status, const Vector<std::int32_t>& iterations, const Vector<double>& norms,
           std::int64_t begin);
  void note(const char* why, std::int64_t point, std::int32_t because) {
    if (!reason.empty() && reason_at <= point) return;
    reason = why;
    reason_at = point;
    cause = because;
  }
  void note(const Failed& other) {
    if (other.point >= 0 && (failed.point < 0 || other.point < failed.point)) failed = other;
  }
  void note(const NonFinite& other) {
    if (other.point >= 0 && (non_finite.point < 0 || other.point < non_finite.point)) non_finite = other;
  }
  // Takes over what helps none of the points.
  void note_means(const Tally& other) {
    rescue_failed |= other.rescue_failed;
    has_no_rescue |= other.has_no_rescue;
    has_own_search |= other.has_own_search;
  }
  // Gives the points other numbers.
  template <class Number>
  void renumber(Number&& number) {
    for (int status = 0; status < num_statuses; ++status)
      if (count[status] > 0) first[status] = number(first[status]);
    if (!reason.empty()) reason_at = number(reason_at);
    if (failed.point >= 0) failed.point = number(failed.point);
    if (non_finite.point >= 0) non_finite.point = number(non_finite.point);
    for (Exceeded& each : exceeded) each.point = number(each.point);
  }
  // Counts the points from `begin` on, instead of from 0.
  void shift(std::int64_t begin) {
    renumber([&](std::int64_t point) { return point + begin; });
  }
  // Adds other points.
  void add(const Tally& other) {
    if (!other.reason.empty()) note(other.reason.c_str(), other.reason_at, other.cause);
    note_means(other);
    for (const Exceeded& each : other.exceeded) model::add(exceeded, each);
    add(static_cast<const Counts&>(other));
  }
  void add(const Counts& other) {
    note(other.failed);
    note(other.non_finite);
    for (int status = 0; status < num_statuses; ++status) {
      if (other.count[status] > 0 && (count[status] == 0 || other.first[status] < first[status]))
        first[status] = other.first[status];
      count[status] += other.count[status];
    }
  }
  std::int32_t worst() const {
    std::int32_t status = num_statuses - 1;
    while (status > NEML2_OK && count[status] == 0) --status;
    return status;
  }
  // Tells whether the residual of the first point that failed was not finite before any iteration.
  bool failed_at_the_guess() const;
  // What is known of the first point that failed, of the first that is not finite, and of the first that is out of bounds,
  // in words.
  struct Remarks {
    std::string failed, non_finite, out_of_bounds;
  };
  // Returns the message, if the worst is not NEML2_OK.
  std::string message(std::int64_t points, const Remarks& remarks) const;
  std::string message(std::int64_t points) const { return message(points, {}); }

 private:
  std::string advice(const std::string& remark) const;
};

}  // namespace neml2_capi::model
