// The options of a model: read and set by name, each number within bounds.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/model/capsule_folder.h"
#include "capi/newton/newton.h"

namespace neml2_capi::model {

class Options {
 public:
  Options() = default;
  // Takes what the artifact was compiled with, and the threads that NEML2_CAPI_THREADS asks for, if it is set.
  // Throws NEML2_ERROR_ARGUMENT if that is not a number of threads, NEML2_ERROR_ARTIFACT for settings of the artifact
  // that are out of bounds.
  explicit Options(const artifact::Metadata& metadata);
  // Throws NEML2_ERROR_ARTIFACT as the constructor does.
  static void require_solver(const artifact::Metadata& metadata);

  // A text is kept as the position of its choice.
  struct Info {
    const char* name;
    std::variant<double Options::*, double newton::Settings::*, std::int64_t newton::Settings::*,
                 bool newton::Settings::*>
        place;
    double least, greatest;
    bool whole;                     // only whole numbers
    const char* choices;            // of a text: all of them, separated by spaces, or any_text; null for a number
    std::vector<const char*> each;  // of a text: one by one
  };
  static constexpr const char* any_text = "*";
  static const std::vector<Info>& all();

  // Throw NEML2_ERROR_NAME for an unknown name, NEML2_ERROR_ARGUMENT for a value out of bounds.
  void set(std::string_view name, double value);
  void set(std::string_view name, std::string_view value);
  double number(std::string_view name) const;
  const char* text(std::string_view name) const;

  const newton::Settings& newton() const { return newton_; }
  std::int64_t miters() const { return newton_.miters; }
  bool whole_batch() const { return newton_.whole_batch; }
  bool collect_history() const { return collect_history_ == 1; }
  double substep_del_tol() const { return substep_del_tol_; }
  // Tells whether the artifact's kernels run: if they can, never, or always.
  enum class Kernels { automatic, off, required };
  Kernels kernels() const { return static_cast<Kernels>(static_cast<int>(kernels_)); }
  // 0: chosen by the library.
  std::int64_t chunk() const { return static_cast<std::int64_t>(chunk_); }
  // 0: as many as the calling thread has processors.
  int threads() const { return static_cast<int>(threads_); }
  // Returns the most solves by which a point that did not converge is rescued.
  std::int64_t rescue() const { return static_cast<std::int64_t>(rescue_); }
  // Returns the options for a part of an evaluation, in the thread that has it.
  Options in_one_thread() const;
  // Return the options of these solves, for one thread, and of the points that are left.
  Options in_rescue() const;
  Options without_rescue() const;
  // Returns the options of a solve that is known to have a solution.
  Options with_more_solves() const;
  // What becomes of points that are out of the bounds of validity. Physical bounds fail them in any case.
  enum class Bounds { off, warn, fail };
  Bounds bounds() const { return static_cast<Bounds>(static_cast<int>(bounds_)); }
  // Tells whether a plan has looked at the bounds, so that plans within it need not.
  bool bounds_are_checked() const { return bounds_are_checked_; }
  Options with_bounds_checked() const;
  // Returns the folder that failed calls are written to; null: nowhere.
  const CapsuleFolder* capsule() const { return capsule_; }

 private:
  void set_solver(const artifact::Metadata& metadata);
  void set_threads(std::string_view wanted);
  void put(const Info& info, double value);
  double value_of(const Info& info) const;

  newton::Settings newton_;
  double substep_del_tol_ = 1e-6, collect_history_ = 0, chunk_ = 0, threads_ = 1, kernels_ = 0, rescue_ = 0,
         bounds_ = 1;
  bool bounds_are_checked_ = false;
  const CapsuleFolder* capsule_ = nullptr;
};

}  // namespace neml2_capi::model
