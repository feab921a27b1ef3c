// Value of a JSON document that knows its path in it ("segments[0].unknowns[2].name"), for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::artifact {

// Every function throws NEML2_ERROR_ARTIFACT, with file and path, if the document does not hold the value asked for.
class Field {
 public:
  // Both must outlive the field.
  Field(const std::string& file, Json document) : file_(&file), value_(document) {}

  // Returns the value of `key` in an object; find() returns nullopt if there is none.
  Field operator[](const std::string& key) const;
  std::optional<Field> find(const std::string& key) const;
  // Returns all keys of an object, with their values.
  std::vector<std::pair<std::string, Field>> entries() const;
  // Returns the elements of a list, which must not be more than `most`.
  std::vector<Field> list(std::size_t most = SIZE_MAX) const;

  bool is_null() const { return value_.is_null(); }
  // Returns a name, a text of a sensible length; prose() one of any.
  std::string text() const;
  std::string prose() const;
  std::int64_t integer() const;
  // Returns an integer from 0 to `most`.
  std::int64_t count(std::int64_t most = INT64_MAX) const;
  double number() const;
  bool boolean() const;
  // Returns the sizes of a tensor that memory could hold.
  Dims shape() const;
  // Returns the sizes of sub-batch axes and base axes, which must fit in one tensor together, with the points before them.
  Dims joined(const Dims& sub_batch_shape, const Dims& base_shape) const;
  // Returns what `read` returns for each element of a list.
  template <class Read>
  auto each(Read&& read) const -> std::vector<std::invoke_result_t<Read, const Field&>> {
    std::vector<std::invoke_result_t<Read, const Field&>> values;
    for (const Field& field : list()) values.push_back(std::invoke(read, field));
    return values;
  }
  std::vector<std::string> texts() const { return each(&Field::text); }
  std::vector<double> numbers() const { return each(&Field::number); }

  // Returns an error about this field. `problem` completes the sentence "<path> ..."; the remedy for
  // NEML2_ERROR_ARTIFACT follows.
  [[nodiscard]] Error error(const std::string& problem, std::int32_t status = NEML2_ERROR_ARTIFACT) const;

  const std::string& path() const { return path_; }

 private:
  Field(const Field& parent, Json value, std::string path)
      : file_(parent.file_), value_(value), path_(std::move(path)) {}
  Error mismatch(const char* expected) const;
  void require_elements(const Dims& shape) const;

  const std::string* file_;
  Json value_;
  std::string path_;
};

}  // namespace neml2_capi::artifact
