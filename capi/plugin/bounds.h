// Bounds of laws: what becomes of points beyond, and what hosts are told of them.
#pragma once

#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

// Gives a model the policy that the host has set, if it has.
void apply_policy(const Material& material);

// Hands warnings of bounds and of capsules, which wait in the log, to the host, each with `remark` behind it.
void tell_warnings(const Material& material, const char* remark = "") noexcept;

// Tells the host that a point failed for its bounds: the first time, the second, the fourth, and so on. Throws
// neml2::Error if no smaller step mends that.
void give_up_beyond(const Material& material, double cut);

}  // namespace neml2_capi::plugin
