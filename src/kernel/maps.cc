// SPDX-License-Identifier: Apache-2.0
#include "kernel/maps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "abi/buckets.h"
#include "abi/machine/dynamic.h"
#include "base/assert.h"
#include "base/page.h"

namespace clew::kernel {
namespace {

constexpr uint64_t kArrayBytesMax = uint64_t{1} << 29;  // BPF_MAX_VAR_OFF: what is addressable.
constexpr uint64_t kRingBytesMax = uint64_t{256} << 20;
constexpr size_t kZeroBytes = 0x2000;
constexpr uint64_t kNameBytesEach = 256;  // Of the four names of a probe that comes later.

uint32_t possible_cpus() {
  const int64_t cpus = sysconf(_SC_NPROCESSORS_CONF);
  return std::clamp<uint32_t>(static_cast<uint32_t>(cpus), 1, abi::kMachineCpusMax);
}

template <typename Value>
std::span<const uint8_t> bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(Value)};
}

struct DynamicShape {
  uint64_t key_bytes = 0;
  uint64_t entry_bytes = 0;
  uint64_t buckets = 0;
};

DynamicShape dynamic_shape(const MachinePrograms& programs) {
  DynamicShape shape;
  uint64_t value_bytes = 8;
  for (const abi::MachineVariable& one : programs.variables) {
    shape.key_bytes = std::max<uint64_t>(shape.key_bytes, one.key_bytes);
    value_bytes = std::max<uint64_t>(value_bytes, one.value_bytes);
  }
  shape.entry_bytes = abi::dynamic_entry_bytes(shape.key_bytes, value_bytes);
  const uint64_t room = programs.variables.empty() ? 0 : programs.dynamic_bytes;
  const uint64_t bucket_bytes = abi::dynamic_bucket_bytes(shape.entry_bytes);
  shape.buckets = std::max<uint64_t>(1, std::min(room, kArrayBytesMax / 2) / bucket_bytes);
  return shape;
}

uint64_t cell_steps(const abi::MachineAggregation& a) {
  using abi::AggregateFunction;
  const int64_t* p = a.parameters;
  if (a.function == AggregateFunction::Lquantize) {
    return abi::linear_steps({.low = p[0], .high = p[1], .step = std::max<int64_t>(1, p[2])});
  }
  if (a.function != AggregateFunction::Llquantize) return 0;
  return abi::log_linear_steps({static_cast<uint64_t>(p[0]), static_cast<uint64_t>(p[1]),
                                static_cast<uint64_t>(p[2]), static_cast<uint64_t>(p[3])});
}

uint64_t entry_bytes(const abi::MachineAggregation& a) {
  return sizeof(abi::MachineAggregateHead) + a.key_bytes + uint64_t{8} * a.cell_words;
}

// Aggregations with keys get the same number of entries each, those without one entry.
std::vector<abi::MachineAggregationTable> lay_out(const MachinePrograms& programs,
                                                  uint64_t cpu_bytes, uint64_t& used_bytes) {
  uint64_t keyed_bytes = 0;
  for (const abi::MachineAggregation& one : programs.aggregations) {
    if (one.key_bytes != 0) keyed_bytes += entry_bytes(one);
  }
  const uint64_t share = keyed_bytes == 0 ? 1 : std::max<uint64_t>(1, cpu_bytes / keyed_bytes);
  std::vector<abi::MachineAggregationTable> tables;
  used_bytes = 0;
  for (const abi::MachineAggregation& one : programs.aggregations) {
    const uint64_t entries = one.key_bytes == 0 ? 1 : std::min<uint64_t>(share, 0xFFFFFF);
    tables.push_back({one, used_bytes, entries, entry_bytes(one), cell_steps(one)});
    used_bytes += entries * entry_bytes(one);
  }
  return tables;
}

uint64_t name_bytes(const Probe& probe) {
  constexpr uint64_t kEnds = 4;
  return probe.provider.size() + probe.module.size() + probe.function.size() + probe.name.size() +
         kEnds;
}

}  // namespace

Expected<SharedArray> SharedArray::make(const std::string& name, size_t size_bytes,
                                        std::span<const uint8_t> bytes) {
  SharedArray array;
  const size_t size = std::max<size_t>({8, size_bytes, bytes.size()});
  array.map = CLEW_TRY(create_array(name, size));
  const size_t pages = (size + kPage - 1) / kPage;
  array.memory = CLEW_TRY(Mapping::make(array.map, pages * kPage, true));
  if (!bytes.empty()) std::memcpy(array.memory.data(), bytes.data(), bytes.size());
  return array;
}

Expected<SharedArray> SharedArray::make_constant(const std::string& name,
                                                 std::span<const uint8_t> bytes) {
  constexpr uint8_t kNothing[8] = {};
  if (bytes.empty()) bytes = kNothing;
  SharedArray array;
  array.map = CLEW_TRY(create_constants(name, bytes));
  const size_t pages = (bytes.size() + kPage - 1) / kPage;
  array.memory = CLEW_TRY(Mapping::make(array.map, pages * kPage, false));
  return array;
}

Expected<Ring> Ring::make(size_t size_bytes) {
  Ring ring;
  ring.size_bytes_ = std::bit_ceil(std::clamp<size_t>(size_bytes, kPage, kRingBytesMax));
  ring.map_ = CLEW_TRY(create_ring("d_records", ring.size_bytes_));
  ring.consumer_ = CLEW_TRY(Mapping::make(ring.map_, kPage, true));
  ring.producer_ = CLEW_TRY(Mapping::make(ring.map_, kPage + 2 * ring.size_bytes_, false, kPage));
  return ring;
}

// A record begins with its size and two flags, and a word of the kernel's (Documentation/bpf/
// ringbuf.rst).
// Ends where the ring ended at the begin: who records faster than we take is not to keep us here.
uint64_t Ring::read(const std::function<void(std::span<const uint8_t>)>& take) {
  auto& consumer = *reinterpret_cast<uint64_t*>(consumer_.data());
  const auto& producer = *reinterpret_cast<const uint64_t*>(producer_.data());
  const uint8_t* data = producer_.data() + kPage;
  uint64_t place = __atomic_load_n(&consumer, __ATOMIC_ACQUIRE);
  const uint64_t end = __atomic_load_n(&producer, __ATOMIC_ACQUIRE);
  uint64_t count = 0;
  while (place < end) {
    const uint8_t* record = data + (place & (size_bytes_ - 1));
    const uint32_t head =
        __atomic_load_n(reinterpret_cast<const uint32_t*>(record), __ATOMIC_ACQUIRE);
    if ((head & BPF_RINGBUF_BUSY_BIT) != 0) break;
    const uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if ((head & BPF_RINGBUF_DISCARD_BIT) == 0) {
      take({record + BPF_RINGBUF_HDR_SZ, size});
      ++count;
    }
    place += (uint64_t{size} + BPF_RINGBUF_HDR_SZ + 7) & ~uint64_t{7};
    __atomic_store_n(&consumer, place, __ATOMIC_RELEASE);
  }
  return count;
}

Expected<MachineMaps> MachineMaps::make(const MachinePrograms& programs,
                                        std::span<const MachineEnabling> enablings,
                                        uint32_t system_call_tables,
                                        std::span<const abi::MachineCodeRange> skipped_code) {
  MachineMaps maps;
  maps.cpus = possible_cpus();
  const uint64_t window_count = uint64_t{maps.cpus} * abi::kMachineWindowsPerCpu;
  maps.windows =
      CLEW_TRY(SharedArray::make("d_windows", window_count * sizeof(abi::MachineWindow)));
  for (uint64_t i = 0; i < window_count && !programs.literals.empty(); ++i) {
    std::memcpy(
        maps.windows.memory.data() + i * sizeof(abi::MachineWindow) + abi::kMachineLocalOffset,
        programs.literals.data(), programs.literals.size());
  }
  maps.shared = CLEW_TRY(SharedArray::make("d_shared", sizeof(abi::MachineShared)));
  maps.globals = CLEW_TRY(
      SharedArray::make("d_globals", programs.globals.size() + kZeroBytes, programs.globals));
  const DynamicShape shape = dynamic_shape(programs);
  maps.dynamic = CLEW_TRY(
      SharedArray::make("d_dynamic", shape.buckets * abi::dynamic_bucket_bytes(shape.entry_bytes) +
                                         abi::kMachineDynamicSlackBytes));
  const uint64_t cpu_bytes_max = (kArrayBytesMax - abi::kMachineAggregateSlackBytes) / maps.cpus;
  const std::vector<abi::MachineAggregationTable> tables = lay_out(
      programs, std::min(programs.aggregation_bytes, cpu_bytes_max), maps.aggregates_cpu_bytes);
  if (maps.aggregates_cpu_bytes > cpu_bytes_max) {
    return fail(ErrorCode::Limit,
                fmt::format("one entry of each aggregation takes {} bytes per processor; {} is the "
                            "most",
                            maps.aggregates_cpu_bytes, cpu_bytes_max));
  }
  maps.aggregates = CLEW_TRY(SharedArray::make(
      "d_aggregates", maps.aggregates_cpu_bytes * maps.cpus + abi::kMachineAggregateSlackBytes));
  maps.aggregations = CLEW_TRY(SharedArray::make_constant("d_aggregations", bytes_of(tables)));
  maps.variables =
      CLEW_TRY(SharedArray::make_constant("d_variables", bytes_of(programs.variables)));
  maps.enabled_max = enablings.size() + programs.later_enablings;
  maps.enabled =
      CLEW_TRY(SharedArray::make("d_enabled", maps.enabled_max * sizeof(abi::MachineEnabled)));
  maps.names_bytes = kNameBytesEach * programs.later_enablings + 1;
  for (const MachineEnabling& one : enablings)
    maps.names_bytes += name_bytes(one.probe);
  maps.names = CLEW_TRY(SharedArray::make("d_names", maps.names_bytes));
  for (uint32_t i = 0; i < enablings.size(); ++i)
    CLEW_ASSERT(maps.add_enabled(i, enablings[i].probe));
  maps.skipped_count = skipped_code.size();
  maps.system_calls =
      CLEW_TRY(SharedArray::make("d_system_calls", uint64_t{8} * abi::kMachineSystemCallsMax *
                                                       std::max(1U, system_call_tables)));
  maps.skipped = CLEW_TRY(SharedArray::make(
      "d_skipped", 0,
      {reinterpret_cast<const uint8_t*>(skipped_code.data()), skipped_code.size_bytes()}));
  maps.zeros = CLEW_TRY(SharedArray::make("d_zeros", kZeroBytes));
  if (!programs.extensions.functions.empty()) {
    const std::vector<uint8_t> state = programs.extensions.first_state();
    maps.extension_states = CLEW_TRY(create_thread_storage("d_extensions", state.size()));
    maps.extension_initial = CLEW_TRY(SharedArray::make("d_initial", state.size(), state));
  }
  maps.ring.emplace(CLEW_TRY(Ring::make(programs.principal_bytes * maps.cpus)));
  return maps;
}

MachineState MachineMaps::state(const MachinePrograms& programs) const {
  const auto array = [](const SharedArray& one) {
    return MachineStateArray{.map = one.map.get(), .size_bytes = one.memory.size_bytes()};
  };
  MachineState state;
  state.shared = array(shared);
  state.globals = array(globals);
  state.dynamic = array(dynamic);
  state.aggregates = array(aggregates);
  const auto bytes = [](const SharedArray& one, uint64_t size_bytes) {
    return std::span<const uint8_t>(one.memory.data(), size_bytes);
  };
  state.variables = bytes(variables, programs.variables.size() * sizeof(abi::MachineVariable));
  state.aggregations =
      bytes(aggregations, programs.aggregations.size() * sizeof(abi::MachineAggregationTable));
  state.enablings = {enabled.as<const abi::MachineEnabled>(), enabled_max};
  state.names = bytes(names, names_used_bytes);
  state.literals = programs.literals;
  const DynamicShape shape = dynamic_shape(programs);
  abi::MachineProcess& process = state.process;
  process.magic = abi::kMachineProcessMagic;
  process.cpus = cpus;
  process.string_bytes = programs.string_bytes;
  process.variable_count = programs.variables.size();
  process.aggregation_count = programs.aggregations.size();
  process.names_bytes = names_used_bytes;
  process.globals_bytes = programs.globals.size();
  process.literals_bytes = programs.literals.size();
  process.dynamic_buckets = shape.buckets;
  process.dynamic_entry_bytes = shape.entry_bytes;
  process.dynamic_key_bytes = shape.key_bytes;
  process.aggregates_cpu_bytes = aggregates_cpu_bytes;
  process.speculations = std::min<uint64_t>(programs.speculations, abi::kMachineSpeculationsMax);
  process.speculation_bytes = programs.speculation_bytes;
  process.target_pid = programs.target_pid;
  process.local_begin = programs.local_begin;
  process.local_bytes = programs.local_bytes;
  return state;
}

bool MachineMaps::add_enabled(uint32_t index, const Probe& probe) {
  const uint64_t end = names_used_bytes + name_bytes(probe);
  if (index >= enabled_max || end >= names_bytes) return false;
  const auto put = [&](const std::string& text) {
    const auto offset = static_cast<uint32_t>(names_used_bytes);
    const auto [place, is_new] = name_places.emplace(text, offset);
    if (!is_new) return place->second;
    std::memcpy(names.memory.data() + offset, text.c_str(), text.size() + 1);
    names_used_bytes += text.size() + 1;
    return offset;
  };
  abi::MachineEnabled& entry = enabled.as<abi::MachineEnabled>()[index];
  entry.probe = probe.id;
  entry.names[0] = put(probe.provider);
  entry.names[1] = put(probe.module);
  entry.names[2] = put(probe.function);
  entry.names[3] = put(probe.name);
  entry.provider_has_pid = probe.is_everywhere ? 1 : 0;
  return true;
}

Symbols MachineMaps::symbols(const MachinePrograms& programs) const {
  Symbols symbols;
  const auto address = [&](const char* name, const FileDescriptor& map) {
    symbols[name] = {Symbol::Kind::MapAddress, static_cast<uint32_t>(map.get())};
  };
  const auto number = [&](const char* name, uint64_t value) {
    symbols[name] = {Symbol::Kind::Number, value};
  };
  address("d_windows", windows.map);
  address("d_shared", shared.map);
  address("d_globals", globals.map);
  address("d_dynamic", dynamic.map);
  address("d_aggregates", aggregates.map);
  address("d_variables", variables.map);
  address("d_aggregations", aggregations.map);
  address("d_enabled", enabled.map);
  address("d_names", names.map);
  address("d_system_calls", system_calls.map);
  address("d_skipped", skipped.map);
  address("d_zeros", zeros.map);
  number("d_n_extension_fuel", 0);
  if (extension_states.valid()) {
    symbols["d_extension_states"] = {Symbol::Kind::Map,
                                     static_cast<uint32_t>(extension_states.get())};
    address("d_extension_initial", extension_initial.map);
    number("d_n_extension_mask", programs.extensions.area_bytes() - 1);
    number("d_n_extension_fuel", programs.extensions.fuel);
  }
  symbols["d_records"] = {Symbol::Kind::Map, static_cast<uint32_t>(ring->map().get())};
  const DynamicShape shape = dynamic_shape(programs);
  number("d_n_cpus", cpus);
  number("d_n_string_bytes", programs.string_bytes);
  number("d_n_variables", programs.variables.size());
  number("d_n_aggregations", programs.aggregations.size());
  number("d_n_globals_bytes", programs.globals.size());
  number("d_n_dynamic_buckets", shape.buckets);
  number("d_n_dynamic_entry_bytes", shape.entry_bytes);
  number("d_n_dynamic_key_bytes", shape.key_bytes);
  number("d_n_aggregates_cpu_bytes", aggregates_cpu_bytes);
  number("d_n_speculations",
         std::min<uint64_t>(programs.speculations, abi::kMachineSpeculationsMax));
  number("d_n_speculation_bytes", programs.speculation_bytes);
  number("d_n_target_pid", programs.target_pid);
  number("d_n_local_begin", programs.local_begin);
  number("d_n_local_bytes", programs.local_bytes);
  return symbols;
}

}  // namespace clew::kernel
