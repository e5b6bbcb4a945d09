// SPDX-License-Identifier: Apache-2.0
// TypeSource: what the checker asks about the traced program's own names and types, and about those
// of the kernel's events. The engine answers from DWARF, BTF and tracefs; tests answer from a
// table. Without one (null) names of arguments and members cannot be used, and everything else
// works.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/query.h"

namespace clew::query {

// A C type of the traced program, as the TypeSource numbers it. 0 is void, or not known.
using TypeHandle = uint64_t;

enum class CKind : uint8_t { Void, Integer, Float, Pointer, Record, Array, Enumeration, Other };

struct CType {
  CKind kind = CKind::Void;
  uint32_t size_bytes = 0;
  bool is_signed = false;
  bool is_character = false;  // char, signed char, unsigned char: a pointer to it is a string.
  TypeHandle target = 0;      // Of Pointer and Array (its element).
  uint64_t count = 0;         // Elements of an Array; 0 = not known.
  std::string name;           // As C writes it: "struct client".
};

// Where an argument is, or a field of a tracepoint.
enum class ParameterPlace : uint8_t {
  Argument,   // In arg(index).
  Record,     // At offset_bytes of the record whose address arg0 is.
  Elsewhere,  // At the offset in that record that the word at offset_bytes has in its low half.
  Relative,   // The same from the end of that word.
};

struct Parameter {
  std::string name;
  TypeHandle type = 0;
  // Which arg(n) holds it (from kVectorArgument on, xmm0 and up), or why none does ("passed by
  // value in memory"), in which case `index` is not used.
  uint16_t index = 0;
  std::string refusal;
  ParameterPlace place = ParameterPlace::Argument;
  uint64_t offset_bytes = 0;
};

struct Member {
  std::string name;
  TypeHandle type = 0;
  uint64_t offset_bytes = 0;
  uint8_t bit_offset = 0;  // From the least significant bit of the storage at offset_bytes.
  uint8_t bit_size = 0;    // 0 = not a bit-field.
};

// Calls may read files; the answers for one query must agree with each other.
class TypeSource {
 public:
  virtual ~TypeSource() = default;

  // Of all functions that the source's patterns match; when they disagree, those parameters on
  // which they agree (name, type, index). NotFound when none has any type information: the message
  // goes behind "error: " and says what to do (install debug symbols).
  virtual Expected<std::vector<Parameter>> parameters(const Source& source) = 0;
  // Of all functions that match; NotFound as above or when they disagree.
  virtual Expected<TypeHandle> return_type(const Source& source) = 0;
  // A type by its name, for casts: "robj", "struct client", "enum state". 0 when there is none.
  virtual TypeHandle find_type(std::string_view name) = 0;

  virtual CType describe(TypeHandle type) = 0;
  // Of a Record, anonymous members flattened in.
  virtual std::vector<Member> members(TypeHandle type) = 0;
  virtual std::vector<Enumerator> enumerators(TypeHandle type) = 0;
};

}  // namespace clew::query
