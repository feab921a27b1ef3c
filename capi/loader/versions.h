// Symbol versions of the system's libraries that a package asks for.
//
// A package names for each function of the C and the C++ library the version of the system where it was compiled. If
// this system lacks that version, the edited copy takes what this system has in its place, if that does the same. A
// system that has all versions is left as it is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti {

class Versions {
 public:
  // Adds a version that the object asks for, under the number that symbols know it by.
  void add(unsigned number, std::string_view library, std::string_view name);

  // Returns the new beginning of the name of an undefined symbol that this system lacks: "" if the name stays, and
  // only the version must go. Returns nullopt if the symbol stays as it is. A symbol that has neither its version nor
  // something in its place is remembered for check().
  std::optional<std::string_view> replace(unsigned number, std::string_view symbol, bool required);

  // Tells whether replace() took the last symbol of a version.
  bool is_unused(unsigned number) const;

  // Throws Error NEML2_ERROR_UNSUPPORTED with the symbols that this system lacks.
  void check() const;

  // Returns "GLIBC_2.34", "GLIBCXX_3.4.30", ...
  std::vector<std::string> names() const;

 private:
  struct Version {
    std::string library;
    std::string name;
    std::optional<bool> present;  // on this system
    bool is_used = false, is_replaced = false;
  };
  std::map<unsigned, Version> versions_;
  std::vector<std::string> missing_;  // "stat (GLIBC_2.33)"
};

}  // namespace neml2_capi::aoti
