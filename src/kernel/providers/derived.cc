// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/derived.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "kernel/bpf_types.h"
#include "kernel/function_addresses.h"
#include "kernel/providers/providers.h"
#include "kernel/providers/syscall_table.h"

namespace clew::kernel {

namespace {

constexpr std::array<std::string_view, 9> kProviders = {
    "proc", "sched", "io", "ip", "tcp", "udp", "lockstat", "vminfo", "sysinfo"};

std::vector<DerivedProbe> all_rows() {
  std::vector<DerivedProbe> rows;
  for (auto* make :
       {process_probes, scheduler_probes, io_probes, network_probes, lock_probes, counter_probes}) {
    std::vector<DerivedProbe> some = make();
    std::move(some.begin(), some.end(), std::back_inserter(rows));
  }
  return rows;
}

Probe make_probe(const DerivedProbe& row) {
  Probe probe;
  probe.provider = row.provider;
  probe.module = kKernelModule;
  if (row.is_shown) probe.function = row.symbol;
  probe.name = row.name;
  probe.kind = row.kind;
  probe.symbol = row.symbol;
  probe.argument_map = row.map;
  probe.is_first_thread_only = row.is_first_thread_only;
  return probe;
}

bool is_simple(const ProbeFilter& filter) {
  return filter.load_bytes == 0 && !filter.is_inverted && filter.mask != 0;
}

std::string_view kind_text(AttachKind kind) {
  switch (kind) {
    case AttachKind::RawTracepoint:
    case AttachKind::TraceEvent:
    case AttachKind::CallMoves:
      return "tracepoint";
    case AttachKind::SyscallEntry:
    case AttachKind::SyscallReturn:
      return "system call";
    case AttachKind::FunctionEntry:
    case AttachKind::FunctionReturn:
      return "function";
    case AttachKind::Host:
    case AttachKind::Profile:
    case AttachKind::Tick:
    case AttachKind::UserEntry:
    case AttachKind::UserReturn:
    case AttachKind::UserExit:
    case AttachKind::UserOffset:
    case AttachKind::LockReturn:
    case AttachKind::LockWait:
    case AttachKind::Usdt:
      return "place";
  }
  return "place";
}

class DerivedProvider final : public Provider {
 public:
  explicit DerivedProvider(KernelView& kernel) : kernel_(kernel), rows_(all_rows()) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return std::any_of(kProviders.begin(), kProviders.end(),
                       [&provider](std::string_view name) { return provider.matches(name); });
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    const size_t before = found.size();
    std::vector<const DerivedProbe*> used;
    const DerivedProbe* missing = nullptr;
    for (const DerivedProbe& row : rows_) {
      Probe probe = make_probe(row);
      if (!globs.matches(probe)) continue;
      if (row.is_fallback && is_used(used, row)) continue;
      if (!CLEW_TRY(complete(row, probe))) {
        missing = &row;
        continue;
      }
      used.push_back(&row);
      found.push_back(std::move(probe));
    }
    const bool is_named = globs.provider.is_literal() && globs.name.is_literal();
    if (found.size() > before || missing == nullptr || !is_named) return {};
    return fail(
        ErrorCode::Refused,
        fmt::format("{}:::{} needs the {} '{}', which this kernel does not have", missing->provider,
                    missing->name, kind_text(missing->kind), missing->symbol));
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    std::vector<ProbeArgument> result;
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&probe](const DerivedProbe& each) {
      return each.provider == probe.provider && each.name == probe.name &&
             each.symbol == probe.symbol;
    });
    if (row == rows_.end()) return result;
    for (const DerivedArgument& argument : row->arguments) {
      result.push_back({.native_type = std::string(argument.native_type),
                        .translated_type = std::string(argument.translated_type),
                        .mapping = argument.mapping,
                        .is_userland = argument.is_userland});
    }
    return result;
  }

 private:
  // Whether a row above, which this one would replace, is in use.
  static bool is_used(const std::vector<const DerivedProbe*>& used, const DerivedProbe& row) {
    return std::any_of(used.begin(), used.end(), [&row](const DerivedProbe* each) {
      return each->provider == row.provider && each->name == row.name && !each->is_fallback;
    });
  }

  // Fills in what the kernel has to say; false when it does not have what the row needs.
  Expected<bool> complete(const DerivedProbe& row, Probe& probe) {
    if (!CLEW_TRY(has_attach_point(row, probe))) return false;
    if (!row.loaded_record.empty()) {
      const target::Btf* types = CLEW_TRY(kernel_.types());
      const target::BtfId record = types->find(target::BtfKind::Struct, row.loaded_record);
      const auto member = types->member(record, row.loaded_member);
      if (!member || member->offset_bits % 8 != 0) return false;
      probe.load_offset_bytes = member->offset_bits / 8;
    }
    for (const DerivedFilter& each : row.filters) {
      const auto filter = CLEW_TRY(resolve(each));
      if (!filter) return false;
      if (probe.filter_mask == 0 && is_simple(*filter)) {
        probe.filter_argument = filter->argument;
        probe.filter_mask = filter->mask;
        probe.filter_value = filter->value;
      } else {
        probe.more_filters.push_back(*filter);
      }
    }
    return probe.more_filters.size() <= kProbeFiltersMax;
  }

  Expected<bool> has_attach_point(const DerivedProbe& row, Probe& probe) {
    if (row.kind == AttachKind::SyscallEntry || row.kind == AttachKind::SyscallReturn) {
      const auto calls = system_calls();
      const auto call = std::find_if(calls.begin(), calls.end(), [&row](const SystemCall& each) {
        return each.name == row.symbol;
      });
      if (call != calls.end()) probe.number = call->number;
      return call != calls.end();
    }
    if (row.kind != AttachKind::RawTracepoint) {
      const auto function = CLEW_TRY(kernel_.find(target::BtfKind::Function, row.symbol));
      if (function.types != nullptr) return true;
      return row.map.empty() && has_function(probe);
    }
    const auto tracepoint = CLEW_TRY(kernel_.find_tracepoint(row.symbol));
    if (tracepoint.types == nullptr) return false;
    return tracepoint_parameters(*tracepoint.types, tracepoint.type).size() >= row.parameters_min;
  }

  // A function whose parameters the compiler changed may not be among the types.
  static bool has_function(const Probe& probe) {
    const FunctionPlace place = {probe.module, probe.symbol, 0};
    const auto found = find_functions(std::span(&place, 1));
    return found && !found->empty();
  }

  // Nothing when the kernel lacks the enumerator or the member.
  Expected<std::optional<ProbeFilter>> resolve(const DerivedFilter& filter) {
    ProbeFilter result;
    result.argument = filter.argument;
    result.is_inverted = filter.is_inverted;
    result.mask = filter.mask;
    result.value = filter.value;
    const target::Btf* types = CLEW_TRY(kernel_.types());
    if (!filter.enumerator.empty()) {
      const auto found = types->find_enumerator(filter.enumerator);
      if (!found) return std::optional<ProbeFilter>();
      result.value = static_cast<uint64_t>(found->value);
    }
    if (!filter.record.empty()) {
      const target::BtfId record = types->find(target::BtfKind::Struct, filter.record);
      const auto member = types->member(record, filter.member);
      if (!member || member->offset_bits % 8 != 0) return std::optional<ProbeFilter>();
      result.load_offset_bytes = member->offset_bits / 8;
      const auto& type = types->at(types->strip(member->type));
      result.load_bytes = static_cast<uint8_t>(
          type.kind == target::BtfKind::Pointer ? sizeof(uint64_t) : type.size_bytes);
      if (result.load_bytes < 8) result.mask &= (uint64_t{1} << (8 * result.load_bytes)) - 1;
    }
    return result;
  }

  KernelView& kernel_;
  std::vector<DerivedProbe> rows_;
};

}  // namespace

std::unique_ptr<Provider> make_derived_provider(KernelView& kernel) {
  return std::make_unique<DerivedProvider>(kernel);
}

}  // namespace clew::kernel
