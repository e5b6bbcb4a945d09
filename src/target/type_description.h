// SPDX-License-Identifier: Apache-2.0
// C types as debug information describes them: the one model that DWARF (DebugInfo, types.h) and
// BTF (BtfTypes, btf_types.h) fill. Queries ask it, and D's types are made from it.
//
// Types are handles that whoever describes them gives out. Typedefs, const, volatile, restrict and
// atomic are looked through, except in names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clew::target {

// A type of one TypeReader. 0 is void or not known.
using TypeId = uint64_t;
inline constexpr TypeId kVoidType = 0;

enum class TypeKind : uint8_t {
  Void,
  Integer,  // Also char and kin.
  Boolean,
  Float,
  Enumeration,
  Pointer,  // Also references.
  Array,
  Record,    // struct, class, union
  Function,  // Of BTF: DWARF's are Other.
  Other,     // Member pointers, complex and decimal numbers.
};

struct TypeParameter {
  std::string name;
  TypeId type = kVoidType;
};

struct TypeDescription {
  TypeKind kind = TypeKind::Void;
  uint64_t size_bytes = 0;    // 0 when not known (a type that is declared only).
  bool is_signed = false;     // Integer, and Enumeration by its underlying type.
  bool is_character = false;  // Integer that prints as text: char and kin, char32_t, wchar_t, …
  bool is_reference = false;  // Pointer written & or &&.
  bool is_union = false;      // Record
  bool is_declared = false;   // Record: only declared, so nothing more is known of it.
  bool is_variadic = false;   // Function
  TypeId target = kVoidType;  // Of a Pointer, an Array's element, a Function's result.
  uint64_t count = 0;         // An Array's elements; 0 = not known. Several dimensions are nested.
  std::vector<TypeParameter> parameters = {};  // Function
  std::string name = {};  // As C writes it: "struct client *", "const char *", "robj".
  // That part of the name which stands without a keyword: a typedef's, a base type's, a class's of
  // C++; empty for all else.
  std::string alias = {};
  // Record, Enumeration: what stands behind the keyword; empty when it has no name of its own.
  std::string tag = {};
};

struct TypeMember {
  std::string name;
  TypeId type = kVoidType;
  uint64_t offset_bytes = 0;  // From the start of the record, those of anonymous members added.
  // Bit-fields: bits [bit_offset, bit_offset + bit_size) of the little-endian storage of the
  // member's type at offset_bytes. bit_size 0 = not a bit-field.
  uint8_t bit_offset = 0;
  uint8_t bit_size = 0;
};

struct TypeEnumerator {
  std::string name;
  int64_t value = 0;

  bool operator==(const TypeEnumerator&) const = default;
};

// Answers are values and outlive nothing but handles.
class TypeReader {
 public:
  virtual ~TypeReader() = default;

  // A type by its name as C or C++ writes it: "robj", "struct client", "enum state",
  // "unsigned long", "ns::C". kVoidType when there is none.
  virtual TypeId find_type(std::string_view name) = 0;
  virtual TypeDescription describe(TypeId type) = 0;
  // Of a Record, in order. Queries and DWARF have those of anonymous members and of base classes
  // flattened in. BTF's anonymous members stay as they are, without a name: D prints a record of
  // the kernel as the kernel writes it.
  virtual std::vector<TypeMember> members(TypeId record) = 0;
  virtual std::vector<TypeEnumerator> enumerators(TypeId enumeration) = 0;

 protected:
  TypeReader() = default;
  TypeReader(TypeReader&&) = default;
  TypeReader& operator=(TypeReader&&) = default;
};

}  // namespace clew::target
