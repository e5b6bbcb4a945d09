// SPDX-License-Identifier: Apache-2.0
// The C types that a D program may name: the base types, those that it declares, and those of the
// kernel (BTF) and of traced programs (DWARF), which are read in when they are first named. A type
// is a TypeId in one TypeTable; 0 is "no type".
//
// Structural types are interned (two `int *` are one TypeId); struct, union and enum are equal by
// identity. Qualifiers (const, volatile, restrict) are dropped as types are made.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/type_description.h"

namespace clew::query::d {

using TypeId = uint32_t;
inline constexpr TypeId kNoType = 0;
inline constexpr uint64_t kTypeBytesMax = uint64_t{1} << 30;

enum class Tag : uint8_t { None, Struct, Union, Enum };

enum class TypeKind : uint8_t {
  Void,
  Integer,  // Also char and _Bool.
  Float,    // Can be named and copied; no arithmetic.
  Pointer,  // target; 8 bytes
  Array,    // target, count (0 = not known)
  Struct,   // members
  Union,
  Enum,      // enumerators; 4 bytes unless BTF says otherwise
  Typedef,   // target
  Function,  // target = result, parameters
  Forward,   // A struct or union that is only declared; completed in place when it is defined.
  String,    // D's string: at most strsize bytes with the NUL.
  Dynamic,   // What stack(), ustack(), sym(), usym(), … give: only to be recorded or a key.
};

struct TypeMember {
  std::string name;  // Empty for an anonymous struct or union, whose members count as the outer's.
  TypeId type = kNoType;
  uint64_t offset_bits = 0;
  uint8_t bit_size = 0;  // 0 = no bit-field.
};

using target::TypeEnumerator;

struct TypeParameter {
  std::string name;
  TypeId type = kNoType;
};

struct Type {
  TypeKind kind = TypeKind::Void;
  Tag tag = Tag::None;    // Forward: what it will be.
  std::string name = {};  // Without its tag keyword: "int", "task_struct", "size_t"; may be empty.
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 1;
  bool is_signed = false;     // Integer, Enum.
  bool is_character = false;  // char, signed char, unsigned char (and typedefs lead to them).
  TypeId target = kNoType;    // Pointer, Array (element), Typedef, Function (result).
  uint32_t count = 0;         // Array.
  bool is_variadic = false;   // Function.
  std::vector<TypeMember> members = {};
  std::vector<TypeEnumerator> enumerators = {};
  std::vector<TypeParameter> parameters = {};
  // Where addresses of it point when it is dereferenced: kernel memory unless set (types of traced
  // programs, and those marked `userland`).
  bool is_userland = false;
};

// What a member access means, anonymous members looked through.
struct MemberPlace {
  TypeId type = kNoType;
  uint64_t offset_bits = 0;  // From the start of the outermost struct.
  uint8_t bit_size = 0;      // 0 = no bit-field.
};

class TypeTable;

// Where types and kernel symbols come from that the program does not declare itself.
class TypeProvider {
 public:
  virtual ~TypeProvider() = default;
  // Reads `name` (of the namespace of `tag`) of `module` ("" = any, "vmlinux", a kernel module, or
  // for pid probes a module of the target) into the table. kNoType when there is none.
  virtual TypeId find(TypeTable& table, std::string_view module, Tag tag,
                      std::string_view name) = 0;
  // Enumerator of any enum of the kernel. Nothing when there is none.
  virtual std::optional<TypeEnumerator> find_enumerator(TypeTable& table,
                                                        std::string_view name) = 0;
  struct Symbol {
    uint64_t address = 0;
    TypeId type = kNoType;  // kNoType: known by address only.
  };
  // A kernel variable or function (`mod`name`), "" = any module. NotFound: the message is only
  // "No such symbol" and its like, without a place.
  virtual Expected<Symbol> find_symbol(TypeTable& table, std::string_view module,
                                       std::string_view name) = 0;
};

class TypeTable {
 public:
  explicit TypeTable(uint32_t string_size_bytes = 256);

  // The reference stays valid while types are added.
  [[nodiscard]] const Type& at(TypeId type) const { return types_[type]; }
  // Typedefs looked through.
  [[nodiscard]] TypeId strip(TypeId type) const;
  [[nodiscard]] const Type& stripped(TypeId type) const { return at(strip(type)); }
  [[nodiscard]] uint32_t size_of(TypeId type) const;  // 0 for void, functions, forwards.

  // As C writes it: "int", "struct foo *", "char [16]", "string", "int (*)(int, char *)".
  [[nodiscard]] std::string name_of(TypeId type) const;

  [[nodiscard]] bool is_integer(TypeId type) const;  // Integer or Enum, typedefs looked through.
  [[nodiscard]] bool is_signed(TypeId type) const;   // Of an integer.
  [[nodiscard]] bool is_pointer(TypeId type) const;  // Pointer or Array.
  [[nodiscard]] bool is_string(TypeId type) const;   // String; not char arrays.
  // string, char *, char [n]: what may stand where a string is wanted.
  [[nodiscard]] bool is_string_like(TypeId type) const;
  [[nodiscard]] bool is_record(TypeId type) const;  // Struct or Union.

  [[nodiscard]] std::optional<MemberPlace> member(TypeId record, std::string_view name) const;

  // Of every program.
  [[nodiscard]] TypeId void_type() const { return void_; }
  [[nodiscard]] TypeId string_type() const { return string_; }
  [[nodiscard]] TypeId dynamic_type() const { return dynamic_; }
  // {1,2,4,8} bytes: char, short, int, long (the C base types of that size).
  [[nodiscard]] TypeId integer(uint32_t size_bytes, bool is_signed) const;
  [[nodiscard]] TypeId find_base(std::string_view name) const;  // "unsigned long", "int32_t", …

  TypeId pointer_to(TypeId target);
  TypeId array_of(TypeId element, uint32_t count);  // At most kTypeBytesMax: the caller checks.
  TypeId function(TypeId result, std::vector<TypeParameter> parameters, bool is_variadic);
  // Errors: the name is taken by another type (message without place).
  Expected<TypeId> define_typedef(std::string name, TypeId target);
  // One that is not found by its name: that of a traced program.
  TypeId add_typedef(std::string name, TypeId target);
  // The struct, union or enum of this tag, made as a Forward when it is new. An empty name makes a
  // new one each time. A name with backquotes, "pid12`a.out`client", is that of a traced program's
  // type: it is_userland, and is shown by what stands behind the last of them.
  TypeId declare(Tag tag, std::string name);
  // As declare(), but the name leaves the type that it may have and means the new one from now on:
  // a program's own definition of a name that was read in from elsewhere.
  TypeId redeclare(Tag tag, std::string name);
  // The same type, whose addresses are the traced program's (is_userland).
  TypeId userland_of(TypeId type);
  // Asks the provider for the members of a struct or union that is only declared so far. The type
  // itself when there is nothing to be had.
  TypeId complete(TypeId type);
  // Lays out the members as the x86-64 psABI does (offset_bits of `members` is set here) and
  // completes the Forward. An unnamed member with bit_size is padding; an unnamed integer without
  // is C's `int : 0`. Neither is kept. Error: larger than kTypeBytesMax.
  Expected<void> define_record(TypeId record, std::vector<TypeMember> members);
  void define_record_as_laid_out(TypeId record, std::vector<TypeMember> members,
                                 uint32_t size_bytes, uint32_t align_bytes);
  // Error: an enumerator's name is taken with another value.
  Expected<void> define_enum(TypeId enumeration, std::vector<TypeEnumerator> enumerators);

  // A type by its name; asks the provider (if there is one) for what is not here. `module` is what
  // stands before the backquote; C and D mean what is in the table.
  [[nodiscard]] TypeId find(std::string_view module, Tag tag, std::string_view name);
  // The same without the provider.
  [[nodiscard]] TypeId find_here(Tag tag, std::string_view name) const;
  [[nodiscard]] std::optional<TypeEnumerator> find_enumerator(std::string_view name, TypeId& type);
  void set_string_size(uint32_t size_bytes) { types_[string_].size_bytes = size_bytes; }
  void set_provider(TypeProvider* provider) { provider_ = provider; }
  [[nodiscard]] TypeProvider* provider() const { return provider_; }

 private:
  TypeId add(Type type);
  TypeId intern(std::string key, Type type);

  std::deque<Type> types_;  // at()'s references stay valid while types are added.
  std::array<std::map<std::string, TypeId, std::less<>>, 4>
      tagged_;  // By Tag; None = typedefs and base types.
  std::map<std::string, TypeId, std::less<>> structural_;
  std::map<std::string, std::pair<TypeId, int64_t>, std::less<>> enumerators_;
  TypeId void_ = kNoType;
  TypeId string_ = kNoType;
  TypeId dynamic_ = kNoType;
  TypeProvider* provider_ = nullptr;
};

}  // namespace clew::query::d
