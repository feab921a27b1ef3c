// Text in HIT, the format of NEML2's input files, without includes and substitutions: no stub needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/base/error.h"

namespace neml2_capi::artifact {

class Hit {
 public:
  // `file` names it in messages. Throws NEML2_ERROR_ARTIFACT for a text that is not HIT, or is beyond the limits of stubs.
  Hit(std::string file, std::string_view text);

  // Returns the names of the sections in all sections of this name, in the order of the text.
  std::vector<std::string> blocks_of(std::string_view section) const;

  // Each returns the value of a field, such as "Models/elasticity/type", or nullopt if there is none. Throws
  // NEML2_ERROR_ARTIFACT, with its place, for a section, and for text that is not a number.
  std::optional<std::string> text(std::string_view path) const;
  std::optional<double> real(std::string_view path) const;
  std::optional<std::int64_t> integer(std::string_view path) const;

 private:
  // A section, or a field with its value.
  struct Entry {
    std::string path;
    std::size_t line, column;
    std::optional<std::string> value;
  };
  class Reader;

  const Entry* find(std::string_view path) const;
  Error failure(std::size_t line, std::size_t column, const std::string& why) const;
  template <class Number, class Parse>
  std::optional<Number> number(std::string_view path, const char* expected, Parse parse) const;

  std::string file_;
  std::vector<Entry> entries_;
};

}  // namespace neml2_capi::artifact
