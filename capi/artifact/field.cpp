// Typed access to a JSON document.
#include "capi/artifact/field.h"

#include "capi/base/limits.h"

namespace neml2_capi::artifact {

Error Field::error(const std::string& problem, std::int32_t status) const {
  const char* remedy = status == NEML2_ERROR_ARTIFACT ? " Compile the model again with neml2-compile." : "";
  return Error(status, path_.empty() ? *file_ : path_,
               join(*file_, ": ", path_.empty() ? std::string("the document") : path_, " ", problem, remedy));
}

Error Field::mismatch(const char* expected) const {
  return error(join("is ", value_.type_name(), ", expected ", expected, "."));
}

std::optional<Field> Field::find(const std::string& key) const {
  if (!value_.is_object()) throw mismatch("an object");
  const std::optional<Json> entry = value_.find(key);
  if (!entry) return std::nullopt;
  return Field(*this, *entry, path_.empty() ? key : path_ + "." + key);
}

Field Field::operator[](const std::string& key) const {
  std::optional<Field> field = find(key);
  if (!field) throw error(join("has no field '", key, "'."));
  return *field;
}

std::vector<std::pair<std::string, Field>> Field::entries() const {
  if (!value_.is_object()) throw mismatch("an object");
  std::vector<std::pair<std::string, Field>> fields;
  for (const auto& [key, value] : value_.members()) fields.emplace_back(key, (*this)[key]);
  return fields;
}

std::vector<Field> Field::list(std::size_t most) const {
  if (!value_.is_list()) throw mismatch("a list");
  const std::vector<Json> values = value_.elements();
  if (values.size() > most) throw error(join("has ", values.size(), " entries, expected at most ", most, "."));
  std::vector<Field> fields;
  for (const Json& value : values) fields.push_back(Field(*this, value, join(path_, "[", fields.size(), "]")));
  return fields;
}

std::string Field::text() const {
  std::string text = prose();
  if (text.size() > limits::name_characters)
    throw error(join("has ", text.size(), " characters, expected at most ", limits::name_characters, "."));
  // It would end there for callers of the C ABI, and two names could be one.
  if (text.find('\0') != std::string::npos) throw error("has a zero byte.");
  return text;
}

std::string Field::prose() const {
  if (!value_.is_text()) throw mismatch("a text");
  return value_.text();
}

std::int64_t Field::integer() const {
  if (!value_.is_integer()) throw mismatch("an integer");
  try {
    return value_.integer();
  } catch (const JsonError&) {
    throw error(join("is ", value_.dump(), ", which is too large."));
  }
}

std::int64_t Field::count(std::int64_t most) const {
  const std::int64_t value = integer();
  if (value < 0) throw error(join("is ", value, ", expected 0 or more."));
  if (value > most) throw error(join("is ", value, ", expected at most ", most, "."));
  return value;
}

bool Field::boolean() const {
  if (!value_.is_boolean()) throw mismatch("true or false");
  return value_.boolean();
}

double Field::number() const {
  if (!value_.is_number()) throw mismatch("a number");
  return value_.number();
}

Dims Field::shape() const {
  const std::vector<Field> sizes = list();
  if (sizes.size() > static_cast<std::size_t>(Dims::capacity))
    throw error(join("has ", sizes.size(), " axes, expected at most ", Dims::capacity, "."));
  Dims shape;
  for (const Field& size : sizes) shape.push_back(size.count());
  require_elements(shape);
  return shape;
}

Dims Field::joined(const Dims& sub_batch_shape, const Dims& base_shape) const {
  const std::int64_t axes = sub_batch_shape.size() + base_shape.size();
  if (axes > limits::point_axes)
    throw error(join("has ", axes, " sub-batch and base axes, expected at most ", limits::point_axes, "."));
  const Dims shape = sub_batch_shape.then(base_shape);
  require_elements(shape);
  return shape;
}

void Field::require_elements(const Dims& shape) const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size > 0 && elements > limits::tensor_elements / size)
      throw error("is too large: no tensor has so many elements.");
    elements *= size;
  }
}

}  // namespace neml2_capi::artifact
