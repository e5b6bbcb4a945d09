// SPDX-License-Identifier: Apache-2.0
// What becomes of the records of a loaded script: printed at once, held for a speculation, or an
// error's message.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/dtrace/console.h"
#include "engine/dtrace/followed_records.h"
#include "engine/dtrace/inline_probes.h"
#include "engine/dtrace/record_merge.h"
#include "engine/dtrace/script_compiler.h"
#include "output/d/aggregations.h"
#include "output/d/drops.h"
#include "output/d/record.h"
#include "output/d/script_tables.h"
#include "session/driven.h"
#include "target/live_symbolizer.h"

namespace clew::engine {

class DtraceConsumer final : public session::Driven, public output::d::Host {
 public:
  struct Sources {
    kernel::MachineSession& session;
    InlineProbes& inline_probes;
    target::AddressSpaces& spaces;
    pid_t target;  // The first of -c and -p; 0 = none.
  };
  // Where the answer has several tables; nulls otherwise.
  struct Rows {
    output::RowSink* sink = nullptr;
    output::d::ScriptTables* tables = nullptr;
  };
  // All are borrowed.
  DtraceConsumer(const CompiledScript& compiled, const kernel::Catalogue& catalogue,
                 const Sources& sources, DtraceConsole& console, const Rows& rows);

  void add_descriptors(std::vector<pollfd>& descriptors) override;
  std::chrono::nanoseconds patience() override { return switch_period_; }
  Expected<void> turn() override;
  void keep_house() override { tell_losses(); }
  // Takes all records that wait; those that began when this was called only with `all`.
  void read(bool all = false);
  void report_drops();
  // A probe was taken out.
  void tell_disarmed(const collect::DisarmedProbe& disarmed);
  // What the aggregations hold that nothing has printed, and what was lost.
  void finish(int exit_code);
  // Changes when a record came, or an aggregation changed. Reads all aggregations.
  [[nodiscard]] uint64_t activity();
  // exit() was called.
  [[nodiscard]] bool is_over() const;

  void write(std::string_view text) override;
  void draw(std::span<const uint32_t> aggregations, const output::d::Table& table) override;
  void add_record(const abi::MachineRecordHeader& header, const output::d::ProbeNames& probe,
                  std::vector<aggregate::Value> values, std::string text) override;
  void run_command(const std::string& command) override;
  void reopen(const std::string& path) override;
  void truncate_output() override;
  void refuse_option(const std::string& name, const std::string& value) override;
  void refresh(uint32_t aggregation) override;
  void take_out(uint32_t aggregation) override;

 private:
  using Record = FollowedRecords::Record;
  struct Held {
    std::vector<Record> records;
    uint64_t bytes = 0;
    uint32_t key = 0;  // Of the use of the id that they belong to.
  };
  void print_aggregations();
  void draw_rest();
  void draw_alone(const output::d::Table& table);
  void flush();
  void tell_losses();
  [[nodiscard]] collect::Losses losses();
  [[nodiscard]] std::unique_ptr<abi::MachineLosses> all_losses();
  std::vector<kernel::MachineAggregate> entries(uint32_t aggregation, bool takes);
  void show(uint32_t aggregation, std::vector<kernel::MachineAggregate> entries);
  void read_merged(bool all);
  void take_in_order(std::span<const uint8_t> bytes);
  void collect(std::span<const uint8_t> bytes);
  [[nodiscard]] bool is_sound(std::span<const uint8_t> bytes) const;
  void hold(uint32_t key, std::span<const uint8_t> bytes);
  void take(std::span<const uint8_t> bytes, const abi::MachineRecordHeader* next);
  void take_error(std::span<const uint8_t> bytes);
  void print(std::span<const uint8_t> record, const abi::MachineRecordHeader* next);
  void commit(uint32_t key);
  void discard(uint32_t key);
  [[nodiscard]] output::d::ProbeNames names_of(uint32_t probe) const;

  const CompiledScript& compiled_;
  const kernel::Catalogue& catalogue_;
  kernel::MachineSession& session_;
  InlineProbes& inline_probes_;
  DtraceConsole& console_;
  target::LiveSymbolizer symbols_;
  std::chrono::nanoseconds switch_period_;
  output::d::PrintOptions options_;
  output::d::Aggregations aggregations_;
  output::d::RecordPrinter printer_;
  output::d::DropReporter drops_;
  uint64_t records_ = 0;
  bool has_drawn_ = false;  // To where output goes now.
  Rows rows_;
  RecordMerge merge_;
  FollowedRecords followed_;
  uint64_t speculation_bytes_ = 0;
  uint64_t speculations_max_ = 0;
  std::map<uint32_t, Held> speculations_;  // By id.
  std::vector<collect::DisarmedProbe> disarmed_;
};

}  // namespace clew::engine
