// The log: records as objects, and errors thrown.
#include "face.hpp"

using face::refuses;

static void levels_are_set_and_told() {
  neml2::set_log_level("all", NEML2_LOG_INFO);
  neml2::set_log_level("newton", NEML2_LOG_DEBUG);
  CHECK(neml2::log_level("newton") == NEML2_LOG_DEBUG && neml2::log_level("model") == NEML2_LOG_INFO);
  neml2::set_log_level("all", NEML2_LOG_WARNING);
  CHECK(neml2::log_level("all") == NEML2_LOG_WARNING);
  CHECK(refuses(NEML2_ERROR_NAME, "neton", [] { neml2::set_log_level("neton", NEML2_LOG_INFO); }));
  CHECK(refuses(NEML2_ERROR_NAME, "neton", [] { static_cast<void>(neml2::log_level("neton")); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "level", [] { neml2::set_log_level("newton", 9); }));
}

static void records_are_taken_in_order() {
  const neml2::Model model(face::path("viscoplastic"));
  face::Step step(model, 1);
  const face::Tensor6 guess{};
  step.call.bind_input("stress", guess); /* which the predictor replaces */
  CHECK(!neml2::next_log_record() && neml2::log_count() == 0);
  neml2::set_log_level("newton", NEML2_LOG_DEBUG);
  CHECK(step.call.run(1) == NEML2_OK);
  const int64_t written = neml2::log_count();
  CHECK(written > 2);
  for (int64_t i = 0; i < written; ++i) {
    const auto record = neml2::next_log_record();
    CHECK(record && record->channel == "newton");
    const std::string expected = i + 1 < written ? "iteration " + std::to_string(i) : "1 of 1 converged";
    CHECK(record && record->message.find(expected) != std::string::npos);
    CHECK(record && record->level == (i + 1 < written ? NEML2_LOG_DEBUG : NEML2_LOG_INFO));
  }
  CHECK(!neml2::next_log_record());
  neml2::set_log_level("all", NEML2_LOG_WARNING);
}

int main() {
  return face::run([] {
    levels_are_set_and_told();
    records_are_taken_in_order();
  });
}
