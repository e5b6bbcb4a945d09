// SPDX-License-Identifier: Apache-2.0
#include "engine/d_user_types.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "target/btf.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::Tag;
using query::d::TypeEnumerator;
using query::d::TypeId;
using query::d::TypeMember;
using query::d::TypeTable;
using target::DebugInfo;
using target::TypeDescription;
using target::TypeKind;

namespace {

constexpr uint32_t kDepthMax = 64;      // Types within types; beyond that they are void.
constexpr uint32_t kTypesMax = 100000;  // Of one question, in a file that may be made to harm.
constexpr std::string_view kMain = "a.out";

std::string_view without_qualifiers(std::string_view name) {
  constexpr std::string_view kQualifiers[] = {"const ", "volatile ", "restrict ", "_Atomic "};
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const std::string_view qualifier : kQualifiers) {
      if (!name.starts_with(qualifier)) continue;
      name.remove_prefix(qualifier.size());
      has_changed = true;
    }
  }
  return name;
}

// The tag that stands in front of a name, which is taken off it.
Tag take_tag(std::string_view& name) {
  constexpr std::pair<std::string_view, Tag> kTags[] = {{"struct ", Tag::Struct},
                                                        {"class ", Tag::Struct},
                                                        {"union ", Tag::Union},
                                                        {"enum ", Tag::Enum}};
  for (const auto& [word, tag] : kTags) {
    if (!name.starts_with(word)) continue;
    name.remove_prefix(word.size());
    return tag;
  }
  return Tag::None;
}

// Converts types of one module into one table.
class Converter {
 public:
  Converter(DebugInfo& from, TypeTable& table, const std::string& prefix)
      : from_(from), table_(table), prefix_(prefix) {}

  // With its members, if it is a record.
  TypeId complete(target::TypeId id) { return convert(id, true); }

 private:
  TypeId convert(target::TypeId id, bool wants_members) {
    if (depth_ > kDepthMax || ++converted_ > kTypesMax) return table_.void_type();
    ++depth_;
    const TypeDescription type = from_.describe(id);
    const TypeId result = by_kind(id, type, wants_members);
    --depth_;
    return result;
  }

  TypeId by_kind(target::TypeId id, const TypeDescription& type, bool wants_members) {
    switch (type.kind) {
      case TypeKind::Void:
      case TypeKind::Other:
        return table_.void_type();
      case TypeKind::Integer:
      case TypeKind::Boolean:
      case TypeKind::Character:
        return base(type, number(type));
      case TypeKind::Float:
        return base(type, opaque(type.size_bytes));
      case TypeKind::Enumeration:
        return enumeration(id, type);
      case TypeKind::Pointer:
        return aliased(type, table_.pointer_to(convert(type.target, false)));
      case TypeKind::Array:
        return array(type);
      case TypeKind::Record:
        return record(id, type, wants_members);
    }
    return table_.void_type();
  }

  TypeId number(const TypeDescription& type) {
    const auto size = static_cast<uint32_t>(type.size_bytes);
    const bool is_usual = size == 1 || size == 2 || size == 4 || size == 8;
    return is_usual ? table_.integer(size, type.is_signed) : opaque(type.size_bytes);
  }

  // What D has no type for, as bytes.
  TypeId opaque(uint64_t size_bytes) {
    const uint64_t count = std::min(size_bytes, query::d::kTypeBytesMax);
    return table_.array_of(table_.find_base("unsigned char"), static_cast<uint32_t>(count));
  }

  // A base type of C, or a typedef for `otherwise`.
  TypeId base(const TypeDescription& type, TypeId otherwise) {
    const std::string_view name = target::c_integer_name(without_qualifiers(type.name));
    const TypeId known = table_.find_base(name);
    if (known != kNoType && table_.size_of(known) == type.size_bytes) return known;
    return aliased(type, otherwise);
  }

  // The program's own name for `type`, if it has one: a word without stars and brackets.
  TypeId aliased(const TypeDescription& description, TypeId type) {
    const std::string_view name = without_qualifiers(description.name);
    if (name.empty() || name.find_first_of(" *&[]({") != std::string_view::npos) return type;
    const query::d::Type& of = table_.stripped(type);
    return table_.add({.kind = query::d::TypeKind::Typedef,
                       .name = std::string(name),
                       .size_bytes = of.size_bytes,
                       .align_bytes = of.align_bytes,
                       .is_signed = of.is_signed,
                       .is_character = of.is_character,
                       .target = type});
  }

  TypeId array(const TypeDescription& type) {
    const TypeId element = convert(type.target, true);
    const uint64_t size_bytes = uint64_t{table_.size_of(element)} * type.count;
    const bool is_sane = type.count < UINT32_MAX && size_bytes <= query::d::kTypeBytesMax;
    const TypeId made = table_.array_of(element, is_sane ? static_cast<uint32_t>(type.count) : 0);
    return aliased(type, made);
  }

  // The name of a tagged type in the table; empty when it has none of its own.
  [[nodiscard]] std::string table_name(std::string_view name) const {
    return name.empty() || name.front() == '{' ? "" : prefix_ + std::string(name);
  }

  TypeId enumeration(target::TypeId id, const TypeDescription& type) {
    if (type.size_bytes != 4) return number(type);
    std::string_view name = without_qualifiers(type.name);
    (void)take_tag(name);
    const TypeId result = table_.declare(Tag::Enum, table_name(name));
    if (table_.at(result).kind != query::d::TypeKind::Forward) return result;
    std::vector<TypeEnumerator> enumerators;
    for (const target::TypeEnumerator& each : from_.enumerators(id))
      enumerators.push_back({each.name, each.value});
    // A name that has another value already, in the kernel's or another program's enumeration.
    if (!table_.define_enum(result, std::move(enumerators))) {
      (void)table_.define_enum(result, {});
    }
    return result;
  }

  TypeId record(target::TypeId id, const TypeDescription& type, bool wants_members) {
    std::string_view name = without_qualifiers(type.name);
    const Tag written = take_tag(name);
    const Tag tag = written == Tag::None ? Tag::Struct : written;
    const std::string known = table_name(name);
    const TypeId result = table_.declare(tag, known);
    const bool is_open = table_.at(result).kind == query::d::TypeKind::Forward;
    // One without a name cannot be asked for later. A record in itself is a damaged file.
    const bool is_inside = std::find(open_.begin(), open_.end(), id) != open_.end();
    if (is_open && (wants_members || known.empty()) && !is_inside) define(id, type, result);
    return written == Tag::None ? aliased(type, result) : result;
  }

  void define(target::TypeId id, const TypeDescription& type, TypeId result) {
    if (type.size_bytes > query::d::kTypeBytesMax) return;
    open_.push_back(id);
    std::vector<TypeMember> members;
    uint32_t align_bytes = 1;
    for (const target::TypeMember& each : from_.members(id)) {
      const TypeId member = convert(each.type, true);
      if (!lies_within(each, member, type.size_bytes)) continue;
      align_bytes = std::max(align_bytes, table_.stripped(member).align_bytes);
      members.push_back(
          {each.name, member, each.offset_bytes * 8 + each.bit_offset, each.bit_size});
    }
    open_.pop_back();
    if (type.size_bytes % align_bytes != 0) align_bytes = 1;  // A packed one.
    // Another record of its name, which lay inside, was faster.
    if (table_.at(result).kind != query::d::TypeKind::Forward) return;
    table_.define_record_as_laid_out(result, std::move(members),
                                     static_cast<uint32_t>(type.size_bytes), align_bytes);
  }

  // In the record, and a bit-field in one unit of its type.
  [[nodiscard]] bool lies_within(const target::TypeMember& member, TypeId type,
                                 uint64_t record_bytes) const {
    const uint64_t size = table_.size_of(type);
    if (member.offset_bytes > record_bytes || size > record_bytes - member.offset_bytes) {
      return false;
    }
    if (member.bit_size == 0) return true;
    const uint64_t first =
        (member.offset_bytes * 8 + member.bit_offset) % (8 * std::max<uint64_t>(size, 1));
    return table_.is_integer(type) && first + member.bit_size <= 8 * size;
  }

  DebugInfo& from_;
  TypeTable& table_;
  const std::string& prefix_;
  uint32_t depth_ = 0;
  uint32_t converted_ = 0;
  std::vector<target::TypeId> open_;  // Records whose members are being converted.
};

// As C writes them; a typedef of C, or a class of C++, stands without a tag.
std::vector<std::string> spellings(Tag tag, std::string_view name) {
  switch (tag) {
    case Tag::None:
      return {std::string(name)};
    case Tag::Struct:
      return {fmt::format("struct {}", name), std::string(name)};
    case Tag::Union:
      return {fmt::format("union {}", name), std::string(name)};
    case Tag::Enum:
      return {fmt::format("enum {}", name), std::string(name)};
  }
  return {};
}

// "pid12`libc" -> 12, and "libc" is left; 0 when no process is named.
pid_t take_pid(std::string_view& module) {
  constexpr std::string_view kWord = "pid";
  if (!module.starts_with(kWord)) return 0;
  const std::string_view digits = module.substr(kWord.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const auto length = static_cast<size_t>(end - digits.data());
  const bool is_whole = length == digits.size() || digits[length] == '`';
  if (error != std::errc() || pid <= 0 || !is_whole) return 0;
  module = digits.substr(std::min(length + 1, digits.size()));
  return pid;
}

}  // namespace

void UserTypes::add_process(pid_t pid) {
  pids_.push_back(pid);
}

target::Catalog* UserTypes::catalog_of(pid_t pid) {
  auto found = catalogs_.find(pid);
  if (found == catalogs_.end()) {
    auto read = target::Catalog::of_process(pid, target::default_catalog_options());
    std::optional<target::Catalog> catalog;
    if (read) catalog.emplace(std::move(*read));
    found = catalogs_.emplace(pid, std::move(catalog)).first;
  }
  return found->second ? &*found->second : nullptr;
}

void UserTypes::add_modules(pid_t pid, std::string_view name, std::vector<Module>& found) {
  target::Catalog* const catalog = catalog_of(pid);
  if (catalog == nullptr) return;
  std::vector<size_t> wanted;
  if (name.empty() || name == " " || name == kMain) {
    const size_t count = name == kMain ? 1 : catalog->modules().size();
    for (size_t i = 0; i < std::min(count, catalog->modules().size()); ++i)
      wanted.push_back(i);
  } else if (auto matching = catalog->find_modules(name)) {
    wanted = std::move(*matching);
  }
  for (const size_t module : wanted) {
    auto types = catalog->debug_info(module);
    if (!types) continue;
    const std::string& shown = catalog->modules()[module].display_name;
    found.push_back({*types, fmt::format("pid{}`{}`", pid, module == 0 ? kMain : shown)});
  }
}

std::vector<UserTypes::Module> UserTypes::modules(std::string_view name) {
  std::vector<Module> found;
  if (const pid_t pid = take_pid(name); pid != 0) {
    add_modules(pid, name, found);
    return found;
  }
  for (const pid_t pid : pids_)
    add_modules(pid, name, found);
  return found;
}

TypeId UserTypes::find(TypeTable& table, std::string_view module, Tag tag, std::string_view name) {
  for (const Module& each : modules(module)) {
    for (const std::string& spelling : spellings(tag, name)) {
      const target::TypeId found = each.types->find_type(spelling);
      if (found != target::kVoidType)
        return Converter(*each.types, table, each.prefix).complete(found);
    }
  }
  return kNoType;
}

std::optional<TypeEnumerator> UserTypes::find_enumerator(std::string_view name) {
  for (const Module& each : modules("")) {
    if (const auto found = each.types->find_enumerator(name)) {
      return TypeEnumerator{found->name, found->value};
    }
  }
  return std::nullopt;
}

}  // namespace clew::engine
