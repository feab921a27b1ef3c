// The kernels of an artifact: which there are, and whether they fit its packages and this machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capi/artifact/field.h"
#include "capi/artifact/metadata.h"
#include "neml2_capi/kernels/c/neml2_kernel.h"

namespace neml2_capi::kernels {

// An input or output of a kernel, in the shape that its package has for it.
struct Array {
  std::string name;
  Dims shape;
  bool per_point;
};
struct Arrays {
  std::vector<Array> inputs, outputs;
};

// How an output is stored of which zeros are not; null if all components are.
const neml2_kernel_sparse* sparse_of(const neml2_kernel& kernel, std::int32_t output);

// Returns a member of a kernel that newer ones alone have, such as &neml2_kernel::run_rows; zero if this one ends before it.
template <class Member>
Member newer(const neml2_kernel& kernel, Member neml2_kernel::*member) {
  const auto end = reinterpret_cast<const char*>(&(kernel.*member) + 1);
  return end - reinterpret_cast<const char*>(&kernel) <= static_cast<std::ptrdiff_t>(kernel.size) ? kernel.*member
                                                                                                  : Member();
}

class Folder {
 public:
  // The kernels beside the packages in `leaf`; null if there is no folder of them. Throws NEML2_ERROR_UNSUPPORTED,
  // with the reason and what to do, if none of its objects is for this machine, and NEML2_ERROR_ARTIFACT if
  // something is not as kernels.json says. Kernels that are `alone` replace packages, and tell their
  // arrays. Those that are linked into the program stand for the objects.
  static std::unique_ptr<const Folder> open(const std::filesystem::path& leaf, bool alone = false,
                                            const neml2_kernel_set* linked = nullptr);

  // The kernel that stands for a package, by its file name. Throws NEML2_ERROR_UNSUPPORTED if there is none, with the
  // reason.
  const neml2_kernel& find(const std::string& package) const;
  bool has(const std::string& package) const { return kernels_.contains(package); }
  // Returns the arrays of a kernel that is there, in a folder that was opened alone.
  const Arrays& arrays(const std::string& package) const { return arrays_.at(package); }

  // Returns the components of each output of a kernel that are computed of scalars alone: they are the same for any unknowns
  // and tensors. Artifacts of before have none.
  const std::vector<std::vector<std::int64_t>>& of_scalars(const std::string& package) const {
    return of_scalars_.at(package);
  }

  // What the objects were built for: "x86-64-v3".
  const std::string& target() const { return target_; }
  DType real() const { return real_; }
  // Returns a line for each kernel: its name, and the checksum of its graph, or of its source if the graph's is not there.
  const std::string& graphs() const { return graphs_; }
  // Whether a kernel computes the sites of one point side by side.
  bool has_sites_in_lanes() const;
  // Kernels with fewer points in a block, which take less time for few points. Null if there are none.
  const Folder* narrower() const { return narrower_.get(); }

 private:
  explicit Folder(const std::filesystem::path& folder) : folder_(folder) {}
  // Loads the object with the widest vectors that has less than so many lanes. Returns null if there is none.
  const neml2_kernel_set* widest(const artifact::Field& document, std::int64_t lanes);
  // Returns the kernels of the program, if blocks of as many lanes run here.
  const neml2_kernel_set& checked(const neml2_kernel_set& linked);
  // Takes the kernels of a set.
  void take(const neml2_kernel_set& set, const artifact::Field& document, const std::filesystem::path& leaf,
            bool alone);

  std::filesystem::path folder_;
  std::string target_;
  std::string object_;  // what has the kernels; empty: the program
  std::string graphs_;
  DType real_ = DType::float64;
  std::map<std::string, const neml2_kernel*> kernels_;  // by package
  std::map<std::string, Arrays> arrays_;
  std::map<std::string, std::vector<std::vector<std::int64_t>>> of_scalars_;  // by package
  std::map<std::string, std::string> missing_;                                // why a package has none
  std::unique_ptr<const Folder> narrower_;
};

}  // namespace neml2_capi::kernels
