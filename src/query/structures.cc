// SPDX-License-Identifier: Apache-2.0
#include "query/structures.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace clew::query {
namespace {

class StructureMaker {
 public:
  explicit StructureMaker(CTypes& types) : types_(types) {}

  Structure make(std::string name, const CTypeRef& type, unsigned depth) {
    const CTypeInfo known = types_.describe(type);
    Structure made{.name = std::move(name), .size_bytes = known.size_bytes};
    if (values_left_ == 0) return made;
    --values_left_;
    switch (known.kind) {
      case CKind::Integer:
      case CKind::Boolean:
      case CKind::Enumeration:
      case CKind::Pointer:
      case CKind::Float:
        made.kind = Structure::Kind::Number;
        made.type = known.type;
        break;
      case CKind::Array:
        fill_array(made, known, depth);
        break;
      case CKind::Record:
        fill_record(made, type, depth);
        break;
      case CKind::Void:
      case CKind::Function:
      case CKind::Other:
        break;
    }
    return made;
  }

 private:
  void fill_array(Structure& made, const CTypeInfo& array, unsigned depth) {
    const CTypeInfo element = types_.describe(array.target);
    uint64_t size_bytes = 0;
    if (__builtin_mul_overflow(array.count, element.size_bytes, &size_bytes)) return;
    made.count = array.count;
    made.size_bytes = size_bytes;
    if (element.is_character && element.size_bytes == 1) {
      made.kind = Structure::Kind::Text;
    } else if (depth < kStructureDepthMax && element.size_bytes != 0) {
      made.kind = Structure::Kind::Array;
      made.members.push_back(make("", array.target, depth + 1));
    }
  }

  void fill_record(Structure& made, const CTypeRef& type, unsigned depth) {
    if (depth == kStructureDepthMax || made.size_bytes == 0) return;
    made.kind = Structure::Kind::Record;
    std::map<std::string, size_t> named;  // Base classes may have the same names.
    for (const CMember& member : types_.members(type)) {
      const size_t number = ++named[member.name];
      const std::string name =
          number == 1 ? member.name : fmt::format("{}#{}", member.name, number);
      Structure part = make(name, foreign(member.type), depth + 1);
      part.offset_bytes = member.offset_bytes;
      part.bit_offset = member.bit_offset;
      part.bit_size = member.bit_size;
      made.members.push_back(std::move(part));
    }
  }

  CTypes& types_;
  size_t values_left_ = kStructureValuesMax;
};

}  // namespace

Structure structure_of(CTypes& types, const CTypeRef& type) {
  return StructureMaker(types).make(types.describe(type).name, type, 0);
}

}  // namespace clew::query
