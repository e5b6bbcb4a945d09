// SPDX-License-Identifier: Apache-2.0
// Where the variables, literals and temporaries of a script live.
//
//     kind                         home                          form
//     this->x                      window, from local_begin on   scalar: 8 bytes; string: flag
//     word,
//                                                                text; others: their bytes
//     global scalar                globals                       the same
//     self->x, x[keys]             dynamic variable `number`     scalar: 8 bytes; others: their
//     bytes "text"                       window, literals              NUL-terminated, 8-aligned
//     temporaries                  window, behind this->         until the statement ends
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/d/generate.h"

namespace clew::plan::d {

enum class ValueClass : uint8_t { Scalar, String, Bytes };

// A struct, union or array is Bytes; everything else that has a value and is no string is Scalar.
ValueClass class_of(const query::d::TypeTable& types, query::d::TypeId type);

struct VariableHome {
  enum class Place : uint8_t { Window, Global, Dynamic } place = Place::Window;
  uint32_t offset = 0;      // Window, Global
  uint32_t number = 0;      // Dynamic: index in Generated::variables
  uint32_t size_bytes = 8;  // Of the value, without a string's flag; a multiple of 8.
};

inline constexpr uint32_t kStringFlagBytes = 8;

// To whole words.
constexpr uint32_t round_up(uint32_t size_bytes) {
  return (size_bytes + 7) & ~7U;
}

class StoragePlan {
 public:
  // Lays out all variables; Generated's fields about state are filled, its `privates` are known.
  static query::d::Compiled<StoragePlan> make(const query::d::Script& script,
                                              std::span<const extension::Extension> extensions,
                                              Generated& generated);

  [[nodiscard]] const VariableHome& home(uint32_t variable) const { return homes_[variable]; }
  // strsize: what a string has at most, with its end.
  [[nodiscard]] uint32_t string_size_bytes() const { return string_size_bytes_; }
  // Room of a string, a multiple of 8.
  [[nodiscard]] uint32_t string_bytes() const { return string_bytes_; }
  // The literal's window offset; nothing when it was not seen by make().
  [[nodiscard]] uint32_t literal(const std::string& text) const { return literals_.at(text); }
  [[nodiscard]] uint32_t temporaries_begin() const { return temporaries_begin_; }

 private:
  void add_variable(const query::d::Script& script, const query::d::Variable& variable,
                    Generated& generated);
  [[nodiscard]] query::d::Compiled<void> check_room(const Generated& generated) const;
  void add_literal(const query::d::Node& node, Generated& generated);
  void add_literals(const query::d::Node& expression, Generated& generated);

  std::vector<VariableHome> homes_;
  std::map<std::string, uint32_t> literals_;
  uint32_t string_bytes_ = 256;
  uint32_t string_size_bytes_ = 256;
  uint64_t local_bytes_ = 0;
  uint64_t global_bytes_ = 0;
  uint32_t temporaries_begin_ = 0;
};

}  // namespace clew::plan::d
