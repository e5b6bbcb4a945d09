// SPDX-License-Identifier: Apache-2.0
// C types as casts name them and as the traced program's debug information has them, behind one
// face: a base (built in, or of the TypeSource) with a number of stars.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "query/query.h"
#include "query/type_source.h"

namespace clew::query {

struct CTypeRef {
  // None: not known, a raw value. Numbers: of number_sets(), by `handle`. Symbol: a code address.
  enum class Base : uint8_t { None, Void, BuiltIn, Numbers, Symbol, Foreign };
  Base base = Base::None;
  Type built_in{};
  bool is_character = false;
  TypeHandle handle = 0;
  uint8_t pointers = 0;

  bool operator==(const CTypeRef&) const = default;
};

// CType with its target as a reference, and the value's type when it has one. A Boolean is an
// Integer.
struct CTypeInfo {
  CKind kind = CKind::Void;
  uint64_t size_bytes = 0;
  bool is_character = false;
  Type type;  // Of Integer, Float, Pointer and Enumeration.
  CTypeRef target;
  uint64_t count = 0;
  std::string name;
};

class CTypes {
 public:
  // Enumerations that queries use are added to `enumerations`. Both must outlive it.
  CTypes(TypeSource* source, std::vector<Enumeration>& enumerations)
      : source_(source), enumerations_(enumerations) {}

  // A type by the words of a cast; none when there is no such type.
  std::optional<CTypeRef> find(std::string_view name, uint8_t pointers);
  CTypeInfo describe(const CTypeRef& type);
  std::vector<CMember> members(const CTypeRef& type);
  // The type of `errno`: a signed integer of 4 bytes that is shown and compared by name.
  Type error_number();
  // Of one of number_sets().
  Type numbers(size_t set);
  [[nodiscard]] TypeSource* source() const { return source_; }

 private:
  CTypeInfo describe_foreign(TypeHandle handle);
  // The index of the enumeration of that name, which `make` gives if it is new.
  uint16_t enumeration_of(const std::string& name, const std::function<Enumeration()>& make);

  TypeSource* source_;
  std::vector<Enumeration>& enumerations_;
};

CTypeRef foreign(TypeHandle handle);

}  // namespace clew::query
