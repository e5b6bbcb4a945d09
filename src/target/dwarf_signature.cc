// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_signature.h"

#include <array>

#include <fmt/format.h>

namespace clew::target {

namespace {

constexpr uint16_t kIntegerRegisters = 6;
constexpr uint16_t kVectorRegisters = 8;
constexpr unsigned kArgumentDepthMax = 16;
constexpr uint64_t kRegisterBytes = 8;
constexpr uint64_t kRegisterRecordMaxBytes = 16;
constexpr size_t kParametersMax = 256;

// The classes of the psABI that matter here. Memory also stands for x87.
enum class Class : uint8_t { None, Integer, Vector, Memory };

struct Classes {
  std::array<Class, 2> words = {Class::None, Class::None};
  bool by_reference = false;  // C++: not trivially copyable, so a pointer to a copy is passed.

  [[nodiscard]] bool in_memory() const { return words[0] == Class::Memory; }
  [[nodiscard]] size_t count(Class wanted) const {
    return static_cast<size_t>(words[0] == wanted) + static_cast<size_t>(words[1] == wanted);
  }
};

constexpr Classes kMemory = {.words = {Class::Memory, Class::None}};

Class join(Class a, Class b) {
  if (a == b || b == Class::None) return a;
  if (a == Class::None) return b;
  if (a == Class::Memory || b == Class::Memory) return Class::Memory;
  return a == Class::Integer || b == Class::Integer ? Class::Integer : Class::Vector;
}

class Classifier {
 public:
  explicit Classifier(TypeTable& types) : types_(types) {}

  Classes classify(TypeId type) {
    Classes classes;
    const TypeDescription description = types_.describe(type);
    if (description.kind == TypeKind::Record && is_passed_by_reference(type)) {
      classes.by_reference = true;
      classes.words[0] = Class::Integer;
      return classes;
    }
    const bool is_aggregate =
        description.kind == TypeKind::Record || description.kind == TypeKind::Array;
    if (is_aggregate && description.size_bytes > kRegisterRecordMaxBytes && !is_vector(type)) {
      return kMemory;
    }
    place(type, 0, 0, classes);
    if (classes.words[0] == Class::Memory || classes.words[1] == Class::Memory) return kMemory;
    return classes;
  }

 private:
  bool is_passed_by_reference(TypeId type) {
    Dwarf_Die* die = types_.definition(type);
    constexpr uint64_t kPassByReference = 0x04;  // DW_CC_pass_by_reference
    return die != nullptr &&
           die_unsigned(*die, DW_AT_calling_convention).value_or(0) == kPassByReference;
  }

  // __m128 and kin: an array with a mark.
  bool is_vector(TypeId type) {
    Dwarf_Die* die = types_.definition(type);
    return die != nullptr && dwarf_tag(die) == DW_TAG_array_type &&
           die_flag(*die, DW_AT_GNU_vector);
  }

  static void put(Classes& classes, uint64_t offset, Class value) {
    if (offset / kRegisterBytes >= classes.words.size()) {
      classes.words[0] = Class::Memory;
      return;
    }
    Class& word = classes.words[offset / kRegisterBytes];
    word = join(word, value);
  }

  void place(TypeId type, uint64_t offset, unsigned depth, Classes& classes) {
    const TypeDescription description = types_.describe(type);
    if (depth > kArgumentDepthMax) return put(classes, 0, Class::Memory);
    switch (description.kind) {
      case TypeKind::Void:
        return;
      case TypeKind::Integer:
      case TypeKind::Boolean:
      case TypeKind::Enumeration:
      case TypeKind::Pointer:
        put(classes, offset, Class::Integer);
        if (description.size_bytes > kRegisterBytes)
          put(classes, offset + kRegisterBytes, Class::Integer);
        return;
      case TypeKind::Float:
        // long double is x87: in memory as an argument.
        return put(classes, offset,
                   description.size_bytes > kRegisterBytes ? Class::Memory : Class::Vector);
      case TypeKind::Array:
        return place_array(type, description, offset, depth, classes);
      case TypeKind::Record:
        for (const TypeMember& member : types_.members(type)) {
          const uint64_t at = offset + member.offset_bytes + member.bit_offset / 8;
          const bool is_aligned = is_bit_field(member) || is_naturally_aligned(member, at);
          if (!is_aligned) return put(classes, 0, Class::Memory);
          place(member.type, at, depth + 1, classes);
        }
        return;
      case TypeKind::Function:
      case TypeKind::Other:
        return place_other(type, description, offset, classes);
    }
  }

  static bool is_bit_field(const TypeMember& member) { return member.bit_size != 0; }

  bool is_naturally_aligned(const TypeMember& member, uint64_t at) {
    const TypeDescription& description = types_.describe(member.type);
    const bool is_scalar =
        description.kind != TypeKind::Record && description.kind != TypeKind::Array;
    return !is_scalar || description.size_bytes == 0 || at % description.size_bytes == 0;
  }

  void place_array(TypeId type, const TypeDescription& description, uint64_t offset, unsigned depth,
                   Classes& classes) {
    if (is_vector(type)) return put(classes, offset, Class::Vector);
    const uint64_t element_bytes = types_.describe(description.target).size_bytes;
    if (element_bytes == 0) return;
    for (uint64_t i = 0; i < std::min<uint64_t>(description.count, kRegisterRecordMaxBytes); ++i) {
      place(description.target, offset + i * element_bytes, depth + 1, classes);
    }
  }

  // Complex numbers and pointers to members, which DWARF gives other tags and encodings.
  void place_other(TypeId type, const TypeDescription& description, uint64_t offset,
                   Classes& classes) {
    Dwarf_Die* die = types_.definition(type);
    const int tag = die == nullptr ? 0 : dwarf_tag(die);
    if (tag == DW_TAG_ptr_to_member_type || tag == DW_TAG_unspecified_type) {
      put(classes, offset, Class::Integer);
      if (description.size_bytes > kRegisterBytes)
        put(classes, offset + kRegisterBytes, Class::Integer);
    } else if (tag == DW_TAG_base_type && description.size_bytes <= 2 * kRegisterBytes) {
      put(classes, offset, Class::Vector);
      if (description.size_bytes > kRegisterBytes)
        put(classes, offset + kRegisterBytes, Class::Vector);
    } else {
      put(classes, 0, Class::Memory);
    }
  }

  TypeTable& types_;
};

// What has been given out so far, in the order of the parameters.
class Places {
 public:
  explicit Places(bool returns_through_memory) : integers_(returns_through_memory ? 1 : 0) {}

  void assign(const Classes& classes, uint64_t size_bytes, uint64_t alignment, Parameter& out) {
    const auto integers = static_cast<uint16_t>(classes.count(Class::Integer));
    const auto vectors = static_cast<uint16_t>(classes.count(Class::Vector));
    const bool fits = !classes.in_memory() && integers_ + integers <= kIntegerRegisters &&
                      vectors_ + vectors <= kVectorRegisters;
    if (!fits) return assign_stack(size_bytes, alignment, out);
    if (integers != 0 && vectors != 0) {
      out.problem = "it is split over an integer and a vector register";
    } else if (vectors > 1) {
      out.problem = "it is in two vector registers";
    } else if (classes.by_reference) {
      out.problem = "it is passed as a pointer to a copy";
    } else if (integers == 0 && vectors == 0) {
      out.problem = "it has no bytes";
    } else {
      out.place = vectors == 1    ? ArgumentPlace::VectorRegister
                  : integers == 2 ? ArgumentPlace::IntegerPair
                                  : ArgumentPlace::IntegerRegister;
      out.index = vectors == 1 ? vectors_ : integers_;
    }
    integers_ = static_cast<uint16_t>(integers_ + integers);
    vectors_ = static_cast<uint16_t>(vectors_ + vectors);
  }

 private:
  void assign_stack(uint64_t size_bytes, uint64_t alignment, Parameter& out) {
    // Word 0 lies at rsp + 8, which is a multiple of 16 at entry: so even words are aligned.
    if (alignment >= 2 * kRegisterBytes) stack_ += stack_ % 2;
    const uint64_t words =
        std::max<uint64_t>((size_bytes + kRegisterBytes - 1) / kRegisterBytes, 1);
    if (words == 1 && stack_ <= UINT16_MAX) {
      out.place = ArgumentPlace::Stack;
      out.index = static_cast<uint16_t>(stack_);
    } else {
      out.problem = fmt::format("it is passed by value in {} bytes of memory", size_bytes);
    }
    stack_ += words;
  }

  uint16_t integers_;
  uint16_t vectors_ = 0;
  uint64_t stack_ = 0;
};

// DWARF register numbers (psABI, figure 3.36) of the integer argument registers.
std::optional<uint16_t> integer_argument(uint64_t number) {
  constexpr std::array<uint64_t, kIntegerRegisters> kNumbers = {5, 4, 1, 2, 8, 9};
  for (uint16_t i = 0; i < kIntegerRegisters; ++i) {
    if (kNumbers[i] == number) return i;
  }
  return std::nullopt;
}

// The place that DWARF gives a parameter at the first instruction, if it is a register that can
// hold an argument.
bool place_from_location(Dwarf_Die& die, uint64_t address, Parameter& out) {
  Dwarf_Attribute attribute;
  if (dwarf_attr(&die, DW_AT_location, &attribute) == nullptr) return false;
  Dwarf_Op* expression = nullptr;
  size_t length = 0;
  if (dwarf_getlocation_addr(&attribute, address, &expression, &length, 1) != 1) return false;
  if (length != 1) return false;
  const bool is_short = expression[0].atom >= DW_OP_reg0 && expression[0].atom <= DW_OP_reg31;
  if (!is_short && expression[0].atom != DW_OP_regx) return false;
  const uint64_t number = is_short ? expression[0].atom - DW_OP_reg0 : expression[0].number;
  constexpr uint64_t kXmm0 = 17;
  if (const auto index = integer_argument(number)) {
    out.place = ArgumentPlace::IntegerRegister;
    out.index = *index;
  } else if (number >= kXmm0 && number < kXmm0 + kVectorRegisters) {
    out.place = ArgumentPlace::VectorRegister;
    out.index = static_cast<uint16_t>(number - kXmm0);
  } else {
    return false;
  }
  out.problem.clear();
  return true;
}

bool breaks_convention(Dwarf_Die& function) {
  constexpr uint64_t kNoCall = 0x03;  // DW_CC_nocall: LLVM changed a function that only it calls.
  return die_unsigned(function, DW_AT_calling_convention).value_or(0) == kNoCall;
}

// The concrete entry's parameters, or those of its abstract origin when it lists none.
void for_each_parameter(Dwarf_Die function, const auto& visit) {
  bool any = false;
  const auto visit_children = [&](Dwarf_Die& parent) {
    for_each_child(parent, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      const bool wanted = tag == DW_TAG_formal_parameter || tag == DW_TAG_unspecified_parameters;
      any = any || wanted;
      if (wanted) visit(child, tag);
    });
  };
  visit_children(function);
  for (const unsigned link : {unsigned{DW_AT_abstract_origin}, unsigned{DW_AT_specification}}) {
    auto origin = any ? std::nullopt : die_reference(function, link);
    if (origin) visit_children(*origin);
  }
}

}  // namespace

Signature read_signature(Dwarf_Die function, uint64_t address, bool may_break_convention,
                         TypeTable& types) {
  Signature signature;
  Classifier classifier(types);
  signature.return_type = types.type_of(function);
  const Classes returned = classifier.classify(signature.return_type);
  const TypeKind return_kind = types.describe(signature.return_type).kind;
  const bool is_memory = returned.in_memory() || returned.by_reference;
  // long double comes back in an x87 register, not through memory.
  const bool is_sret = is_memory && return_kind != TypeKind::Float;
  signature.returns_in_rax = !is_memory && returned.words[0] == Class::Integer;
  const bool only_dwarf = may_break_convention || breaks_convention(function);
  Places places(is_sret);
  for_each_parameter(function, [&](Dwarf_Die& die, int tag) {
    if (tag == DW_TAG_unspecified_parameters) {
      signature.is_variadic = true;
      return;
    }
    if (signature.parameters.size() >= kParametersMax) return;
    Parameter parameter;
    parameter.name = die_name(die);
    parameter.type = types.type_of(die);
    const TypeDescription description = types.describe(parameter.type);
    const bool is_wide =
        description.kind != TypeKind::Record && description.size_bytes > kRegisterBytes;
    places.assign(classifier.classify(parameter.type), description.size_bytes,
                  is_wide ? 2 * kRegisterBytes : kRegisterBytes, parameter);
    const bool is_scalar =
        parameter.place != ArgumentPlace::IntegerPair && description.kind != TypeKind::Record;
    const bool is_known = is_scalar && place_from_location(die, address, parameter);
    if (!is_known && only_dwarf) {
      parameter.place = ArgumentPlace::Unavailable;
      parameter.problem = "the compiler passes it in its own way or not at all";
    }
    signature.parameters.push_back(std::move(parameter));
  });
  return signature;
}

}  // namespace clew::target
