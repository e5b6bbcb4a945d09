// SPDX-License-Identifier: Apache-2.0
// Records of a D script -> text. Each Data record is one row: what each executed action of the
// clause prints, in its order, behind the CPU and the probe's name unless the script is quiet.
//
// What a record asks for besides text goes to the Host: it owns the output (freopen), starts
// commands (system), and has the kernel's aggregations.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/machine/window.h"
#include "output/d/aggregations.h"
#include "output/d/options.h"
#include "output/d/symbols.h"
#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::output::d {

struct ProbeNames {
  uint32_t id = 0;
  std::string_view provider;
  std::string_view module;
  std::string_view function;
  std::string_view name;
};

class Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host() = default;

  // To where output goes now. Everything before an action below was written before it is called.
  virtual void write(std::string_view text) = 0;
  // With PrintOptions::draws_aggregations().
  virtual void draw(std::span<const uint32_t> aggregations, const Table& table) = 0;
  // With PrintOptions::records_are_rows(): what the record has (script_tables.h).
  virtual void add_record(const abi::MachineRecordHeader& header, const ProbeNames& probe,
                          std::vector<aggregate::Value> values, std::string text) = 0;
  virtual void run_command(const std::string& command) = 0;  // system()
  virtual void reopen(const std::string& path) = 0;  // freopen(); empty: the first output again.
  virtual void truncate_output() = 0;                // ftruncate()
  // setopt() of what is none of PrintOptions, or has a value that they do not take.
  virtual void refuse_option(const std::string& name, const std::string& value) = 0;
  // The newest snapshot of an aggregation is wanted: Aggregations::take.
  virtual void refresh(uint32_t aggregation) = 0;
  // The same, and the kernel forgets what is in it and nothing else: MachineSession::take.
  virtual void take_out(uint32_t aggregation) = 0;
};

class RecordPrinter {
 public:
  // All are borrowed. `options` changes with setopt().
  struct Context {
    const query::d::Script& script;
    const target::Symbolizer& symbols;
    Aggregations& aggregations;
    PrintOptions& options;
    Host& host;
  };
  explicit RecordPrinter(const Context& context) : context_(context) {}

  // A Data record. `next` is the header of the one that follows it on its CPU, if there is one
  // already: with -F, it tells whether a return is the last clause of its probe.
  void print(std::span<const uint8_t> record, const query::d::RecordLayout& layout,
             const ProbeNames& probe, const abi::MachineRecordHeader* next = nullptr);

 private:
  enum class Flow : uint8_t { None, Entry, Return };
  struct CpuFlow {
    uint32_t indent = 0;
    uint32_t last_probe = 0;
    uint32_t last_clause = 0;
    bool has_last = false;
  };

  void print_json(const abi::MachineRecordHeader& header, std::span<const uint8_t> record,
                  const query::d::RecordLayout& layout, const ProbeNames& probe);
  void add_row(const abi::MachineRecordHeader& header, std::span<const uint8_t> record,
               const query::d::RecordLayout& layout, const ProbeNames& probe);
  void append_heading();
  void append_row_start(const abi::MachineRecordHeader& header, const ProbeNames& probe,
                        const abi::MachineRecordHeader* next);
  void append_flow_start(const abi::MachineRecordHeader& header, const ProbeNames& probe,
                         const abi::MachineRecordHeader* next);
  Flow flow_of(const CpuFlow& cpu, const abi::MachineRecordHeader& header, const ProbeNames& probe,
               const abi::MachineRecordHeader* next) const;

  void perform(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  void append_text(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  void append_memory(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  void append_printed(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  void append_aggregations(const query::d::RecordedAction& action);
  void draw_aggregations(const query::d::RecordedAction& action);
  void change_aggregations(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  void act_on_host(const query::d::RecordedAction& action, std::span<const uint8_t> record);
  [[nodiscard]] std::string formatted(const query::d::RecordedAction& action,
                                      std::span<const uint8_t> record) const;
  void flush();

  Context context_;
  std::string text_;
  bool has_heading_ = false;
  std::map<uint32_t, CpuFlow> flows_;  // By CPU.
};

}  // namespace clew::output::d
