// SPDX-License-Identifier: Apache-2.0
// Btf: the types of the running kernel or of one of its modules, as BTF describes them: found by
// kind and name, read by number. Opening one parses only the outer form (some milliseconds); the
// index of names is made at the first search.
//
// The numbers of a module's types go on where those of vmlinux end, so that a module's Btf answers
// for both; it keeps a pointer to that of vmlinux, which must outlive it. Searches of a module's
// Btf look only at what the module adds.
//
// Views live as long as the Btf. Not thread-safe: searches fill the index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::target {

// 0 is void.
using BtfId = uint32_t;
inline constexpr BtfId kBtfVoid = 0;

enum class BtfKind : uint8_t {
  Void,
  Integer,
  Float,
  Pointer,
  Array,
  Struct,
  Union,
  Enum,
  Forward,
  Typedef,
  Qualifier,  // const, volatile, restrict, and type tags: `target` is the type itself.
  Function,   // A function of the kernel: `target` is its prototype.
  Prototype,  // `target` is the result.
  Variable,
  Other,  // Data sections, declaration tags.
};

struct BtfType {
  BtfKind kind = BtfKind::Void;
  std::string_view name;
  uint32_t size_bytes = 0;   // Integer, Float, Struct, Union, Enum
  BtfId target = kBtfVoid;   // Of an Array: its element.
  uint32_t count = 0;        // Array
  bool is_signed = false;    // Integer, Enum
  bool is_boolean = false;   // Integer
  bool is_union = false;     // Forward
  bool is_variadic = false;  // Prototype
};

struct BtfMember {
  std::string_view name;
  BtfId type = kBtfVoid;
  uint32_t offset_bits = 0;
  uint8_t bit_size = 0;  // 0 = no bit-field.
};

struct BtfEnumerator {
  std::string_view name;
  int64_t value = 0;
};

struct BtfParameter {
  std::string_view name;
  BtfId type = kBtfVoid;
};

class Btf {
 public:
  // That of vmlinux. Refused when the kernel has none.
  static Expected<Btf> of_kernel();
  // That of a loaded module. NotFound when the module has none, or is not loaded.
  static Expected<Btf> of_module(std::string_view module, const Btf& kernel);
  static Expected<Btf> open(const std::string& path, const Btf* kernel);
  // The section .BTF of an object file, which is copied.
  static Expected<Btf> of_section(std::span<const uint8_t> bytes);

  Btf(Btf&&) noexcept;
  Btf& operator=(Btf&&) noexcept;
  ~Btf();

  [[nodiscard]] BtfId first_id() const;  // Of what this Btf adds: 1, or the end of vmlinux's.
  [[nodiscard]] BtfId end_id() const;
  // A string by its place in the table; "" when it is outside.
  [[nodiscard]] std::string_view text_at(uint32_t offset) const;
  [[nodiscard]] BtfType at(BtfId type) const;  // Void for a number that is none.
  [[nodiscard]] std::vector<BtfMember> members(BtfId record) const;
  [[nodiscard]] std::vector<BtfEnumerator> enumerators(BtfId enumeration) const;
  [[nodiscard]] std::vector<BtfParameter> parameters(BtfId prototype) const;

  // kBtfVoid when there is none; the first when there are several.
  [[nodiscard]] BtfId find(BtfKind kind, std::string_view name) const;
  // The enumeration that has it, and its value.
  struct FoundEnumerator {
    BtfId type = kBtfVoid;
    int64_t value = 0;
  };
  [[nodiscard]] std::optional<FoundEnumerator> find_enumerator(std::string_view name) const;

  [[nodiscard]] BtfId skip_qualifiers(BtfId type) const;
  [[nodiscard]] BtfId strip(BtfId type) const;  // Typedefs and qualifiers looked through.
  // Where a member is, anonymous members looked through. `path` may be "a.b.c".
  [[nodiscard]] std::optional<BtfMember> member(BtfId record, std::string_view path) const;

 private:
  struct Data;
  explicit Btf(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

// Names of the modules that have BTF now, sorted; without vmlinux.
std::vector<std::string> btf_modules();

// As C writes it, without qualifiers: "struct task_struct *", "unsigned long", "pid_t *". Pointers
// to what has no name (functions, anonymous records) are "void *"; an array is a pointer to its
// element. So the text is always a name, perhaps after struct, union or enum, and stars.
std::string c_type_text(const Btf& btf, BtfId type);

}  // namespace clew::target
