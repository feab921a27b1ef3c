#include "capi/artifact/hit.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "capi/base/limits.h"
#include "capi/base/print_number.h"

namespace neml2_capi::artifact {
namespace {

constexpr std::string_view blanks = " \t\r\n";
// Characters that end the name of a section or a field, and a value without quotes.
constexpr std::string_view after_section = " \t\r\n[]#";
constexpr std::string_view after_field = " \t\r\n[]#:='\"";
constexpr std::string_view after_value = " \t\r\n[]#'\"";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace

// Reads a text from its beginning to its end. It does not call itself, however deep the sections are.
class Hit::Reader {
 public:
  Reader(Hit& hit, std::string_view text) : hit_(hit), rest_(text) {}

  void read() {
    for (skip_comments(); !rest_.empty(); skip_comments()) {
      mark();
      if (takes("[]"))
        close_section();
      else if (takes("["))
        open_section();
      else
        read_field();
    }
    if (!open_.empty()) throw not_hit("a section has no end, []");
  }

 private:
  // Takes what lies before a position of the rest, or all of it.
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    for (const char character : taken) {
      line_ += character == '\n';
      column_ = character == '\n' ? 1 : column_ + 1;
    }
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool takes(std::string_view expected) { return rest_.starts_with(expected) && !take(expected.size()).empty(); }
  void skip(std::string_view characters) { take(rest_.find_first_not_of(characters)); }
  void skip_comments() {
    for (skip(blanks); rest_.starts_with('#'); skip(blanks)) take(rest_.find('\n'));
  }

  // Makes this the place that errors tell.
  void mark() { at_line_ = line_, at_column_ = column_; }
  Error failure(const std::string& why) const { return hit_.failure(at_line_, at_column_, why); }
  Error not_hit(const std::string& why) const { return failure("the text is not a HIT file: " + why); }

  void open_section() {
    skip(" \t");
    const std::string_view name = take(rest_.find_first_of(after_section));
    skip(" \t");
    if (name.empty() || !takes("]")) throw not_hit("expected [name]");
    add(name, std::nullopt);
    open_.push_back(prefix_.size());
    prefix_ = hit_.entries_.back().path + "/";
  }

  void close_section() {
    if (open_.empty()) throw not_hit("[] ends no section");
    prefix_.resize(open_.back());
    open_.pop_back();
  }

  void read_field() {
    const std::string_view name = take(rest_.find_first_of(after_field));
    if (name == "!include") throw failure("has '!include', which no stub needs and which is not followed");
    skip(" \t\r");
    const bool overrides = takes(":=") || takes(":override=");
    if (name.empty() || (!overrides && !takes("="))) throw not_hit("expected [section] or field = value");
    skip(" \t\r");
    const std::string value(read_value());
    if (value.find("${") != value.npos) throw failure("has '${', which no stub needs and which is not followed");
    add(name, value, overrides);
  }

  std::string_view read_value() {
    for (const std::string_view quote : {"'''", "\"\"\"", "'", "\""}) {
      if (!takes(quote)) continue;
      const std::string_view value = take(rest_.find(quote));
      if (!takes(quote)) throw not_hit(join("expected ", quote, " at the end of the value"));
      return quote.size() == 1 ? trimmed(value) : value;
    }
    const std::string_view value = take(rest_.find_first_of(after_value));
    if (value.empty()) throw not_hit("expected a value");
    return value;
  }

  // Adds a section or a field, whose name may be a path. A field replaces an earlier one only if it says so.
  void add(std::string_view name, std::optional<std::string> value, bool overrides = true) {
    std::string path = join(prefix_, name);
    if (std::count(path.begin(), path.end(), '/') >= static_cast<std::ptrdiff_t>(limits::stub_depth))
      throw failure(join("is nested more than ", limits::stub_depth, " deep"));
    if (path.size() > limits::name_characters)
      throw failure(join("a path has ", path.size(), " characters; expected at most ", limits::name_characters));
    ++(value ? fields_ : sections_);
    if (std::max(sections_, fields_) > limits::stub_entries)
      throw failure(join("has too many sections or fields; expected at most ", limits::stub_entries));
    const auto is_it = [&](const Entry& entry) { return entry.value && entry.path == path; };
    if (value && std::erase_if(hit_.entries_, is_it) != 0 && !overrides)
      throw failure(join("there is another field '", path, "'; expected one"));
    hit_.entries_.push_back({std::move(path), at_line_, at_column_, std::move(value)});
  }

  Hit& hit_;
  std::string_view rest_;
  std::size_t line_ = 1, column_ = 1, at_line_ = 1, at_column_ = 1;
  std::string prefix_;             // "Models/elasticity/"
  std::vector<std::size_t> open_;  // lengths of the prefix outside each section
  std::size_t sections_ = 0, fields_ = 0;
};

Hit::Hit(std::string file, std::string_view text) : file_(std::move(file)) { Reader(*this, text).read(); }

std::vector<std::string> Hit::blocks_of(std::string_view section) const {
  const std::string prefix = join(section, "/");
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::size_t end = entry.path.find('/', prefix.size());
    const std::string name = entry.path.substr(prefix.size(), end - prefix.size());
    const bool is_section = end != entry.path.npos || !entry.value;
    if (is_section && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

const Hit::Entry* Hit::find(std::string_view path) const {
  const auto it =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.path == path; });
  if (it == entries_.end()) return nullptr;
  if (!it->value) throw failure(it->line, it->column, join("node has no value; expected ", path, " = ..."));
  return &*it;
}

Error Hit::failure(std::size_t line, std::size_t column, const std::string& why) const {
  return Error(NEML2_ERROR_ARTIFACT, file_,
               join(file_, ":", line, ":", column, ": ", why, ". Pass the stub that neml2-compile wrote."));
}

std::optional<std::string> Hit::text(std::string_view path) const {
  const Entry* const entry = find(path);
  return entry ? entry->value : std::nullopt;
}

template <class Number, class Parse>
std::optional<Number> Hit::number(std::string_view path, const char* expected, Parse parse) const {
  const Entry* const entry = find(path);
  if (!entry) return std::nullopt;
  const std::optional<Number> number = parse(*entry->value);
  if (!number) throw failure(entry->line, entry->column, join(path, " is '", *entry->value, "'; expected ", expected));
  return number;
}

std::optional<double> Hit::real(std::string_view path) const { return number<double>(path, "a number", read_number); }

std::optional<std::int64_t> Hit::integer(std::string_view path) const {
  return number<std::int64_t>(path, "an integer", [](const std::string& text) -> std::optional<std::int64_t> {
    char* end = nullptr;
    const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || end != text.data() + text.size()) return std::nullopt;
    return value;
  });
}

}  // namespace neml2_capi::artifact
