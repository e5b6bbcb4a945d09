// SPDX-License-Identifier: Apache-2.0
#include "engine/d_types.h"

#include <algorithm>
#include <array>

#include "engine/d_conversion.h"
#include "target/btf_types.h"
#include "target/kernel_symbols.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::Tag;
using query::d::TypeEnumerator;
using query::d::TypeId;
using query::d::TypeTable;
using target::Btf;
using target::BtfId;
using target::BtfKind;

namespace {

TypeId convert(const Btf& from, target::TypeId type, TypeTable& table) {
  target::BtfTypes types(from);
  return convert_type(types, type, table);
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

void KernelTypes::visit_types(std::string_view module,
                              const std::function<bool(const Btf&)>& visit) {
  const bool is_any = module.empty() || module == " ";
  std::vector<std::string> names = is_any ? target::btf_modules() : std::vector<std::string>();
  names.emplace(names.begin(), is_any ? target::kKernelModule : module);
  for (const std::string& each : names) {
    const auto types = types_.module(each);
    if (types && visit(**types)) return;
  }
}

TypeId KernelTypes::find(TypeTable& table, std::string_view module, Tag tag,
                         std::string_view name) {
  TypeId result = kNoType;
  visit_types(module, [&](const Btf& types) {
    const target::TypeId found = target::BtfTypes(types).find_type(spelled(tag, name));
    if (found == target::kVoidType) return false;
    result = convert(types, found, table);
    return true;
  });
  return result;
}

// Those of vmlinux alone: every name that a program does not declare is looked for here.
std::optional<TypeEnumerator> KernelTypes::find_enumerator(TypeTable& /*table*/,
                                                           std::string_view name) {
  const auto types = types_.kernel();
  if (!types) return std::nullopt;
  const auto found = (*types)->find_enumerator(name);
  if (!found) return std::nullopt;
  return TypeEnumerator{std::string(name), found->value};
}

TypeId KernelTypes::symbol_type(TypeTable& table, std::string_view module, std::string_view name) {
  TypeId result = kNoType;
  visit_types(module, [&](const Btf& types) {
    for (const BtfKind kind : {BtfKind::Variable, BtfKind::Function}) {
      const BtfId found = types.find(kind, name);
      if (found == target::kBtfVoid) continue;
      result = convert(types, types.at(found).target, table);
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
