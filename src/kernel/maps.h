// SPDX-License-Identifier: Apache-2.0
// The maps of one D session: windows, shared state, globals, tables and the ring, made for a script
// and mapped; and the reader of the ring.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "abi/machine/tables.h"
#include "abi/machine/window.h"
#include "base/error.h"
#include "kernel/bpf.h"
#include "kernel/link.h"
#include "kernel/machine_session.h"

namespace clew::kernel {

// An array map and our view of it.
struct SharedArray {
  FileDescriptor map;
  Mapping memory;

  // At least one byte; filled with `bytes`.
  static Expected<SharedArray> make(const std::string& name, size_t size_bytes,
                                    std::span<const uint8_t> bytes = {});
  // The same, which nobody changes.
  static Expected<SharedArray> make_constant(const std::string& name,
                                             std::span<const uint8_t> bytes);
  template <typename Value>
  [[nodiscard]] Value* as() const {
    return reinterpret_cast<Value*>(memory.data());
  }
};

// BPF_MAP_TYPE_RINGBUF from the reader's side. One thread reads.
class Ring {
 public:
  static Expected<Ring> make(size_t size_bytes);
  [[nodiscard]] const FileDescriptor& map() const { return map_; }
  uint64_t read(const std::function<void(std::span<const uint8_t>)>& take);

 private:
  FileDescriptor map_;
  Mapping consumer_;  // Its position; ours to write.
  Mapping producer_;  // The other position, then the data twice in a row.
  size_t size_bytes_ = 0;
};

struct MachineMaps {
  uint32_t cpus = 1;
  SharedArray windows;
  SharedArray shared;
  SharedArray globals;
  SharedArray dynamic;
  SharedArray aggregates;
  SharedArray variables;
  SharedArray aggregations;
  SharedArray enabled;
  SharedArray names;
  SharedArray system_calls;
  SharedArray skipped;
  SharedArray zeros;
  FileDescriptor extension_states;  // Of threads; with extensions only, as what follows.
  SharedArray extension_initial;    // What each begins with.
  std::optional<Ring> ring;
  uint64_t aggregates_cpu_bytes = 0;
  uint64_t enabled_max = 0;
  uint64_t names_bytes = 0;  // Room.
  uint64_t names_used_bytes = 0;
  uint64_t skipped_count = 0;
  std::map<std::string, uint32_t> name_places;  // Equal names of probes are in one place.

  // `system_call_tables`: how many programs have one; `skipped_code`: left out of stacks.
  static Expected<MachineMaps> make(const MachinePrograms& programs,
                                    std::span<const MachineEnabling> enablings,
                                    uint32_t system_call_tables,
                                    std::span<const abi::MachineCodeRange> skipped_code);

  // The maps as others can map them, and the same numbers.
  [[nodiscard]] MachineState state(const MachinePrograms& programs) const;
  // Describes one more enabling to the programs; false without room. `index` is its number.
  bool add_enabled(uint32_t index, const Probe& probe);

  // Those of the maps and of the numbers that describe them.
  [[nodiscard]] Symbols symbols(const MachinePrograms& programs) const;
};

}  // namespace clew::kernel
