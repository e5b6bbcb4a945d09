// SPDX-License-Identifier: Apache-2.0
// For tests of D's output: symbols of a small kernel and one process, a host that writes down what
// it is asked for, and bytes of records.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/d/record.h"

namespace clew::output::d {

// Kernel: vfs_read at 0xffffffff81000000, vfs_write 0x100 further, ext4_sync in module ext4 at
// 0xffffffffc0000000. Process 7, the target: read at 0x1000 and write at 0x1100 in libc.so.6, from
// 0x2000 on only the module a.out.
class FakeSymbols final : public target::Symbolizer {
 public:
  [[nodiscard]] std::optional<target::SymbolPlace> kernel(uint64_t address) const override {
    constexpr uint64_t kRead = 0xffffffff81000000;
    constexpr uint64_t kExt4 = 0xffffffffc0000000;
    if (address >= kExt4) return target::SymbolPlace{"ext4", "ext4_sync", address - kExt4};
    if (address >= kRead + 0x100)
      return target::SymbolPlace{"vmlinux", "vfs_write", address - kRead - 0x100};
    if (address >= kRead) return target::SymbolPlace{"vmlinux", "vfs_read", address - kRead};
    return {};
  }
  [[nodiscard]] std::optional<target::SymbolPlace> user(uint64_t pid,
                                                        uint64_t address) const override {
    if ((pid != 7 && pid != kTarget) || address < 0x1000) return {};
    if (address < 0x1100) return target::SymbolPlace{"libc.so.6", "read", address - 0x1000};
    if (address < 0x2000) return target::SymbolPlace{"libc.so.6", "write", address - 0x1100};
    return target::SymbolPlace{"a.out", "", 0};
  }
  [[nodiscard]] std::optional<target::CodePlace> code_at(uint64_t, uint64_t) const override {
    return {};
  }
  [[nodiscard]] bool is_signal_return(uint64_t, uint64_t) const override { return false; }
  [[nodiscard]] std::vector<target::SourceCall> source(uint64_t, uint64_t) const override {
    return {};
  }
};

class FakeHost final : public Host {
 public:
  void write(std::string_view text) override { log += text; }
  void draw(std::span<const uint32_t> aggregations, const Table& table) override {
    calls += "draw " + std::to_string(aggregations.size()) + ";";
    log += output::d::draw(table, {.format = Format::Csv}).text;
  }
  void add_record(const abi::MachineRecordHeader&, const ProbeNames&,
                  std::vector<aggregate::Value> values, std::string text) override {
    rows.push_back(std::move(values));
    rows.back().emplace_back(std::move(text));
  }
  void run_command(const std::string& command) override { log += "<run " + command + ">"; }
  void reopen(const std::string& path) override { log += "<open " + path + ">"; }
  void truncate_output() override { log += "<truncate>"; }
  void refuse_option(const std::string& name, const std::string& value) override {
    log += "<refuse " + name + "=" + value + ">";
  }
  void refresh(uint32_t aggregation) override {
    calls += "refresh " + std::to_string(aggregation) + ";";
  }
  void take_out(uint32_t aggregation) override {
    calls += "take out " + std::to_string(aggregation) + ";";
  }
  std::string log;
  std::string calls;
  std::vector<std::vector<aggregate::Value>> rows;  // Each with its text as the last value.
};

// Of a record on a CPU.
struct Firing {
  uint32_t cpu = 0;
  uint32_t probe = 1;
  uint32_t clause = 0;

  [[nodiscard]] abi::MachineRecordHeader header() const {
    abi::MachineRecordHeader header{};
    header.cpu = cpu;
    header.probe = probe;
    header.clause = clause;
    return header;
  }
};

inline std::vector<uint8_t> bytes_of(std::string_view text, size_t size_bytes) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.resize(size_bytes);
  return bytes;
}

inline std::vector<uint8_t> bytes_of(const std::vector<uint64_t>& words) {
  std::vector<uint8_t> bytes(words.size() * 8);
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

}  // namespace clew::output::d
