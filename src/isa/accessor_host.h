// SPDX-License-Identifier: Apache-2.0
// What the interpreter calls for the accessors that touch the world: time, CPU, memory outside the
// window, tables and records. RegionHost is the reference for what runtime/ must do inside traced
// processes: the same layout (abi/region.h), written plainly.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "abi/accessor.h"
#include "abi/region.h"
#include "base/error.h"
#include "isa/context_host.h"

namespace clew::isa {

// The program's window, byte p at window pointer p. Borrowed. Each access is checked: pointers
// below kNullEnd and past the end are refused, so that a 0 from a full table is noticed.
class Window {
 public:
  static constexpr uint64_t kNullEnd = 16;

  Window() = default;
  explicit Window(std::span<uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool holds(uint64_t pointer, uint64_t size_bytes) const;
  // Little endian, 1 to 8 bytes. The caller has asked holds().
  [[nodiscard]] uint64_t load(uint64_t pointer, uint32_t size_bytes) const;
  void store(uint64_t pointer, uint32_t size_bytes, uint64_t value);
  [[nodiscard]] std::span<uint8_t> at(uint64_t pointer, uint64_t size_bytes);

 private:
  std::span<uint8_t> bytes_;
};

class AccessorHost {
 public:
  AccessorHost() = default;
  AccessorHost(const AccessorHost&) = delete;
  AccessorHost& operator=(const AccessorHost&) = delete;
  virtual ~AccessorHost() = default;

  // r0. Never asked for BitLength, Divide* and Modulo*, which need no host. Errors: Refused when an
  // argument is outside the accessor's contract.
  virtual Expected<uint64_t> call(abi::Accessor accessor, const Arguments& arguments,
                                  Window& window) = 0;
};

// A host for tests: deterministic, and exact about abi/region.h.
class RegionHost final : public AccessorHost {
 public:
  // Fills the destination from the address, or says that a byte of it cannot be read.
  using ReadMemory = std::function<bool(std::span<uint8_t> destination, uint64_t address)>;

  explicit RegionHost(const abi::RegionLayout& layout) : layout_(layout) {}

  Expected<uint64_t> call(abi::Accessor accessor, const Arguments& arguments,
                          Window& window) override;

  // What the next hit sees; freely changed between runs.
  uint64_t time = 0;  // Grows by 1 with each reading.
  uint64_t cpu = 0;
  uint64_t generation = 0;  // The half of the tables that is updated, if they have two.
  ReadMemory read_memory;   // Empty: nothing can be read.
  uint64_t pid = 0;         // Of stacks, which have no frames here; 0: no stack can be walked.

 private:
  Expected<uint64_t> try_read(const Arguments& arguments, Window& window) const;
  Expected<uint64_t> try_read_string(const Arguments& arguments, Window& window) const;
  Expected<uint64_t> table_find(const Arguments& arguments, Window& window) const;
  Expected<uint64_t> record_put(uint64_t key, Window& window) const;
  Expected<uint64_t> record_take(uint64_t key, Window& window) const;
  Expected<uint64_t> record_drop(uint64_t key, Window& window) const;
  Expected<uint64_t> record_take_left(uint64_t to, Window& window) const;
  Expected<uint64_t> walk_stack(const Arguments& arguments, Window& window) const;

  abi::RegionLayout layout_;
  ContextHost contexts_;
};

}  // namespace clew::isa
