// SPDX-License-Identifier: Apache-2.0
#include "engine/d_types.h"

#include <algorithm>
#include <array>

#include "target/kernel_symbols.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::Tag;
using query::d::Type;
using query::d::TypeEnumerator;
using query::d::TypeId;
using query::d::TypeKind;
using query::d::TypeMember;
using query::d::TypeParameter;
using query::d::TypeTable;
using target::Btf;
using target::BtfId;
using target::BtfKind;
using target::BtfType;

namespace {

constexpr uint32_t kDepthMax = 64;  // Types within types; beyond that they are void.

// Converts types of one Btf into one table.
class Converter {
 public:
  Converter(const Btf& btf, TypeTable& table) : btf_(btf), table_(table) {}

  // With its members, if it is a record.
  TypeId complete(BtfId id) {
    const Deeper deeper(*this);
    if (depth_ > kDepthMax) return table_.void_type();
    const BtfType type = btf_.at(id);
    switch (type.kind) {
      case BtfKind::Struct:
      case BtfKind::Union:
        return record(id, type);
      case BtfKind::Typedef:
        return complete_typedef(type);
      case BtfKind::Qualifier:
        return complete(type.target);
      case BtfKind::Array:
        return array(type);
      case BtfKind::Void:
      case BtfKind::Integer:
      case BtfKind::Float:
      case BtfKind::Pointer:
      case BtfKind::Enum:
      case BtfKind::Forward:
      case BtfKind::Function:
      case BtfKind::Prototype:
      case BtfKind::Variable:
      case BtfKind::Other:
        return reference(id);
    }
    return table_.void_type();
  }

 private:
  // Counts how deep types lie in types.
  class Deeper {
   public:
    explicit Deeper(Converter& converter) : converter_(converter) { ++converter_.depth_; }
    ~Deeper() { --converter_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Converter& converter_;
  };

  // What a pointer may point to: records with a name stay as they are.
  TypeId reference(BtfId id) {
    const Deeper deeper(*this);
    if (depth_ > kDepthMax) return table_.void_type();
    const BtfType type = btf_.at(id);
    switch (type.kind) {
      case BtfKind::Void:
      case BtfKind::Other:
        return table_.void_type();
      case BtfKind::Integer:
        return integer(type);
      case BtfKind::Float:
        return floating(type);
      case BtfKind::Pointer:
        return table_.pointer_to(reference(type.target));
      case BtfKind::Array:
        return array(type);
      case BtfKind::Struct:
      case BtfKind::Union:
        return type.name.empty() ? record(id, type) : declared(type);
      case BtfKind::Enum:
        return enumeration(id, type);
      case BtfKind::Forward:
        return declared(type);
      case BtfKind::Typedef:
        return alias(type);
      case BtfKind::Qualifier:
      case BtfKind::Function:
      case BtfKind::Variable:
        return reference(type.target);
      case BtfKind::Prototype:
        return function(id, type);
    }
    return table_.void_type();
  }

  static Tag tag_of(const BtfType& type) {
    const bool is_union =
        type.kind == BtfKind::Union || (type.kind == BtfKind::Forward && type.is_union);
    return is_union ? Tag::Union : Tag::Struct;
  }

  TypeId declared(const BtfType& type) {
    return table_.declare(tag_of(type), std::string(type.name));
  }

  // What D has no type for, as bytes.
  TypeId opaque(uint32_t size_bytes) {
    return table_.array_of(table_.find_base("unsigned char"), size_bytes);
  }

  TypeId integer(const BtfType& type) {
    const TypeId known = table_.find_base(target::c_integer_name(type.name));
    if (known != kNoType && table_.size_of(known) == type.size_bytes) return known;
    const uint32_t size = type.size_bytes;
    const bool is_usual = size == 1 || size == 2 || size == 4 || size == 8;
    return is_usual ? table_.integer(size, type.is_signed) : opaque(size);
  }

  TypeId floating(const BtfType& type) {
    const TypeId known = table_.find_base(type.name);
    return known == kNoType || table_.size_of(known) != type.size_bytes ? opaque(type.size_bytes)
                                                                        : known;
  }

  TypeId array(const BtfType& type) {
    const TypeId element = complete(type.target);
    const uint64_t size_bytes = uint64_t{table_.size_of(element)} * type.count;
    return table_.array_of(element, size_bytes > query::d::kTypeBytesMax ? 0 : type.count);
  }

  TypeId enumeration(BtfId id, const BtfType& type) {
    if (type.size_bytes != 4) return table_.integer(type.size_bytes, type.is_signed);
    const TypeId result = table_.declare(Tag::Enum, std::string(type.name));
    if (table_.at(result).kind != TypeKind::Forward) return result;
    std::vector<TypeEnumerator> enumerators;
    for (const auto& each : btf_.enumerators(id)) {
      enumerators.push_back({std::string(each.name), each.value});
    }
    // The kernel has names with several values, in enumerations that never meet in C. The second
    // one is then without names.
    if (!table_.define_enum(result, std::move(enumerators))) {
      (void)table_.define_enum(result, {});
    }
    return result;
  }

  TypeId alias(const BtfType& type) {
    const TypeId known = table_.find_base(type.name);
    const BtfType stripped = btf_.at(btf_.strip(type.target));
    const uint32_t known_bytes = known == kNoType ? 0 : table_.size_of(known);
    const bool is_same =
        known_bytes == 0 || stripped.size_bytes == 0 || known_bytes == stripped.size_bytes;
    if (known != kNoType && is_same) return known;
    const TypeId target = reference(type.target);
    if (known != kNoType) return target;
    const auto made = table_.define_typedef(std::string(type.name), target);
    return made ? *made : target;
  }

  TypeId complete_typedef(const BtfType& type) {
    const TypeId result = alias(type);
    const TypeId stripped = table_.strip(result);
    if (table_.at(stripped).kind == TypeKind::Forward) (void)complete(type.target);
    return result;
  }

  TypeId function(BtfId id, const BtfType& type) {
    std::vector<TypeParameter> parameters;
    for (const auto& each : btf_.parameters(id)) {
      parameters.push_back({std::string(each.name), reference(each.type)});
    }
    return table_.function(reference(type.target), std::move(parameters), type.is_variadic);
  }

  TypeId record(BtfId id, const BtfType& type) {
    TypeId result = declared(type);
    if (table_.at(result).kind != TypeKind::Forward) {
      if (table_.size_of(result) == type.size_bytes) return result;
      // The program has another record of this name.
      result = table_.declare(tag_of(type), "");
    }
    // A record in itself is a pointer's target, and so a Forward; only a damaged BTF goes round.
    if (std::find(open_.begin(), open_.end(), id) != open_.end()) return table_.void_type();
    open_.push_back(id);
    std::vector<TypeMember> members;
    uint32_t align_bytes = 1;
    for (const target::BtfMember& each : btf_.members(id)) {
      const TypeId member = complete(each.type);
      align_bytes = std::max(align_bytes, table_.stripped(member).align_bytes);
      members.push_back({std::string(each.name), member, each.offset_bits, each.bit_size});
    }
    open_.pop_back();
    // Packed records are not marked as such.
    if (type.size_bytes % align_bytes != 0) align_bytes = 1;
    table_.define_record_as_laid_out(result, std::move(members), type.size_bytes, align_bytes);
    return result;
  }

  const Btf& btf_;
  TypeTable& table_;
  uint32_t depth_ = 0;
  std::vector<BtfId> open_;  // Records whose members are being converted.
};

std::vector<BtfKind> kinds_of(Tag tag) {
  switch (tag) {
    case Tag::None:
      return {BtfKind::Typedef, BtfKind::Integer, BtfKind::Float};
    case Tag::Struct:
      return {BtfKind::Struct};
    case Tag::Union:
      return {BtfKind::Union};
    case Tag::Enum:
      return {BtfKind::Enum};
  }
  return {};
}

// Types of variables that scripts use: BTF has those of per-CPU variables only, before Linux 6.16.
struct KnownVariable {
  std::string_view name;
  Tag tag;
  std::string_view type;
  bool is_pointer = false;
  uint32_t count = 0;  // Elements, if it is an array.
};

constexpr std::array kKnownVariables = {
    KnownVariable{"jiffies", Tag::None, "unsigned long"},
    KnownVariable{"jiffies_64", Tag::None, "unsigned long"},
    KnownVariable{"init_task", Tag::Struct, "task_struct"},
    KnownVariable{"init_mm", Tag::Struct, "mm_struct"},
    KnownVariable{"init_net", Tag::Struct, "net"},
    KnownVariable{"init_uts_ns", Tag::Struct, "uts_namespace"},
    KnownVariable{"init_pid_ns", Tag::Struct, "pid_namespace"},
    KnownVariable{"linux_banner", Tag::None, "char", false, 256},
    KnownVariable{"saved_command_line", Tag::None, "char", true},
    KnownVariable{"max_pfn", Tag::None, "unsigned long"},
    KnownVariable{"min_low_pfn", Tag::None, "unsigned long"},
    KnownVariable{"totalreserve_pages", Tag::None, "unsigned long"},
    KnownVariable{"_totalram_pages", Tag::None, "unsigned long"},
    KnownVariable{"avenrun", Tag::None, "unsigned long", false, 3},
    KnownVariable{"total_forks", Tag::None, "unsigned long"},
    KnownVariable{"nr_threads", Tag::None, "int"},
    KnownVariable{"max_threads", Tag::None, "int"},
    KnownVariable{"pid_max", Tag::None, "int"},
    KnownVariable{"nr_cpu_ids", Tag::None, "unsigned int"},
    KnownVariable{"cpu_khz", Tag::None, "unsigned int"},
    KnownVariable{"tsc_khz", Tag::None, "unsigned int"},
    KnownVariable{"loops_per_jiffy", Tag::None, "unsigned long"},
    KnownVariable{"system_state", Tag::Enum, "system_states"},
    KnownVariable{"panic_timeout", Tag::None, "int"},
    KnownVariable{"console_printk", Tag::None, "int", false, 4},
    KnownVariable{"high_memory", Tag::None, "void", true},
    KnownVariable{"vm_swappiness", Tag::None, "int"},
};

}  // namespace

// --- where types are -----------------------------------------------------------------------------

const Btf* KernelTypes::kernel() {
  if (!kernel_) kernel_.emplace(Btf::of_kernel());
  return *kernel_ ? &**kernel_ : nullptr;
}

const Btf* KernelTypes::module_types(const std::string& module) {
  if (kernel() == nullptr) return nullptr;
  auto found = modules_.find(module);
  if (found == modules_.end()) {
    found = modules_.emplace(module, Btf::of_module(module, *kernel())).first;
  }
  return found->second ? &*found->second : nullptr;
}

void KernelTypes::visit_types(std::string_view module,
                              const std::function<bool(const Btf&)>& visit) {
  const bool is_any = module.empty() || module == " ";
  if (is_any || module == "vmlinux") {
    const Btf* types = kernel();
    if (types == nullptr || visit(*types)) return;
  }
  if (module == "vmlinux") return;
  const auto names = is_any ? target::btf_modules() : std::vector{std::string(module)};
  for (const std::string& each : names) {
    const Btf* types = module_types(each);
    if (types != nullptr && visit(*types)) return;
  }
}

TypeId KernelTypes::find(TypeTable& table, std::string_view module, Tag tag,
                         std::string_view name) {
  TypeId result = kNoType;
  visit_types(module, [&](const Btf& types) {
    for (const BtfKind kind : kinds_of(tag)) {
      const BtfId found = types.find(kind, name);
      if (found == target::kBtfVoid) continue;
      result = Converter(types, table).complete(found);
      return true;
    }
    return false;
  });
  return result;
}

// Those of vmlinux alone: every name that a program does not declare is looked for here.
std::optional<TypeEnumerator> KernelTypes::find_enumerator(TypeTable& /*table*/,
                                                           std::string_view name) {
  if (kernel() == nullptr) return std::nullopt;
  const auto found = kernel()->find_enumerator(name);
  if (!found) return std::nullopt;
  return TypeEnumerator{std::string(name), found->value};
}

TypeId KernelTypes::symbol_type(TypeTable& table, std::string_view module, std::string_view name) {
  TypeId result = kNoType;
  visit_types(module, [&](const Btf& types) {
    for (const BtfKind kind : {BtfKind::Variable, BtfKind::Function}) {
      const BtfId found = types.find(kind, name);
      if (found == target::kBtfVoid) continue;
      result = Converter(types, table).complete(types.at(found).target);
      return true;
    }
    return false;
  });
  if (result != kNoType) return result;
  const auto known = std::find_if(kKnownVariables.begin(), kKnownVariables.end(),
                                  [name](const KnownVariable& each) { return each.name == name; });
  if (known == kKnownVariables.end()) return kNoType;
  const TypeId base = table.find("", known->tag, known->type);
  if (base == kNoType) return kNoType;
  if (known->count != 0) return table.array_of(base, known->count);
  return known->is_pointer ? table.pointer_to(base) : base;
}

Expected<query::d::TypeProvider::Symbol> KernelTypes::find_symbol(TypeTable& table,
                                                                  std::string_view module,
                                                                  std::string_view name) {
  const std::string_view owner = module == " " ? "" : module;
  const auto symbol = target::find_kernel_symbol(owner, name);
  if (!symbol && symbol.error().code == ErrorCode::NotFound) {
    return fail(ErrorCode::NotFound, "Unknown symbol name");
  }
  if (!symbol) return tl::unexpected(symbol.error());
  return Symbol{symbol->address, symbol_type(table, symbol->module, name)};
}

}  // namespace clew::engine
