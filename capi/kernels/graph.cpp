#include "capi/kernels/graph.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/dense.h"
#include "capi/kernels/memory.h"
#include "capi/tensor/blocks.h"
#include "capi/tensor/views.h"

namespace neml2_capi::kernels {
namespace {

Dims sizes_of(const Array& array, std::int64_t points) {
  return array.per_point ? Dims{points}.then(array.shape) : array.shape;
}

graph::InputSpec input_spec(const Array& array, DType dtype) {
  const Dims greatest = sizes_of(array, std::numeric_limits<std::int64_t>::max());
  Dims order = greatest;
  for (std::int64_t i = 0; i < order.size(); ++i) order[i] = i;
  return {array.name, dtype, sizes_of(array, 1), greatest, order};
}

// A graph without code of its own: no constants, no structures, inputs that its caller has checked.
class PlainGraph : public graph::Graph {
 public:
  PlainGraph(std::string package, DType real, const std::vector<Array>& inputs, const std::vector<Array>& outputs)
      : package_(std::move(package)), real_(real) {
    for (const Array& array : inputs) inputs_.push_back(input_spec(array, real));
    for (const Array& array : outputs) outputs_.push_back({array.name, real, sizes_of(array, -1)});
  }

  graph::Runtime runtime() const override { return graph::Runtime::builtin; }
  const std::vector<graph::InputSpec>& inputs() const override { return inputs_; }
  const std::vector<graph::OutputSpec>& outputs() const override { return outputs_; }
  bool enforces_bounds() const override { return false; }
  void check(const Vector<Tensor>&) const override {}
  std::vector<graph::Constant> constants() const override { return {}; }
  void set_constants(const std::vector<graph::Constant>&, bool) override {}
  const graph::CallSpec& call_spec() const override { return call_spec_; }

 protected:
  const std::string package_;
  const DType real_;

 private:
  std::vector<graph::InputSpec> inputs_;
  std::vector<graph::OutputSpec> outputs_;
  graph::CallSpec call_spec_;
};

// Elements of one array from lanes and back: component c of lane l at [c * lanes + l].
template <class T>
void gather(T* to, const T* from, const Array& array, int lanes, std::int64_t begin, std::int64_t points) {
  const std::int64_t components = array.shape.product();
  for (int l = 0; l < lanes; ++l) {
    const T* row = from + (array.per_point ? std::min<std::int64_t>(begin + l, points - 1) * components : 0);
    for (std::int64_t c = 0; c < components; ++c) to[c * lanes + l] = row[c];
  }
}

template <class T>
void scatter(const T* from, T* to, const Array& array, const neml2_kernel_sparse* sparse, std::int64_t stored,
             int lanes, std::int64_t begin, std::int64_t points) {
  const std::int64_t components = array.shape.product();
  const std::int64_t used = array.per_point ? std::min<std::int64_t>(lanes, points - begin) : 1;
  to += array.per_point ? begin * components : 0;
  if (sparse) std::fill_n(to, used * components, T(0));
  for (std::int64_t l = 0; l < used; ++l)
    for (std::int64_t c = 0; c < stored; ++c)
      to[l * components + (sparse ? sparse->places[c] : c)] = from[c * lanes + l];
}

// The arrays of the package, which has no auxiliary unknowns.
Arrays visible(const Folder& folder, const std::string& package) {
  Arrays arrays = folder.arrays(package);
  const neml2_kernel& kernel = folder.find(package);
  if (kernel.version < 2 || kernel.auxiliaries == 0) return arrays;
  arrays.outputs.resize(arrays.outputs.size() - 2);
  return arrays;
}

class KernelGraph final : public PlainGraph {
 public:
  KernelGraph(std::shared_ptr<const Folder> folder, const std::string& package)
      : PlainGraph(package, folder->real(), folder->arrays(package).inputs, visible(*folder, package).outputs),
        folder_(std::move(folder)),
        kernel_(folder_->find(package)),
        arrays_(visible(*folder_, package)) {}

  void run(Handles& inputs, Handles& outputs, graph::SingularInfo*) const override {
    real_ == DType::float32 ? run<float>(inputs, outputs) : run<double>(inputs, outputs);
  }

 private:
  template <class T>
  void run(Handles& inputs, Handles& outputs) const {
    std::int64_t points = 1;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (arrays_.inputs[i].per_point) points = inputs[i]->sizes()[0];
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = new Tensor(Tensor::empty(real_, sizes_of(arrays_.outputs[i], points)));
    const int lanes = kernel_.lanes;
    Memory memory;
    const auto vectors = [&](std::int64_t components) {
      return static_cast<T*>(memory.take(sizeof(T) * static_cast<std::size_t>(components * lanes)));
    };
    std::vector<T*> in, out;
    for (const Array& array : arrays_.inputs) in.push_back(vectors(array.shape.product()));
    for (std::int32_t i = 0; i < kernel_.output_count; ++i) out.push_back(vectors(kernel_.outputs[i].components));
    T* const kept = vectors(kernel_.kept);
    const std::vector<const void*> given(in.begin(), in.end());
    const std::vector<void*> made(out.begin(), out.end());
    for (std::int64_t begin = 0; begin < points; begin += lanes) {
      for (std::size_t i = 0; i < in.size(); ++i)
        gather(in[i], inputs[i]->data_as<const T>(), arrays_.inputs[i], lanes, begin, points);
      if (kernel_.prepare) kernel_.prepare(given.data(), kept);
      kernel_.run(given.data(), made.data(), kept);
      for (std::size_t i = 0; i < arrays_.outputs.size(); ++i) {
        const auto number = static_cast<std::int32_t>(i);
        scatter(out[i], outputs[i]->data_as<T>(), arrays_.outputs[i], sparse_of(kernel_, number),
                kernel_.outputs[i].components, lanes, begin, points);
      }
      for (std::int64_t point = begin; out.size() > arrays_.outputs.size() && point < std::min(begin + lanes, points);
           ++point)
        substitute(out, static_cast<int>(point - begin), point, outputs);
    }
  }

  const std::shared_ptr<const Folder> folder_;
  // Adds dr/dw dw/du to the blocks of the Jacobian of a point, of which `out` has a lane.
  template <class T>
  void substitute(const std::vector<T*>& out, int lane, std::int64_t point, Handles& outputs) const {
    const std::size_t blocks = arrays_.outputs.size();
    const neml2_kernel_sparse& by = *sparse_of(kernel_, static_cast<std::int32_t>(blocks));
    const neml2_kernel_sparse& own = *sparse_of(kernel_, static_cast<std::int32_t>(blocks + 1));
    const std::int64_t count = kernel_.auxiliaries, n = by.size / count;
    std::vector<T> slopes(static_cast<std::size_t>(count * n)), matrix(static_cast<std::size_t>(n * n));
    const auto add = [&](T* to, const T* from, T factor) {
      for (std::int64_t k = 0; k < n; ++k) to[k] += factor * from[k];
    };
    for (std::int32_t i = 0; i < kernel_.outputs[blocks + 1].components; ++i) {
      const std::int64_t row = own.places[i] / (n + count), column = own.places[i] % (n + count);
      const T value = out[blocks + 1][i * kernel_.lanes + lane];
      if (column < n)
        slopes[static_cast<std::size_t>(row * n + column)] += value;
      else
        add(&slopes[static_cast<std::size_t>(row * n)], &slopes[static_cast<std::size_t>((column - n) * n)], value);
    }
    for (std::int32_t i = 0; i < kernel_.outputs[blocks].components; ++i)
      add(&matrix[static_cast<std::size_t>(by.places[i] / count * n)],
          &slopes[static_cast<std::size_t>(by.places[i] % count * n)], out[blocks][i * kernel_.lanes + lane]);
    // Blocks of groups, and then as many residuals as there are groups.
    std::size_t groups = 1;
    while (groups * (groups + 1) < blocks) ++groups;
    const auto all = [&](const Array* arrays) {
      std::vector<Group> found;
      std::int64_t first = 0;
      for (std::size_t g = 0; g < groups; ++g) {
        const bool in_sites = arrays[g].shape.size() > 1;
        const std::int64_t sites = in_sites ? arrays[g].shape[0] : 1;
        found.push_back({first, sites, arrays[g].shape.product() / sites});
        first += found.back().size();
      }
      return found;
    };
    const std::vector<Group> rows = all(&arrays_.outputs[groups * groups]), columns = all(arrays_.inputs.data());
    for (std::size_t b = 0; b < groups * groups; ++b) {
      T* const block = outputs[b]->template data_as<T>() + point * arrays_.outputs[b].shape.product();
      for (const SubMatrix& part : sub_matrices(rows[b / groups], columns[b % groups]))
        for (std::int64_t r = 0; r < part.rows; ++r)
          add_row(block + part.at + r * part.stride,
                  &matrix[static_cast<std::size_t>((part.row + r) * n + part.column)], part.columns);
    }
  }
  template <class T>
  static void add_row(T* to, const T* from, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k) to[k] += from[k];
  }

  const neml2_kernel& kernel_;
  const Arrays arrays_;
};

// Solver of dense systems, given by the blocks of a matrix and then the parts of a right-hand side.
class DenseSolver final : public PlainGraph {
 public:
  DenseSolver(const std::string& package, DType real, const std::vector<Array>& given,
              const std::vector<Array>& solutions)
      : PlainGraph(package, real, given, solutions) {
    for (const Array& solution : solutions) columns_.push_back(solution.shape);
    for (std::size_t i = given.size() - given.size() / (solutions.size() + 1); i < given.size(); ++i)
      rows_.push_back(given[i].shape);
  }

  void run(Handles& inputs, Handles& outputs, graph::SingularInfo* singular) const override {
    const std::size_t groups = outputs.size();
    Vector<Tensor> blocks = inputs.take();
    const std::int64_t points = blocks.front().sizes()[0];
    Vector<Tensor> right;
    for (auto it = blocks.end() - std::ssize(rows_); it != blocks.end(); ++it)
      right.push_back(shaped(*it, {points, it->numel() / std::max<std::int64_t>(points, 1)}));
    const Tensor x = solve(matrix_of(blocks, rows_, columns_), side_by_side(right), singular);
    std::int64_t first = 0;
    for (std::size_t j = 0; j < groups; ++j) {
      const std::int64_t size = columns_[j].product();
      outputs[j] = new Tensor(shaped(part(x, 1, first, size), Dims{points}.then(columns_[j])));
      first += size;
    }
  }

 private:
  Tensor solve(const Tensor& a, const Tensor& b, graph::SingularInfo* singular) const try {
    return graph::solve_linear(a, b, singular);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(NEML2_ERROR_RUNTIME, package_, join(package_, ": ", error.what(), "."), NEML2_CAUSE_MATRIX_SINGULAR);
  }

  std::vector<Dims> rows_, columns_;
};

}  // namespace

std::shared_ptr<graph::Graph> kernel_graph(std::shared_ptr<const Folder> folder, const std::string& package) {
  folder->find(package);
  return std::make_shared<KernelGraph>(std::move(folder), package);
}

std::shared_ptr<graph::Graph> solver_graph(std::shared_ptr<const Folder> folder, const std::string& jacobian,
                                           std::size_t residuals) {
  folder->find(jacobian);
  const std::vector<Array> given = visible(*folder, jacobian).outputs;
  const std::size_t blocks = given.size() - residuals, groups = blocks / residuals;
  const std::vector<Array>& unknowns = folder->arrays(jacobian).inputs;
  for (const Array& array : given)
    if (!array.per_point || unknowns.size() < groups) return nullptr;
  std::vector<Array> solutions;
  for (std::size_t j = 0; j < groups; ++j) solutions.push_back({given[j].name, unknowns[j].shape, true});
  return std::make_shared<DenseSolver>(jacobian, folder->real(), given, solutions);
}

}  // namespace neml2_capi::kernels
