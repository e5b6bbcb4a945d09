// SPDX-License-Identifier: Apache-2.0
// For tests: clauses from their text on, at a site of the test's own process.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "d_machine.h"
#include "kernel/bpf.h"

namespace clew::process {

inline RegisterFile with(uint32_t which, uint64_t value) {
  RegisterFile registers = {};
  registers[which] = value;
  return registers;
}

class ProcessFiring : public testing::Test {
 protected:
  void SetUp() override {
    const auto array = kernel::create_array("trial", 8);
    if (!array) GTEST_SKIP() << "NOT TESTED: " << array.error().message;
  }
  void load(std::string_view text, uint64_t aggregation_bytes = 1U << 20) {
    machine_.reset();
    auto script = DScript::compile(text);
    ASSERT_TRUE(script) << script.error().message;
    script_ = std::move(*script);
    kernel::MachinePrograms programs = script_.programs();
    programs.aggregation_bytes = aggregation_bytes;
    auto machine = DMachine::make(std::move(programs));
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = std::move(*machine);
  }
  InstalledFiring install(const FiringSite& site, const std::vector<uint32_t>& clauses) {
    auto firing = machine_->install(site, clauses);
    EXPECT_TRUE(firing) << firing.error().message;
    return firing ? *firing : InstalledFiring{};
  }
  // All clauses at one site, fired once.
  void run(std::string_view text, const RegisterFile& registers = {},
           plan::d::FiringPoint point = plan::d::FiringPoint::Entry) {
    load(text);
    if (machine_ == nullptr) return;
    const InstalledFiring firing = install({.point = point}, script_.clauses);
    if (firing.stub_address == 0) return;
    machine_->fire(firing, registers);
    records_ = machine_->read_records();
  }
  // The value of field `index` of the only data record.
  uint64_t field(uint32_t index) {
    if (records_.size() != 1) {
      ADD_FAILURE() << records_.size() << " records";
      return 0;
    }
    const auto& actions = script_.generated.records[records_[0].header.clause].actions;
    std::vector<query::d::RecordField> fields;
    for (const auto& action : actions)
      fields.insert(fields.end(), action.fields.begin(), action.fields.end());
    uint64_t value = 0;
    const query::d::RecordField& f = fields.at(index);
    std::memcpy(&value, records_[0].bytes.data() + f.offset_bytes, std::min(8U, f.size_bytes));
    return value;
  }
  std::string text_field(uint32_t index) {
    if (records_.size() != 1) return "no record";
    const auto& actions = script_.generated.records[records_[0].header.clause].actions;
    std::vector<query::d::RecordField> fields;
    for (const auto& action : actions)
      fields.insert(fields.end(), action.fields.begin(), action.fields.end());
    const query::d::RecordField& f = fields.at(index);
    const auto* const begin =
        reinterpret_cast<const char*>(records_[0].bytes.data() + f.offset_bytes);
    return {begin, strnlen(begin, f.size_bytes)};
  }

  DScript script_;
  std::unique_ptr<DMachine> machine_;
  std::vector<kernel::Record> records_;
};

}  // namespace clew::process
