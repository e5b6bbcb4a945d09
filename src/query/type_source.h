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
#include "target/type_description.h"

namespace clew::query {

// In a query, a Type is that of a value; C types are those of debug information.
using CKind = target::TypeKind;
using CType = target::TypeDescription;
using CMember = target::TypeMember;
// A C type, as the TypeSource numbers it.
using TypeHandle = target::TypeId;

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
  bool is_pair = false;  // A record in two registers: arg(index) and the next.
  std::string refusal;
  ParameterPlace place = ParameterPlace::Argument;
  uint64_t offset_bytes = 0;
};

// Calls may read files; the answers for one query must agree with each other.
class TypeSource : public target::TypeReader {
 public:
  // Of all functions that the source's patterns match; when they disagree, those parameters on
  // which they agree (name, type, index). NotFound when none has any type information: the message
  // goes behind "error: " and says what to do (install debug symbols).
  virtual Expected<std::vector<Parameter>> parameters(const Source& source) = 0;
  // Of all functions that match; NotFound as above or when they disagree.
  virtual Expected<TypeHandle> return_type(const Source& source) = 0;
};

}  // namespace clew::query
