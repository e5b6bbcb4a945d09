// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/event_types.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/kernel/kernel_sources.h"
#include "target/btf_types.h"

namespace clew::engine {
namespace {

using query::CKind;
using query::CType;
using query::TypeHandle;

// A handle of ours: how many stars, then a number of BTF (of which module) or one of the types made
// here.
constexpr TypeHandle kOurs = TypeHandle{1} << 63;
constexpr unsigned kStarsShift = 48;
constexpr TypeHandle kStarsMask = 0xFF;
constexpr TypeHandle kMade = TypeHandle{1} << 40;
constexpr unsigned kKernelModuleShift = 32;
constexpr TypeHandle kModuleMask = 0xFF;
constexpr TypeHandle kNumberMask = (TypeHandle{1} << 32) - 1;
constexpr uint16_t kTextBytes = 128;  // Of a text whose length the event says itself.
constexpr size_t kFormatsMax = 64;    // That are compared, for one source.

bool is_ours(TypeHandle handle) {
  return (handle & kOurs) != 0;
}
TypeHandle stars_of(TypeHandle handle) {
  return (handle >> kStarsShift) & kStarsMask;
}
uint32_t kernel_module_of(TypeHandle handle) {
  return static_cast<uint32_t>((handle >> kKernelModuleShift) & kModuleMask);
}
target::BtfId number_of(TypeHandle handle) {
  return static_cast<target::BtfId>(handle & kNumberMask);
}

}  // namespace

// Types of the kernel's own have the same handle in all modules.
TypeHandle EventTypes::handle_of(uint32_t module, target::BtfId type) {
  if (type == target::kBtfVoid) return 0;
  const bool is_own = module == 0 || type < types_of(module).first_id();
  return kOurs | (is_own ? 0 : TypeHandle{module} << kKernelModuleShift) | type;
}

void keep_common(std::optional<std::vector<query::Parameter>>& common,
                 std::vector<query::Parameter> own) {
  const auto is_same = [](const query::Parameter& a, const query::Parameter& b) {
    return a.name == b.name && a.index == b.index && a.place == b.place && a.type == b.type &&
           a.offset_bytes == b.offset_bytes && a.refusal == b.refusal;
  };
  if (!common) {
    common = std::move(own);
    return;
  }
  std::erase_if(*common, [&](const query::Parameter& mine) {
    return std::none_of(own.begin(), own.end(),
                        [&](const auto& theirs) { return is_same(mine, theirs); });
  });
}

// The format files of what a source matches.
Expected<std::vector<std::string>> EventTypes::formats_of(const query::Source& source) {
  if (source.kind == query::SourceKind::Tracepoint) return events_.match(source.function);
  std::vector<std::string> names;
  const std::vector<uint32_t> probes = CLEW_TRY(
      catalogue_.match({.provider = "syscall", .function = source.function, .name = "entry"}));
  names.reserve(probes.size());
  for (const uint32_t id : probes) {
    names.push_back(fmt::format("syscalls:sys_enter_{}", catalogue_.find(id)->function));
  }
  return names;
}

Expected<std::vector<query::Parameter>> EventTypes::parameters(const query::Source& source) {
  if (!query::is_kernel_source(source.kind)) {
    if (processes_ != nullptr) return processes_->parameters(source);
    return fail(ErrorCode::NotFound, "names of arguments need debug information of a process");
  }
  Expected<std::vector<query::Parameter>> found = event_parameters(source);
  if (!found && found.error().code == ErrorCode::Refused) {
    return tl::unexpected(explain_rights(found.error()));
  }
  return found;
}

Expected<std::vector<query::Parameter>> EventTypes::event_parameters(const query::Source& source) {
  if (query::is_kernel_function(source.kind)) return function_parameters(source);
  if (source.is_raw()) return raw_parameters(source);
  if (source.moves_bytes()) return moved_parameters(source);
  const bool is_call = source.kind != query::SourceKind::Tracepoint;
  std::optional<std::vector<query::Parameter>> common;
  std::vector<std::string> formats = CLEW_TRY(formats_of(source));
  if (formats.size() > kFormatsMax) formats.resize(kFormatsMax);
  for (const std::string& name : formats) {
    std::vector<query::Parameter> own;
    for (const kernel::TraceField& field : CLEW_TRY(events_.format(name)).fields) {
      if (!is_call || field.name != "__syscall_nr") own.push_back(parameter_of(field, is_call));
    }
    for (size_t i = 0; is_call && i < own.size(); ++i)
      own[i].index = static_cast<uint16_t>(i);
    keep_common(common, std::move(own));
  }
  if (!common) return fail(ErrorCode::NotFound, "nothing in the kernel matches");
  return *common;
}

query::Parameter EventTypes::parameter_of(const kernel::TraceField& field, bool is_call) {
  query::Parameter parameter;
  parameter.name = field.name;
  parameter.type = type_of(field);
  if (is_call) return parameter;
  parameter.offset_bytes = field.offset_bytes;
  parameter.place = query::ParameterPlace::Record;
  if (field.is_elsewhere) {
    parameter.place =
        field.is_relative ? query::ParameterPlace::Relative : query::ParameterPlace::Elsewhere;
  }
  return parameter;
}

TypeHandle EventTypes::made(CType type) {
  const auto same = [&](const CType& other) {
    return other.kind == type.kind && other.size_bytes == type.size_bytes &&
           other.is_signed == type.is_signed && other.target == type.target &&
           other.count == type.count && other.name == type.name;
  };
  auto found = std::find_if(made_.begin(), made_.end(), same);
  if (found == made_.end()) found = made_.insert(made_.end(), std::move(type));
  return kOurs | kMade | static_cast<TypeHandle>(found - made_.begin());
}

// The words of C: "unsigned int", "struct stat *".
TypeHandle EventTypes::named_type(std::string_view name) {
  const size_t stars = static_cast<size_t>(std::count(name.begin(), name.end(), '*'));
  while (!name.empty() && (name.back() == '*' || name.back() == ' '))
    name.remove_suffix(1);
  const auto kernel = types_.kernel();
  if (!kernel) return 0;
  const target::TypeId type = target::BtfTypes(**kernel).find_type(name);
  const TypeHandle base = handle_of(0, static_cast<target::BtfId>(type));
  if (stars == 0) return base;
  return kOurs | (base & kNumberMask) | static_cast<TypeHandle>(stars) << kStarsShift;
}

TypeHandle EventTypes::type_of(const kernel::TraceField& field) {
  const bool is_array = field.count != 0 || field.is_elsewhere;
  TypeHandle type = named_type(field.type);
  if (!is_array && type != 0) return type;
  const uint32_t element_bytes = is_array ? 1 : field.size_bytes;
  if (type == 0) {
    type = made({.kind = CKind::Integer,
                 .size_bytes = element_bytes,
                 .is_signed = field.is_signed,
                 .is_character = field.type == "char",
                 .name = field.type});
  }
  if (!is_array) return type;
  const CType element = describe(type);
  uint64_t count = element.is_character ? kTextBytes : 0;
  if (!field.is_elsewhere && element.size_bytes != 0) count = field.size_bytes / element.size_bytes;
  return made({.kind = CKind::Array,
               .size_bytes = field.is_elsewhere ? 0 : field.size_bytes,
               .target = type,
               .count = count,
               .name = field.type + "[]"});
}

Expected<TypeHandle> EventTypes::return_type(const query::Source& source) {
  if (processes_ != nullptr && !query::is_kernel_source(source.kind)) {
    return processes_->return_type(source);
  }
  if (query::is_kernel_function(source.kind)) return result_type(source);
  return fail(ErrorCode::NotFound, "the type of the result is not known");
}

TypeHandle EventTypes::find_type(std::string_view name) {
  const TypeHandle found = processes_ == nullptr ? 0 : processes_->find_type(name);
  return found != 0 || !casts_to_kernel_ ? found : named_type(name);
}

// The kernel passes no floating point, and what is only declared cannot be read.
CType EventTypes::describe_kernel(TypeHandle handle) {
  const uint32_t module = kernel_module_of(handle);
  CType result = target::BtfTypes(types_of(module)).describe(number_of(handle));
  result.target = handle_of(module, static_cast<target::BtfId>(result.target));
  if (result.kind == CKind::Float || result.is_declared) result.kind = CKind::Other;
  return result;
}

CType EventTypes::describe(TypeHandle type) {
  if (type == 0) return {};
  if (!is_ours(type)) return processes_ == nullptr ? CType() : processes_->describe(type);
  const TypeHandle stars = stars_of(type);
  if (stars != 0) {
    const TypeHandle number = type & kNumberMask;
    TypeHandle target = number == 0 && stars == 1
                            ? 0
                            : (type & ~(kStarsMask << kStarsShift)) | (stars - 1) << kStarsShift;
    CType result;
    result.kind = CKind::Pointer;
    result.size_bytes = 8;
    result.target = target;
    result.name = (target == 0 ? "void" : describe(target).name) + " *";
    return result;
  }
  if ((type & kMade) != 0) return made_[type & kNumberMask];
  return describe_kernel(type);
}

std::vector<query::CMember> EventTypes::members(TypeHandle type) {
  if (!is_ours(type)) {
    return processes_ == nullptr ? std::vector<query::CMember>() : processes_->members(type);
  }
  std::vector<query::CMember> result;
  const bool is_btf = stars_of(type) == 0 && (type & kMade) == 0;
  if (!is_btf) return result;
  const uint32_t module = kernel_module_of(type);
  target::BtfTypes types(types_of(module));
  const auto add = [&](auto& self, TypeHandle record, uint64_t base_bytes) -> void {
    for (query::CMember& member : types.members(record)) {
      member.offset_bytes += base_bytes;
      if (member.name.empty()) {
        self(self, member.type, member.offset_bytes);
        continue;
      }
      member.type = handle_of(module, static_cast<target::BtfId>(member.type));
      result.push_back(std::move(member));
    }
  };
  add(add, number_of(type), 0);
  return result;
}

std::vector<query::Enumerator> EventTypes::enumerators(TypeHandle type) {
  if (!is_ours(type)) {
    return processes_ == nullptr ? std::vector<query::Enumerator>() : processes_->enumerators(type);
  }
  if (stars_of(type) != 0 || (type & kMade) != 0) return {};
  return target::BtfTypes(types_of(kernel_module_of(type))).enumerators(number_of(type));
}

}  // namespace clew::engine
