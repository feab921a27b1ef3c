// Files of safetensors: the length of the header, the header in JSON, the numbers.
#include "capi/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "capi/archive/crc32.h"
#include "capi/archive/draft.h"
#include "capi/archive/file_bytes.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/base/json_writer.h"
#include "capi/base/limits.h"
#include "capi/base/print_number.h"

namespace neml2_capi::model {
namespace {

namespace fs = std::filesystem;

constexpr char format[] = "neml2_state 1";
constexpr std::size_t word = 8;  // of the length, and of the checksum; numbers begin at a multiple of it

const char* name_in_file(DType dtype) { return dtype == DType::float32 ? "F32" : "F64"; }

std::string bytes_of(std::uint64_t value) {
  std::string bytes;
  for (std::size_t i = 0; i < word; ++i) bytes.push_back(static_cast<char>(value >> 8 * i & 0xff));
  return bytes;
}

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = word; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string with_all_digits(double value) {
  char text[32];
  return std::string(print_number(text, sizeof text, "%.17g", value));
}

// An input that is carried from step to step, and its array.
struct Carried {
  const Variable* variable;
  Points array;
  std::size_t size() const {
    return static_cast<std::size_t>(variable->point_shape.product() * itemsize(variable->dtype));
  }
};

// Returns the histories of what the model has, and the inputs that are the first guess of an output.
std::vector<Carried> carried(const Model& model, const std::vector<Points>& inputs, std::int64_t points) {
  if (points < 0)
    throw Error(NEML2_ERROR_ARGUMENT, "npoints", join("The number of points must be 0 or more; got ", points, "."));
  const auto& variables = model.variables(Kind::input);
  std::vector<bool> wanted(variables.size());
  for (const Model::History& history : model.histories())
    wanted[static_cast<std::size_t>(history.input)] = history.output >= 0 || history.current >= 0;
  for (std::size_t i = 0; i < variables.size(); ++i)
    for (const Variable& output : model.variables(Kind::output))
      if (output.name == variables[i].name) wanted[i] = true;
  std::vector<Carried> all;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!wanted[i]) continue;
    if (!inputs[i].data)
      throw Error(NEML2_ERROR_MISSING, variables[i].name,
                  join("The input '", variables[i].name, "' is not bound; all that carry the state must be, with ",
                       variables[i].point_shape.product(), " values per point: call neml2_call_bind()."));
    check_extent(inputs[i], variables[i], {points});
    all.push_back({&variables[i], inputs[i]});
  }
  return all;
}

// A file that was read, whose header is known to be whole.
class StateFile {
 public:
  explicit StateFile(const fs::path& path) : path_(path), file_(path), bytes_(file_.view()) {
    const std::uint64_t length = bytes_.size() >= 3 * word ? number_of(bytes_) : 0;
    if (length == 0 || length > bytes_.size() - 2 * word || length > limits::json_bytes ||
        number_of(bytes_.substr(bytes_.size() - word)) != archive::crc32(bytes_.substr(0, bytes_.size() - word)))
      damaged("its checksum differs, so that it is damaged, truncated or no such file");
    numbers_ = bytes_.substr(word + length);
    try {
      document_.emplace(bytes_.substr(word, length));
      if (told("format") != format) damaged(join("it is of the format '", told("format"), "', not '", format, "'"));
    } catch (const JsonError& error) {
      damaged(error.what());
    }
  }

  // Returns a text of the header.
  std::string told(const char* key) const { return document_->root().at("__metadata__").at(key).text(); }
  // Returns the views of the law; nothing if the header does not tell of any.
  std::string views() const {
    const std::optional<Json> found = document_->root().at("__metadata__").find("views");
    return found ? found->text() : "";
  }
  double number(const char* key) const {
    const std::string text = told(key);
    const std::optional<double> value = read_number(text);
    if (!value) damaged(join("its ", key, " is '", text, "'"));
    return *value;
  }
  std::int64_t integer(const char* key) const {
    std::int64_t value = 0;
    const std::string text = told(key);
    if (const auto end = text.data() + text.size(); std::from_chars(text.data(), end, value).ptr != end)
      damaged(join("its ", key, " is '", text, "'"));
    return value;
  }

  // Returns all names of arrays that are not a program's own, which have a "/".
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, ignored] : document_->root().members())
      if (name != "__metadata__" && name != "checksum" && name.find('/') == std::string::npos) names.push_back(name);
    return names;
  }

  // Returns the values of an array that has so many for each point, and whether it has one for each.
  std::pair<std::string_view, bool> values(const Carried& wanted, std::int64_t points) const {
    const Variable& variable = *wanted.variable;
    const Json entry = document_->root().at(variable.name);
    if (entry.at("dtype").text() != name_in_file(variable.dtype))
      unfit(variable, NEML2_ERROR_DTYPE,
            join("is of ", entry.at("dtype").text(), "; expected ", name_of(variable.dtype)));
    Dims shape;
    std::int64_t elements = 1;
    for (const Json& axis : entry.at("shape").elements()) {
      const std::int64_t size = axis.integer();
      if (size < 0 || size > limits::tensor_elements / std::max<std::int64_t>(elements, 1) ||
          shape.size() == Dims::capacity)
        damaged("an array has more elements than memory");
      elements *= size;
      shape.push_back(size);
    }
    const Dims& point = variable.point_shape;
    const std::int64_t batch = shape.size() - point.size();
    const bool one = batch == 0;
    const std::int64_t count = batch >= 0 ? shape.first(batch).product() : 0;
    if (batch < 0 || !std::ranges::equal(shape.last(point.size()), point) || (!one && count != points))
      unfit(variable, NEML2_ERROR_SHAPE,
            join("has the shape ", shape.str(), "; expected ", points, " points of the shape ", point.str()));
    const auto begin = static_cast<std::uint64_t>(entry.at("data_offsets").at(0).integer());
    const std::size_t size = wanted.size() * static_cast<std::size_t>(one ? 1 : count);
    if (begin > numbers_.size() || size > numbers_.size() - begin) damaged("an array reaches beyond it");
    return {numbers_.substr(begin, size), !one};
  }

  [[noreturn]] void damaged(const std::string& why) const {
    throw Error(NEML2_ERROR_FILE, path_.string(),
                join(path_.string(), " is not a state that neml2_call_state_save() wrote: ", why,
                     ". Continue from another file, or begin anew."));
  }
  [[noreturn]] void unfit(const Variable& variable, std::int32_t status, const std::string& why) const {
    throw Error(status, variable.name, join("'", variable.name, "' of ", path_.string(), " ", why, "."));
  }

 private:
  fs::path path_;
  archive::FileBytes file_;
  std::string_view bytes_, numbers_;
  std::optional<JsonDocument> document_;
};

std::string views_in_words(const std::string& views) { return views.empty() ? "the law as it is" : views; }

void require_fit(const StateFile& file, const Model& model, const std::vector<Carried>& state, std::int64_t points,
                 const fs::path& path) {
  const std::string& ours = model.metadata().checksum;
  if (file.told("artifact") != ours)
    throw Error(NEML2_ERROR_ARTIFACT, path.string(),
                join(path.string(), " was written with another artifact, whose checksum is ", file.told("artifact"),
                     "; ", model.metadata().file.string(), " has ", ours, ". Open the artifact of then to continue."));
  if (const std::string then = file.views(), now = model.views().of_state(); then != now)
    throw Error(NEML2_ERROR_ARTIFACT, path.string(),
                join(path.string(), " was written with ", views_in_words(then), "; the model has ", views_in_words(now),
                     ". Open the artifact as it was then to continue."));
  if (const auto count = file.integer("npoints"); count != points)
    throw Error(NEML2_ERROR_SHAPE, "npoints",
                join(path.string(), " holds the state of ", count, " points; the call has ", points, "."));
  const std::vector<std::string> names = file.names();
  const auto has = [&](const Carried& each) { return std::ranges::find(names, each.variable->name) != names.end(); };
  if (names.size() != state.size() || !std::ranges::all_of(state, has)) {
    std::string wanted, found;
    for (const Carried& each : state) wanted += (wanted.empty() ? "" : ", ") + each.variable->name;
    for (const std::string& name : names) found += (found.empty() ? "" : ", ") + name;
    throw Error(NEML2_ERROR_NAME, path.string(),
                join(path.string(), " holds ", found, "; the model carries ", wanted, "."));
  }
}

}  // namespace

void save(const Model& model, const std::vector<Points>& inputs, std::int64_t points, const fs::path& path,
          const Position& position) {
  const std::vector<Carried> state = carried(model, inputs, points);
  std::string numbers;
  JsonWriter header;
  const auto add = [&](const std::string& name, const char* dtype, const std::vector<std::int64_t>& shape,
                       std::size_t size) {
    header.object(name, [&] {
      header.member("dtype", std::string_view(dtype));
      header.member("shape", shape);
      header.member("data_offsets", std::vector<std::size_t>{numbers.size(), numbers.size() + size});
    });
  };
  header.object([&] {
    header.object("__metadata__", [&] {
      header.member("format", std::string_view(format));
      header.member("artifact", model.metadata().checksum);
      if (const std::string views = model.views().of_state(); !views.empty()) header.member("views", views);
      header.member("npoints", std::to_string(points));
      header.member("step", std::to_string(position.step));
      header.member("time", with_all_digits(position.time));
    });
    for (const Carried& each : state) {
      const Dims& point = each.variable->point_shape;
      std::vector<std::int64_t> shape(point.begin(), point.end());
      const bool one = each.array.stride == 0;
      if (!one) shape.insert(shape.begin(), points);
      const std::int64_t count = one ? 1 : points;
      add(each.variable->name, name_in_file(each.variable->dtype), shape,
          each.size() * static_cast<std::size_t>(count));
      for (std::int64_t p = 0; p < count; ++p)
        numbers.append(model::point(each.array, p, itemsize(each.variable->dtype)), each.size());
      numbers.resize((numbers.size() + word - 1) / word * word);  // of float32
    }
    add("checksum", "I64", {1}, word);
  });
  std::string text = header.take();
  text.resize((text.size() + word - 1) / word * word, ' ');
  std::string content = bytes_of(text.size()) + text + numbers;
  content += bytes_of(archive::crc32(content));
  archive::Draft draft(path);
  draft.put(content);
  draft.replace();
}

Position load(const Model& model, const std::vector<Points>& inputs, std::int64_t points, const fs::path& path) {
  const std::vector<Carried> state = carried(model, inputs, points);
  const StateFile file(path);
  Position position;
  std::vector<std::pair<std::string_view, bool>> values;
  try {
    require_fit(file, model, state, points, path);
    position = {file.integer("step"), file.number("time")};
    for (const Carried& each : state) {
      values.push_back(file.values(each, points));
      if (values.back().second && each.array.stride == 0 && points > 1)
        file.unfit(*each.variable, NEML2_ERROR_SHAPE,
                   "has a value for each point; the array bound to it has one for all");
    }
  } catch (const JsonError& error) {
    file.damaged(error.what());
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [bytes, per_point] = values[i];
    const std::size_t size = state[i].size();
    const std::int64_t count = state[i].array.stride == 0 ? std::min<std::int64_t>(points, 1) : points;
    for (std::int64_t p = 0; p < count; ++p)
      std::memcpy(model::point(state[i].array, p, itemsize(state[i].variable->dtype)),
                  bytes.data() + (per_point ? size * static_cast<std::size_t>(p) : 0), size);
  }
  return position;
}

}  // namespace neml2_capi::model
